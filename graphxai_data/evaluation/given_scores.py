"""Scores that are given: by a function, as arrays or explanations, or in an explanation file."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn
from torch_geometric.explain import Explanation as PyGExplanation

from graphxai_data.datasets.loader import BatchLoader
from graphxai_data.errors import InputError
from graphxai_data.evaluation.other_datasets import OtherGraphs
from graphxai_data.evaluation.truth import Scores, Truth
from graphxai_data.explain.edges import RULES, nodes_from_edges
from graphxai_data.explain.explanation import Explanation
from graphxai_data.explain.files import ScoreFile
from graphxai_data.explain.functions import node_and_edge_scores
from graphxai_data.explain.pyg_explainers import PyGFunction
from graphxai_data.metrics import Floats, Ints, as_array, checked_scores
from graphxai_data.nn.random import seeded, torch_seed
from graphxai_data.progress import Progress
from graphxai_data.training.checkpoint import weights_digest

_EXPLANATIONS = (Explanation, PyGExplanation)


def function_scores(
    name: str, run: Callable[[Any], Any], truth: Truth, device: torch.device, progress: Progress
) -> dict[str, Scores]:
    """Return the scores of a function of one graph, by the names of its rows.

    Its draws from torch's generators depend on the graph alone.
    """
    results = []
    for i, data in enumerate(truth.shown(as_given=not isinstance(run, PyGFunction))):
        with seeded(torch_seed(0, "evaluate/function", int(truth.graph_id[i]))):
            result = run(data.to(device))
        results.append(node_and_edge_scores(result, f"'{name}', graph {i}"))
        progress(i + 1, len(truth.part), name)
    return _rows(name, results, truth)


def array_scores(name: str, values: Any, truth: Truth) -> dict[str, Scores]:
    """Return scores that are given for all graphs at once, or in a list with one item per graph.

    An item is an array, or an explanation of ours or PyG's.
    """
    graphs = len(truth.graph_id)
    if isinstance(values, _EXPLANATIONS):
        nodes, edges = node_and_edge_scores(values, f"'{name}'")
        return _rows_of_all(
            name,
            None if nodes is None else checked_scores(nodes, truth.node_ptr, f"scores of '{name}'"),
            None if edges is None else _checked_edges(name, edges, truth),
            truth,
        )
    if isinstance(values, list | tuple) and any(isinstance(v, _EXPLANATIONS) for v in values):
        _check_count(name, values, graphs, "explanations")
        for i, value in enumerate(values):
            if not isinstance(value, _EXPLANATIONS):
                raise InputError(
                    f"scores of '{name}': expected an explanation for graph {i}, as for others, "
                    f"got {type(value).__name__}"
                )
        results = [node_and_edge_scores(v, f"'{name}', graph {i}") for i, v in enumerate(values)]
        return _rows(name, results, truth)
    if isinstance(values, list | tuple) and any(np.ndim(as_array(v)) for v in values):
        _check_count(name, values, graphs, "arrays")
        values = _concatenate(name, [as_array(v) for v in values], truth.node_ptr, "node")
    return {name: Scores(checked_scores(values, truth.node_ptr, f"scores of '{name}'"))}


def _check_count(name: str, values: Sequence[Any], graphs: int, what: str) -> None:
    if len(values) != graphs:
        raise InputError(
            f"scores of '{name}': expected {graphs} {what}, one per graph, got {len(values)}"
        )


def _checked_edges(name: str, edges: Any, truth: Truth) -> Floats:
    return checked_scores(edges, truth.edge_ptr, f"edge scores of '{name}'")


def _rows(name: str, results: Sequence[tuple[Any, Any]], truth: Truth) -> dict[str, Scores]:
    """Return the rows of an explainer, for scores of the nodes and of the edges of each graph."""
    nodes, edges = ([pair[i] for pair in results] for i in (0, 1))
    without = [i for i, pair in enumerate(results) if pair[0] is None and pair[1] is not None]
    if without and len(without) < len(nodes):
        raise InputError(
            f"scores of '{name}': those of graph {without[0]} are of edges alone, those of others "
            "are not; give the same masks for all graphs"
        )
    all_edges = None
    if all(scores is not None for scores in edges):
        all_edges = _concatenate(name, [as_array(e) for e in edges], truth.edge_ptr, "edge")
    all_nodes = None
    if not without:
        all_nodes = _concatenate(name, [as_array(n) for n in nodes], truth.node_ptr, "node")
    return _rows_of_all(name, all_nodes, all_edges, truth)


def _rows_of_all(
    name: str, nodes: Floats | None, edges: Floats | None, truth: Truth
) -> dict[str, Scores]:
    """Return one row; for scores of edges alone, a row for each rule that gives those of nodes."""
    if nodes is not None or edges is None:
        return {name: Scores(np.asarray(nodes), edges)}
    part = truth.part
    whole = next(iter(BatchLoader(part, len(part), keys=("x", "edge_index"))))
    scores, count = torch.from_numpy(edges), int(truth.node_ptr[-1])
    return {
        f"{name}-{rule}": Scores(
            nodes_from_edges(scores, whole.edge_index, count, rule).numpy(), edges
        )
        for rule in RULES
    }


def _concatenate(name: str, arrays: list[Any], ptr: Ints, what: str) -> Floats:
    """Return one array of all graphs' scores; an `InputError` names the first wrong graph."""
    for i, (array, size) in enumerate(zip(arrays, np.diff(ptr), strict=True)):
        if array.shape != (size,):
            raise InputError(
                f"{what} scores of '{name}': expected [{size}] for graph {i}, got "
                f"{list(array.shape)}"
            )
    return checked_scores(np.concatenate(arrays), ptr, f"{what} scores of '{name}'")


def file_scores(
    file: ScoreFile, truth: Truth, model: nn.Module | None = None, force: bool = False
) -> Scores:
    """Return a file's scores in the order of these graphs; `force` allows another build, model."""
    if isinstance(truth.part, OtherGraphs):
        raise InputError(
            f"scores of '{file.explainer}': an explanation file is for one build, and these graphs "
            "are of none; give its scores as an array"
        )
    expected = truth.part.manifest.content_sha256
    if file.content_sha256 != expected and not force:
        raise InputError(
            f"scores of '{file.explainer}': made for '{file.dataset}', content "
            f"{file.content_sha256[:12]}…; this is '{truth.part.name}', content {expected[:12]}…"
        )
    if model is not None and file.model_sha256 and not force:
        digest = weights_digest(model)
        if file.model_sha256 != digest:
            raise InputError(
                f"scores of '{file.explainer}': they explain another model (weights "
                f"{file.model_sha256[:12]}…, expected {digest[:12]}…)"
            )
    position = {int(graph): i for i, graph in enumerate(file.graph_id)}
    missing = [int(graph) for graph in truth.graph_id if int(graph) not in position]
    if missing:
        raise InputError(
            f"scores of '{file.explainer}': none for {len(missing)} of the {len(truth.graph_id)} "
            f"graphs, the first of them graph {missing[0]}; expected scores for each"
        )
    order = [position[int(graph)] for graph in truth.graph_id]

    def in_order(scores: Any, ptr: Ints, expected_ptr: Ints, what: str) -> Floats:
        counts, sizes = np.diff(ptr)[order], np.diff(expected_ptr)
        for graph in (counts != sizes).nonzero()[0][:1]:
            raise InputError(
                f"scores of '{file.explainer}': {counts[graph]} {what} in graph "
                f"{truth.graph_id[graph]}, expected {sizes[graph]}"
            )
        return np.concatenate([scores[ptr[i] : ptr[i + 1]] for i in order]).astype(np.float64)

    nodes = in_order(file.node_scores, file.node_ptr, truth.node_ptr, "nodes")
    if file.edge_scores is None or file.edge_ptr is None:
        return Scores(nodes)
    return Scores(nodes, in_order(file.edge_scores, file.edge_ptr, truth.edge_ptr, "edges"))
