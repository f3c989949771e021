"""The numbers of a Di-Halo-Benzene recipe."""

from dataclasses import dataclass
from typing import Annotated

from rdkit import Chem

from graphxai_data.files.toml import Between, Names
from graphxai_data.generators.base import BaseParams

HALOGENS = ("F", "Cl", "Br", "I")
# Where the two halogens can sit on a ring that is attached at position 1, up to symmetry.
PLACES = {
    "ortho": ((2, 3), (3, 4)),
    "meta": ((2, 4), (2, 6), (3, 5)),
    "para": ((2, 5),),
}


@dataclass(frozen=True)
class Params(BaseParams):
    """The recipe's numbers.

    Attributes:
        halogens: class = (index in this list) * len(positions) + (index in `positions`).
        positions: of the two halogens to each other.
        atoms: elements, in the order of the one-hot node features.
        hydrogens: whether hydrogens are nodes.
        min_heavy_atoms: smallest background.
        matched: every background carries all nine isomers at the same carbon, in one group.
        decoys: every molecule carries two of each halogen; those that do not make the class sit
            on the background, no two of them on one ring.
    """

    halogens: Annotated[tuple[str, ...], Names(HALOGENS)]
    positions: Annotated[tuple[str, ...], Names(tuple(PLACES))]
    atoms: Annotated[tuple[str, ...], Names()]
    hydrogens: bool
    min_heavy_atoms: Annotated[int, Between(1, 100)]
    matched: bool
    decoys: bool

    def __post_init__(self) -> None:
        super().__post_init__()
        needed = {"C", *self.halogens, *(["H"] if self.hydrogens else [])}
        if missing := needed - set(self.atoms):
            raise ValueError(f"atoms must hold {', '.join(sorted(missing))}")
        if unknown := [symbol for symbol in self.atoms if not _is_element(symbol)]:
            raise ValueError(f"atoms holds '{unknown[0]}', which is no element")

    @property
    def classes(self) -> tuple[tuple[str, str], ...]:
        """Halogen and position of each class."""
        return tuple((h, p) for h in self.halogens for p in self.positions)

    @property
    def group_size(self) -> int:
        """Graphs that share a background."""
        return len(self.classes) if self.matched else 1


def _is_element(symbol: str) -> bool:
    try:
        return bool(Chem.GetPeriodicTable().GetAtomicNumber(symbol) > 0)
    except RuntimeError:
        return False
