from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.explain.metric import characterization_score
from torch_geometric.utils import subgraph

from graphxai_data import GraphXAIDataset, build
from graphxai_data.errors import InputError
from graphxai_data.evaluation.faithfulness import (
    fidelity,
    graph_logits,
    reduced,
    retrained_accuracy,
    sparsity_curves,
)
from graphxai_data.evaluation.truth import Truth
from graphxai_data.nn import GIN
from graphxai_data.nn.random import seeded


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> GraphXAIDataset:
    root = tmp_path_factory.mktemp("builds")
    build("dihalo", root=root, graphs=180, engine="serial", rings=False)
    return GraphXAIDataset(root, "dihalo")


@pytest.fixture(scope="module")
def part(dataset: GraphXAIDataset) -> GraphXAIDataset:
    return dataset[dataset.get_idx_split()["test"]]


class CountsHalogens(nn.Module):
    """Predicts one of nine classes from the halogens in a graph, whatever their position."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(4.0))

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor, batch: Tensor) -> Tensor:
        counts = torch.zeros(int(batch.max()) + 1, x.shape[1]).index_add(0, batch, x)
        halogens = counts[:, [4, 3, 5]]  # Cl, F, Br, in the order of the classes
        return self.scale * halogens.repeat_interleave(3, dim=1)


def test_reduced_graphs_are_induced_subgraphs(part: GraphXAIDataset) -> None:
    draws = np.random.default_rng(0)
    truth = Truth.of(part)
    keep = draws.random(truth.node_ptr[-1]) < 0.5
    keep[: truth.node_ptr[1]] = False  # the first graph still keeps one node
    graphs = reduced(part, keep)
    assert len(graphs) == len(part)
    for i in range(len(part)):
        before, after = part[i], graphs[i]
        mask = torch.from_numpy(keep[truth.node_ptr[i] : truth.node_ptr[i + 1]].copy())
        if i == 0:
            mask[0] = True
        edges, attr = subgraph(mask, before.edge_index, before.edge_attr, relabel_nodes=True)
        assert torch.equal(after.x, before.x[mask])
        assert torch.equal(after.edge_index, edges)
        assert torch.equal(after.edge_attr, attr)
        assert torch.equal(after.y, before.y)


def test_fidelity_of_a_model_that_looks_at_halogens_only(part: GraphXAIDataset) -> None:
    model, truth = CountsHalogens().train(mode=False), Truth.of(part)
    right = fidelity(model, truth, truth.node_mask.astype(float))
    # Without halogens all logits are equal: the first class is predicted, sometimes rightly.
    predicted = graph_logits(model, part).argmax(dim=1).numpy()
    assert right["fidelity_plus"] == pytest.approx((predicted != 0).mean())
    assert right["fidelity_minus"] == 0
    assert right["fidelity_plus_probability"] > 0.2
    assert right["fidelity_minus_probability"] == pytest.approx(0, abs=1e-6)
    expected = characterization_score(torch.tensor(right["fidelity_plus"]), torch.tensor(0.0))
    assert right["characterisation"] == pytest.approx(float(expected))
    wrong = fidelity(model, truth, -truth.node_mask.astype(float))
    assert wrong["fidelity_plus"] == 0
    assert wrong["fidelity_minus"] == right["fidelity_plus"]
    assert wrong["characterisation"] == 0


def test_curves_over_sparsity(part: GraphXAIDataset) -> None:
    model, truth = CountsHalogens().train(mode=False), Truth.of(part)
    scores = truth.node_mask.astype(float)
    curves = sparsity_curves(model, truth, scores, (0.1, 0.5, 0.7))
    assert curves["sparsity"] == [0.1, 0.5, 0.7]
    assert curves["fidelity_minus"] == [0, 0, 0]
    assert min(curves["fidelity_plus"]) > 0.5
    with pytest.raises(InputError, match="sparsity: expected a finite number from 0 to 1"):
        sparsity_curves(model, truth, scores, (2,))


def test_accuracy_after_retraining_is_lower_without_the_rationale(
    dataset: GraphXAIDataset, part: GraphXAIDataset
) -> None:
    training = dataset[dataset.get_idx_split()["train"]]
    masks = [Truth.of(graphs).node_mask for graphs in (training, part)]
    with seeded(0):
        model = GIN(dataset.num_node_features, 9, 32, 3, norm="batch")
    before = {k: v.clone() for k, v in model.state_dict().items()}
    options = {"epochs": 15, "rate": 5e-3}
    whole = tuple(np.ones_like(m) for m in masks)
    with_all = retrained_accuracy(model, training, part, whole, **options)
    without = retrained_accuracy(model, training, part, tuple(~m for m in masks), **options)
    assert with_all > without + 0.15  # the halogens are gone: three classes in nine are left
    again = retrained_accuracy(model, training, part, whole, **options)
    assert again == with_all
    for key, value in model.state_dict().items():
        assert torch.equal(value, before[key])
    assert not Path("runs").exists()
