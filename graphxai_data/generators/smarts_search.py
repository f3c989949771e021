"""Finds substructures in the stored arrays of a graph by backtracking, without RDKit."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby, pairwise
from typing import Any

import networkx as nx

from graphxai_data.generators.smarts_pattern import Pattern


@dataclass(eq=False)
class GraphFacts:
    """The atoms and bonds of one graph; see `smarts_pattern.Facts`."""

    element: list[str]
    hydrogens: list[int]
    charge: list[int]
    neighbours: list[dict[int, str]]

    @cached_property
    def is_aromatic(self) -> list[bool]:
        """Whether an atom has an aromatic bond."""
        return ["aromatic" in bonds.values() for bonds in self.neighbours]

    def rings_of(self, atom: int) -> list[int]:
        """Return the sizes of the rings that an atom is in."""
        return self._rings[atom]

    def is_ring_bond(self, one: int, other: int) -> bool:
        """Return whether a bond is in a ring."""
        return (one, other) in self._ring_bonds or (other, one) in self._ring_bonds

    def is_ring_atom(self, atom: int) -> bool:
        """Return whether an atom is in a ring."""
        return any(self.is_ring_bond(atom, other) for other in self.neighbours[atom])

    @cached_property
    def _graph(self) -> "nx.Graph[int]":
        graph: nx.Graph[int] = nx.Graph()
        graph.add_nodes_from(range(len(self.element)))
        graph.add_edges_from((a, b) for a, bonds in enumerate(self.neighbours) for b in bonds)
        return graph

    @cached_property
    def _ring_bonds(self) -> set[tuple[int, int]]:
        bridges = set(nx.bridges(self._graph))
        return {(a, b) for a, b in self._graph.edges if not {(a, b), (b, a)} & bridges}

    @cached_property
    def _rings(self) -> list[list[int]]:
        sizes: list[list[int]] = [[] for _ in self.element]
        for ring in relevant_rings(self._graph.edge_subgraph(self._ring_bonds)):
            for atom in ring:
                sizes[atom].append(len(ring))
        return sizes


def relevant_rings(graph: "nx.Graph[int]") -> list[list[int]]:
    """Return the rings that are no sums of shorter ones: those that belong to a smallest basis.

    A smallest basis by itself is not unique where rings share more than a bond.
    """
    longest = max(map(len, nx.minimum_cycle_basis(graph)), default=0)
    number = {frozenset(bond): i for i, bond in enumerate(graph.edges)}
    rings = sorted(nx.simple_cycles(graph, length_bound=longest), key=len) if longest else []
    relevant = []
    basis: dict[int, int] = {}  # sums of shorter rings as bits of bonds, by their highest bit
    for _, of_length in groupby(rings, key=len):
        same = [(ring, _bits(ring, number)) for ring in of_length]
        relevant += [ring for ring, bits in same if _rest(bits, basis)]
        for _, bits in same:
            if rest := _rest(bits, basis):
                basis[rest.bit_length()] = rest
    return relevant


def _bits(ring: list[int], number: dict[frozenset[int], int]) -> int:
    """Return the bonds of a ring as bits."""
    return sum(1 << number[frozenset(pair)] for pair in pairwise([*ring, ring[0]]))


def _rest(bits: int, basis: dict[int, int]) -> int:
    """Return what is left of a sum of bonds after taking away sums of rings; 0 if it is one."""
    for place in range(bits.bit_length(), 0, -1):
        if bits >> (place - 1) & 1 and place in basis:
            bits ^= basis[place]
    return bits


def graph_facts(
    element: Sequence[str],
    hydrogens: Sequence[int],
    charge: Sequence[int],
    edge_index: Any,
    bonds: Sequence[str],
) -> GraphFacts:
    """Return the facts of a graph from rows per node, `edge_index` [2, m] and bonds [m]."""
    neighbours: list[dict[int, str]] = [{} for _ in element]
    for begin, end, bond in zip(*edge_index.tolist(), bonds, strict=True):
        neighbours[begin][end] = bond
    return GraphFacts(list(element), list(hydrogens), list(charge), neighbours)


def find_all(pattern: Pattern, facts: GraphFacts) -> set[frozenset[int]]:
    """Return the sets of atoms that the pattern matches."""
    # What each atom of the pattern is joined to among those before it.
    earlier: list[list[tuple[int, int]]] = [[] for _ in pattern.atoms]
    for number, bond in enumerate(pattern.bonds):
        earlier[max(bond.begin, bond.end)].append((min(bond.begin, bond.end), number))
    matches: set[frozenset[int]] = set()

    def extend(assigned: list[int]) -> None:
        place = len(assigned)
        if place == len(pattern.atoms):
            matches.add(frozenset(assigned))
            return
        joined = earlier[place]
        options = facts.neighbours[assigned[joined[0][0]]] if joined else range(len(facts.element))
        for atom in options:
            if atom in assigned or not pattern.atoms[place](facts, atom):
                continue
            if all(
                atom in facts.neighbours[assigned[other]]
                and pattern.bonds[number].test(facts, assigned[other], atom)
                for other, number in joined
            ):
                extend([*assigned, atom])

    extend([])
    return matches
