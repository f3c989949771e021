"""The numbers of a Spurious-Motif recipe."""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal

from graphxai_data.files.toml import Between, Names
from graphxai_data.generators.base import BaseParams
from graphxai_data.generators.spmotif_bases import BASES, Catalogue
from graphxai_data.graphs.record import SPLIT_NAMES

CLASSES = 3
TEST = SPLIT_NAMES.index("test")
# The node of each motif that the bridge ends at: in DIR's code the top of a house, the hub of a
# crane, any node of a cycle.
BRIDGED = {"cycle": 0, "house": 2, "crane": 0, "k23": 2}
# The key of the recipe that has the sizes of each kind of base.
_SIZES = {"tree": "tree_heights", "ladder": "ladder_rungs", "wheel": "wheel_nodes"}


@dataclass(frozen=True)
class SPMotifParams(BaseParams):
    """The recipe's numbers; class c has the motif and, as its own base, the base number c.

    Sizes are the smallest and the largest; those in between are equally probable.
    """

    bases: Annotated[tuple[str, ...], Names(tuple(BASES), CLASSES, CLASSES)]
    motifs: Annotated[tuple[str, ...], Names(tuple(BRIDGED), CLASSES, CLASSES)]
    bias: Annotated[float, Between(0, 1)]  # probability of the own base
    biased_splits: Annotated[tuple[str, ...], Names(SPLIT_NAMES, 0, 3)]  # others: 1/3 per base
    large_share: Annotated[float, Between(0, 1)]  # share of test graphs that are large
    tree_heights: tuple[int, ...]
    ladder_rungs: tuple[int, ...]
    wheel_nodes: tuple[int, ...]
    large_tree_heights: tuple[int, ...]
    large_ladder_rungs: tuple[int, ...]
    large_wheel_nodes: tuple[int, ...]
    features: Literal["noise", "degree"]  # uniform random numbers, or the one-hot degree
    feature_width: Annotated[int, Between(2, 64)]  # the last of degrees means "or more"

    def __post_init__(self) -> None:
        super().__post_init__()
        for kind, key in _SIZES.items():
            usual, large = getattr(self, key), getattr(self, f"large_{key}")
            base = BASES[kind]
            _check_sizes(key, usual, base.least, base.most - 1)
            _check_sizes(
                f"large_{key}",
                large,
                usual[1] + 1,
                base.most,
                f"; large bases are larger than all others, and {key} ends at {usual[1]}",
            )

    @cached_property
    def catalogue(self) -> Catalogue:
        """All bases that can be drawn."""
        keys = [(_SIZES[kind], f"large_{_SIZES[kind]}") for kind in self.bases]
        ends = [[getattr(self, key) for key in pair] for pair in keys]
        return Catalogue.of(self.bases, [[range(a, b + 1) for a, b in pair] for pair in ends])


def _check_sizes(key: str, sizes: tuple[int, ...], least: int, most: int, reason: str = "") -> None:
    """Raise a `ValueError` unless these are two sizes within the bounds, smallest first."""
    if len(sizes) == 2 and least <= sizes[0] <= sizes[1] <= most:
        return
    if len(sizes) == 2 and least <= sizes[1] < sizes[0] <= most:
        reason = "; exchange them"
    raise ValueError(
        f"{key}: expected the smallest and the largest size, from {least} to {most}, "
        f"got {list(sizes)}{reason}"
    )
