"""RINGS where labels are numbers: the class is whether a number is above the median."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from graphxai_data import GraphXAIDataset, build
from graphxai_data.errors import InputError
from graphxai_data.manifest import Manifest
from graphxai_data.recipe import Recipe
from graphxai_data.rings import check
from graphxai_data.rings.colour_rules import Training
from graphxai_data.rings.sample import sample_build, sample_dataset
from graphxai_data.rings.verdict import Measurement
from tests.generators.toy_numbers import RECIPE
from tests.rings.planted import planted


def with_numbers(graphs: list[Data]) -> list[Data]:
    """Give graphs of two equally large classes numbers that the median tells apart."""
    rng = np.random.default_rng(0)
    for graph in graphs:
        graph.y = 3.0 * graph.y + torch.from_numpy(rng.uniform(size=1))
    return graphs


@pytest.mark.parametrize("kind", ["both", "features"])
def test_numbers_have_the_verdicts_of_the_classes_behind_them(kind: str) -> None:
    of_classes, of_numbers = check(planted(kind)), check(with_numbers(planted(kind)))
    assert of_numbers.scores == of_classes.scores
    assert of_numbers.principles == of_classes.principles
    assert of_classes.classes == "those of the graphs"
    assert of_numbers.classes.startswith("whether y is above its median, ")
    assert 1 < float(of_numbers.classes.split()[-1]) < 3


def test_builds_and_their_datasets_are_cut_at_the_same_median(numbers: GraphXAIDataset) -> None:
    sample = sample_build(numbers.folder, Manifest.load(numbers.folder))
    y = numbers._data.y.numpy()
    assert sample.median == np.median(y)
    assert sample.label.tolist() == (y > np.median(y)).astype(int).tolist()
    again = sample_dataset(numbers)
    assert (again.median, again.label.tolist()) == (sample.median, sample.label.tolist())


def test_whole_numbers_are_classes_unless_the_dataset_says_otherwise() -> None:
    class WholeNumbers(list[Data]):
        label = "number"

    graphs = planted("both", 60)
    for graph in graphs:
        graph.y = 5.0 * graph.y
    classes, numbers = sample_dataset(graphs), sample_dataset(WholeNumbers(graphs))
    assert (classes.median, numbers.median) == (None, 2.5)
    assert set(classes.label) == {0, 5}
    assert set(numbers.label) == {0, 1}


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(-100, 100, width=32), min_size=3, max_size=20).filter(lambda y: y[0] % 1))
def test_at_most_half_of_all_graphs_are_above_the_median(labels: list[float]) -> None:
    graph = Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0, 1], [1, 0]]))
    graphs = [graph.clone() for _ in labels]
    for one, y in zip(graphs, labels, strict=True):
        one.y = torch.tensor([y])
    sample = sample_dataset(graphs)
    assert sample.label.sum() == (np.array(labels) > np.median(labels)).sum()
    assert sample.label.sum() <= len(labels) / 2


def test_colours_are_counted_for_classes_only() -> None:
    graphs = sample_dataset(planted("both", 4)).graphs
    assert Training.of(graphs, np.array([0, 1, 1, 0]), 2).sizes.tolist() == [2, 2]
    for label in (np.array([0, -1, 1, 0]), np.array([0, 1, 2, 0])):
        with pytest.raises(InputError, match="expected classes 0 to 1: colours of numbers are not"):
            Training.of(graphs, label, 2)


def test_the_full_check_says_what_its_classes_are(numbers: GraphXAIDataset) -> None:
    measurement = check(numbers, depth="full", runs=6, epochs=1, graphs=120)
    assert measurement.graphs == 120
    assert measurement.classes.startswith("whether y is above its median, ")


@pytest.mark.usefixtures("numbers")
def test_a_build_states_the_median_in_its_rings_json(tmp_path: Path) -> None:
    build(Recipe.from_dict(RECIPE), root=tmp_path, engine="serial")
    folder = tmp_path / "numbers" / "seed-0"
    rings = json.loads((folder / "rings.json").read_text())
    sample = sample_build(folder, Manifest.load(folder))
    assert rings["classes"] == f"whether y is above its median, {sample.median:.6g}"
    # What colours add is enough: structure is not needed.
    assert rings["p1"]["verdict"] == "fail"
    assert "pooled_features" in rings["scores"]
    measurement = Measurement.load(folder)
    assert measurement is not None
    assert measurement.classes == rings["classes"]


def test_measurements_without_the_key_are_those_of_classes(tmp_path: Path) -> None:
    check(planted("both", 120)).save(tmp_path)
    rings = json.loads((tmp_path / "rings.json").read_text())
    del rings["classes"]
    (tmp_path / "rings.json").write_text(json.dumps(rings))
    measurement = Measurement.load(tmp_path)
    assert measurement is not None
    assert measurement.classes == "those of the graphs"
