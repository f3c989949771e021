import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from graphxai_data import DiHaloBenzene
from graphxai_data.building.build import build
from graphxai_data.errors import CheckFailedError, InputError
from graphxai_data.rings import check
from graphxai_data.rings.probes import fold_of_group
from graphxai_data.rings.quick import shuffled_labels
from graphxai_data.rings.sample import sample_dataset
from graphxai_data.rings.verdict import Measurement
from graphxai_data.seeds import rng_for
from tests.conftest import SharedBuilds, run_python, with_reference_build
from tests.rings.planted import EXPECTED, planted


@pytest.mark.parametrize("kind", EXPECTED)
@pytest.mark.parametrize("seed", [0, 1])
def test_controls(kind: str, seed: int) -> None:
    measurement = check(planted(kind, seed=seed), seed=seed)
    assert (measurement.p1, measurement.p2) == EXPECTED[kind], measurement.principles


@pytest.mark.parametrize("kind", EXPECTED)
def test_after_shuffling_the_labels_nothing_passes(kind: str) -> None:
    graphs = planted(kind)
    labels = [graphs[i].y for i in np.random.default_rng(1).permutation(len(graphs))]
    for graph, label in zip(graphs, labels, strict=True):
        graph.y = label
    measurement = check(graphs)
    assert measurement.p1 == measurement.p2 == "inconclusive"
    assert "nothing was learnt" in measurement.principles["p1"].reason


def test_dense_features_are_measured() -> None:
    """Noise on the marks of "both": no two rows are equal."""
    rng = np.random.default_rng(0)
    graphs = planted("both", 400)
    for graph in graphs:
        graph.x = graph.x + torch.from_numpy(rng.normal(0, 0.05, graph.x.shape)).float()
    measurement = check(graphs)
    assert (measurement.p1, measurement.p2) == ("pass", "pass")
    shuffled = planted("features", 400)
    for graph in shuffled:
        graph.x = graph.x + torch.from_numpy(rng.normal(0, 0.05, graph.x.shape)).float()
    assert check(shuffled).p1 == "fail"


@pytest.mark.parametrize(
    ("name", "p1", "p2"),
    [
        ("ba2motif", "fail", "fail"),
        ("ba2motif-balanced", "pass", "pass"),
        ("dihalo", "pass", "pass"),
        with_reference_build("dihalo-decoy", "pass", "pass"),
        with_reference_build("mnist75sp", "fail", "fail"),
        with_reference_build("mnist75sp-nopos", "pass", "pass"),
    ],
)
def test_verdicts_of_the_reference_builds(
    name: str, p1: str, p2: str, builds: SharedBuilds
) -> None:
    folder = builds.folder(name, rings=True)
    measurement = json.loads((folder / "rings.json").read_text())
    assert measurement["depth"] == "quick"
    assert (measurement["p1"]["verdict"], measurement["p2"]["verdict"]) == (p1, p2)
    manifest = json.loads((folder / "manifest.json").read_text())
    assert measurement["content_sha256"] == manifest["content_sha256"]
    claims = manifest["recipe"]["rings"]
    assert measurement["claimed"] == {k: claims.get(f"claimed_{k}") for k in ("p1", "p2")}
    card = (folder / "README.md").read_text()
    assert f"{p1} (quick)" in card
    assert "](rings.svg)" in card
    assert (folder / "rings.svg").read_text().startswith("<svg")
    loaded = Measurement.load(folder)
    assert loaded is not None
    assert json.loads(loaded.to_json()) == measurement


def test_a_dataset_and_its_folder_are_measured_alike(tmp_path: Path) -> None:
    build("dihalo", root=tmp_path, graphs=900, rings=False)
    folder = tmp_path / "dihalo" / "seed-0"
    from_folder = check(folder)
    from_dataset = check(DiHaloBenzene(tmp_path))
    # Kinds of nodes are numbered in another order, so ties are broken differently.
    for mode, scores in from_folder.scores.items():
        assert np.mean(from_dataset.scores[mode]) == pytest.approx(np.mean(scores), abs=0.05)
    assert (
        (from_dataset.p1, from_dataset.p2) == (from_folder.p1, from_folder.p2) == ("pass", "pass")
    )
    assert from_dataset.claimed.p1 is None


def test_a_build_is_measured_without_torch(tmp_path: Path) -> None:
    code = """
import sys
from graphxai_data.building.build import build
build("ba2motif", root=sys.argv[1], graphs=200)
assert "torch" not in sys.modules
"""
    result = run_python(code, tmp_path)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "ba2motif" / "seed-0" / "rings.json").is_file()


def _one(x: object, edges: list, y: float) -> Data:
    return Data(
        x=torch.tensor(x, dtype=torch.float32),
        edge_index=torch.tensor(edges, dtype=torch.long).reshape(-1, 2).T,
        y=torch.tensor([y]),
    )


BAD = {
    "one class": ([_one([[1.0]], [], 0)] * 200, "one class only"),
    "too few graphs": ([_one([[1.0]], [], i % 2) for i in range(4)], "fewer than 50"),
    "not finite": ([_one([[float("nan")]], [], i % 2) for i in range(200)], "not a finite number"),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_cannot_be_measured_is_inconclusive_and_says_why(kind: str) -> None:
    graphs, reason = BAD[kind]
    measurement = check(graphs)
    assert measurement.p1 == measurement.p2 == "inconclusive"
    assert reason in measurement.principles["p1"].reason


@pytest.mark.parametrize("nodes", [1, 4])
def test_graphs_without_edges_and_with_constant_features_say_nothing(nodes: int) -> None:
    graphs = [_one([[1.0]] * nodes, [], i % 2) for i in range(200)]
    measurement = check(graphs)
    assert measurement.p1 == measurement.p2 == "inconclusive"
    assert measurement.complementarity == 0


def test_graphs_without_a_class_and_no_graphs_at_all_are_refused() -> None:
    with pytest.raises(InputError, match="graph 0: needs nodes with x, an edge_index, and one"):
        check([Data(x=torch.ones(2, 1), edge_index=torch.zeros(2, 0, dtype=torch.long))])
    with pytest.raises(InputError, match="without graphs"):
        check([])
    with pytest.raises(InputError, match="unknown depth 'deep'"):
        check([], depth="deep")
    with pytest.raises(InputError, match="the quick check takes no option 'runs'"):
        check(planted("both"), runs=3)
    with pytest.raises(InputError, match="the full check takes no option 'rums'; it takes runs"):
        check(planted("both"), depth="full", rums=3)
    with pytest.raises(InputError, match="graph 0: its label is not finite; leave it out"):
        check([_one([[1.0]], [], math.nan)])
    with pytest.raises(InputError, match="graph 0: an edge ends at node 7, but there are 1 nodes"):
        check([_one([[1.0]], [[0, 7]], 0)])
    with pytest.raises(InputError, match="graphs differ in the number of their node and edge"):
        check([_one([[1.0]], [], 0), _one([[1.0, 2.0]], [], 0)])
    with pytest.raises(InputError, match="seed"):
        check(planted("both"), seed=-1)


def _marked_trees(count: int, leak: float, seed: int = 0) -> list[Data]:
    """Random trees with two marked nodes, adjacent or not; with `leak`, larger in one class."""
    rng = np.random.default_rng(seed)
    graphs = []
    for i in range(count):
        label = i % 2
        nodes = int(rng.integers(10, 16)) + int(leak * 10 * label)
        parent = [int(rng.integers(0, k)) for k in range(1, nodes)]
        edges = [(k + 1, p) for k, p in enumerate(parent)]
        pairs = set(edges)
        while True:
            a, b = sorted(rng.choice(nodes, 2, replace=False).tolist(), reverse=True)
            if ((a, b) in pairs) == bool(label):
                break
        kinds = rng.integers(0, 3, nodes)
        kinds[[a, b]] = 3
        graphs.append(_one(np.eye(4)[kinds].tolist(), [*edges, *(e[::-1] for e in edges)], label))
    return graphs


@pytest.mark.parametrize("leak", [0.0, 0.3])
def test_a_weak_shortcut_does_not_hide_that_both_are_needed(leak: float) -> None:
    measurement = check(_marked_trees(600, leak))
    mean = {mode: np.mean(scores) for mode, scores in measurement.scores.items()}
    assert mean["original"] > max(mean["sizes"], mean["empty_graph"]) + 0.05
    assert (measurement.p1, measurement.p2) == ("pass", "pass")


def test_three_unequal_classes_and_edge_features_are_told_apart() -> None:
    """The class is the kind of the one marked edge: structure, in rare and frequent classes."""
    rng = np.random.default_rng(0)
    graphs = []
    for i in range(900):
        label = 0 if i % 10 else 1 + i // 10 % 2
        edges = [(k, k + 1) for k in range(7)]
        kinds = rng.integers(3, 6, 7)
        kinds[int(rng.integers(7))] = label
        graph = _one([[1.0]] * 8, [*edges, *(e[::-1] for e in edges)], label)
        graph.edge_attr = torch.from_numpy(np.eye(6)[np.tile(kinds, 2)]).float()
        graphs.append(graph)
    # 45 graphs per rare class are too few.
    assert check(graphs).p1 == "inconclusive"
    rare = [g for g in graphs if int(g.y) > 0]
    measurement = check([*graphs, *rare])
    # A random graph has the same edge features, which are enough; constant features are not needed.
    assert (measurement.p1, measurement.p2) == ("fail", "fail")
    mean = {mode: np.mean(scores) for mode, scores in measurement.scores.items()}
    assert mean["original"] > 0.95
    assert mean["random_graph"] > 0.95
    assert mean["empty_graph"] < 0.5


def test_dense_edge_features_are_measured() -> None:
    rng = np.random.default_rng(0)
    graphs = planted("both", 400)
    for graph in graphs:
        graph.edge_attr = torch.from_numpy(rng.normal(size=(graph.edge_index.shape[1], 2))).float()
    assert check(graphs).p1 == "pass"
    for graph in graphs:
        graph.edge_attr[0, 0] = float("nan")
    assert "not a finite number" in check(graphs).principles["p1"].reason


def test_one_number_per_node_and_edges_in_one_direction_are_accepted() -> None:
    graphs = planted("both")
    plain = check(graphs)
    for graph in graphs:
        graph.x = torch.where(graph.x[:, 1] > 0, 0.4, -0.1)
        graph.edge_index = graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]].flip(1)
    measurement = check(graphs)
    assert (measurement.p1, measurement.p2) == (plain.p1, plain.p2) == ("pass", "pass")


def test_shuffled_labels_keep_groups_whole_and_mix_inside_them() -> None:
    sample = sample_dataset(planted("both", 120))
    twins = replace(sample, group=np.arange(120) // 2, label=np.tile([0, 0, 1, 1], 30))
    shuffled = shuffled_labels(twins, rng_for(0, "deal"))
    assert (shuffled[::2] == shuffled[1::2]).all()
    assert sorted(shuffled) == sorted(twins.label)
    assert (shuffled != twins.label).any()
    pairs = replace(sample, group=np.arange(120) // 2, label=np.tile([0, 1], 60))
    shuffled = shuffled_labels(pairs, rng_for(0, "deal"))
    assert (shuffled[::2] + shuffled[1::2] == 1).all()
    assert (shuffled != pairs.label).any()


def test_folds_keep_groups_together_and_classes_even() -> None:
    label = np.tile([0, 1], 300)
    group = np.arange(600) // 4
    fold = fold_of_group(label, group, rng_for(0, "folds"))
    assert all(len(set(fold[group == g])) == 1 for g in range(150))
    counts = np.array([[((fold == f) & (label == c)).sum() for c in (0, 1)] for f in range(5)])
    assert (counts == 60).all()


def test_a_required_principle_that_fails_stops_the_build(
    tmp_path: Path, recipe_file: Callable, cli: Callable
) -> None:
    path = recipe_file(('p1 = "report"', 'p1 = "require"'))
    with pytest.raises(CheckFailedError, match="nothing published; RINGS P1 is required but fails"):
        build(path, root=tmp_path)
    assert not (tmp_path / "ba2motif").exists() or not list((tmp_path / "ba2motif").glob("seed*"))
    result = cli("build", path, "--root", tmp_path)
    assert result.exit_code == 1
    assert "a rival does as well" in result.stderr
    assert build(path, root=tmp_path, rings=False).graphs == 1000
    # With fewer graphs, a required principle is not enforced.
    assert build(path, seed=1, root=tmp_path, graphs=500).graphs == 500


def test_the_command_measures_writes_and_exits(
    tmp_path: Path, recipe_file: Callable, cli: Callable
) -> None:
    path = recipe_file(('p1 = "report"', 'p1 = "require"'))
    build(path, root=tmp_path, rings=False)
    folder = tmp_path / "ba2motif" / "seed-0"
    assert not (folder / "rings.json").exists()
    assert "not measured" in (folder / "README.md").read_text()
    result = cli("rings", folder, "--quick")
    assert result.exit_code == 1
    assert "fail (quick)" in result.stdout
    assert "RINGS P1 is required but fails" in result.stderr
    assert json.loads((folder / "rings.json").read_text())["p1"]["verdict"] == "fail"
    assert "fail (quick)" in (folder / "README.md").read_text()
    croissant = (folder / "croissant.json").read_text()
    assert '"rings.json"' in croissant
    assert '"croissant.json"' not in croissant
    shown = cli("info", folder)
    assert "fail (quick)" in shown.stdout
    as_json = json.loads(cli("info", folder, "--json").stdout)
    assert as_json["rings"]["p2"]["verdict"] == "fail"
    assert cli("rings", tmp_path / "none", "--quick").exit_code == 2
    assert cli("rings", folder, "--quick", "--seed", -1).exit_code == 2
    assert "--runs is for training" in cli("rings", folder, "--quick", "--runs", 7).stderr


def test_an_existing_build_is_measured_when_it_is_built_again(
    tmp_path: Path, recipe_file: Callable
) -> None:
    path = recipe_file(('p1 = "report"', 'p1 = "require"'))
    build(path, root=tmp_path, rings=False)
    with pytest.raises(CheckFailedError, match="RINGS P1 is required but fails"):
        build(path, root=tmp_path)
    build("ba2motif", seed=1, root=tmp_path, graphs=200, rings=False)
    build("ba2motif", seed=1, root=tmp_path, graphs=200)
    assert (tmp_path / "ba2motif" / "seed-1" / "rings.json").is_file()


def test_no_rings_writes_none(tmp_path: Path, cli: Callable) -> None:
    result = cli("build", "ba2motif", "--root", tmp_path, "--graphs", 200, "--no-rings")
    assert result.exit_code == 0
    assert not (tmp_path / "ba2motif" / "seed-0" / "rings.json").exists()
    shown = cli("info", tmp_path / "ba2motif" / "seed-0", "--json").stdout
    assert json.loads(shown)["rings"] is None
