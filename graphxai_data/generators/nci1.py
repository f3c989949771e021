"""NCI1: molecules that were or were not active against lung cancer (Wale et al., 2008).

From the files of TUDataset. Nothing is drawn but the splits. Which atoms an activity comes from
nobody knows: there is no rationale, and explanations cannot be scored here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt

from graphxai_data.errors import InputError
from graphxai_data.files.raw import Source
from graphxai_data.files.toml import Between
from graphxai_data.generators.nci1_proof import Prover as Prover
from graphxai_data.generators.params import BaseParams
from graphxai_data.generators.tu_files import TUGraphs, read_tu, tu_files
from graphxai_data.graphs.columns import Columns, Ints, pointers
from graphxai_data.graphs.record import Feature, Plan, Schema
from graphxai_data.graphs.splits import assign_splits, stratified_order
from graphxai_data.seeds import Draws, rng_for

FILES = "NCI1"
CLASSES = 2
_FIRST_TYPE = 1  # atom types are counted from 1 in the file, as columns of x from 0
SOURCES: dict[str, tuple[str, ...]] = {"nci1": tu_files(FILES)}
GIVEN = True

# A graph on its way to a worker: kinds of its nodes [n], and its edges [2, m].
RawGraph = tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]


@dataclass(frozen=True)
class Params(BaseParams):
    """The recipe's numbers.

    Attributes:
        atom_types: kinds of nodes in the files.
    """

    atom_types: Annotated[int, Between(1, 256)]


def schema(params: Params) -> Schema:
    """One-hot atom types, nothing on edges, two classes, no rationale."""
    return Schema(
        Feature(params.atom_types, "onehot"),
        edge_features=None,
        num_classes=CLASSES,
        has_rationale=False,
    )


def class_names(params: Params) -> list[str]:
    """What the assay said."""
    return ["inactive", "active"]


def node_values(params: Params) -> dict[str, list[str] | None]:
    """The atom type; which elements they are, the files do not say."""
    return {"atom type": [str(kind) for kind in range(params.atom_types)]}


def plan_from_sources(
    params: Params,
    fractions: Sequence[float],
    graphs: int,
    sources: dict[str, Source],
    draws: Draws,
) -> tuple[Ints, Ints, npt.NDArray[np.uint8]]:
    """Class, place in the files, and split of every graph; fewer are always the same ones."""
    label = _read(params, sources["nci1"]).label
    if graphs > len(label):
        raise InputError(
            f"{sources['nci1'].path}: {len(label)} graphs, {graphs} asked for; ask for no more"
        )
    chosen = np.sort(stratified_order(label, rng_for(0, "nci1"))[:graphs])
    return label[chosen], chosen, assign_splits(label[chosen], chosen, fractions, draws)


def read(
    params: Params, sources: dict[str, Source], group: Ints, seed: int
) -> tuple[list[RawGraph], dict[str, dict[str, int]]]:
    """Atoms and bonds of each graph; none is passed over."""
    found = _read(params, sources["nci1"])
    raw = []
    for i in group.tolist():
        nodes = slice(*found.node_ptr[i : i + 2].tolist())
        edges = slice(*found.edge_ptr[i : i + 2].tolist())
        kind = (found.kind[nodes] - _FIRST_TYPE).astype(np.uint8)
        raw.append((kind, found.edge_index[:, edges]))
    return raw, {"nci1": {}}


def generate(params: Params, plan: Plan, seed: int) -> Columns:
    """The planned graphs as they are in the files, their edges sorted."""
    raw: list[RawGraph] = list(plan.raw or [])
    return {
        "node_ptr": pointers([len(kind) for kind, _ in raw]),
        "edge_ptr": pointers([edges.shape[1] for _, edges in raw]),
        "x": np.concatenate([np.empty(0, np.uint8), *(kind for kind, _ in raw)]),
        "edge_index": np.concatenate(
            [np.empty((2, 0), np.int64), *(edges for _, edges in raw)], axis=1
        ),
        "y": plan.label,
        "split": plan.split,
        "graph_id": plan.index,
        "group": plan.group,
    }


def check(params: Params, columns: Columns) -> list[str]:
    """Nothing beyond what holds for every dataset can be known from the arrays alone."""
    return []


def _read(params: Params, source: Source) -> TUGraphs:
    found = read_tu(source, FILES)
    for name, values, first, count in (
        ("graph_labels", found.label, 0, CLASSES),
        ("node_labels", found.kind, _FIRST_TYPE, params.atom_types),
    ):
        last = first + count - 1
        wrong = ((values < first) | (values > last)).nonzero()[0]
        if len(wrong):
            raise InputError(
                f"{source.path}: {FILES}_{name}.txt: line {wrong[0] + 1}: {values[wrong[0]]}, "
                f"expected {first} to {last}"
            )
    return found
