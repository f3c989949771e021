"""NCI1: molecules that were or were not active against lung cancer (Wale et al., 2008).

The graphs come from the files of TUDataset; only the splits are drawn. Nobody knows which atoms
cause the activity, so there is no rationale, and explanations cannot be scored here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from graphxai_data.files.toml import Between
from graphxai_data.generators.base import BaseParams, Planned, Rejected, Sources
from graphxai_data.generators.published import RawGraph, rows_to_build
from graphxai_data.generators.published import check as check
from graphxai_data.generators.published import generate as generate
from graphxai_data.generators.tu_files import read_tu, tu_files
from graphxai_data.graphs.columns import Ints
from graphxai_data.graphs.record import Feature, Schema
from graphxai_data.graphs.splits import assign_splits
from graphxai_data.seeds import Draws

FILES = "NCI1"
CLASSES = 2
SOURCES: dict[str, tuple[str, ...]] = {"nci1": tu_files(FILES)}
GIVEN = True


@dataclass(frozen=True)
class Params(BaseParams):
    """The recipe's numbers; `atom_types` are the kinds of nodes in the files."""

    atom_types: Annotated[int, Between(1, 256)]


def schema(params: Params) -> Schema:
    """One-hot atom types, no edge features, two classes, no rationale."""
    features = Feature(params.atom_types, "onehot")
    return Schema(features, edge_features=None, num_classes=CLASSES, has_rationale=False)


def class_names(params: Params) -> list[str]:
    """Return the results of the assay."""
    return ["inactive", "active"]


def node_values(params: Params) -> dict[str, list[str] | None]:
    """Return the atom types; the files do not say which elements they are."""
    return {"atom type": [str(kind) for kind in range(params.atom_types)]}


def plan_from_sources(
    params: Params, fractions: Sequence[float], graphs: int, sources: Sources, draws: Draws
) -> Planned:
    """Return class, row in the files, and split of every graph."""
    label = read_tu(sources["nci1"], FILES, CLASSES, params.atom_types).label
    rows = rows_to_build(sources["nci1"], label, graphs, "nci1")
    return label[rows], rows, assign_splits(label[rows], rows, fractions, draws)


def read(
    params: Params, sources: Sources, group: Ints, seed: int
) -> tuple[list[RawGraph], Rejected]:
    """Return atoms and bonds of each graph; none is rejected."""
    graphs = read_tu(sources["nci1"], FILES, CLASSES, params.atom_types)
    return graphs.take(group), {"nci1": {}}
