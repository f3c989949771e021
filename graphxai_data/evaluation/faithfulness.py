"""Faithfulness: what a model predicts without the highest-scored nodes, and from them alone.

Ground truth tells whether an explanation is plausible; faithfulness, whether the model depends on
it. Nodes are removed with their edges, not set to zero: a node of zeros still counts in a sum.
"""

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.utils import subgraph

from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.datasets.loader import BatchLoader
from graphxai_data.errors import InputError, finite_number
from graphxai_data.evaluation.parts import Part
from graphxai_data.evaluation.truth import Truth
from graphxai_data.explain.models import (
    call_model,
    check_logits,
    check_ready,
    device_of_model,
)
from graphxai_data.metrics import Bools, Floats, accuracy, count_true, top_rows
from graphxai_data.nn.random import seeded, torch_seed
from graphxai_data.training.loss import training_loss
from graphxai_data.training.scores import r_squared

SPARSITIES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def fidelity(
    model: nn.Module, truth: Truth, scores: Floats, batch_size: int = 64
) -> dict[str, float]:
    """Return how often the prediction changes without the top k nodes, and with only them.

    k is the size of the rationale, as for Jaccard@k; graphs whose rationale is empty, or the whole
    graph, are left out. Fidelity+ is the share of graphs whose predicted class changes when those
    nodes are removed (high: they are necessary), fidelity− the share whose class changes when only
    they are left (low: they suffice). The `_probability` columns are the mean decrease of the
    probability of that class. Characterisation is the harmonic mean of fidelity+ and 1 − fidelity−
    (Amara et al., 2022). `scores` [N] are those of all nodes.

    If the model has one output, a number, fidelity+ and − are the mean absolute change of the
    output, in units of the label; the other columns need classes.
    """
    check_ready(model)
    part, sizes = truth.part, count_true(truth.node_mask, truth.node_ptr)
    counted = (sizes > 0) & (sizes < np.diff(truth.node_ptr))
    if not counted.any():
        raise InputError(
            "faithfulness: the rationale of every graph is empty, or the whole graph; there are no "
            "other nodes to compare with"
        )
    top = highest(scores, truth)
    parts, rows = (part, reduced(part, ~top), reduced(part, top)), torch.from_numpy(counted)
    outputs = [graph_logits(model, graphs, batch_size).cpu()[rows] for graphs in parts]
    whole, without, alone = outputs
    plus, minus = (float(_changes(whole, other).mean()) for other in (without, alone))
    if whole.shape[1] == 1:
        return {"fidelity_plus": plus, "fidelity_minus": minus}
    predicted, sufficient = whole.argmax(dim=1, keepdim=True), 1 - minus
    of_class = [values.double().softmax(dim=1).gather(1, predicted) for values in outputs]
    return {
        "fidelity_plus": plus,
        "fidelity_minus": minus,
        "fidelity_plus_probability": float((of_class[0] - of_class[1]).mean()),
        "fidelity_minus_probability": float((of_class[0] - of_class[2]).mean()),
        "characterisation": 2 * plus * sufficient / ((plus + sufficient) or 1),
    }


def sparsity_curves(
    model: nn.Module, truth: Truth, scores: Floats, sparsities: Sequence[float] = SPARSITIES
) -> dict[str, list[float]]:
    """Return fidelity+ and − when an explanation is the share 1 − sparsity of highest nodes.

    As in `fidelity`, they are shares of graphs, or mean changes of the output if it is a number.
    """
    sparsities = [finite_number("sparsity", sparsity, 0, 1) for sparsity in sparsities]
    check_ready(model)
    curves: dict[str, list[float]] = {
        "sparsity": sparsities, "fidelity_plus": [], "fidelity_minus": [],
    }  # fmt: skip
    size = np.diff(truth.node_ptr)
    whole = graph_logits(model, truth.part)
    for sparsity in sparsities:
        count = np.clip(np.rint((1 - sparsity) * size), 1, np.maximum(size - 1, 1))
        top = top_rows(scores, truth.node_ptr, count.astype(np.int64))
        for key, keep in (("fidelity_plus", ~top), ("fidelity_minus", top)):
            now = graph_logits(model, reduced(truth.part, keep))
            curves[key].append(float(_changes(whole, now).mean()))
    return curves


def _changes(before: Tensor, after: Tensor) -> Tensor:
    """Return [g] 1 where the predicted class changes, else 0; for numbers, how far they change."""
    if before.shape[1] == 1:
        return (before - after).abs().squeeze(1).double()
    return (before.argmax(dim=1) != after.argmax(dim=1)).double()


def retrained_accuracy(
    model: nn.Module,
    training: GraphXAIDataset,
    test: GraphXAIDataset,
    keep: tuple[Bools, Bools],
    loss: str = "ce",
    **options: Any,
) -> float:
    """Return the accuracy on test graphs without some nodes, after fine-tuning on such graphs.

    As in GInX-Eval (Amara et al., 2023): a model that never saw graphs with holes may fail on them
    for that reason alone. After fine-tuning, its errors are due to what was removed: the better the
    explainer, the lower this accuracy.

    Args:
        model: trained on whole graphs; it is not changed.
        training: its training graphs.
        test: graphs that it did not see.
        keep: which nodes stay, [N] of the training graphs and [N] of the test graphs.
        loss: that of the model's training; contributions are not penalised.
        options: `epochs`, `rate` and `seed` of the fine-tuning.
    """
    outputs, label = _retrained(model, training, test, keep, loss, **options)
    return accuracy(outputs.argmax(dim=1).numpy(), label)


def retrained_r2(
    model: nn.Module,
    training: GraphXAIDataset,
    test: GraphXAIDataset,
    keep: tuple[Bools, Bools],
    loss: str = "mse",
    **options: Any,
) -> float:
    """Return R² after such a fine-tuning where labels are numbers.

    Arguments as for `retrained_accuracy`.
    """
    outputs, label = _retrained(model, training, test, keep, loss, **options)
    return r_squared(outputs.squeeze(1).double().numpy(), label.astype(np.float64))


def _retrained(
    model: nn.Module,
    training: GraphXAIDataset,
    test: GraphXAIDataset,
    keep: tuple[Bools, Bools],
    loss: str,
    *,
    epochs: int = 5,
    rate: float = 1e-3,
    seed: int = 0,
) -> tuple[Tensor, npt.NDArray[Any]]:
    """Return the outputs [g, c] for the reduced test graphs, and their labels [g]."""
    tuned = copy.deepcopy(model)  # the caller's model must not change
    device = device_of_model(tuned)
    with seeded(torch_seed(seed, "faithfulness/retrain")):
        optimiser = torch.optim.Adam(tuned.parameters(), lr=rate, fused=True)
        loader = BatchLoader(reduced(training, keep[0]), 64, shuffle=True, seed=seed)
        tuned.train()
        for _ in range(epochs):
            for batch in loader:
                optimiser.zero_grad()
                training_loss(tuned, batch.to(device), loss).backward()  # type: ignore[no-untyped-call]
                optimiser.step()
    tuned.train(mode=False)
    reduced_test = reduced(test, keep[1])
    return graph_logits(tuned, reduced_test).cpu(), reduced_test._data.y.numpy()


def highest(scores: Floats, truth: Truth) -> Bools:
    """Return [N] the highest-scored nodes of each graph, as many as its rationale has."""
    return top_rows(scores, truth.node_ptr, count_true(truth.node_mask, truth.node_ptr))


@torch.no_grad()
def graph_logits(model: nn.Module, graphs: InMemoryDataset, batch_size: int = 64) -> Tensor:
    """Return the outputs [g, c] of a model."""
    device, logits = device_of_model(model), []
    for batch in BatchLoader(graphs, batch_size):
        b = batch.to(device)
        size = b.num_graphs
        output = call_model(model, b.x, b.edge_index, b.edge_attr, b.batch, batch_size=size)
        logits.append(check_logits(output, size, len(b.x)))
    return torch.cat(logits)


def reduced(part: Part, keep: Bools) -> InMemoryDataset:
    """Return the subgraphs of the nodes to keep [N]; a graph without any keeps its first node."""
    if part.task == "node":
        raise InputError("faithfulness is measured where graphs have classes; here nodes have")
    keys = ("x", "edge_index", "edge_attr", "y")
    whole = next(iter(BatchLoader(part, len(part), keys=[k for k in keys if k in part._data])))
    mask = torch.from_numpy(keep.copy())
    sizes = torch.bincount(whole.batch[mask], minlength=len(part))
    mask[whole.ptr[:-1][sizes == 0]] = True
    edge_index, edge_attr = subgraph(mask, whole.edge_index, whole.edge_attr, relabel_nodes=True)
    batch = whole.batch[mask]
    edge_batch = batch[edge_index[0]]
    graphs = torch.arange(len(part) + 1)
    nodes, edges = torch.searchsorted(batch, graphs), torch.searchsorted(edge_batch, graphs)
    result = InMemoryDataset()
    result._data = Data(whole.x[mask], edge_index - nodes[edge_batch], edge_attr, whole.y)
    slices = {"x": nodes, "edge_index": edges, "edge_attr": edges, "y": graphs}
    result.slices = {key: slices[key] for key in slices if key in result._data}
    return result
