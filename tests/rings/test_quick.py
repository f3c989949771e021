import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from graphxai_data import DiHaloBenzene
from graphxai_data.building.build import build
from graphxai_data.building.verify import verify
from graphxai_data.errors import CheckFailedError, DamagedError, InputError
from graphxai_data.rings import check, judge
from graphxai_data.rings.modes import Graphs
from graphxai_data.rings.probes import fold_of_group
from graphxai_data.rings.quick import shuffled_labels
from graphxai_data.rings.sample import sample_dataset
from graphxai_data.rings.verdict import Measurement, Verdict
from graphxai_data.seeds import rng_for
from tests.conftest import run_python
from tests.rings.planted import planted

EXPECTED = {
    "features": ("fail", "fail"),
    "structure": ("fail", "fail"),
    "both": ("pass", "pass"),
    "nothing": ("inconclusive", "inconclusive"),
    "size": ("fail", "fail"),
}


@pytest.mark.parametrize("kind", EXPECTED)
@pytest.mark.parametrize("seed", [0, 1])
def test_controls(kind: str, seed: int) -> None:
    found = check(planted(kind, seed=seed), seed=seed)
    assert (found.p1, found.p2) == EXPECTED[kind], found.principles


@pytest.mark.parametrize("kind", EXPECTED)
def test_after_shuffling_the_labels_nothing_passes(kind: str) -> None:
    graphs = planted(kind)
    labels = [graphs[i].y for i in np.random.default_rng(1).permutation(len(graphs))]
    for graph, label in zip(graphs, labels, strict=True):
        graph.y = label
    found = check(graphs)
    assert found.p1 == found.p2 == "inconclusive"
    assert "nothing was learnt" in found.principles["p1"].reason


def test_dense_features_are_looked_at_as_well() -> None:
    """The marks of "both" as noisy numbers: no two rows are equal any more."""
    rng = np.random.default_rng(0)
    graphs = planted("both", 400)
    for graph in graphs:
        graph.x = graph.x + torch.from_numpy(rng.normal(0, 0.05, graph.x.shape)).float()
    found = check(graphs)
    assert (found.p1, found.p2) == ("pass", "pass")
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
        ("dihalo-decoy", "pass", "pass"),
        ("mnist75sp", "fail", "fail"),
        ("mnist75sp-nopos", "pass", "pass"),
    ],
)
def test_verdicts_of_the_reference_builds(
    name: str, p1: str, p2: str, reference_root: Path
) -> None:
    folder = reference_root / name / "seed-0"
    found = json.loads((folder / "rings.json").read_text())
    assert found["depth"] == "quick"
    assert (found["p1"]["verdict"], found["p2"]["verdict"]) == (p1, p2)
    manifest = json.loads((folder / "manifest.json").read_text())
    assert found["content_sha256"] == manifest["content_sha256"]
    claims = manifest["recipe"]["rings"]
    assert found["claimed"] == {k: claims.get(f"claimed_{k}") for k in ("p1", "p2")}
    card = (folder / "README.md").read_text()
    assert f"{p1} (quick)" in card
    assert "](rings.svg)" in card
    assert (folder / "rings.svg").read_text().startswith("<svg")
    loaded = Measurement.load(folder)
    assert loaded is not None
    assert json.loads(loaded.to_json()) == found


def test_a_dataset_and_its_folder_are_measured_alike(tmp_path: Path) -> None:
    build("dihalo", root=tmp_path, graphs=900)
    folder = tmp_path / "dihalo" / "seed-0"
    of_folder = check(folder)
    of_dataset = check(DiHaloBenzene(tmp_path))
    # Kinds of nodes are numbered in another order, so ties fall otherwise.
    for mode, scores in of_folder.scores.items():
        assert np.mean(of_dataset.scores[mode]) == pytest.approx(np.mean(scores), abs=0.05)
    assert (of_dataset.p1, of_dataset.p2) == (of_folder.p1, of_folder.p2) == ("pass", "pass")
    assert of_dataset.claimed.p1 is None


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
    found = check(graphs)
    assert found.p1 == found.p2 == "inconclusive"
    assert reason in found.principles["p1"].reason


@pytest.mark.parametrize("nodes", [1, 4])
def test_graphs_without_edges_and_with_constant_features_say_nothing(nodes: int) -> None:
    graphs = [_one([[1.0]] * nodes, [], i % 2) for i in range(200)]
    found = check(graphs)
    assert found.p1 == found.p2 == "inconclusive"
    assert found.complementarity is None


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
    with pytest.raises(InputError, match="graph 0: class 0.5 is not a whole number"):
        check([_one([[1.0]], [], 0.5)])
    with pytest.raises(InputError, match="graph 0: an edge ends at node 7, but there are 1 nodes"):
        check([_one([[1.0]], [[0, 7]], 0)])
    with pytest.raises(InputError, match="graphs differ in the number of their node and edge"):
        check([_one([[1.0]], [], 0), _one([[1.0, 2.0]], [], 0)])
    with pytest.raises(InputError, match="seed"):
        check(planted("both"), seed=-1)


def _marked_trees(count: int, leak: float, seed: int = 0) -> list[Data]:
    """Two marked nodes of a random tree, adjacent or not; perhaps larger trees in one class."""
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
    found = check(_marked_trees(600, leak))
    mean = {mode: np.mean(scores) for mode, scores in found.scores.items()}
    assert mean["original"] > max(mean["sizes"], mean["empty_graph"]) + 0.05
    assert (found.p1, found.p2) == ("pass", "pass")


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
    # 45 graphs of the rare classes are too few to tell
    assert check(graphs).p1 == "inconclusive"
    rare = [g for g in graphs if int(g.y) > 0]
    found = check([*graphs, *rare])
    # A random graph has the same edge features, which are enough; constant features are not needed.
    assert (found.p1, found.p2) == ("fail", "fail")
    mean = {mode: np.mean(scores) for mode, scores in found.scores.items()}
    assert mean["original"] > 0.95
    assert mean["random_graph"] > 0.95
    assert mean["empty_graph"] < 0.5


def test_dense_edge_features_are_looked_at() -> None:
    rng = np.random.default_rng(0)
    graphs = planted("both", 400)
    for graph in graphs:
        graph.edge_attr = torch.from_numpy(rng.normal(size=(graph.edge_index.shape[1], 2))).float()
    assert check(graphs).p1 == "pass"
    for graph in graphs:
        graph.edge_attr[0, 0] = float("nan")
    assert "not a finite number" in check(graphs).principles["p1"].reason


def test_one_number_a_node_and_one_way_edges_are_understood() -> None:
    graphs = planted("both")
    plain = check(graphs)
    for graph in graphs:
        graph.x = torch.where(graph.x[:, 1] > 0, 0.4, -0.1)
        graph.edge_index = graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]].flip(1)
    found = check(graphs)
    assert (found.p1, found.p2) == (plain.p1, plain.p2) == ("pass", "pass")


def test_a_dataset_sorted_by_class_is_sampled_evenly() -> None:
    graphs = sorted(planted("both", 300), key=lambda graph: int(graph.y))
    sample = sample_dataset(graphs, most=100)
    assert np.bincount(sample.label).tolist() == [50, 50]


def test_shuffled_labels_keep_groups_whole_and_mix_inside_them() -> None:
    sample = sample_dataset(planted("both", 120))
    twins = replace(sample, group=np.arange(120) // 2, label=np.tile([0, 0, 1, 1], 30))
    dealt = shuffled_labels(twins, rng_for(0, "deal"))
    assert (dealt[::2] == dealt[1::2]).all()
    assert sorted(dealt) == sorted(twins.label)
    assert (dealt != twins.label).any()
    pairs = replace(sample, group=np.arange(120) // 2, label=np.tile([0, 1], 60))
    dealt = shuffled_labels(pairs, rng_for(0, "deal"))
    assert (dealt[::2] + dealt[1::2] == 1).all()
    assert (dealt != pairs.label).any()


def _runs(mean: float, count: int = 8) -> list[float]:
    return [mean + i / 1000 for i in range(count)]


def test_a_rival_that_collapsed_once_is_not_beaten() -> None:
    scores = {"original": _runs(0.94), "shuffled_labels": _runs(0.5)}
    rival = [*_runs(0.95, 7), 0.5]
    verdicts, _ = judge({**scores, "empty_graph": rival})
    assert verdicts["p1"].verdict != "pass"
    assert judge({**scores, "empty_graph": _runs(0.6)})[0]["p1"].verdict == "pass"
    assert judge({**scores, "empty_graph": _runs(0.935)})[0]["p1"].verdict == "fail"


def test_a_shortcut_that_solves_what_the_original_does_not_is_a_fail() -> None:
    scores = {"original": _runs(0.5), "shuffled_labels": _runs(0.5), "sizes": _runs(0.98)}
    verdicts, _ = judge({**scores, "empty_graph": _runs(0.5), "empty_features": _runs(0.5)})
    assert verdicts["p1"].verdict == "fail"
    assert "sizes solves it with 0.98" in verdicts["p1"].reason
    assert verdicts["p2"].verdict == "inconclusive"
    with pytest.raises(InputError, match="no scores of 'shuffled_labels'"):
        judge({"original": _runs(0.5)})


def test_folds_keep_groups_together_and_classes_even() -> None:
    label = np.tile([0, 1], 300)
    group = np.arange(600) // 4
    fold = fold_of_group(label, group, rng_for(0, "folds"))
    assert all(len(set(fold[group == g])) == 1 for g in range(150))
    counts = np.array([[((fold == f) & (label == c)).sum() for c in (0, 1)] for f in range(5)])
    assert (counts == 60).all()


def test_a_large_build_is_sampled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from graphxai_data.manifest import Manifest
    from graphxai_data.rings import sample

    build("ba2motif", root=tmp_path, graphs=300, rings=False, shard_size=50)
    folder = tmp_path / "ba2motif" / "seed-0"
    few = sample.sample_build(folder, Manifest.load(folder), most=120)
    assert len(few) == 120
    assert len(np.unique(few.group)) == 120
    monkeypatch.setattr(sample, "MOST_PARTS", 5_000)
    fewer = sample.sample_build(folder, Manifest.load(folder))
    assert 50 < len(fewer) < 80
    assert len(fewer.graphs.x) + fewer.graphs.edges.shape[1] < 6_000


def test_taking_graphs_keeps_each_as_it_is() -> None:
    sample = sample_dataset(planted("both", 30))
    chosen = np.array([7, 3, 29])
    taken = sample.graphs.take(chosen)
    for place, i in enumerate(chosen):
        one, other = taken.take(np.array([place])), sample.graphs.take(np.array([i]))
        for name in Graphs.__slots__:
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


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
    # too few graphs to hold the recipe to its promise
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


def test_an_earlier_build_is_measured_when_it_is_asked_for_again(
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
    assert (
        json.loads(cli("info", tmp_path / "ba2motif" / "seed-0", "--json").stdout)["rings"] is None
    )


def test_a_damaged_measurement_is_named(small_build: Path, cli: Callable) -> None:
    (small_build / "rings.json").write_text('{"depth": "quick"}')
    with pytest.raises(DamagedError, match="rings.json: not a RINGS measurement"):
        Measurement.load(small_build)
    assert "not a RINGS measurement" in verify(small_build)[0]
    other = Measurement("quick", {k: Verdict("pass", "") for k in ("p1", "p2")})
    other.save(small_build)
    assert "measured on other graphs" in verify(small_build)[0]
    (small_build / "rings.json").write_text(
        other.to_json().replace('"p1": null', '"p1": "banana"', 1)
    )
    assert cli("info", small_build).exit_code == 1


def test_inconclusive_measurements_survive_the_disk(tmp_path: Path) -> None:
    verdict = Verdict("inconclusive", "why")
    found = Measurement("quick", {"p1": verdict, "p2": verdict}, graphs=3)
    found.save(tmp_path)
    assert Measurement.load(tmp_path) == found
