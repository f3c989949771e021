import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from click.testing import Result
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score, roc_auc_score

from graphxai_data import GraphXAIDataset
from graphxai_data.training.floors import DEGREE_FLOOR, best_threshold, degree_floor


def _macro_f1(label: Any, predicted: Any) -> float:
    return float(f1_score(label, predicted, labels=[0, 1], average="macro", zero_division=0))


def _nodes_of_shards(folder: Path, split: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return degree, other nodes of the graph, and class of the nodes of a split, by h5py alone."""
    rows = []
    for path in sorted(folder.glob("shard-*.h5")):
        with h5py.File(path) as file:
            for i in np.flatnonzero(file["split"][()] == split):
                nodes, edges = (slice(*file[f"{k}_ptr"][i : i + 2]) for k in ("node", "edge"))
                count = nodes.stop - nodes.start
                joined = np.zeros((count, count))
                joined[tuple(file["edge_index"][:, edges])] = 1
                rows += zip(joined.sum(0), [count - 1] * count, file["node_y"][nodes], strict=True)
    degree, others, label = np.array(rows).T
    return degree, others, label.astype(int)


def test_the_floor_by_degree_is_that_of_an_independent_computation(small_root: Path) -> None:
    folder = small_root / "pattern" / "seed-0"
    degree, others, label = _nodes_of_shards(folder, 1)
    p = degree.sum() / others.sum()

    def score(degree: np.ndarray, others: np.ndarray) -> np.ndarray:
        return (degree - p * others) / np.sqrt(p * (1 - p) * others)

    valid = score(degree, others)
    threshold = max(np.unique(valid), key=lambda t: _macro_f1(label, valid >= t))
    degree, others, label = _nodes_of_shards(folder, 2)
    test = score(degree, others)
    floor = degree_floor(GraphXAIDataset(small_root, "pattern"))
    assert floor is not None
    expected = {
        "accuracy": accuracy_score(label, test >= threshold),
        "f1": _macro_f1(label, test >= threshold),
        "roc_auc": roc_auc_score(label, test),
    }
    assert {key: floor["test"][key] for key in expected} == pytest.approx(expected)
    assert floor["test"]["f1"] > 0.75


@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), max_size=30))
def test_no_threshold_is_better_than_the_best(nodes: list[tuple[int, bool]]) -> None:
    scores, label = np.array([*nodes, (0, True), (0, False)], float).T
    label = label.astype(np.int64)
    best = best_threshold(scores, label)
    by_threshold = {t: _macro_f1(label, scores >= t) for t in np.unique(scores)}
    highest = max(by_threshold.values())
    assert by_threshold[best] == pytest.approx(highest)
    assert best <= min(t for t, f1 in by_threshold.items() if f1 == highest) + 1e-12


class _Stars:
    """Stars of 3 to 6 nodes, one per graph; the centre has the class `centre`."""

    task, num_classes = "node", 2

    def __init__(self, centre: int) -> None:
        self.centre = centre

    def get_idx_split(self) -> dict[str, torch.Tensor]:
        parts = torch.arange(4).split([0, 2, 2])
        return dict(zip(("train", "valid", "test"), parts, strict=True))

    def __getitem__(self, i: int) -> Any:
        rays = torch.arange(1, i + 3)
        edges = torch.stack([torch.zeros_like(rays), rays])
        y = torch.full((i + 3,), 1 - self.centre)
        y[0] = self.centre
        edge_index = torch.cat([edges, edges.flip(0)], dim=1)
        return SimpleNamespace(edge_index=edge_index, num_nodes=i + 3, y=y)


@pytest.mark.parametrize("centre", [0, 1])
def test_either_class_may_have_the_higher_degrees(centre: int) -> None:
    floor = degree_floor(_Stars(centre))
    assert floor is not None
    assert floor["test"] == {"accuracy": 1.0, "f1": 1.0, "roc_auc": 1.0, "weighted_accuracy": 1.0}


def test_classes_of_graphs_have_no_floor_by_degree(small_root: Path) -> None:
    assert degree_floor(GraphXAIDataset(small_root, "ba2motif")) is None


def test_train_shows_the_floor_of_nodes_and_only_of_nodes(
    small_root: Path, tmp_path: Path, cli: Callable[..., Result]
) -> None:
    options = ("--model", "gin", "--root", small_root, "--out", tmp_path)
    options += ("--set", "epochs=1", "--set", "hidden=4")
    shown = cli("train", "pattern", *options)
    assert shown.exit_code == 0, shown.output
    floor = degree_floor(GraphXAIDataset(small_root, "pattern"))
    (row,) = [line for line in shown.stdout.splitlines() if DEGREE_FLOOR in line]
    for key in ("f1", "roc_auc", "accuracy", "weighted_accuracy"):
        assert f"{floor['test'][key]:.4f}" in row
    (result,) = json.loads(cli("train", "pattern", *options, "--json").stdout)
    assert result["floors"] == {"degree": floor}
    graphs = cli("train", "ba2motif", *options)
    assert DEGREE_FLOOR not in graphs.stdout
    (result,) = json.loads(cli("train", "ba2motif", *options, "--json").stdout)
    assert "floors" not in result
