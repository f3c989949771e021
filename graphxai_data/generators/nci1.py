"""NCI1: molecules that were or were not active against lung cancer (Wale et al., 2008).

The graphs come from the files of TUDataset; only the splits are drawn. Nobody knows which atoms
cause the activity, so there is no rationale, and explanations cannot be scored here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from graphxai_data.files.toml import Between
from graphxai_data.generators.base import BaseParams, Planned, Prover, Rejected, Sources
from graphxai_data.generators.published import PublishedGenerator, RawGraph, rows_to_build
from graphxai_data.generators.tu_files import read_tu, tu_files
from graphxai_data.graphs.columns import Ints
from graphxai_data.graphs.schema import Feature, Schema
from graphxai_data.graphs.splits import assign_splits
from graphxai_data.seeds import Draws

FILES = "NCI1"
CLASSES = 2


class NCI1Generator(PublishedGenerator):
    """The molecules of NCI1."""

    sources: ClassVar = {"nci1": tu_files(FILES)}

    @dataclass(frozen=True)
    class Params(BaseParams):
        """The recipe's numbers; `atom_types` are the kinds of nodes in the files."""

        atom_types: Annotated[int, Between(1, 256)]

    params: Params

    def schema(self) -> Schema:
        """One-hot atom types, no edge features, two classes, no rationale."""
        features = Feature(self.params.atom_types, "onehot")
        return Schema(features, edge_features=None, num_classes=CLASSES, has_rationale=False)

    def class_names(self) -> list[str]:
        """Return the results of the assay."""
        return ["inactive", "active"]

    def node_values(self) -> dict[str, list[str] | None]:
        """Return the atom types; the files do not say which elements they are."""
        return {"atom type": [str(kind) for kind in range(self.params.atom_types)]}

    def plan_from_sources(
        self, fractions: Sequence[float], graphs: int, sources: Sources, draws: Draws
    ) -> Planned:
        """Return class, row in the files, and split of every graph."""
        label = read_tu(sources["nci1"], FILES, CLASSES, self.params.atom_types).label
        rows = rows_to_build(sources["nci1"], label, graphs, "nci1")
        return label[rows], rows, assign_splits(label[rows], rows, fractions, draws)

    def read(self, sources: Sources, group: Ints, seed: int) -> tuple[list[RawGraph], Rejected]:
        """Return atoms and bonds of each graph; none is rejected."""
        graphs = read_tu(sources["nci1"], FILES, CLASSES, self.params.atom_types)
        return graphs.take(group), {"nci1": {}}

    def prover(self, sources: Sources) -> Prover:
        """Return the proof by independent code."""
        from graphxai_data.generators.nci1_proof import NCI1Prover

        return NCI1Prover(self.params, sources)
