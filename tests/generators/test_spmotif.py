from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphxai_data.building.plan import make_plan
from graphxai_data.errors import InputError
from graphxai_data.generators.motifs import MOTIFS
from graphxai_data.generators.spmotif_proof import SPMotifProver
from graphxai_data.graphs.columns import Columns, global_edges, unpack
from graphxai_data.graphs.invariants import check_columns
from graphxai_data.graphs.record import GraphRecord
from graphxai_data.graphs.union import Graphs
from graphxai_data.recipe import Recipe

BIASES = {"spmotif-33": 0.333, "spmotif-50": 0.5, "spmotif-70": 0.7, "spmotif-90": 0.9}
RECIPES = {name: Recipe.load(name) for name in (*BIASES, "spmotif-90-degree")}
R90 = RECIPES["spmotif-90"]
CRANE = nx.Graph([(0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (2, 3), (3, 4)])  # DIR's `varcycle`
SHAPES = [nx.cycle_graph(5), nx.house_graph(), CRANE]


def _columns(recipe: Recipe, graphs: int, seed: int = 0) -> Columns:
    return recipe.generator_object.generate(make_plan(recipe, seed, graphs), seed)


def _records(recipe: Recipe, graphs: int, seed: int = 0) -> list[GraphRecord]:
    columns = _columns(recipe, graphs, seed)
    return [unpack(columns, recipe.schema, i) for i in range(graphs)]


def _with(recipe: Recipe, **params: Any) -> Recipe:
    return replace(recipe, params=replace(recipe.params, **params))


def _bases(large: bool) -> list[list[nx.Graph]]:
    """Trees, ladders and wheels with the numbers of DIR's notebook."""
    heights, rungs, nodes = (
        (range(3, 6), range(30, 50), range(60, 80))
        if large
        else (range(3), range(8, 12), range(15, 20))
    )
    return [
        [nx.balanced_tree(2, height) for height in heights],
        [nx.ladder_graph(rung) for rung in rungs],
        [nx.wheel_graph(node) for node in nodes],
    ]


def test_networkx_confirms_every_graph() -> None:
    bases = [_bases(large=False), _bases(large=True)]
    seen = set()
    for record in _records(R90, 180, seed=11):
        graph = nx.Graph(record.edge_index.T.tolist())
        motif = np.flatnonzero(record.rationale).tolist()
        base = np.flatnonzero(record.meta["base"]).tolist()
        assert sorted(motif + base) == list(range(record.num_nodes))
        assert nx.is_isomorphic(graph.subgraph(motif), SHAPES[int(record.y)])
        large, kind = int(record.meta["large"]), int(record.meta["base_kind"])
        candidates = [b for b in bases[large][kind] if len(b) == len(base)]
        assert any(nx.is_isomorphic(graph.subgraph(base), other) for other in candidates)
        assert large == 0 or record.meta["split"] == 2
        ((_, end),) = nx.edge_boundary(graph, base)
        # The top of a house and the hub of a crane; all nodes of a cycle are alike.
        around = graph.subgraph(motif)
        triangles = nx.triangles(around, end)
        assert (around.degree[end], triangles) == [(2, 0), (2, 1), (4, 3)][int(record.y)]
        seen.add((int(record.y), kind, large))
    assert len(seen) == 18


@pytest.mark.parametrize("name", BIASES)
def test_own_bases_are_as_frequent_as_the_bias_says(name: str) -> None:
    columns = _columns(RECIPES[name], 4500, seed=5)
    shift = (columns["base_kind"] - columns["y"]) % 3
    for split, probability in enumerate((BIASES[name], BIASES[name], 1 / 3)):
        shares = np.bincount(shift[columns["split"] == split], minlength=3)
        total = shares.sum()
        for count, p in zip(shares, (probability, *[(1 - probability) / 2] * 2), strict=True):
            # Five standard deviations of a binomial count: one failure in 10**6.
            assert abs(count - total * p) < 5 * np.sqrt(total * p * (1 - p)), (split, shares)


def test_half_of_the_test_graphs_of_every_class_are_large() -> None:
    columns = _columns(R90, 1800)
    in_test, large = columns["split"] == 2, columns["large"] == 1
    assert np.bincount(columns["split"]).tolist() == [900, 300, 600]
    assert not large[~in_test].any()
    for label in range(3):
        assert large[in_test & (columns["y"] == label)].mean() == 0.5
    nodes = np.diff(columns["node_ptr"])
    for kind in range(3):
        of_kind = columns["base_kind"] == kind
        assert nodes[of_kind & large].min() > nodes[of_kind & ~in_test].max()


def test_test_graphs_do_not_depend_on_the_bias() -> None:
    all_graphs = {name: _records(RECIPES[name], 300, seed=2) for name in BIASES}
    for several in zip(*all_graphs.values(), strict=True):
        assert len({record.meta["split"] for record in several}) == 1
        if several[0].meta["split"] == 2:
            assert all(record.equals(several[0]) for record in several)


def test_the_recipe_with_degrees_has_the_same_graphs() -> None:
    noise, degree = _columns(R90, 300), _columns(RECIPES["spmotif-90-degree"], 300)
    assert {name for name in noise if noise[name].tobytes() != degree[name].tobytes()} == {"x"}
    for i in range(300):
        record = unpack(degree, RECIPES["spmotif-90-degree"].schema, i)
        degrees = dict(nx.Graph(record.edge_index.T.tolist()).degree)
        capped = [min(degrees[node], 6) for node in range(record.num_nodes)]
        assert record.x.argmax(axis=1).tolist() == capped


def test_noise_is_uniform_and_tells_neither_class_nor_motif() -> None:
    columns = _columns(R90, 3000)
    x, mask = columns["x"], columns["node_mask"]
    assert x.shape[1] == 4
    assert 0 <= x.min() <= x.max() <= 1
    error = np.sqrt(1 / 12 / mask.sum())
    assert np.abs(x[mask].mean(axis=0) - 0.5).max() < 5 * error
    assert np.abs(x[~mask].mean(axis=0) - 0.5).max() < 5 * error
    assert np.abs(x[mask].var(axis=0) - 1 / 12).max() < 5 * np.sqrt(1 / 180 / mask.sum())


def test_the_expected_means_follow_from_the_bases() -> None:
    """15,000 small and 3,000 large graphs; every base with probability 1/3 over all classes."""
    nodes, edges = [], []
    for large in (False, True):
        kinds = _bases(large)
        nodes.append(5 + np.mean([np.mean([len(b) for b in kind]) for kind in kinds]))
        edges.append(7 + np.mean([np.mean([b.size() for b in kind]) for kind in kinds]))
    for recipe in RECIPES.values():
        expected = recipe.expected
        assert expected["nodes_mean"].value == pytest.approx(np.dot(nodes, [5, 1]) / 6, abs=0.01)
        assert expected["edges_mean"].value == pytest.approx(np.dot(edges, [5, 1]) / 3, abs=0.01)


def test_small_graphs_of_a_class_have_36_topologies() -> None:
    """As the notes of the recipe say: a base and the node of it that the motif hangs on."""
    hashes = set()
    for base in (base for kind in _bases(large=False) for base in kind):
        for node in base:
            graph = nx.disjoint_union(base, SHAPES[1])
            graph.add_edge(node, len(base) + 4)
            nx.set_node_attributes(graph, "", "label")
            hashes.add(nx.weisfeiler_lehman_graph_hash(graph, node_attr="label", iterations=8))
    assert len(hashes) == 36


def test_the_crane_is_that_of_dir() -> None:
    assert nx.is_isomorphic(nx.Graph(MOTIFS["crane"]), CRANE)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_definition_finds_every_rationale(seed: int) -> None:
    columns = _columns(R90, 600, seed)
    (rule,) = R90.generator_object.rules()
    assert rule.is_definition
    union = Graphs(columns["x"], global_edges(columns), None, columns["node_ptr"])
    np.testing.assert_array_equal(rule.score(union), columns["node_mask"])


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 2**40),
    bias=st.floats(0, 1),
    large_share=st.floats(0, 1),
    bases=st.permutations(["tree", "ladder", "wheel"]),
    motifs=st.permutations(["cycle", "house", "crane", "k23"]),
    biased=st.lists(st.sampled_from(["train", "valid", "test"]), unique=True),
    sizes=st.tuples(st.integers(0, 2), st.integers(2, 6), st.integers(4, 9), st.integers(1, 3)),
    features=st.sampled_from(["noise", "degree"]),
)
def test_every_recipe_gives_graphs_that_are_proven(
    seed: int,
    bias: float,
    large_share: float,
    bases: list[str],
    motifs: list[str],
    biased: list[str],
    sizes: tuple[int, int, int, int],
    features: str,
) -> None:
    tree, ladder, wheel, step = sizes
    recipe = _with(
        R90,
        bias=bias,
        large_share=large_share,
        bases=tuple(bases),
        motifs=tuple(motifs[:3]),
        biased_splits=tuple(biased),
        tree_heights=(tree, tree),
        ladder_rungs=(ladder, ladder + step),
        wheel_nodes=(wheel, wheel + step),
        large_tree_heights=(tree + 1, tree + 1 + step),
        large_ladder_rungs=(ladder + step + 1, ladder + step + 1),
        large_wheel_nodes=(wheel + 2 * step, wheel + 3 * step),
        features=features,
    )
    plan, generator = make_plan(recipe, seed, 18), recipe.generator_object
    columns = generator.generate(plan, seed)
    assert check_columns(columns, recipe.schema) == []
    assert generator.check(columns) == []
    prover = SPMotifProver(recipe.params)
    records = [unpack(columns, recipe.schema, i) for i in range(18)]
    assert [problem for record in records for problem in prover.problems(record)] == []
    alone = unpack(generator.generate(plan.cut(7, 1), seed), recipe.schema, 0)
    assert alone.equals(records[7])


@pytest.mark.parametrize(
    ("key", "change", "sentence"),
    [
        ("y", lambda y: (y + 1) % 3, "the label is not the motif's"),
        ("base", lambda base: 1 - base, "a node is not of base or motif"),
        ("base_kind", lambda kind: (kind + 1) % 3, "not have nodes and edges of a base"),
        ("base_kind", lambda kind: kind + 3, "base_kind is not a kind of base"),
        ("large", lambda large: 1 - large, "not have nodes and edges of a base"),
        ("split", lambda split: 0 * split, "large, but not a test graph"),
        ("x", lambda x: x + 1, "a feature is not from 0 to 1"),
    ],
)
def test_check_notices_what_is_wrong(key: str, change: Any, sentence: str) -> None:
    columns = _columns(R90, 30)
    problems = R90.generator_object.check(columns | {key: change(columns[key])})
    assert any(sentence in problem for problem in problems), problems


def test_check_notices_a_wrong_degree() -> None:
    recipe = RECIPES["spmotif-90-degree"]
    columns = _columns(recipe, 30)
    problems = recipe.generator_object.check(columns | {"x": (columns["x"] + 1) % 7})
    assert problems == ["graph 0 (and 29 more): a feature is not its degree"]


def test_the_proof_notices_a_wrong_label_mask_base_size_or_feature() -> None:
    recipe = RECIPES["spmotif-90-degree"]
    record = next(r for r in _records(recipe, 60) if r.meta["large"])
    meta = dict(record.meta)
    for change, sentence in [
        ({"y": (record.y + 1) % 3}, "does not follow from the motif"),
        ({"node_mask": ~record.node_mask}, "do not divide the nodes"),
        ({"edge_mask": ~record.edge_mask}, "edge_mask is not the set"),
        ({"x": np.roll(record.x, 1, axis=1)}, "not the node's degree"),
        ({"meta": meta | {"base": 1 - meta["base"]}}, "do not divide the nodes"),
        ({"meta": meta | {"base_kind": (meta["base_kind"] + 1) % 3}}, "the base is not a"),
        ({"meta": meta | {"large": np.uint8(0)}}, "the base is not a"),
        ({"meta": meta | {"split": 1}}, "a large base outside of the test split"),
    ]:
        problems = SPMotifProver(recipe.params).problems(replace(record, **change))
        assert any(sentence in problem for problem in problems), sentence


@pytest.mark.parametrize("motif", ["house", "crane", "k23"])
def test_the_proof_notices_a_bridge_to_another_node_of_the_motif(motif: str) -> None:
    """All nodes of a cycle are alike; in each other motif, a node that has another degree."""
    recipe = _with(R90, motifs=("cycle", motif, "k23" if motif != "k23" else "house"))
    record = next(r for r in _records(recipe, 30) if r.y == 1)
    prover = SPMotifProver(recipe.params)
    assert prover.problems(record) == []
    inside = record.rationale
    (bridge,) = [(a, b) for a, b in record.edge_index.T.tolist() if inside[a] and not inside[b]]
    graph = nx.Graph(record.edge_index.T.tolist())
    degree = graph.subgraph(np.flatnonzero(inside).tolist()).degree
    other = next(n for n in np.flatnonzero(inside).tolist() if degree[n] != degree[bridge[0]])
    graph.remove_edge(*bridge)
    graph.add_edge(other, bridge[1])
    edges = sorted((a, b) for u, v in graph.edges for a, b in ((u, v), (v, u)))
    mask = [bool(inside[a] and inside[b]) for a, b in edges]
    moved = replace(record, edge_index=np.array(edges).T, edge_mask=np.array(mask))
    assert prover.problems(moved) == [
        f"the bridge ends at another node of the {motif} than it should"
    ]


def test_the_card_states_the_share_of_own_bases() -> None:
    records = _records(R90, 360)
    (table,) = R90.generator_object.card_sections(records)
    in_train = [record for record in records if record.meta["split"] == 0]
    own = sum(record.meta["base_kind"] == record.y for record in in_train) / len(in_train)
    assert f"| train | {len(in_train)} | {own:.3f} | 0.900 | 0.000 |" in table
    assert "| 0.333 | 0.500 |" in table


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"bias": 1.5}, "params.bias: expected a finite number from 0 to 1, got 1.5"),
        (
            {"tree_heights": (2, 0)},
            r"params.tree_heights: expected the smallest .* got \[2, 0\]; exchange them",
        ),
        ({"wheel_nodes": (3, 5)}, r"wheel_nodes: .* from 4 to 299, got \[3, 5\]"),
        (
            {"large_ladder_rungs": (11, 40)},
            r"params.large_ladder_rungs: .* from 12 to 150, got \[11, 40\]; large bases are larger "
            "than all others, and ladder_rungs ends at 11",
        ),
        ({"motifs": ("cycle", "house")}, "motifs: expected 3 different names"),
    ],
)
def test_wrong_numbers_are_refused(params: dict[str, Any], message: str) -> None:
    table = R90.to_dict()
    lists = {key: list(v) if isinstance(v, tuple) else v for key, v in params.items()}
    table["params"] |= lists
    with pytest.raises(InputError, match=f"mine.toml: .*{message}"):
        Recipe.from_dict(table, "mine.toml")
