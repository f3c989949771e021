"""Floors of explanations: rules against networkx and plain Python, `floors.json`, builds."""

import json
import math
import shutil
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphxai_data import GraphXAIDataset, Rule, build, evaluate, register, verify
from graphxai_data.errors import CheckFailedError, DamagedError, InputError
from graphxai_data.evaluation.floors import floor_names
from graphxai_data.generators import PLUGINS
from graphxai_data.generators.ba2motif import BA2MotifGenerator
from graphxai_data.graphs.union import Graphs
from graphxai_data.manifest import Manifest
from graphxai_data.metrics import jaccard_at_k
from graphxai_data.recipe import Recipe
from graphxai_data.rings import rules
from graphxai_data.rings.colour_rules import ColourRow, Training
from graphxai_data.rings.floors import Floors, measure_floors
from graphxai_data.rings.known import KnownGraphs, read_split
from graphxai_data.rings.measure import measure_shards
from graphxai_data.rings.scored_rules import scored_rules
from graphxai_data.rings.verdict import Measurement
from tests.generators.toy_rationales import ToyRationales, toy_recipe

RULES = {rule.name: rule.score for rule in rules.GENERAL}


def _union(graphs: list["nx.Graph[int]"], kinds: list[list[int]] | None = None) -> Graphs:
    ptr, edges = [0], []
    for graph in graphs:
        edges += [(ptr[-1] + a, ptr[-1] + b) for e in graph.edges for a, b in (e, e[::-1])]
        ptr.append(ptr[-1] + len(graph))
    ends = np.array(sorted(edges), np.int64).reshape(-1, 2).T
    x = np.zeros(ptr[-1], np.uint8) if kinds is None else np.concatenate(kinds).astype(np.uint8)
    return Graphs(x, np.ascontiguousarray(ends), None, np.array(ptr))


GRAPHS = st.lists(
    st.tuples(st.integers(1, 14), st.floats(0, 0.6), st.integers(0, 99)), min_size=1, max_size=6
)


@given(GRAPHS)
@settings(deadline=None, max_examples=40)
def test_rules_are_those_of_networkx(kinds: list[tuple[int, float, int]]) -> None:
    graphs = [nx.gnp_random_graph(n, density, seed=seed) for n, density, seed in kinds]
    union = _union(graphs)
    expected = {
        "degree": lambda g: dict(g.degree),
        "core-number": nx.core_number,
        "triangles": nx.triangles,
        "closeness": nx.harmonic_centrality,
    }
    for name, reference in expected.items():
        values = [v for g in graphs for _, v in sorted(reference(g).items())]
        np.testing.assert_allclose(RULES[name](union), values, atol=1e-9)
        if f"low-{name}" in RULES:
            np.testing.assert_allclose(RULES[f"low-{name}"](union), np.negative(values), atol=1e-9)
    core = [v for g in graphs for _, v in sorted(nx.core_number(g).items())]
    assert (RULES["two-core"](union) == (np.array(core) >= 2)).all()


def test_pagerank_is_that_of_networkx_on_connected_graphs() -> None:
    graphs = [nx.barabasi_albert_graph(n, 2, seed=n) for n in (5, 9, 14)]
    expected = [v for g in graphs for _, v in sorted(nx.pagerank(g, tol=1e-12).items())]
    np.testing.assert_allclose(RULES["pagerank"](_union(graphs)), expected, rtol=1e-3)


@given(GRAPHS, st.integers(0, 4))
@settings(deadline=None, max_examples=30)
def test_balls_are_those_of_networkx(kinds: list[tuple[int, float, int]], radius: int) -> None:
    graphs = [nx.gnp_random_graph(n, density, seed=seed) for n, density, seed in kinds]
    union = _union(graphs)
    values = np.arange(len(union.x), dtype=float)
    expected = []
    for graph, first in zip(graphs, union.node_ptr[:-1].tolist(), strict=True):
        for node in sorted(graph):
            near = nx.single_source_shortest_path_length(graph, node, cutoff=radius)
            expected.append(sum(values[first + other] for other in near))
    np.testing.assert_allclose(rules.within(union, values, radius), expected)


def _refined(graph: "nx.Graph[int]", kind: list[int], rounds: int) -> list[object]:
    """Return Weisfeiler-Leman colours as nested tuples: exact, without hashes."""
    colour: list[object] = list(kind)
    for _ in range(rounds):
        around = [sorted(repr(colour[other]) for other in graph[node]) for node in sorted(graph)]
        colour = [(colour[node], tuple(around[node])) for node in range(len(colour))]
    return colour


@pytest.mark.parametrize("rounds", [0, 1, 2, 4])
def test_rules_of_colours_are_those_of_plain_python(rounds: int) -> None:
    rng = np.random.default_rng(rounds)
    graphs = [nx.gnp_random_graph(int(rng.integers(3, 9)), 0.4, seed=i) for i in range(60)]
    kinds = [rng.integers(0, 2, len(graph)).tolist() for graph in graphs]
    label = rng.integers(0, 3, len(graphs))
    train, test = slice(0, 40), slice(40, 60)
    occurs: dict[object, Counter[int]] = defaultdict(Counter)
    for graph, kind, y in zip(graphs[train], kinds[train], label[train].tolist(), strict=True):
        for colour in set(_refined(graph, kind, rounds)):
            occurs[colour][y] += 1
    sizes = Counter(label[train].tolist())

    rarity, odds = [], []
    for graph, kind, y in zip(graphs[test], kinds[test], label[test].tolist(), strict=True):
        for colour in _refined(graph, kind, rounds):
            inside, everywhere = occurs[colour][y], sum(occurs[colour].values())
            rarity.append(-math.log((everywhere + 0.5) / 41))
            p = (inside + sizes[y] / 40) / (sizes[y] + 1)
            q = (everywhere - inside + 1 - sizes[y] / 40) / (40 - sizes[y] + 1)
            odds.append(math.log(p / (1 - p)) - math.log(q / (1 - q)))

    training = Training.of(_union(graphs[train], kinds[train]), label[train], 3)
    rows = (ColourRow("rarity", rounds), ColourRow("log-odds", rounds))
    rows += (ColourRow("log-odds", rounds, ball=True),) if rounds else ()
    union = _union(graphs[test], kinds[test])
    scores = {row.name: values for row, values in training.scores(union, label[test], rows)}
    np.testing.assert_allclose(scores[f"wl-rarity-{rounds}"], rarity)
    np.testing.assert_allclose(scores[f"wl-log-odds-{rounds}"], odds)
    if rounds:
        positive = rules.within(union, np.maximum(odds, 0), rounds)
        np.testing.assert_allclose(scores[f"wl-log-odds-ball-{rounds}"], positive)


def test_dense_features_are_cut_into_steps() -> None:
    rng = np.random.default_rng(0)
    graphs = _union([nx.path_graph(4)] * 30)
    low = Graphs(rng.uniform(0, 0.1, (120, 1)).astype("f4"), graphs.edges, None, graphs.node_ptr)
    low.x[0], low.x[1] = 1, 0  # the range
    label = np.arange(30) % 2
    training = Training.of(low, label, 2)
    assert len(training.colours[0]) == 2  # all but one value in the lowest step


@pytest.fixture(scope="module")
def motifs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("floors")
    build("ba2motif", root=root, graphs=300, engine="serial", rings=False)
    return root / "ba2motif/seed-0"


def test_a_build_states_its_floors_and_the_two_core_solves_the_papers_motifs(motifs: Path) -> None:
    content = json.loads((motifs / "floors.json").read_text())
    assert content["best"] == "two-core"
    assert content["rows"]["two-core"]["jaccard"] == content["rows"]["two-core"]["auroc"] == 1
    assert content["rows"]["wl-log-odds-2"]["labels"] is True
    assert "labels" not in content["rows"]["degree"]
    assert content["graphs"] == 30
    assert content["left_out"] == {"feature-norm": "the same for all nodes of every graph"}
    card = (motifs / "README.md").read_text()
    assert "## Floors of explanations" in card
    assert "| two-core | 1.000 | 1.000 |  |" in card


def test_the_values_are_means_over_test_graphs(motifs: Path) -> None:
    rows = Floors.load(motifs).rows  # type: ignore[union-attr]
    test = GraphXAIDataset.from_folder(motifs, split="test")
    jaccard = []
    for graph in test:
        degree = np.bincount(graph.edge_index[0], minlength=graph.num_nodes)
        jaccard.append(jaccard_at_k(degree, graph.node_mask))
    assert rows["degree"].jaccard == pytest.approx(np.mean(jaccard), abs=1e-6)


def test_floors_do_not_depend_on_the_shards(motifs: Path, tmp_path: Path) -> None:
    build("ba2motif", root=tmp_path, graphs=300, shard_size=7, engine="serial", rings=False)
    again = (tmp_path / "ba2motif/seed-0/floors.json").read_text()
    assert again == (motifs / "floors.json").read_text()


def test_too_few_training_graphs_leave_colours_out(tmp_path: Path) -> None:
    build("dihalo", root=tmp_path, graphs=5, engine="serial", rings=False)
    floors = Floors.load(tmp_path / "dihalo/seed-0")
    assert floors is not None
    assert floors.left_out["wl-log-odds-2"].startswith("5 training graphs, fewer than 9 classes")
    assert not any(row.labels for row in floors.rows.values())


def test_without_a_rationale_there_are_no_floors(tmp_path: Path) -> None:
    manifest = build("pattern", root=tmp_path, graphs=14, engine="serial", rings=False)
    folder = tmp_path / "pattern/seed-0"
    assert not (folder / "floors.json").exists()
    with pytest.raises(InputError, match="'pattern' has no rationale: there is nothing"):
        measure_floors(folder, manifest)


def test_damaged_or_foreign_floors_are_reported(motifs: Path, tmp_path: Path) -> None:
    copy = tmp_path / "seed-0"
    shutil.copytree(motifs, copy)
    content = json.loads((copy / "floors.json").read_text())
    (copy / "floors.json").write_text(json.dumps(content | {"content_sha256": "0" * 64}))
    assert [p for p in verify(copy) if "floors.json was measured on other graphs" in p]
    (copy / "floors.json").write_text(json.dumps(content | {"best": "no-such-rule"}))
    with pytest.raises(DamagedError, match=r"measure again: `graphxai-data rings`"):
        Floors.load(copy)
    (copy / "floors.json").write_text("{")
    assert verify(copy)


def test_an_existing_build_without_floors_gets_them(motifs: Path, tmp_path: Path) -> None:
    shutil.copytree(motifs, tmp_path / "ba2motif/seed-0")
    (tmp_path / "ba2motif/seed-0/floors.json").unlink()
    build("ba2motif", root=tmp_path, graphs=300)
    assert Floors.load(tmp_path / "ba2motif/seed-0") == Floors.load(motifs)


def test_large_graphs_have_no_rules_of_distances() -> None:
    union = _union([nx.path_graph(rules.MAX_NODES + 1)])
    training = KnownGraphs(_union([nx.path_graph(5)] * 4), np.arange(4), np.arange(4) % 2,
                           np.zeros(20, bool))  # fmt: skip
    known = KnownGraphs(union, np.arange(1), np.zeros(1, np.int64), np.zeros(len(union.x), bool))
    scored = {s.name: s for s in scored_rules(known, Recipe.load("ba2motif"), training)}
    assert scored["wl-log-odds-2"].scores is not None
    for name in ("closeness", "low-closeness", "wl-log-odds-ball-2"):
        assert scored[name].scores is None
        assert scored[name].why == "a graph has more than 500 nodes"


class _WithRules(BA2MotifGenerator):
    own: ClassVar[tuple[Rule, ...]] = ()

    def rules(self) -> tuple[Rule, ...]:
        return self.own


def _damage(graphs: Graphs) -> np.ndarray:
    graphs.x[:] = 1
    return np.arange(len(graphs.x), dtype=float)


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (Rule("floors", "all", rules.degree), "the name 'floors' is taken"),
        (Rule("two-core", "again", rules.two_core), "the name 'two-core' is taken"),
        (Rule("Mine | yours", "a bar", rules.degree), "expected a name of a-z, 0-9 and '-'"),
        (Rule("mine", "two\nlines", rules.degree), "expected one line of text as what"),
        (Rule("mine", "too few", lambda graphs: np.zeros(3)), r"rule 'mine': expected \[\d+\]"),
        (Rule("mine", "changes graphs", _damage), "read-only"),
    ],
)
def test_rules_of_a_dataset_are_checked(
    rule: Rule, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_WithRules, "own", (rule,))
    monkeypatch.setattr(PLUGINS, "registered", {})
    register("with_rules", _WithRules)
    table = Recipe.load("ba2motif").to_dict() | {"name": "with-rules", "generator": "with_rules"}
    recipe = Recipe.from_dict(table)
    with pytest.raises(CheckFailedError, match=message):
        build(recipe, root=tmp_path, graphs=40, engine="serial", rings=False)


def test_a_rule_of_a_dataset_may_be_called_low(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = Rule("low-core-number", "its own", lambda graphs: np.arange(len(graphs.x), dtype=float))
    monkeypatch.setattr(_WithRules, "own", (rule,))
    monkeypatch.setattr(PLUGINS, "registered", {})
    register("with_rules", _WithRules)
    table = Recipe.load("ba2motif").to_dict() | {"name": "with-rules", "generator": "with_rules"}
    build(Recipe.from_dict(table), root=tmp_path, graphs=40, engine="serial", rings=False)
    floors = Floors.load(tmp_path / "with-rules/seed-0")
    assert floors is not None
    assert 0 < floors.rows["low-core-number"].jaccard < 1


def test_a_full_measurement_is_kept_when_floors_are_added(motifs: Path, tmp_path: Path) -> None:
    folder = tmp_path / "ba2motif/seed-0"
    shutil.copytree(motifs, folder)
    (folder / "floors.json").unlink()
    full = replace(measure_shards(folder, Manifest.load(folder)), depth="full")
    full.save(folder)
    build("ba2motif", root=tmp_path, graphs=300)
    assert Measurement.load(folder) == full
    assert Floors.load(folder) == Floors.load(motifs)
    assert "## Floors of explanations" in (folder / "README.md").read_text()


def test_without_test_graphs_floors_say_whose_graphs_were_scored(tmp_path: Path) -> None:
    build("ba2motif", root=tmp_path, graphs=3, engine="serial", rings=False)
    floors = Floors.load(tmp_path / "ba2motif/seed-0")
    assert floors is not None
    assert (floors.split, floors.graphs) == ("valid", 1)
    assert "on 1 valid graphs" in (tmp_path / "ba2motif/seed-0/README.md").read_text()


def test_manifests_of_builds_are_on_disk(motifs: Path) -> None:
    floors = measure_floors(motifs, Manifest.load(motifs))
    assert floors == Floors.load(motifs)


@pytest.fixture
def toys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PLUGINS, "registered", {})
    register("toy_rationales", ToyRationales)


def _toy_floors(form: str, root: Path, graphs: int = 60) -> Floors:
    build(toy_recipe(form, graphs), root=root, engine="serial", rings=False)
    folder = root / f"toy-{form}/seed-0"
    assert verify(folder) == []
    floors = Floors.load(folder)
    assert floors is not None
    return floors


@pytest.mark.usefixtures("toys")
@pytest.mark.parametrize("form", ["single", "alternatives", "signed", "signed-classes"])
def test_floors_are_the_columns_of_an_evaluation(form: str, tmp_path: Path) -> None:
    floors = _toy_floors(form, tmp_path)
    test = GraphXAIDataset(tmp_path, toy_recipe(form), split="test")
    names = ["random", "low-closeness", "wl-rarity-1", "wl-log-odds-1"]
    keys = ("jaccard", "auroc", "auroc_average", "jaccard_union", "auroc_union", "spearman",
            "null_outliers")  # fmt: skip
    table = evaluate(test, names)
    for name in names:
        row, expected = floors.rows[name], table.loc[name]
        for key in keys:
            assert (getattr(row, key) is None) == (key not in expected), key
            if key in expected:
                assert getattr(row, key) == pytest.approx(expected[key], abs=1e-6)
        assert floors.graphs == expected.graphs
        assert (floors.null_graphs or 0) == expected.get("null_graphs", 0)
    signed = form.startswith("signed")
    assert floors.by == ("spearman" if signed else "jaccard")
    others = [floors.value(name) for name, row in floors.rows.items() if not row.definition]
    assert floors.value(floors.best) == max(others)
    card = (tmp_path / f"toy-{form}/seed-0/README.md").read_text()
    assert ("| Spearman |" in card) == signed


@pytest.mark.usefixtures("toys")
def test_numbers_are_explained_by_what_is_common_above_their_median(tmp_path: Path) -> None:
    floors = _toy_floors("signed", tmp_path, graphs=400)
    # The colour of a node decides its weight, and the label is the sum of weights.
    assert floors.best == "wl-log-odds-0"
    assert floors.rows["wl-log-odds-0"].spearman == 1
    folder = tmp_path / "toy-signed/seed-0"
    training, test = (read_split(folder, Manifest.load(folder), s) for s in ("train", "test"))
    recipe = toy_recipe("signed", 400)
    (scored,) = scored_rules(test, recipe, training, {"wl-log-odds-0"})
    median = float(np.median(training.label))
    has = [
        [
            bool((training.graphs.x[a:b] == colour).any())
            for a, b in pairwise(training.graphs.node_ptr)
        ]
        for colour in range(3)
    ]
    assert scored.scores is not None
    for colour in range(3):
        inside = sum(h for h, y in zip(has[colour], training.label, strict=True) if y > median)
        size = int((training.label > median).sum())
        share = size / len(training)
        p = (inside + share) / (size + 1)
        q = (sum(has[colour]) - inside + 1 - share) / (len(training) - size + 1)
        odds = math.log(p / (1 - p)) - math.log(q / (1 - q))
        np.testing.assert_allclose(scored.scores[test.graphs.x == colour], odds)


@pytest.mark.usefixtures("toys")
def test_test_graphs_that_are_all_null_leave_the_floors_to_the_next_split(tmp_path: Path) -> None:
    floors = _toy_floors("single", tmp_path, graphs=3)
    (test,) = GraphXAIDataset(tmp_path, toy_recipe("single", 3), split="test")
    assert not test.node_mask.any()
    assert (floors.split, floors.graphs) == ("train", 1)
    assert floors.rows["random"].jaccard >= 0


@pytest.mark.usefixtures("toys")
def test_a_build_without_any_rationale_to_rank_says_so(tmp_path: Path) -> None:
    floors = _toy_floors("single", tmp_path, graphs=1)
    assert (floors.rows, floors.best, floors.strongest, floors.graphs) == ({}, "", [], 0)
    assert floors.null_graphs == 1
    assert floors.left_out["degree"].startswith("no graph has nodes inside and outside")
    folder = tmp_path / "toy-single/seed-0"
    assert "## Floors of explanations" not in (folder / "README.md").read_text()
    names = floor_names(GraphXAIDataset.from_folder(folder), ["all"])
    assert (names.measured, names.strongest) == ([], [])
