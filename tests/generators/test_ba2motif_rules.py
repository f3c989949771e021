from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphxai_data.building.plan import make_plan
from graphxai_data.generators.ba2motif_rules import is_bridge
from graphxai_data.graphs.columns import Columns, global_edges
from graphxai_data.graphs.union import Graphs
from graphxai_data.metrics import jaccard_at_k
from graphxai_data.recipe import Recipe


def _columns(name: str, graphs: int, seed: int = 0) -> tuple[Recipe, Columns]:
    recipe = Recipe.load(name)
    return recipe, recipe.generator_object.generate(make_plan(recipe, seed, graphs), seed)


def _union(columns: Columns) -> Graphs:
    return Graphs(columns["x"], global_edges(columns), None, columns["node_ptr"])


@given(
    nodes=st.integers(1, 25),
    pairs=st.lists(st.tuples(st.integers(0, 24), st.integers(0, 24)), max_size=40),
)
def test_bridges_are_those_of_networkx(nodes: int, pairs: list[tuple[int, int]]) -> None:
    graph = nx.Graph((u % nodes, v % nodes) for u, v in pairs if u % nodes != v % nodes)
    both = sorted((u, v) for pair in graph.edges for u, v in (pair, pair[::-1]))
    edges = np.array(both, np.int64).reshape(-1, 2).T
    expected = {frozenset(edge) for edge in nx.bridges(graph)}
    selected = edges[:, is_bridge(edges, nodes)].T.tolist()
    assert {frozenset(edge) for edge in selected} == expected
    assert len(selected) == 2 * len(expected)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_definition_finds_every_rationale(seed: int) -> None:
    recipe, columns = _columns("ba2motif-balanced", 600, seed)
    (rule,) = recipe.generator_object.rules()
    assert rule.is_definition
    np.testing.assert_array_equal(rule.score(_union(columns)), columns["node_mask"])


@pytest.mark.parametrize(("cause", "expected"), [("a", 1.0), ("b", 0.0)])
def test_the_rule_of_a_pair_finds_the_red_motif_whichever_counts(
    cause: str, expected: float
) -> None:
    recipe, columns = _columns(f"ba2motif-pair-{cause}", 200)
    (rule,) = recipe.generator_object.rules()
    assert not rule.is_definition
    scores, mask, ptr = rule.score(_union(columns)), columns["node_mask"], columns["node_ptr"]
    values = [jaccard_at_k(scores[i:j], mask[i:j]) for i, j in pairwise(ptr)]
    assert np.mean(values) == expected
