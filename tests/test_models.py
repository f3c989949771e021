"""The shipped models are what their cards say."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from graphxai_data import GraphXAIDataset, evaluate, load_model
from graphxai_data.datasets.loader import BatchLoader
from graphxai_data.evaluation.benchmark.plan import Plan
from graphxai_data.files.shipped import shipped
from graphxai_data.training.checkpoint import read_card
from graphxai_data.training.scores import predictive_scores
from tests.conftest import SharedBuilds, reference_names, with_reference_build
from tools.model_card import model_card
from tools.ship_models import MODELS

NAMES = sorted(path.parent.name for path in shipped("models").glob("*/model.toml"))
# A model needs the full build that it was trained on.
QUICK = ("ba2motif", "dihalo")


def _with_its_build(name: str) -> Any:
    """Return a parameter of a test that needs the dataset of a model."""
    dataset = read_card(shipped("models") / name).data.dataset
    if dataset in QUICK:
        return name
    if dataset in reference_names():
        return with_reference_build(name)
    return pytest.param(name, marks=pytest.mark.slow)


WITH_BUILDS = [_with_its_build(name) for name in NAMES]


def test_the_models_that_the_tools_ship_are_there() -> None:
    assert set(NAMES) == set(MODELS)


def test_b_cos_and_relu_are_there_for_every_dataset_of_the_big_table() -> None:
    plan = Plan.load()
    for row in (*plan.datasets, *plan.pairs):
        if row.startswith("mnist75sp"):  # digits are trained for hours; one reading is shipped
            continue
        for build in plan.builds(row).values():
            kinds = {name.removesuffix(f"-{build}") for name in NAMES if name.endswith(f"-{build}")}
            assert any(kind.startswith("bcos-") for kind in kinds), build
            assert kinds & {"gin", "gine"}, build


def test_all_models_together_are_small() -> None:
    size = sum(path.stat().st_size for path in shipped("models").rglob("*") if path.is_file())
    assert size < 20e6


@pytest.mark.parametrize("name", WITH_BUILDS)
def test_a_model_has_the_scores_of_its_card(name: str, builds: SharedBuilds) -> None:
    card = read_card(shipped("models") / name)
    dataset = GraphXAIDataset.from_folder(builds.folder(card.data.dataset, rings=True))
    model = load_model(name, dataset)  # refuses another build
    test = dataset[dataset.get_idx_split()["test"]]
    loader = BatchLoader(test, 64)
    scores = predictive_scores(model, loader, card.training.loss, torch.device("cpu"))
    if "jaccard" in card.scores["test"]:
        row = evaluate(dataset, ["bcos"], model).loc["bcos"]
        scores |= {key: row[key] for key in ("jaccard", "auroc", "spearman") if key in row}
    assert scores.keys() >= card.scores["test"].keys()
    for key, value in card.scores["test"].items():
        # Sums in another order can swap the ranks of two nodes with almost equal scores.
        assert scores[key] == pytest.approx(value, rel=1e-3, abs=1e-6), key


@pytest.mark.parametrize("name", NAMES)
def test_the_readme_of_a_model_is_its_card(name: str) -> None:
    folder = shipped("models") / name
    assert (folder / "README.md").read_text() == model_card(name, read_card(folder))


@pytest.mark.parametrize("name", WITH_BUILDS)
def test_the_example_of_a_card_runs(
    name: str, builds: SharedBuilds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = builds.root(read_card(shipped("models") / name).data.dataset, rings=True)
    (tmp_path / "data").symlink_to(root)
    monkeypatch.chdir(tmp_path)
    text = (shipped("models") / name / "README.md").read_text()
    (block,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(block, {})  # noqa: S102 - shipped with the package


def test_the_card_of_a_model_for_numbers_has_its_errors() -> None:
    card = read_card(shipped("models") / "bcos-gine-dihalo")
    shape = replace(card.shape, classes=1, label="number")
    data = replace(card.data, dataset="crippen")
    scores = {"test": {"loss": 0.04, "mae": 0.1, "rmse": 0.2, "r2": 0.95, "spearman": 0.7}}
    text = model_card("mine", replace(card, shape=shape, data=data, scores=scores))
    assert "the output is an exact sum over the node features and a fixed bias. One number" in text
    assert 'dataset = GraphXAIDataset("data", "crippen")' in text
    assert "| MAE | 0.1000 |\n| RMSE | 0.2000 |\n| R² | 0.9500 |" in text
