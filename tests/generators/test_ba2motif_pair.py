from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphxai_data.building.plan import make_plan
from graphxai_data.generators.ba2motif_pair import BA2MotifPairGenerator
from graphxai_data.generators.ba2motif_pair_proof import BA2MotifPairProver
from graphxai_data.generators.pairs import Cause
from graphxai_data.graphs.columns import Columns, unpack
from graphxai_data.graphs.invariants import check_columns
from graphxai_data.graphs.record import GraphRecord, Plan
from graphxai_data.recipe import Recipe

RECIPES = {cause: Recipe.load(f"ba2motif-pair-{cause}") for cause in ("a", "b", "both")}
SCHEMA = RECIPES["a"].schema


def _columns(cause: str, graphs: int, seed: int = 0) -> Columns:
    recipe = RECIPES[cause]
    return recipe.generator_object.generate(make_plan(recipe, seed, graphs), seed)


def _records(cause: str, graphs: int, seed: int = 0) -> list[GraphRecord]:
    columns = _columns(cause, graphs, seed)
    return [unpack(columns, SCHEMA, i) for i in range(graphs)]


def _graph(record: GraphRecord) -> nx.Graph:
    graph = nx.Graph(record.edge_index.T.tolist())
    graph.add_nodes_from(range(record.num_nodes))
    return graph


@pytest.mark.parametrize("cause", RECIPES)
def test_networkx_confirms_every_graph(cause: str) -> None:
    for record in _records(cause, 200, seed=11):
        graph, colours = _graph(record), record.x.argmax(axis=1)
        assert nx.is_connected(graph)
        assert len(set(record.x.sum(axis=0))) == 1
        assert 8 <= record.x[:, 0].sum() <= 12
        shapes = []
        for number in (1, 2):
            nodes = np.flatnonzero(record.meta["cause"] == number).tolist()
            assert colours[nodes].tolist() == [number - 1] * 5
            assert len(list(nx.edge_boundary(graph, nodes))) == 1
            motif = graph.subgraph(nodes)
            is_k23 = nx.is_isomorphic(motif, nx.complete_bipartite_graph(2, 3))
            assert is_k23 or nx.is_isomorphic(motif, nx.house_graph())
            shapes.append(int(is_k23))
        assert graph.number_of_edges() == 2 * (len(graph) - 10 - 2) + 2 * (6 + 1)
        assert record.meta["cause_y"].tolist() == shapes
        counted = {"a": [1], "b": [2], "both": [1, 2]}[cause]
        assert [shapes[number - 1] for number in counted] == [record.y] * len(counted)
        assert np.array_equal(record.rationale, np.isin(record.meta["cause"], counted))


def test_both_recipes_of_the_pair_are_the_same_graphs_in_the_same_splits() -> None:
    a, b = _columns("a", 4000), _columns("b", 4000)
    differ = {name for name in a if a[name].tobytes() != b[name].tobytes()}
    assert differ == {"y", "node_mask", "edge_mask"}
    assert not (a["node_mask"] & b["node_mask"]).any()
    pairs, counts = np.unique(np.stack([a["y"], b["y"]]), axis=1, return_counts=True)
    assert pairs.T.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert counts.tolist() == [1000] * 4


def test_where_causes_agree_the_third_recipe_has_the_same_graphs_in_the_same_splits() -> None:
    a, both = _records("a", 400), _records("both", 400)
    agree = 0
    for one, other in zip(a, both, strict=True):
        assert one.meta["split"] == other.meta["split"]
        np.testing.assert_array_equal(one.x, other.x)
        np.testing.assert_array_equal(one.meta["cause"], other.meta["cause"])
        if one.meta["cause_y"][0] == one.meta["cause_y"][1]:
            agree += 1
            np.testing.assert_array_equal(one.edge_index, other.edge_index)
    assert agree == 200


@pytest.mark.parametrize("changed", ["a", "b"])
@pytest.mark.parametrize("cause", RECIPES)
def test_an_intervention_changes_the_edges_of_one_motif_and_nothing_else(
    cause: str, changed: Cause
) -> None:
    generator, plan = RECIPES[cause].generator_object, make_plan(RECIPES[cause], 0, 200)
    assert isinstance(generator, BA2MotifPairGenerator)
    before = generator.generate(plan, 0)
    after = generator.intervene(plan, 0, changed)
    differ = {name for name in before if before[name].tobytes() != after[name].tobytes()}
    moves = cause == changed or (cause == "both" and changed == "a")
    # Each node has as many edges as before: even pointers are the same.
    marked = cause in (changed, "both")
    expected = {"edge_index": True, "cause_y": True, "edge_mask": marked, "y": moves}
    assert differ == {name for name, changes in expected.items() if changes}
    number = "ab".index(changed)
    for i in range(200):
        one, other = unpack(before, SCHEMA, i), unpack(after, SCHEMA, i)
        edges = [set(map(tuple, record.edge_index.T.tolist())) for record in (one, other)]
        ends = np.array(sorted(edges[0] ^ edges[1]))
        assert len(ends)
        assert (one.meta["cause"][ends] == number + 1).all()
        degrees = [np.bincount(record.edge_index[0]) for record in (one, other)]
        np.testing.assert_array_equal(*degrees)
        flipped = one.meta["cause_y"] != other.meta["cause_y"]
        assert flipped.tolist() == [number == 0, number == 1]


def test_neither_colours_nor_degrees_depend_on_the_classes() -> None:
    """Seen by a model without edges, every graph is the same for all four combinations."""
    generator, plan = RECIPES["a"].generator_object, make_plan(RECIPES["a"], 0, 40)
    assert isinstance(generator, BA2MotifPairGenerator)
    seen = set()
    for classes in ([0, 0], [0, 1], [1, 0], [1, 1]):
        columns = generator.draw(plan, 0, np.tile(np.array(classes)[:, None], 40))
        offset = np.repeat(columns["node_ptr"][:-1], np.diff(columns["edge_ptr"]))
        degree = np.bincount(columns["edge_index"][0] + offset)
        seen.add((columns["x"].tobytes(), degree.tobytes()))
    assert len(seen) == 1


@pytest.mark.parametrize("cause", RECIPES)
def test_check_and_proof_find_no_problems(cause: str) -> None:
    recipe, columns = RECIPES[cause], _columns(cause, 60, seed=3)
    assert check_columns(columns, SCHEMA) == []
    assert recipe.generator_object.check(columns) == []
    prover = BA2MotifPairProver(recipe.params)
    assert [p for record in _records(cause, 60, seed=3) for p in prover.problems(record)] == []


def test_the_proof_notices_a_wrong_label_mask_cause_or_colour() -> None:
    record = _records("a", 1)[0]
    other_cause = np.asarray(record.meta["cause"] == 2)
    meta = dict(record.meta)
    balance = record.x.copy()
    balance[np.flatnonzero(record.meta["cause"] == 0)] = np.eye(3)[2]
    for change, sentence in [
        ({"y": 1 - record.y}, "does not follow from the motif"),
        ({"node_mask": other_cause}, "the rationale is not the motif"),
        ({"edge_mask": ~record.edge_mask}, "edge_mask is not the set"),
        ({"meta": meta | {"cause_y": 1 - meta["cause_y"]}}, "cause_y is not the shapes"),
        ({"meta": meta | {"cause": meta["cause"][::-1]}}, "cause is not where"),
        ({"x": balance}, "not as many nodes of one colour as of another"),
        ({"x": record.x[:, [2, 1, 0]]}, "expected a red and a blue one"),
    ]:
        problems = BA2MotifPairProver(RECIPES["a"].params).problems(replace(record, **change))
        assert any(sentence in problem for problem in problems), sentence


@pytest.mark.parametrize(
    ("cause", "array", "sentence"),
    [
        ("a", "y", "the label is not its cause's class"),
        ("b", "cause_y", "the shape of B is not its class"),
        ("a", "x", "A does not have 5 red nodes"),
        ("b", "cause", "B does not have 5 blue nodes"),
        ("both", "cause_y", "A and B do not have the same class"),
    ],
)
def test_check_notices_what_is_wrong(cause: str, array: str, sentence: str) -> None:
    columns = _columns(cause, 8)
    changed = columns[array].copy()
    if array in ("x", "cause"):
        nodes = np.flatnonzero(columns["cause"] == (1 if cause == "a" else 2))
        changed[nodes[5 * 5]] = 0 if array == "cause" else 2
    elif array == "cause_y":
        changed[5, 1] = 1 - changed[5, 1]
    else:
        changed[5] = 1 - changed[5]
    problems = RECIPES[cause].generator_object.check(columns | {array: changed})
    assert f"graph 5: {sentence}" in problems


@pytest.mark.parametrize("seed", [0, 1])
def test_no_two_graphs_of_the_whole_set_are_isomorphic(seed: int) -> None:
    digests = set()
    for record in _records("a", 4000, seed):
        graph = _graph(record)
        colours = record.x.argmax(axis=1).tolist()
        nx.set_node_attributes(graph, dict(enumerate(colours)), "colour")
        digests.add(nx.weisfeiler_lehman_graph_hash(graph, node_attr="colour"))
    assert len(digests) == 4000


@given(first=st.integers(0, 90), count=st.integers(1, 10), cause=st.sampled_from(list(RECIPES)))
@settings(max_examples=20)
def test_a_graph_does_not_depend_on_which_others_are_drawn(
    first: int, count: int, cause: str
) -> None:
    recipe = RECIPES[cause]
    plan = make_plan(recipe, 0, 100)
    whole = recipe.generator_object.generate(plan, 0)
    part = recipe.generator_object.generate(plan.cut(first, count), 0)
    for i in range(min(count, 100 - first)):
        assert unpack(whole, SCHEMA, first + i).equals(unpack(part, SCHEMA, i))


@given(
    cause=st.sampled_from(["a", "b", "both"]),
    motifs=st.permutations(["house", "cycle", "k23"]),
    base_edges=st.integers(1, 3),
    least=st.integers(5, 12),
    more=st.integers(0, 5),
    seed=st.integers(0, 2**40),
)
@settings(max_examples=30)
def test_every_recipe_of_the_family_gives_valid_graphs(
    cause: str, motifs: list[str], base_edges: int, least: int, more: int, seed: int
) -> None:
    numbers = (9, cause, tuple(motifs[:2]), base_edges, least, least + more)
    generator = BA2MotifPairGenerator(BA2MotifPairGenerator.Params(*numbers))
    label, group = generator.plan(9)
    columns = generator.generate(Plan(np.arange(9), label, group, np.zeros(9, np.uint8)), seed)
    assert check_columns(columns, generator.schema()) == []
    assert generator.check(columns) == []
