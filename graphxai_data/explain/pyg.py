"""Scores as the masks of PyG's explanations, and back."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, cast

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.explain import Explanation as PyGExplanation

from graphxai_data.errors import InputError
from graphxai_data.explain.edges import Rule, nodes_from_edges
from graphxai_data.metrics import as_array

# "unit" moves the scores of each graph linearly to 0…1; "none" keeps them.
Scale = Literal["unit", "none"]
SCALES: tuple[Scale, ...] = ("unit", "none")
NodeMask = Literal["object", "attributes"]
EdgeMask = Literal["object"]


class MaskScores(NamedTuple):
    """Scores in the masks of a PyG explanation.

    Attributes:
        nodes: [n] the sum over the features of a node, or None without a node_mask.
        features: [n, p] for p > 1, or None.
        edges: [m], or None without an edge_mask.
    """

    nodes: Tensor | None
    features: Tensor | None
    edges: Tensor | None


def mask_scores(explanation: PyGExplanation, what: str) -> MaskScores:
    """Return the scores in the masks of an explanation: node_mask [n], [n, 1] or [n, p].

    `what` names the explanation in messages.
    """
    nodes, edges = (_tensor(explanation.get(key)) for key in ("node_mask", "edge_mask"))
    if nodes is None and edges is None:
        raise InputError(
            f"{what}: a PyG Explanation without a mask; expected a node_mask [n], [n, 1] or "
            "[n, p], or an edge_mask [m]"
        )
    if nodes is not None and nodes.ndim not in (1, 2):
        raise InputError(
            f"{what}: node_mask: expected [n], [n, 1] or [n, p], got {list(nodes.shape)}"
        )
    if edges is not None and edges.ndim == 2 and edges.shape[1] == 1:
        edges = edges.squeeze(1)
    if edges is not None and edges.ndim != 1:
        raise InputError(f"{what}: edge_mask: expected [m], got {list(edges.shape)}")
    if nodes is None or nodes.ndim == 1:
        return MaskScores(nodes, None, edges)
    return MaskScores(nodes.sum(dim=1), nodes if nodes.shape[1] > 1 else None, edges)


def _tensor(mask: Any) -> Tensor | None:
    if mask is None:
        return None
    scores = mask.detach() if isinstance(mask, Tensor) else torch.from_numpy(as_array(mask))
    return scores if scores.is_floating_point() else scores.double()


def scaled(scores: Tensor, graph: Tensor, graphs: int, scale: Scale) -> Tensor:
    """Return scores [k] or [k, p] as factors: by default from 0 to 1 in each graph, in their order.

    `graph` [k] is the graph of each row. Where all scores of a graph are equal, they become 1.
    """
    if scale not in SCALES:
        raise InputError(f"scale: expected one of {', '.join(SCALES)}, got {scale!r}")
    if scale == "none":
        return scores
    rows = scores if scores.ndim == 2 else scores.unsqueeze(1)
    if not rows.numel():
        return scores
    zeros = rows.new_zeros(graphs)
    low = zeros.scatter_reduce(0, graph, rows.amin(dim=1), "amin", include_self=False)
    high = zeros.scatter_reduce(0, graph, rows.amax(dim=1), "amax", include_self=False)
    low_row, range_row = low[graph].unsqueeze(1), (high - low)[graph].unsqueeze(1)
    unit = torch.where(range_row > 0, (rows - low_row) / range_row, torch.ones_like(rows))
    return unit.reshape(scores.shape)


def with_graphs(
    masks: Mapping[str, Tensor],
    values: Mapping[str, Tensor | None],
    data: Any,
    batch: Tensor,
    arguments: tuple[str, ...],
    node: int | None,
) -> PyGExplanation:
    """Return a PyG explanation with all that PyG's metrics look for.

    Args:
        masks: by name.
        values: `target` [g] and others, or None.
        data: the graphs.
        batch: [n] the graph of every node.
        arguments: of the model besides x and edge_index, among `ARGUMENTS`.
        node: whose output is explained, or None.
    """
    known = {"batch": batch, "edge_weight": None, "batch_size": int(batch.max()) + 1}
    given = {key: known[key] for key in arguments if key in known}
    attr = getattr(data, "edge_attr", None)
    if attr is not None and "edge_attr" in arguments:
        given["edge_attr"] = attr
    known_values: dict[str, Any] = {
        key: value for key, value in values.items() if value is not None
    }
    if node is not None and "target" in known_values:
        # PyG has the classes of all nodes here, of which one is known.
        known_values["index"] = torch.tensor([node], device=batch.device)
        others = torch.full_like(batch, -1)
        known_values["target"] = others.index_copy(0, known_values["index"], known_values["target"])
    result = PyGExplanation(x=data.x, edge_index=data.edge_index, **masks, **given, **known_values)
    result._model_args = list(given)
    return result


def fields_from_pyg(explanation: PyGExplanation, rule: Rule) -> dict[str, Any]:
    """Return the fields of our `Explanation` for one of PyG; arguments as for `from_pyg`."""
    if not isinstance(explanation, PyGExplanation):
        kind = type(explanation).__name__
        raise InputError(f"explanation: expected a PyG Explanation, got {kind}")
    x, edge_index, batch = (explanation.get(key) for key in ("x", "edge_index", "batch"))
    nodes, features, edges = mask_scores(explanation, "explanation")
    if edges is not None and (edge_index is None or len(edges) != edge_index.shape[1]):
        expected = "an edge_index as well" if edge_index is None else f"[{edge_index.shape[1]}]"
        raise InputError(f"explanation: edge_mask: expected {expected}, got {list(edges.shape)}")
    if nodes is None:
        nodes = nodes_from_edges(cast(Tensor, edges), edge_index, int(explanation.num_nodes), rule)
    if x is not None and len(x) != len(nodes):
        raise InputError(
            f"explanation: node_mask: expected {len(x)} rows, one per node, got {len(nodes)}"
        )
    graph = batch if batch is not None else torch.zeros_like(nodes, dtype=torch.int64)
    fields = {
        "node_scores": nodes,
        "feature_scores": features,
        "edge_scores": edges,
        "batch": graph,
        "edge_graph": graph[:0] if edge_index is None else graph[edge_index[0]],
        "data": None,
        **_outputs(explanation, int(graph.max()) + 1, len(nodes)),
    }
    if x is not None:  # without the masks, which would be taken for the rationale
        attr = explanation.get("edge_attr")
        fields["data"] = Data(x=x, edge_index=edge_index, edge_attr=attr, batch=batch)
    if (arguments := getattr(explanation, "_model_args", None)) is not None:
        fields["arguments"] = tuple(arguments)
    return fields


def _outputs(explanation: PyGExplanation, graphs: int, nodes: int) -> dict[str, Any]:
    """Return target, logit, bias and node of an explanation, where it has them.

    There are none if only some graphs of a batch are explained, or several outputs of a graph. The
    `prediction` of PyG is not taken for a logit: it may be a probability. PyG's target of a
    number is its value [g, 1]; ours is its position among the outputs, 0.
    """
    target, index = explanation.get("target"), explanation.get("index")
    unknown = {"target": None, "logit": None, "bias": None}
    if target is not None and target.is_floating_point():
        is_one = target.ndim == 1 or target.shape[1] == 1
        target = torch.zeros(len(target), dtype=torch.int64).to(target.device) if is_one else None
    if target is None:
        return unknown
    logit, node = explanation.get("logit"), None
    if len(target) == graphs and graphs > 1 and index is not None:
        return unknown
    if len(target) != graphs:
        if len(target) != nodes or index is None or torch.as_tensor(index).numel() != 1:
            return unknown
        node = int(index)
        target = target[[node]]
        logit = logit[[node]] if logit is not None and len(logit) == nodes else logit
    return {"target": target, "logit": logit, "bias": explanation.get("bias"), "node": node}
