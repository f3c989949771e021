"""Graphs that are not of a build: any PyG dataset, or a list of graphs, with their rationales.

What the evaluation needs is copied out of each graph; the given graphs are never changed.
"""

import math
from collections.abc import Sequence, Sized
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset, IterableDataset
from torch_geometric import EdgeIndex
from torch_geometric.data import Batch, Data, InMemoryDataset

from graphxai_data.errors import InputError
from graphxai_data.evaluation.given_rationales import complete_forms, rationale_fields
from graphxai_data.explain.functions import without_answers
from graphxai_data.metrics import as_array
from graphxai_data.training.checkpoint import find_model, load_checkpoint

_EXPECTED = "a GraphXAIDataset, another PyG dataset, or a list of PyG graphs"


class OtherGraphs(InMemoryDataset):  # type: ignore[misc]
    """Graphs of any origin, in the fields that the evaluation works with.

    Every graph has `x` [n, p], of ones [n, 1] if none is given, `edge_index` [2, m], `edge_attr`
    (if given), `node_mask` [n] bool, `edge_mask` [m] bool and `graph_id` [1], its position if none
    is given. `y` [1] is the class of a graph, if each graph has one. If one of them has
    alternatives, each has `alternative_bits` [n]; if one has a `node_weight` [n], each has to.

    Args:
        given: PyG graphs with a `node_mask`, an `edge_mask`, `alternatives` or a `node_weight`.
    """

    task = "graph"

    def __init__(self, given: Sequence[Any]) -> None:
        super().__init__()
        self.given = list(given)
        if not self.given:
            raise InputError("dataset: expected at least one graph, got none")
        fields = [_fields(graph, f"graph {i}") for i, graph in enumerate(self.given)]
        _check_alike(fields)
        complete_forms(fields)
        # Labels that are whole are classes, whatever their type: PyG has many such datasets.
        self.has_numbers = _has_fractions(self.given)
        labels, ids = _whole_numbers(self.given, "y"), _whole_numbers(self.given, "graph_id")
        if ids is None or not 0 <= min(ids) <= max(ids) < 2**32:  # what random draws can take
            ids = list(range(len(fields)))
        for key, values in (("y", labels), ("graph_id", ids)):
            for graph_fields, value in zip(fields, values or (), strict=bool(values)):
                graph_fields[key] = torch.tensor([value])
        graphs = [Data(**graph_fields) for graph_fields in fields]
        self._data, self.slices = self.collate(graphs)

    def shown(self, i: int) -> Any:
        """Return graph i as it was given, without its rationale: what a function may see."""
        graph = without_answers(self.given[i])
        if "x" not in graph:  # PyG may have read the number of nodes from the rationale
            graph.num_nodes = self.given[i].num_nodes
        return graph


def graphs_of(dataset: Any) -> list[Any]:
    """Return the graphs of a PyG dataset, of a part of one, or of a list."""
    if isinstance(dataset, Data):
        advice = "batch.to_data_list()" if isinstance(dataset, Batch) else "[graph]"
        raise InputError(
            f"dataset: expected {_EXPECTED}, got one {type(dataset).__name__}; write {advice}"
        )
    if isinstance(dataset, list | tuple):
        return list(dataset)
    is_indexed = isinstance(dataset, Dataset) and not isinstance(dataset, IterableDataset)
    if not is_indexed or not isinstance(dataset, Sized):
        raise InputError(
            f"dataset: expected {_EXPECTED}, got {type(dataset).__name__}; take its graphs into a "
            "list first"
        )
    return [dataset[i] for i in range(len(dataset))]  # type: ignore[index]


def load_fitting_model(name: str | Path, part: OtherGraphs) -> nn.Module:
    """Return a trained model; an `InputError` if the graphs do not have the features it takes."""
    model, card = load_checkpoint(find_model(name))
    expected = card.shape.in_features, card.shape.edge_features
    # A model without edge features ignores those of the graphs.
    widths = part.num_node_features, part.num_edge_features if expected[1] else 0
    if expected != widths:
        raise InputError(
            f"{name}: a model for {expected[0]} node features and {expected[1]} edge features; "
            f"these graphs have {widths[0]} and {widths[1]}; use a model trained on such graphs"
        )
    return model


def _fields(graph: Any, where: str) -> dict[str, Tensor]:
    """Return copies of features, edges and masks of a graph, checked."""
    if not isinstance(graph, Data) or isinstance(graph, Batch):
        raise InputError(f"{where}: expected a PyG Data, got {type(graph).__name__}")
    edge_index = _edge_index(graph, where)
    edges, nodes = edge_index.shape[1], graph.num_nodes
    if not nodes:
        raise InputError(f"{where}: has no nodes; leave empty graphs out")
    if edges and not 0 <= int(edge_index.min()) <= int(edge_index.max()) < nodes:
        raise InputError(
            f"{where}: edge_index: expected nodes from 0 to {nodes - 1}, got "
            f"{int(edge_index.min())} to {int(edge_index.max())}"
        )
    fields = {"x": torch.ones(nodes, 1), "edge_index": edge_index}
    for key, size in (("x", nodes), ("edge_attr", edges)):
        value = getattr(graph, key, None)
        if value is None:
            continue
        if not isinstance(value, Tensor) or value.ndim == 0 or len(value) != size:
            got = list(value.shape) if isinstance(value, Tensor) else type(value).__name__
            raise InputError(f"{where}: {key}: expected a tensor [{size}, …], got {got}")
        fields[key] = value.detach().cpu().clone()
    return fields | rationale_fields(graph, edge_index, nodes, where)


def _edge_index(graph: Data, where: str) -> Tensor:
    edge_index = graph.edge_index
    if isinstance(edge_index, EdgeIndex):
        edge_index = edge_index.as_tensor()
    is_tensor = isinstance(edge_index, Tensor) and edge_index.ndim == 2
    if not is_tensor or len(edge_index) != 2 or edge_index.is_floating_point():
        got = list(edge_index.shape) if isinstance(edge_index, Tensor) else "none"
        raise InputError(f"{where}: edge_index: expected whole numbers [2, m], got {got}")
    result: Tensor = edge_index.detach().cpu().long()
    return result


def _check_alike(fields: list[dict[str, Tensor]]) -> None:
    """Raise an `InputError` unless features are of the same width and type in all graphs."""

    def described(graph: dict[str, Tensor]) -> str:
        kinds = {key: graph[key] for key in ("x", "edge_attr") if key in graph}
        widths = [f"{k} {['…', *v.shape[1:]]} of {v.dtype}" for k, v in kinds.items()]
        return " and ".join(widths).replace("'", "").replace("torch.", "")

    expected = described(fields[0])
    for i, graph in enumerate(fields):
        if described(graph) != expected:
            raise InputError(
                f"graph {i}: expected features as in graph 0, {expected}, got {described(graph)}"
            )


def _whole_numbers(graphs: list[Any], key: str) -> list[int] | None:
    """Return the one whole number that each graph has under a key; None if not each has one."""
    numbers = [_whole_number(getattr(graph, key, None)) for graph in graphs]
    known = [number for number in numbers if number is not None]
    return known if len(known) == len(numbers) else None


def _has_fractions(graphs: Sequence[Any]) -> bool:
    """Return whether every graph has one number as its label, and one of them is not whole."""
    labels = [as_array(graph.y) for graph in graphs if graph.get("y") is not None]
    if len(labels) < len(graphs) or any(y.size != 1 or y.dtype.kind != "f" for y in labels):
        return False
    values = np.array([label.item() for label in labels])
    return bool(np.isfinite(values).all() and (values != np.rint(values)).any())


def _whole_number(value: Any) -> int | None:
    """Return the only number of a value, if it is whole; None for anything else."""
    if not isinstance(value, Tensor | np.ndarray | int | float):
        return None
    array = as_array(value)
    if array.size != 1 or array.dtype.kind not in "biuf":
        return None
    number = array.item()
    is_whole = math.isfinite(number) and number == int(number) and abs(number) < 2**62
    return int(number) if is_whole else None
