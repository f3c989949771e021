"""The numbers of a BA-2Motif recipe."""

from dataclasses import dataclass
from math import ceil
from typing import Annotated, Literal

from graphxai_data.files.toml import Between, Names
from graphxai_data.generators.base import BaseParams

# Nodes are numbered by falling degree, so that a node of one motif and the node of the same number
# of its counterfactual twin have the same degree (House and K2,3: 3, 3, 2, 2, 2).
MOTIFS: dict[str, tuple[tuple[int, int], ...]] = {
    "house": ((0, 1), (0, 2), (1, 2), (0, 3), (1, 4), (3, 4)),
    "cycle": ((0, 1), (1, 2), (2, 3), (3, 4), (4, 0)),
    "k23": ((0, 2), (0, 3), (0, 4), (1, 2), (1, 3), (1, 4)),
}


@dataclass(frozen=True)
class Params(BaseParams):
    """The recipe's numbers.

    Attributes:
        motifs: the two motifs; with degree features, their position is the class.
        base_nodes_min: smallest base graph.
        base_nodes_mean: exact expectation of the base's size, which is spread evenly around it.
        features: "degree": one-hot degrees, class = motif. "colour": two colours, drawn for each
            base node and once for the whole motif; class = motif XOR colour of the motif.
        twins: graphs come in groups that differ only in motif (and motif colour).
    """

    motifs: Annotated[tuple[str, ...], Names(tuple(MOTIFS), 2, 2)]
    base_nodes_min: Annotated[int, Between(2, 100)]
    base_nodes_mean: float
    features: Literal["degree", "colour"]
    twins: bool

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.base_nodes_min <= self.base_nodes_mean <= self.base_nodes_min + 70:
            raise ValueError(
                f"base_nodes_mean must be from base_nodes_min = {self.base_nodes_min} to 70 above, "
                f"got {self.base_nodes_mean}"
            )

    @property
    def base_nodes_max(self) -> int:
        """Largest base graph that can be drawn."""
        return self.base_nodes_min + ceil(2 * (self.base_nodes_mean - self.base_nodes_min))

    @property
    def group_size(self) -> int:
        """Graphs per group: one for each motif (and colour) with twins, else one."""
        if not self.twins:
            return 1
        return 2 if self.features == "degree" else 4
