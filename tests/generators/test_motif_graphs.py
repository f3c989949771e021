from collections import Counter
from itertools import combinations, product

import networkx as nx
import numpy as np
import pytest

from graphxai_data.errors import InputError
from graphxai_data.generators.motif_graphs import Layout, preferential_targets
from graphxai_data.seeds import rng_for


def _words(*shape: int) -> np.ndarray:
    return rng_for(0, "test").words(int(np.prod(shape))).reshape(shape)


def test_attachment_is_exactly_preferential() -> None:
    # By enumeration: a star of three nodes, then two nodes that are each joined to two different
    # older ones, the first in proportion to its degree, the second too, among those left.
    expected: Counter[tuple[int, ...]] = Counter()
    for first, second in product(*(list(combinations(range(n), 2)) for n in (3, 4))):
        degree, chance = {0: 2, 1: 1, 2: 1}, 1.0
        for new, pair in ((3, first), (4, second)):
            total = sum(degree.values())
            u, v = (degree[node] for node in pair)
            chance *= u / total * v / (total - u) + v / total * u / (total - v)
            for node in pair:
                degree[node] += 1
            degree[new] = 2
        expected[first + second] = chance
    assert sum(expected.values()) == pytest.approx(1)
    draws = 40_000
    targets = np.sort(preferential_targets(_words(draws, 5, 2))[:, 3:], axis=2)
    counts = Counter(map(tuple, targets.reshape(draws, 4).tolist()))
    chi_square = sum((counts[k] - draws * p) ** 2 / (draws * p) for k, p in expected.items())
    assert counts.keys() == expected.keys()
    assert chi_square < 41  # 99.9 % quantile with 17 degrees of freedom


@pytest.mark.parametrize("m", [1, 2, 3])
def test_degrees_are_distributed_as_networkx_draws_them(m: int) -> None:
    graphs, nodes = 3000, 20
    ours, theirs = np.zeros(nodes), np.zeros(nodes)
    for row in preferential_targets(_words(graphs, nodes, m)):
        graph = nx.Graph((new, old) for new in range(nodes) for old in row[new] if old >= 0)
        assert graph.number_of_edges() == m * (nodes - m)
        ours += np.bincount([d for _, d in graph.degree], minlength=nodes)
    for seed in range(graphs):
        graph = nx.barabasi_albert_graph(nodes, m, seed=seed)
        theirs += np.bincount([d for _, d in graph.degree], minlength=nodes)
    assert np.abs(ours - theirs).sum() / theirs.sum() < 0.025


def test_a_layout_without_room_is_refused() -> None:
    Layout(6, 3, 2, 5, 5).check()
    Layout(3, 2, 2, 5, 5).check()
    with pytest.raises(InputError, match="colour_nodes_min: expected at least 5, so that 3 motifs"):
        Layout(6, 3, 2, 4, 9).check()
    with pytest.raises(InputError, match="colour_nodes_min: expected at least 9, so that 1 motifs"):
        Layout(1, 1, 2, 8, 9).check()
    with pytest.raises(
        InputError, match="colour_nodes_max: expected at least colour_nodes_min = 9"
    ):
        Layout(6, 3, 2, 9, 8).check()
