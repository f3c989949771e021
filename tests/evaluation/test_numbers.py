"""Faithfulness to models for numbers."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from graphxai_data import GraphXAIDataset, evaluate
from graphxai_data.errors import InputError
from graphxai_data.evaluation.faithfulness import (
    fidelity,
    highest,
    retrained_r2,
    sparsity_curves,
)
from graphxai_data.evaluation.truth import Truth
from graphxai_data.nn import GIN
from graphxai_data.nn.random import seeded
from tests.generators.toy_numbers import WEIGHTS


class TrueSum(nn.Module):
    """Adds up what the colours of nodes are worth: the label itself."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.from_numpy(WEIGHTS).float())

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor, batch_size: int) -> Tensor:
        return torch.zeros(batch_size, 1).index_add(0, batch, (x @ self.weight).unsqueeze(1))


@pytest.fixture
def part(numbers: GraphXAIDataset) -> GraphXAIDataset:
    return numbers[numbers.get_idx_split()["test"]]


def test_fidelity_of_a_number_is_its_mean_absolute_change(part: GraphXAIDataset) -> None:
    model, truth = TrueSum().train(mode=False), Truth.of(part)
    weights = [graph.node_weight.double().numpy() for graph in part]
    # By the definition: without the positive nodes the others are left, and the other way round.
    positive = np.array([w[w > 0].sum() for w in weights])
    negative = np.array([w[w <= 0].sum() for w in weights])
    right = fidelity(model, truth, np.concatenate(weights))
    assert right == {
        "fidelity_plus": pytest.approx(positive.mean(), abs=1e-5),
        "fidelity_minus": pytest.approx(-negative.mean(), abs=1e-5),
    }
    curves = sparsity_curves(model, truth, np.concatenate(weights), (0.5,))
    assert curves["fidelity_plus"][0] > 1


def test_faithfulness_of_a_number_is_in_the_table(part: GraphXAIDataset) -> None:
    table = evaluate(part, ["input-x-gradient"], TrueSum().train(mode=False), faithfulness=True)
    assert {"fidelity_plus", "fidelity_minus"} <= set(table.columns)
    assert "characterisation" not in table.columns


def test_graphs_with_an_empty_rationale_are_left_out(part: GraphXAIDataset) -> None:
    model, truth = TrueSum().train(mode=False), Truth.of(part)
    scores = np.concatenate([graph.node_weight.double().numpy() for graph in part])
    whole = fidelity(model, truth, scores)
    truth.node_mask[: truth.node_ptr[5]] = False
    some = fidelity(model, truth, scores)
    weights = [graph.node_weight.double().numpy() for graph in part[5:]]
    assert some["fidelity_plus"] == pytest.approx(np.mean([w[w > 0].sum() for w in weights]))
    assert some != whole
    truth.node_mask[:] = False
    with pytest.raises(InputError, match="the rationale of every graph is empty, or the whole gra"):
        fidelity(model, truth, scores)


def test_r2_after_retraining_is_lower_without_the_highest_nodes(numbers: GraphXAIDataset) -> None:
    rows = numbers.get_idx_split()
    parts = [numbers[rows[split]] for split in ("train", "test")]
    truths = [Truth.of(part) for part in parts]
    with seeded(0):
        model = GIN(3, 1, 16, 2, norm="batch")
    keep = tuple(~highest(truth.node_mask.astype(float), truth) for truth in truths)
    whole = tuple(np.ones_like(nodes) for nodes in keep)
    options = {"epochs": 15, "rate": 1e-2}
    with_all = retrained_r2(model, *parts, whole, **options)
    without = retrained_r2(model, *parts, keep, **options)
    assert with_all > 0.8
    assert without < with_all - 0.2
