from collections import Counter
from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphxai_data.building.plan import make_plan
from graphxai_data.generators import ba2motif
from graphxai_data.generators.ba2motif import MOTIFS, BA2MotifGenerator
from graphxai_data.generators.ba2motif_proof import BA2MotifProver
from graphxai_data.graphs.columns import unpack
from graphxai_data.graphs.invariants import check_columns
from graphxai_data.graphs.record import GraphRecord, Plan
from graphxai_data.recipe import Recipe
from graphxai_data.seeds import rng_for

# Colours and twins, as recipes of one's own may have them.
COLOURED = Recipe.from_dict(
    Recipe.load("ba2motif").to_dict()
    | {
        "name": "coloured",
        "params": {
            "graphs": 2000,
            "motifs": ["house", "k23"],
            "base_nodes_mean": 18.7,
            "base_nodes_min": 10,
            "features": "colour",
            "twins": True,
        },
    }
)
RECIPES = ["ba2motif", "coloured"]


def _recipe(name: str) -> Recipe:
    return COLOURED if name == "coloured" else Recipe.load(name)


def _records(name: str, graphs: int, seed: int = 0) -> list[GraphRecord]:
    recipe = _recipe(name)
    columns = recipe.generator_object.generate(make_plan(recipe, seed, graphs), seed)
    return [unpack(columns, recipe.schema, i) for i in range(graphs)]


def _graph(record: GraphRecord) -> nx.Graph:
    graph = nx.Graph(record.edge_index.T.tolist())
    graph.add_nodes_from(range(record.num_nodes))
    return graph


@pytest.mark.parametrize("name", RECIPES)
def test_networkx_confirms_every_graph(name: str) -> None:
    for record in _records(name, 200, seed=11):
        graph = _graph(record)
        motif = graph.subgraph(np.flatnonzero(record.node_mask).tolist())
        base = graph.subgraph(np.flatnonzero(~record.node_mask).tolist())
        assert nx.is_connected(graph)
        assert nx.number_of_selfloops(graph) == 0
        assert nx.is_tree(base)
        assert 10 <= len(base) <= 28
        assert len(motif) == 5
        assert graph.number_of_edges() == motif.number_of_edges() + base.number_of_edges() + 1
        assert 2 * motif.number_of_edges() == record.edge_mask.sum()
        if name == "ba2motif":
            expected = nx.house_graph() if record.y == 0 else nx.cycle_graph(5)
            assert nx.is_isomorphic(motif, expected)
            degrees = [graph.degree[node] for node in range(len(graph))]
            assert record.x.argmax(axis=1).tolist() == degrees
        else:
            colours = set(record.x[record.node_mask].argmax(axis=1).tolist())
            is_k23 = nx.is_isomorphic(motif, nx.complete_bipartite_graph(2, 3))
            assert is_k23 or nx.is_isomorphic(motif, nx.house_graph())
            assert len(colours) == 1
            assert record.y == is_k23 ^ colours.pop()


@pytest.mark.parametrize("name", RECIPES)
def test_check_and_proof_find_no_problems(name: str) -> None:
    recipe = _recipe(name)
    columns = recipe.generator_object.generate(make_plan(recipe, 3, 60), 3)
    assert check_columns(columns, recipe.schema) == []
    assert recipe.generator_object.check(columns) == []
    for record in _records(name, 60, seed=3):
        assert BA2MotifProver(recipe.params).problems(record) == []


@pytest.mark.parametrize("name", RECIPES)
@given(first=st.integers(0, 90), count=st.integers(1, 10))
@settings(max_examples=20)
def test_a_graph_does_not_depend_on_which_others_are_drawn(
    name: str, first: int, count: int
) -> None:
    recipe = _recipe(name)
    plan = make_plan(recipe, 0, 100)
    schema = recipe.schema
    whole = recipe.generator_object.generate(plan, 0)
    part = recipe.generator_object.generate(plan.cut(first, count), 0)
    for i in range(min(count, 100 - first)):
        one, other = unpack(whole, schema, first + i), unpack(part, schema, i)
        np.testing.assert_array_equal(one.x, other.x)
        np.testing.assert_array_equal(one.edge_index, other.edge_index)
        np.testing.assert_array_equal(one.node_mask, other.node_mask)


def test_attachment_is_exactly_preferential() -> None:
    # Trees of five nodes by networkx-free enumeration: each new node joins node v with
    # probability deg(v) / (2 * edges). 1 * 1 * 2 choices of two, then four, then six edge ends.
    expected: Counter[tuple[int, ...]] = Counter()
    for second in range(2):
        for third in range(4):
            for fourth in range(6):
                ends = [0, 1]
                for new, choice in enumerate((second, third, fourth), start=2):
                    ends += [ends[choice], new]
                parents = tuple(ends[2 * i] for i in range(4))
                expected[parents] += 1 / 48
    draws = 40_000
    words = rng_for(0, "test").words(5 * draws).reshape(draws, 5)
    parents = ba2motif._preferential_parents(words)[:, 1:]
    counts = Counter(map(tuple, parents.tolist()))
    assert counts.keys() == expected.keys()
    chi_square = sum((counts[k] - draws * p) ** 2 / (draws * p) for k, p in expected.items())
    assert chi_square < 50  # 99.9 % quantile with at most 23 degrees of freedom


def test_degrees_are_distributed_as_networkx_draws_them() -> None:
    words = rng_for(1, "test").words(20 * 4000).reshape(4000, 20)
    parents = ba2motif._preferential_parents(words)
    ours = np.zeros(20)
    for row in parents:
        degree = np.bincount(row[1:], minlength=20) + (np.arange(20) > 0)
        ours += np.bincount(degree, minlength=20)
    theirs = np.zeros(20)
    for seed in range(4000):
        graph = nx.barabasi_albert_graph(20, 1, seed=seed)
        theirs += np.bincount([d for _, d in graph.degree], minlength=20)
    assert np.abs(ours - theirs).sum() / theirs.sum() < 0.02


def test_the_mean_base_size_is_the_recipes() -> None:
    params = Recipe.load("ba2motif").params
    sizes = ba2motif._base_sizes(params, rng_for(0, "test").words(400_000).reshape(-1, 2))
    assert abs(sizes.mean() - 18.7) < 4 * sizes.std() / np.sqrt(len(sizes))
    assert (sizes.min(), sizes.max()) == (10, 28)


def test_node_order_gives_nothing_away() -> None:
    positions = np.concatenate(
        [np.flatnonzero(r.node_mask) / (r.num_nodes - 1) for r in _records("ba2motif", 1000)]
    )
    # The mean of 5,000 uniform places; a motif kept at the end would be at 0.9.
    assert abs(positions.mean() - 0.5) < 4 * 0.3 / np.sqrt(5000)


def test_the_papers_set_has_its_shortcut() -> None:
    # A House has one edge more than a cycle: |E| - |V| is the class, without any structure.
    for record in _records("ba2motif", 100):
        excess = record.edge_index.shape[1] // 2 - record.num_nodes
        assert (excess == 1) == (record.y == 0)


def _twins() -> list[list[GraphRecord]]:
    records = _records("coloured", 400)
    return [records[i : i + 4] for i in range(0, 400, 4)]


def _feature_counts(record: GraphRecord) -> list[int]:
    return record.x.sum(axis=0).astype(int).tolist()


def _degrees(record: GraphRecord) -> list[int]:
    return sorted(np.bincount(record.edge_index[0], minlength=record.num_nodes).tolist())


def test_twins_with_the_same_features_have_different_classes() -> None:
    for twins in _twins():
        assert len({t.group for t in twins}) == 1
        for one, other in ((0, 1), (2, 3)):
            assert _feature_counts(twins[one]) == _feature_counts(twins[other])
            assert twins[one].y != twins[other].y


def test_twins_with_the_same_topology_have_different_classes() -> None:
    for twins in _twins():
        for one, other in ((0, 2), (1, 3)):
            assert nx.is_isomorphic(_graph(twins[one]), _graph(twins[other]))
            assert twins[one].y != twins[other].y


def test_all_twins_have_the_same_size_and_degrees() -> None:
    for twins in _twins():
        for one, other in combinations(twins, 2):
            assert _degrees(one) == _degrees(other)


def test_twins_have_their_base_and_its_colours_in_common() -> None:
    for twins in _twins()[:30]:
        bases = []
        for twin in twins:
            graph = _graph(twin)
            nx.set_node_attributes(
                graph, {i: int(row.argmax()) for i, row in enumerate(twin.x)}, "colour"
            )
            bases.append(graph.subgraph(np.flatnonzero(~twin.node_mask).tolist()))
        for other in bases[1:]:
            assert nx.is_isomorphic(bases[0], other, node_match=lambda a, b: a == b)


def test_motifs_of_twins_have_the_same_degree_at_every_node() -> None:
    house, k23 = (nx.Graph(MOTIFS[name]).degree for name in ("house", "k23"))
    assert [house[i] for i in range(5)] == [k23[i] for i in range(5)] == [3, 3, 2, 2, 2]


def _changed(record: GraphRecord, **changes: object) -> GraphRecord:
    fields = {name: getattr(record, name) for name in GraphRecord.__slots__}
    return GraphRecord(**(fields | changes))


def test_the_proof_notices_a_wrong_label_mask_or_feature() -> None:
    prover = BA2MotifProver(Recipe.load("ba2motif").params)
    record = _records("ba2motif", 1)[0]
    assert prover.problems(record) == []
    shifted = np.roll(record.node_mask, 1)
    edge_mask = shifted[record.edge_index].all(axis=0)
    assert prover.problems(_changed(record, y=1 - record.y))
    assert prover.problems(_changed(record, node_mask=shifted, edge_mask=edge_mask))
    assert prover.problems(_changed(record, edge_mask=~record.edge_mask))
    assert prover.problems(_changed(record, x=np.roll(record.x, 1, axis=0)))


@pytest.mark.parametrize(
    ("name", "array", "sentence"),
    [
        ("ba2motif", "y", "the label is not the motif's"),
        ("coloured", "y", "the label is not motif XOR colour"),
        ("ba2motif", "x", "a feature is not its degree"),
        ("coloured", "x", "the motif is not of one colour"),
    ],
)
def test_check_notices_every_wrong_label_and_feature(name: str, array: str, sentence: str) -> None:
    recipe = _recipe(name)
    columns = recipe.generator_object.generate(make_plan(recipe, 0, 8), 0)
    changed = columns[array].copy()
    place = 5 if array == "y" else int(np.flatnonzero(columns["node_mask"])[25])
    changed[place] ^= 1
    problems = recipe.generator_object.check(columns | {array: changed})
    assert problems[0] == f"graph 5: {sentence}"


def test_check_notices_a_second_bridge_and_a_moved_mask() -> None:
    recipe = Recipe.load("ba2motif")
    columns = recipe.generator_object.generate(make_plan(recipe, 0, 2), 0)
    record = unpack(columns, recipe.schema, 0)
    moved = columns["node_mask"].copy()
    moved[: record.num_nodes] = np.roll(record.node_mask, 1)
    assert recipe.generator_object.check(columns | {"node_mask": moved})
    short = columns["node_mask"].copy()
    short[np.flatnonzero(short)[0]] = False
    problems = recipe.generator_object.check(columns | {"node_mask": short})
    assert problems == ["graph 0: the rationale does not have 5 nodes"]


@given(
    minimum=st.integers(2, 40),
    above=st.floats(0, 30),
    features=st.sampled_from(["degree", "colour"]),
    twins=st.booleans(),
    motifs=st.permutations(["house", "cycle", "k23"]),
    seed=st.integers(0, 2**40),
)
@settings(max_examples=30)
def test_every_recipe_of_the_family_gives_valid_graphs(
    minimum: int, above: float, features: str, twins: bool, motifs: list[str], seed: int
) -> None:
    numbers = (9, tuple(motifs[:2]), minimum, minimum + above, features, twins)
    generator = BA2MotifGenerator(BA2MotifGenerator.Params(*numbers))
    label, group = generator.plan(9)
    assert abs(int(label.sum()) - 4.5) <= 1
    plan = Plan(np.arange(9), label, group, np.zeros(9, np.uint8))
    columns = generator.generate(plan, seed)
    assert check_columns(columns, generator.schema()) == []
    assert generator.check(columns) == []
