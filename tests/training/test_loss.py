"""The sparsity penalty: it penalises the contributions that an explanation shows."""

from pathlib import Path
from typing import Any

import pytest
import torch

from graphxai_data import GraphXAIDataset, explain
from graphxai_data.datasets.loader import BatchLoader
from graphxai_data.errors import InputError
from graphxai_data.evaluation.comparison import compare
from graphxai_data.nn import BcosGINE
from graphxai_data.training.checkpoint import WEIGHTS
from graphxai_data.training.loss import evidence, objective, training_loss
from graphxai_data.training.train import train

SMALL = {"epochs": 3, "batch_size": 16, "hidden": 8}


@pytest.fixture
def batch(small_root: Path) -> Any:
    return next(iter(BatchLoader(GraphXAIDataset(small_root, "dihalo"), 20)))


def model_for(batch: Any, edges: str) -> BcosGINE:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        widths = batch.x.shape[1], batch.edge_attr.shape[1]
        model = BcosGINE(*widths, 9, 16, 2, b=1.5, edges=edges, logit_bias=-3.0)
    return model.train(mode=False)


@pytest.mark.parametrize("edges", ["additive", "multiplicative"])
def test_evidence_is_the_sum_of_what_explanations_show(edges: str, batch: Any) -> None:
    model = model_for(batch, edges)
    totals = []
    with torch.random.fork_rng():
        torch.manual_seed(0)
        for _ in range(30):
            logits, total = evidence(model, batch)
            totals.append(total.item())
    torch.testing.assert_close(
        logits, model(batch.x, batch.edge_index, batch.edge_attr, batch.batch)
    )
    # The label is drawn with probability 1/2 + 1/18, every other class with 1/18: each value lies
    # between the least and the most of all classes, and the mean of many is near the expectation.
    per_class = torch.stack([magnitudes(model, batch, c) for c in range(9)])  # [classes, graphs]
    label_magnitudes = per_class.gather(0, batch.y.unsqueeze(0)).squeeze(0)
    expected = (label_magnitudes / 2 + per_class.mean(dim=0) / 2).mean().item()
    assert sum(totals) / 30 == pytest.approx(expected, rel=0.1)
    assert per_class.min(0).values.mean() <= min(totals)
    assert max(totals) <= per_class.max(0).values.mean()


def magnitudes(model: BcosGINE, batch: Any, target: int) -> torch.Tensor:
    """Return [graphs] the summed magnitudes of a map: of nodes and, if it has any, of edges."""
    explanation = explain(model, batch, target)
    sums = torch.zeros(batch.num_graphs).index_add(0, batch.batch, explanation.node_scores.abs())
    if explanation.edge_scores is not None:
        owner = batch.batch[batch.edge_index[0]]
        sums = sums.index_add(0, owner, explanation.edge_scores.abs())
    return sums


def test_the_penalty_is_added_to_the_objective(batch: Any) -> None:
    model = model_for(batch, "multiplicative")
    with torch.random.fork_rng():
        torch.manual_seed(1)
        paid = training_loss(model, batch, "bce", 0.25)
        torch.manual_seed(1)
        logits, total = evidence(model, batch)
    torch.testing.assert_close(paid, objective(logits, batch.y, "bce") + 0.25 * total)
    torch.testing.assert_close(
        training_loss(model, batch, "bce"), objective(logits, batch.y, "bce")
    )
    paid.backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())


def test_a_penalty_makes_contributions_smaller(small_root: Path, tmp_path: Path) -> None:
    dataset = GraphXAIDataset(small_root, "ba2motif")
    whole = next(iter(BatchLoader(dataset, len(dataset))))
    used = []
    for cost in (0.0, 0.1):
        changes = {**SMALL, "epochs": 15, "b": 2.0, "evidence_cost": cost}
        model, card = train(dataset, out=tmp_path / str(cost), changes=changes)
        assert card.training.evidence_cost == cost
        with torch.random.fork_rng():
            torch.manual_seed(0)
            used.append(evidence(model, whole)[1].item())
    assert used[1] < 0.7 * used[0]


def test_a_training_with_a_penalty_resumes_with_the_same_result(
    small_root: Path, tmp_path: Path
) -> None:
    dataset, changes = GraphXAIDataset(small_root, "ba2motif"), {**SMALL, "evidence_cost": 0.1}
    train(dataset, out=tmp_path / "whole", changes=changes)

    def stop(done: int, total: int, what: str) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(dataset, out=tmp_path / "stopped", changes=changes, progress=stop)
    train(dataset, out=tmp_path / "stopped", changes=changes)
    whole, stopped = (
        (tmp_path / how / "bcos-gin-ba2motif" / "seed-0" / WEIGHTS).read_bytes()
        for how in ("whole", "stopped")
    )
    assert whole == stopped


def test_a_comparison_refuses_a_penalty_before_any_training(
    small_root: Path, tmp_path: Path
) -> None:
    changes = {**SMALL, "evidence_cost": 0.1}
    with pytest.raises(InputError, match="evidence_cost: expected 0 for 'gin'"):
        compare(GraphXAIDataset(small_root, "ba2motif"), seeds=[0], out=tmp_path, changes=changes)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "model", "cost", "message"),
    [
        ("ba2motif", "gin", 0.1, "evidence_cost: expected 0 for 'gin' and labels of graphs"),
        ("pattern", "bcos-gin", 0.1, "expected 0 for 'bcos-gin' and labels of nodes, got 0.1"),
        ("ba2motif", "bcos-gin", -1.0, "evidence_cost: expected"),
        ("ba2motif", "bcos-gin", float("nan"), "evidence_cost: expected"),
    ],
)
def test_an_impossible_penalty_is_refused_before_anything_is_written(
    name: str, model: str, cost: float, message: str, small_root: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        train(
            GraphXAIDataset(small_root, name), model, out=tmp_path,
            changes={**SMALL, "evidence_cost": cost},
        )  # fmt: skip
    assert not list(tmp_path.iterdir())
