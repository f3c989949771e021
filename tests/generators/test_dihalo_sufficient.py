"""Sufficient parts of Di-Halo-Benzene against the shortest paths that networkx finds."""

import networkx as nx
import numpy as np
import pytest

from graphxai_data.generators.base import Generator
from graphxai_data.generators.dihalo_sufficient import halogen_paths
from graphxai_data.graphs.columns import Columns, global_edges
from graphxai_data.graphs.rationale import alternatives_of
from graphxai_data.graphs.record import GraphRecord
from graphxai_data.graphs.shards import ShardReader
from graphxai_data.graphs.union import Graphs
from graphxai_data.recipe import Recipe
from tests.conftest import SharedBuilds

FAMILY = ["dihalo", "dihalo-nonet", "dihalo-heavy", "dihalo-decoy"]
SIZE = {"ortho": 4, "meta": 5, "para": 6}
GRAPHS = 120


def _shard(builds: SharedBuilds, name: str) -> ShardReader:
    return ShardReader(builds.folder(name, 500) / "shard-00000.h5")


def _graphs(columns: Columns) -> Graphs:
    return Graphs(columns["x"], global_edges(columns), columns["edge_attr"], columns["node_ptr"])


def _parts(record: GraphRecord, atoms: tuple[str, ...]) -> set[frozenset[int]]:
    """Return the shortest paths between two halogens, in each part of the rationale."""
    rationale = np.flatnonzero(record.rationale)
    whole: nx.Graph[int] = nx.Graph(record.edge_index.T.tolist())
    element = np.array(atoms)[record.x.argmax(axis=1)]
    parts = set()
    for ring in nx.connected_components(whole.subgraph(rationale.tolist())):
        one, other = [node for node in ring if element[node] != "C"]
        assert element[one] == element[other]
        paths = nx.all_shortest_paths(whole.subgraph(ring), one, other)
        parts |= {frozenset(path) for path in paths}
    return parts


@pytest.mark.parametrize("name", [*FAMILY, "dihalo-pair-a", "dihalo-pair-b", "dihalo-pair-both"])
def test_parts_are_the_shortest_paths_between_the_halogens(name: str, builds: SharedBuilds) -> None:
    recipe, shard = Recipe.load(name), _shard(builds, name)
    columns = shard.columns
    generator = recipe.generator_object
    assert generator.knows_sufficient
    bits = generator.sufficient(_graphs(columns), columns["node_mask"].astype(bool))
    assert bits is not None
    assert (bits.shape, bits.dtype) == (columns["node_mask"].shape, np.int64)
    for i in range(GRAPHS):
        record = shard[i]
        _, position = recipe.params.classes[int(record.y)]
        first, last = columns["node_ptr"][i : i + 2]
        parts = [frozenset(np.flatnonzero(part)) for part in alternatives_of(bits[first:last])]
        assert set(parts) == _parts(record, recipe.params.atoms)
        assert {len(part) for part in parts} == {SIZE[position]}
        rings = 2 if name == "dihalo-pair-both" else 1
        assert len(parts) == rings * (2 if position == "para" else 1)
        _require_needed(record, parts, recipe.params.atoms)


def _require_needed(
    record: GraphRecord, parts: list[frozenset[int]], atoms: tuple[str, ...]
) -> None:
    """Check that each part connects two halogens, and no longer does without one of its atoms."""
    whole: nx.Graph[int] = nx.Graph(record.edge_index.T.tolist())
    element = np.array(atoms)[record.x.argmax(axis=1)]
    for part in parts:
        assert record.rationale[list(part)].all()
        one, other = [node for node in part if element[node] in ("F", "Cl", "Br")]
        assert nx.has_path(whole.subgraph(part), one, other)
        for node in part - {one, other}:
            assert not nx.has_path(whole.subgraph(part - {node}), one, other)


def test_each_cause_of_a_pair_has_its_own_parts(builds: SharedBuilds) -> None:
    generator = Recipe.load("dihalo-pair-a").generator_object
    columns = _shard(builds, "dihalo-pair-a").columns
    for cause in (1, 2):
        bits = generator.sufficient(_graphs(columns), columns["cause"] == cause)
        assert bits is not None
        assert (columns["cause"][bits > 0] == cause).all()


def test_a_graph_without_two_halogens_has_no_part() -> None:
    ring = np.array([(i, (i + 1) % 6) for i in range(6)] + [(0, 6)])
    edges = np.concatenate([ring, ring[:, ::-1]])
    edges = edges[np.lexsort(edges.T[::-1])].T
    graphs = Graphs(np.zeros(7, np.uint8), edges, None, np.array([0, 7]))
    halogens = np.arange(7) == 6
    assert not halogen_paths(graphs, np.ones(7, bool), halogens).any()
    assert not halogen_paths(graphs, np.zeros(7, bool), halogens).any()


@pytest.mark.parametrize("name", ["ba2motif", "mnist75sp", "benzene", "spmotif-90"])
def test_other_generators_do_not_know_their_parts(name: str) -> None:
    generator: Generator = Recipe.load(name).generator_object
    assert not generator.knows_sufficient
    nothing = np.zeros((2, 0), np.int64)
    graphs = Graphs(np.zeros(0, np.uint8), nothing, None, np.zeros(1, np.int64))
    assert generator.sufficient(graphs, np.zeros(0, bool)) is None
