"""Faithfulness: what a model predicts without the highest-scored nodes, and from them alone.

Ground truth tells whether an explanation is plausible; faithfulness, whether the model depends on
it. Nodes are removed with their edges, not set to zero: a node of zeros still counts in a sum.
"""

import copy
from collections.abc import Sequence

import numpy as np
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
from graphxai_data.metrics import Bools, Floats, accuracy, top_rows
from graphxai_data.nn.random import seeded, torch_seed
from graphxai_data.training.loss import training_loss

SPARSITIES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def fidelity(
    model: nn.Module, truth: Truth, scores: Floats, batch_size: int = 64
) -> dict[str, float]:
    """Return how often the prediction changes without the top k nodes, and with only them.

    k is the size of the rationale, as for Jaccard@k. Fidelity+ is the share of graphs whose
    predicted class changes when those nodes are removed (high: they are necessary), fidelity− the
    share whose class changes when only they are left (low: they suffice). The `_probability`
    columns are the mean decrease of the probability of that class. Characterisation is the harmonic
    mean of fidelity+ and 1 − fidelity− (Amara et al., 2022). `scores` [N] are those of all nodes.
    """
    check_ready(model)
    part = truth.part
    whole = class_probabilities(model, part, batch_size)
    predicted = whole.argmax(1)
    cells = np.arange(len(predicted)), predicted
    top = highest(scores, truth)
    without = class_probabilities(model, reduced(part, ~top), batch_size)
    alone = class_probabilities(model, reduced(part, top), batch_size)
    plus = float((without.argmax(1) != predicted).mean())
    minus = float((alone.argmax(1) != predicted).mean())
    sufficient = 1 - minus
    return {
        "fidelity_plus": plus,
        "fidelity_minus": minus,
        "fidelity_plus_probability": float((whole - without)[cells].mean()),
        "fidelity_minus_probability": float((whole - alone)[cells].mean()),
        "characterisation": 2 * plus * sufficient / ((plus + sufficient) or 1),
    }


def sparsity_curves(
    model: nn.Module, truth: Truth, scores: Floats, sparsities: Sequence[float] = SPARSITIES
) -> dict[str, list[float]]:
    """Return fidelity+ and − when an explanation is the share 1 − sparsity of highest nodes."""
    sparsities = [finite_number("sparsity", sparsity, 0, 1) for sparsity in sparsities]
    check_ready(model)
    curves: dict[str, list[float]] = {
        "sparsity": sparsities, "fidelity_plus": [], "fidelity_minus": [],
    }  # fmt: skip
    size = np.diff(truth.node_ptr)
    predicted = class_probabilities(model, truth.part).argmax(1)
    for sparsity in sparsities:
        count = np.clip(np.rint((1 - sparsity) * size), 1, np.maximum(size - 1, 1))
        top = top_rows(scores, truth.node_ptr, count.astype(np.int64))
        for key, keep in (("fidelity_plus", ~top), ("fidelity_minus", top)):
            now = class_probabilities(model, reduced(truth.part, keep)).argmax(1)
            curves[key].append(float((now != predicted).mean()))
    return curves


def retrained_accuracy(
    model: nn.Module,
    training: GraphXAIDataset,
    test: GraphXAIDataset,
    keep: tuple[Bools, Bools],
    loss: str = "ce",
    *,
    epochs: int = 5,
    rate: float = 1e-3,
    seed: int = 0,
) -> float:
    """Return the accuracy on test graphs without some nodes, after fine-tuning on such graphs.

    As in GInX-Eval (Amara et al., 2023): a model that never saw graphs with holes may fail on them
    for that reason alone. After fine-tuning, its errors are due to what was removed: the better the
    explainer, the lower this accuracy.

    `keep` says which nodes stay, [N] of the training graphs and [N] of the test graphs. `loss` is
    that of the model's training, "ce" or "bce"; contributions are not penalised.
    """
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
    predicted = class_probabilities(tuned, reduced_test).argmax(1)
    return accuracy(predicted, reduced_test._data.y.numpy())


def highest(scores: Floats, truth: Truth) -> Bools:
    """Return [N] the highest-scored nodes of each graph, as many as its rationale has."""
    sizes = np.add.reduceat(truth.node_mask.astype(np.int64), truth.node_ptr[:-1])
    return top_rows(scores, truth.node_ptr, sizes)


def class_probabilities(model: nn.Module, graphs: InMemoryDataset, batch_size: int = 64) -> Floats:
    """Return the softmax [g, c] of a model's logits."""
    logits = graph_logits(model, graphs, batch_size)
    probabilities: Floats = logits.double().softmax(dim=1).cpu().numpy()
    return probabilities


@torch.no_grad()
def graph_logits(model: nn.Module, graphs: InMemoryDataset, batch_size: int) -> Tensor:
    """Return the logits [g, c] of a model."""
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
