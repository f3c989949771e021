"""Faithfulness: what a model says without the nodes an explainer ranks highest, and of them alone.

Ground truth says whether an explanation is plausible; these say whether the model depends on it.
Nodes are taken out, with their edges, not set to zero: a node of zeros still counts in a sum.
"""

import copy
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data, InMemoryDataset

from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.datasets.loader import BatchLoader
from graphxai_data.errors import InputError, finite_number, whole_number
from graphxai_data.explain.base import check_ready
from graphxai_data.graphs.columns import pointers
from graphxai_data.metrics import Bools, Floats, Ints, accuracy, top_rows
from graphxai_data.nn.random import seeded, torch_seed
from graphxai_data.seeds import MAX_SEED
from graphxai_data.training.loss import training_loss

SPARSITIES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def fidelity(
    model: nn.Module,
    part: GraphXAIDataset,
    scores: Floats,
    mask: Bools,
    batch_size: int = 64,
) -> dict[str, float]:
    """How often the prediction changes without the top k nodes, and with nothing but them.

    k is the size of the rationale, as for Jaccard@k. Fidelity+ is the share of graphs whose
    predicted class changes when those nodes are taken out (high: they are necessary), fidelity− the
    share whose class changes when only they are left (low: they suffice); the `_probability` ones
    are the mean loss of the probability of that class. Characterisation is the harmonic mean of
    fidelity+ and 1 − fidelity− (Amara et al., 2022).

    Args:
        model: in evaluation mode.
        part: the graphs.
        scores: [N] of all their nodes.
        mask: [N] their rationales; only the sizes of those are used.
        batch_size: graphs at once.
    """
    check_ready(model)
    whole = class_probabilities(model, part, batch_size)
    predicted = whole.argmax(1)
    top = highest(scores, part, mask)
    without = class_probabilities(model, reduced(part, ~top), batch_size)
    alone = class_probabilities(model, reduced(part, top), batch_size)
    plus = float((without.argmax(1) != predicted).mean())
    minus = float((alone.argmax(1) != predicted).mean())
    return {
        "fidelity_plus": plus,
        "fidelity_minus": minus,
        "fidelity_plus_probability": _mean_loss(whole, without, predicted),
        "fidelity_minus_probability": _mean_loss(whole, alone, predicted),
        "characterisation": _harmonic(plus, 1 - minus),
    }


def sparsity_curves(
    model: nn.Module,
    part: GraphXAIDataset,
    scores: Floats,
    sparsities: Sequence[float] = SPARSITIES,
    batch_size: int = 64,
) -> dict[str, list[float]]:
    """Fidelity+ and − when explanations are a share 1 − sparsity of the nodes, the highest ones."""
    for sparsity in sparsities:
        finite_number("sparsity", sparsity, 0, 1)
    check_ready(model)
    ptr = part_pointers(part)
    predicted = class_probabilities(model, part, batch_size).argmax(1)
    curves: dict[str, list[float]] = {
        "sparsity": [float(s) for s in sparsities],
        "fidelity_plus": [],
        "fidelity_minus": [],
    }
    for sparsity in sparsities:
        size = np.diff(ptr)
        count = np.clip(np.rint((1 - sparsity) * size), 1, np.maximum(size - 1, 1))
        top = top_rows(scores, ptr, count.astype(np.int64))
        for key, kept in (("fidelity_plus", ~top), ("fidelity_minus", top)):
            now = class_probabilities(model, reduced(part, kept), batch_size).argmax(1)
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
    batch_size: int = 64,
) -> float:
    """Accuracy on test graphs with nodes taken out, after training on with such graphs.

    In the manner of GInX-Eval (Amara et al., 2023): a model that never saw graphs with holes may
    fail on them for that alone. After fine-tuning on such graphs, what it still cannot do is due to
    what was taken: the better the explainer that chose it, the lower this accuracy.

    Args:
        model: fine-tuned as a copy; the one given is left as it is.
        training: graphs to train on with.
        test: graphs to predict.
        keep: [N] the nodes that are left of the training graphs, and of the test graphs.
        loss: what the model was trained with, "ce" or "bce"; contributions are not penalised.
        epochs: of fine-tuning.
        rate: learning rate of Adam.
        seed: of the order of graphs, and of what the model draws.
        batch_size: graphs at once.
    """
    whole_number("epochs", epochs, 0, 10_000)
    whole_number("seed", seed, 0, MAX_SEED)
    tuned, left = copy.deepcopy(model), reduced(test, keep[1])
    device = next(tuned.parameters()).device
    with seeded(torch_seed(seed, "faithfulness/retrain")):
        optimiser = torch.optim.Adam(tuned.parameters(), lr=rate, fused=True)
        loader = BatchLoader(reduced(training, keep[0]), batch_size, shuffle=True, seed=seed)
        tuned.train()
        for _ in range(epochs):
            for batch in loader:
                optimiser.zero_grad()
                training_loss(tuned, batch.to(device), loss).backward()  # type: ignore[no-untyped-call]
                optimiser.step()
    tuned.train(mode=False)
    predicted = class_probabilities(tuned, left, batch_size).argmax(1)
    return accuracy(predicted, left._data.y.numpy())


def highest(scores: Floats, part: GraphXAIDataset, mask: Bools) -> Bools:
    """[N] the nodes of each graph with the highest scores, as many as are in its rationale."""
    ptr = part_pointers(part)
    return top_rows(scores, ptr, np.add.reduceat(mask.astype(np.int64), ptr[:-1]))


def class_probabilities(model: nn.Module, graphs: InMemoryDataset, batch_size: int = 64) -> Floats:
    """[g, c] softmax of a model's logits."""
    device = next(model.parameters()).device
    with torch.no_grad():
        logits = [
            model(batch.x, batch.edge_index, batch.edge_attr, batch.batch)
            for batch in (batch.to(device) for batch in BatchLoader(graphs, batch_size))
        ]
    probabilities: Floats = torch.cat(logits).double().softmax(dim=1).cpu().numpy()
    return probabilities


def reduced(part: GraphXAIDataset, keep: Bools) -> InMemoryDataset:
    """The same graphs with some of their nodes [N], and the edges between those.

    Every graph keeps a node: one that would lose all keeps its first.
    """
    if part.task == "node":
        raise InputError("faithfulness is measured where graphs have classes; here nodes have")
    keys = ("x", "edge_index", "edge_attr", "y")
    whole = next(iter(BatchLoader(part, len(part), keys=[k for k in keys if k in part._data])))
    kept = torch.from_numpy(keep.copy())
    left = torch.zeros(len(part), dtype=torch.int64).index_add_(0, whole.batch, kept.long())
    kept[whole.ptr[:-1][left == 0]] = True
    node_slices = _slices(whole.batch[kept], len(part))
    source, target = whole.edge_index
    edges = kept[source] & kept[target]
    graph = whole.batch[source[edges]]
    place = kept.cumsum(0) - 1
    data = Data(
        x=whole.x[kept],
        edge_index=place[whole.edge_index[:, edges]] - node_slices[graph],
        y=whole.y,
    )
    edge_slices = _slices(graph, len(part))
    slices = {
        "x": node_slices, "edge_index": edge_slices, "y": torch.arange(len(part) + 1),
    }  # fmt: skip
    if whole.edge_attr is not None:
        data.edge_attr, slices["edge_attr"] = whole.edge_attr[edges], edge_slices
    return _Graphs(data, slices)


def part_pointers(part: GraphXAIDataset) -> Ints:
    """[g+1] where the nodes of each graph of a dataset begin and end."""
    ptr = part.slices["x"].numpy()
    sizes = np.diff(ptr)[np.asarray(list(part.indices()))]
    return pointers(sizes)


class _Graphs(InMemoryDataset):  # type: ignore[misc]
    def __init__(self, data: Data, slices: dict[str, Tensor]) -> None:
        super().__init__()
        self._data, self.slices = data, slices


def _slices(graph: Tensor, graphs: int) -> Tensor:
    counts = torch.bincount(graph, minlength=graphs)
    return torch.nn.functional.pad(counts.cumsum(0), (1, 0))


def _mean_loss(before: Floats, after: Floats, predicted: Ints) -> float:
    rows = np.arange(len(predicted))
    return float((before[rows, predicted] - after[rows, predicted]).mean())


def _harmonic(a: float, b: float) -> float:
    return 2 * a * b / (a + b) if a + b else 0.0
