"""The shipped models are what their cards say."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from graphxai_data import GraphXAIDataset, evaluate, load_model
from graphxai_data.datasets.loader import BatchLoader
from graphxai_data.files.shipped import shipped
from graphxai_data.training.checkpoint import read_card
from graphxai_data.training.scores import predictive_scores
from tests.conftest import SharedBuilds, reference_names, with_reference_build
from tools.model_card import model_card

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


def test_b_cos_and_relu_are_there_for_every_explainability_dataset() -> None:
    molecules = ("dihalo", "benzene", "fluoride-carbonyl", "logic-10", "crippen")
    datasets = {"gin": ("ba2motif", "mnist75sp-r23"), "gine": molecules}
    expected = {f"{b}{k}-{d}" for b in ("", "bcos-") for k, ds in datasets.items() for d in ds}
    # From random features, a B-cos model learns the base and not the motif.
    others = {"gin-spmotif-33", "gin-spmotif-90", "bcos-gin-spmotif-90-degree"}
    assert expected | others == set(NAMES)


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
