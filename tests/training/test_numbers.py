"""Trainings on labels that are numbers."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tomli_w
import torch
from click.testing import Result
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

from graphxai_data.building.verify import verify
from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.datasets.loader import BatchLoader
from graphxai_data.errors import InputError
from graphxai_data.explain import explain
from graphxai_data.nn import GSAT, BcosGIN, BcosGINE
from graphxai_data.nn.random import seeded
from graphxai_data.training.checkpoint import load_model, read_card
from graphxai_data.training.floors import mean_floor
from graphxai_data.training.loss import evidence, objective, training_loss
from graphxai_data.training.scores import number_scores, predictive_scores
from graphxai_data.training.train import train
from tests.generators.toy_numbers import RECIPE, WEIGHTS

QUICK = {"epochs": 3, "batch_size": 32, "hidden": 8}
LEARNED = {
    "epochs": 25,
    "batch_size": 16,
    "hidden": 32,
    "schedule": "cosine",
    "learning_rate": 4e-3,
}


def test_the_toy_is_proven_and_its_labels_are_float32(numbers: GraphXAIDataset) -> None:
    assert verify(numbers.folder, full=True) == []
    batch = next(iter(BatchLoader(numbers, 50)))
    assert batch.y.dtype == torch.float32
    assert batch.y.shape == (50,)
    weight = torch.from_numpy(WEIGHTS).float()[batch.x.argmax(dim=1)]
    assert torch.equal(batch.node_weight, weight)
    assert torch.equal(torch.zeros(50).index_add(0, batch.batch, weight), batch.y)


@pytest.mark.parametrize("model", ["gine", "gsat", "bcos-gin", "bcos-gine"])
def test_a_sum_over_nodes_is_learned(model: str, numbers: GraphXAIDataset, tmp_path: Path) -> None:
    # The default ε is that of molecules.
    changes = LEARNED | ({"eps": 3.0} if model.startswith("bcos") else {})
    trained, card = train(numbers, model, out=tmp_path, changes=changes)
    assert card.scores["test"].keys() == {"loss", "mae", "rmse", "r2"}
    assert card.scores["test"]["r2"] > 0.9
    assert (card.shape.classes, card.shape.label, card.training.loss) == (1, "number", "mse")
    loader = BatchLoader(numbers[numbers.get_idx_split()["test"]], 1)
    scores = predictive_scores(trained, loader, "mse", torch.device("cpu"))
    assert scores == pytest.approx(card.scores["test"], abs=1e-4)


def test_settings_for_classes_do_not_get_in_the_way_of_numbers(
    numbers: GraphXAIDataset, tmp_path: Path
) -> None:
    for configuration in ("default", "paper"):
        for model in ("bcos-gin", "gin"):
            out = tmp_path / configuration
            _, card = train(numbers, model, configuration, out=out, changes=QUICK)
            assert (card.training.loss, card.training.select) == ("mse", "loss")
    _, card = train(numbers, "gin", out=tmp_path / "mae", changes=QUICK | {"loss": "mae"})
    assert card.scores["valid"]["loss"] == pytest.approx(card.scores["valid"]["mae"], rel=1e-5)
    changes = QUICK | {"evidence_cost": 0.1}
    _, card = train(numbers, "bcos-gine", out=tmp_path / "cost", changes=changes)
    assert card.training.evidence_cost == 0.1


def test_a_model_for_numbers_says_so_in_its_card(
    numbers: GraphXAIDataset, small_root: Path, tmp_path: Path
) -> None:
    train(numbers, "gin", out=tmp_path, changes=QUICK)
    folder = tmp_path / "gin-numbers" / "seed-0"
    assert 'label = "number"' in (folder / "model.toml").read_text()
    assert load_model(folder, numbers).config.classes == 1
    motifs = GraphXAIDataset(small_root, "ba2motif")
    with pytest.raises(InputError, match="2 edge features, a label that is a number; 'ba2motif'"):
        load_model(folder, motifs)
    text = (folder / "model.toml").read_text().replace("classes = 1", "classes = 2")
    (folder / "model.toml").write_text(text)
    with pytest.raises(InputError, match="classes: expected 1 per graph, since the label is a num"):
        load_model(folder)


def test_a_card_without_a_label_is_that_of_a_model_for_classes(
    small_root: Path, tmp_path: Path
) -> None:
    train(GraphXAIDataset(small_root, "ba2motif"), "gin", out=tmp_path, changes=QUICK)
    folder = tmp_path / "gin-ba2motif" / "seed-0"
    text = (folder / "model.toml").read_text()
    (folder / "model.toml").write_text(text.replace('label = "class"\n', ""))
    assert read_card(folder).shape.label == "class"


def test_a_stopped_training_on_numbers_resumes_with_the_same_result(
    numbers: GraphXAIDataset, tmp_path: Path
) -> None:
    class StopHereError(Exception):
        pass

    def stop(done: int, total: int, what: str) -> None:
        if done == 2:
            assert ", mae " in what
            raise StopHereError

    _, whole = train(numbers, out=tmp_path / "whole", changes=QUICK)
    with pytest.raises(StopHereError):
        train(numbers, out=tmp_path, changes=QUICK, progress=stop)
    _, parts = train(numbers, out=tmp_path, changes=QUICK)
    assert parts == whole


def test_the_command_prints_errors_and_the_mean_as_a_floor(
    cli: Callable[..., Result], numbers: GraphXAIDataset, numbers_root: Path, tmp_path: Path
) -> None:
    recipe = tmp_path / "numbers.toml"
    recipe.write_text(tomli_w.dumps(RECIPE))
    common = ("train", recipe, "--model", "gin", "--root", numbers_root, "--out", tmp_path)
    small = [part for key, value in QUICK.items() for part in ("--set", f"{key}={value}")]
    table = cli(*common, *small).stdout
    for text in ("valid loss", "valid MAE", "test MAE", "test RMSE", "test R²", "mean (no model)"):
        assert text in table
    assert "F1" not in table
    (result,) = json.loads(cli(*common, *small, "--json").stdout)
    assert result["floors"] == {"mean": mean_floor(numbers)}
    refused = cli(*common, *small, "--set", "loss=ce")
    assert refused.exit_code == 2
    assert "loss: expected mse or mae, since the labels are numbers, got ce" in refused.stderr


def test_the_mean_of_training_labels_has_an_r2_of_about_zero(numbers: GraphXAIDataset) -> None:
    floor = mean_floor(numbers)
    assert floor is not None
    rows, y = numbers.get_idx_split(), numbers._data.y.double().numpy()
    mean = y[rows["train"]].mean()
    for split in ("valid", "test"):
        label = y[rows[split]]
        assert floor[split]["mae"] == pytest.approx(np.abs(label - mean).mean())
        assert floor[split]["r2"] == pytest.approx(r2_score(label, np.full_like(label, mean)))
        assert -0.2 < floor[split]["r2"] <= 0


def test_labels_that_are_classes_have_no_mean(small_root: Path) -> None:
    assert mean_floor(GraphXAIDataset(small_root, "ba2motif")) is None


VALUES = st.floats(-1e3, 1e3, width=32)


@given(st.lists(st.tuples(VALUES, VALUES), min_size=2, max_size=30))
def test_scores_of_numbers_are_scikit_learns(pairs: list[tuple[float, float]]) -> None:
    predicted, label = np.array(pairs).T
    scores = number_scores(predicted, label)
    assert scores["mae"] == pytest.approx(mean_absolute_error(label, predicted))
    assert scores["rmse"] == pytest.approx(root_mean_squared_error(label, predicted))
    if np.ptp(label) == 0:
        assert "r2" not in scores
    elif np.ptp(label) > 1e-6:
        assert scores["r2"] == pytest.approx(r2_score(label, predicted), rel=1e-6)


def test_losses_of_numbers_are_torchs() -> None:
    outputs, label = torch.tensor([[1.0], [4.0], [-2.0]]), torch.tensor([0.0, 4.0, 1.0])
    assert objective(outputs, label, "mse").item() == pytest.approx((1 + 0 + 9) / 3)
    assert objective(outputs, label, "mae").item() == pytest.approx((1 + 0 + 3) / 3)


def test_the_loss_of_gsat_adds_its_information(numbers: GraphXAIDataset) -> None:
    batch = next(iter(BatchLoader(numbers, 8)))
    with seeded(0):
        model, informed = (GSAT(3, 1, 8, 2, edge_features=2, information=i) for i in (0.0, 1.0))
    model.train(mode=False)  # no noise
    plain = training_loss(model, batch, "mse")
    outputs = model(batch.x, batch.edge_index, batch.edge_attr, batch.batch)
    torch.testing.assert_close(plain, objective(outputs, batch.y, "mse"))
    informed.load_state_dict(model.state_dict())
    assert training_loss(informed.train(mode=False), batch, "mse") > plain


def test_evidence_of_numbers_is_that_for_the_only_output(numbers: GraphXAIDataset) -> None:
    batch = next(iter(BatchLoader(numbers, 8)))
    with seeded(0):
        model = BcosGINE(3, 2, 1, 8, 2, edges="multiplicative")
    _, penalty = evidence(model, batch)
    scores = explain(model.train(mode=False), batch).node_scores
    torch.testing.assert_close(penalty.detach(), scores.abs().sum() / 8)


def test_calibrated_outputs_are_of_the_size_of_the_labels(numbers: GraphXAIDataset) -> None:
    batch = next(iter(BatchLoader(numbers, 64)))
    for bias in (0.0, 2.5):
        with seeded(0):
            model = BcosGIN(3, 1, 8, 2, logit_bias=bias)
        model.calibrate(batch.x, batch.edge_index, None, batch.batch, batch.y)
        outputs = model(batch.x, batch.edge_index, None, batch.batch)
        size, wanted = ((v - bias).square().mean().sqrt() for v in (outputs, batch.y))
        torch.testing.assert_close(size, wanted)
