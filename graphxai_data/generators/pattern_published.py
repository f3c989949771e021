"""PATTERN as it was published: the graphs of Dwivedi et al., from the file that PyG offers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from graphxai_data.errors import InputError
from graphxai_data.files.raw import Source
from graphxai_data.files.toml import Between
from graphxai_data.generators.params import BaseParams
from graphxai_data.generators.pattern_file import read_lists, tensor_of
from graphxai_data.generators.pattern_published_proof import Prover as Prover
from graphxai_data.graphs.columns import Columns, Ints, pointers
from graphxai_data.graphs.record import SPLIT_NAMES, Feature, Plan, Schema
from graphxai_data.graphs.splits import stratified_order
from graphxai_data.seeds import Draws, rng_for

CLASSES = 2
SOURCES: dict[str, tuple[str, ...]] = {"pattern": ()}
GIVEN = True

# A graph on its way to a worker: features of its nodes [n], their classes [n], its edges [2, m].
RawGraph = tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8], npt.NDArray[np.int64]]


@dataclass(frozen=True)
class Params(BaseParams):
    """The recipe's numbers.

    Attributes:
        kinds: values of the node feature.
    """

    kinds: Annotated[int, Between(1, 256)]


def schema(params: Params) -> Schema:
    """As of graphs drawn anew: a one-hot feature, two classes of nodes, no rationale."""
    return Schema(
        Feature(params.kinds, "onehot"),
        edge_features=None,
        num_classes=CLASSES,
        has_rationale=False,
        task="node",
    )


def class_names(params: Params) -> list[str]:
    """Where a node lies."""
    return ["background", "pattern"]


def node_values(params: Params) -> dict[str, list[str] | None]:
    """The signal at a node."""
    return {"signal": [str(kind) for kind in range(params.kinds)]}


def plan_from_sources(
    params: Params,
    fractions: Sequence[float],
    graphs: int,
    sources: dict[str, Source],
    draws: Draws,
) -> tuple[Ints, Ints, npt.NDArray[np.uint8]]:
    """Place in the file and split of every graph, which has no class; fewer are always the same."""
    path, lists = sources["pattern"].path, read_lists(sources["pattern"])
    split = np.repeat(np.arange(len(SPLIT_NAMES), dtype=np.uint8), [len(part) for part in lists])
    if graphs > len(split):
        raise InputError(f"{path}: {len(split)} graphs, {graphs} asked for; ask for no more")
    order = stratified_order(split.astype(np.int64), rng_for(0, "pattern-published"))
    chosen = np.sort(order[:graphs])
    return np.zeros(graphs, np.int64), chosen, split[chosen]


def read(
    params: Params, sources: dict[str, Source], group: Ints, seed: int
) -> tuple[list[RawGraph], dict[str, dict[str, int]]]:
    """Features, classes and edges of each graph; none is passed over."""
    path = sources["pattern"].path
    stored = [graph for graphs in read_lists(sources["pattern"]) for graph in graphs]
    return [_graph(params, stored[i], f"{path}: graph {i}") for i in group.tolist()], {
        "pattern": {}
    }


def generate(params: Params, plan: Plan, seed: int) -> Columns:
    """The planned graphs as they are in the file, their edges sorted."""
    raw: list[RawGraph] = list(plan.raw or [])
    return {
        "node_ptr": pointers([len(kind) for kind, _, _ in raw]),
        "edge_ptr": pointers([edges.shape[1] for _, _, edges in raw]),
        "x": np.concatenate([np.empty(0, np.uint8), *(kind for kind, _, _ in raw)]),
        "node_y": np.concatenate([np.empty(0, np.uint8), *(label for _, label, _ in raw)]),
        "edge_index": np.concatenate(
            [np.empty((2, 0), np.int64), *(edges for _, _, edges in raw)], axis=1
        ),
        "y": plan.label,
        "split": plan.split,
        "graph_id": plan.index,
        "group": plan.group,
    }


def check(params: Params, columns: Columns) -> list[str]:
    """Nothing beyond what holds for every dataset can be known from the arrays alone."""
    return []


def _graph(params: Params, stored: Any, where: str) -> RawGraph:
    """One graph, checked."""
    x, label = (tensor_of(stored, key, "biuf", where) for key in ("x", "y"))
    edges = tensor_of(stored, "edge_index", "iu", where)
    if x.ndim != 2 or x.shape[1] != params.kinds or not len(x):
        raise InputError(f"{where}: x has shape {x.shape}, expected [nodes, {params.kinds}]")
    if not (np.isin(x, (0, 1)).all() and (x.sum(axis=1) == 1).all()):
        raise InputError(f"{where}: x is not one-hot")
    if label.shape != (len(x),) or not np.isin(label, range(CLASSES)).all():
        raise InputError(f"{where}: y: expected {len(x)} classes, 0 or 1, one a node")
    if edges.ndim != 2 or len(edges) != 2:
        raise InputError(f"{where}: edge_index has shape {edges.shape}, expected [2, edges]")
    if edges.size and (edges.min() < 0 or edges.max() >= len(x)):
        raise InputError(
            f"{where}: edge_index: {edges.min()} to {edges.max()}, expected 0 to {len(x) - 1}"
        )
    order = np.lexsort(edges[::-1])
    edges = edges[:, order].astype(np.int64)
    if (edges[0] == edges[1]).any():
        raise InputError(f"{where}: edge_index: a self-loop, expected none")
    if (np.diff(edges[0] * len(x) + edges[1]) == 0).any():
        raise InputError(f"{where}: edge_index: an edge that is there twice")
    if not np.array_equal(edges[:, np.lexsort(edges)][::-1], edges):
        raise InputError(f"{where}: edge_index: an edge without its reverse")
    return x.argmax(axis=1).astype(np.uint8), label.astype(np.uint8), edges
