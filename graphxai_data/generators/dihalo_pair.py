"""Two di-halo rings on one real molecule: causes in pairs.

Ring A is bonded to the background directly, ring B through an oxygen. Each has one of nine classes,
halogen times position, independent of the other. The rationale of a cause is its ring and halogens,
eight atoms; the oxygen belongs to neither.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rdkit import Chem

from graphxai_data.generators.base import Planned, Prover, Rejected, Rule, Sources
from graphxai_data.generators.dihalo_check import check_position, check_ring, halogen_ids
from graphxai_data.generators.dihalo_decoys import aromatic_places, may_gain_stereo
from graphxai_data.generators.dihalo_family import family_splits, ranked_pool
from graphxai_data.generators.dihalo_graft import RATIONALE_ATOMS, di_halo_ring
from graphxai_data.generators.dihalo_molecules import (
    DiHaloParams,
    MoleculeGenerator,
    molecule_graph,
)
from graphxai_data.generators.dihalo_rules import dihalo_rules
from graphxai_data.generators.molecule_pool import MAX_ATOMS, Background
from graphxai_data.generators.pairs import PAIR_COLUMNS, PairGenerator, PairParams
from graphxai_data.generators.smiles_text import free_ring_closure, insert_branches
from graphxai_data.graphs.columns import Columns, Ints, global_edges, pack
from graphxai_data.graphs.invariants import Findings
from graphxai_data.graphs.record import GraphRecord, Plan
from graphxai_data.graphs.schema import Schema
from graphxai_data.graphs.splits import assign_splits
from graphxai_data.seeds import Draws, rng_for

# What each ring is bonded to the background with, as SMILES: A a single bond, B an oxygen.
LINKS = ("-", "O")


class DiHaloPairGenerator(MoleculeGenerator, PairGenerator):
    """Two isomers, A and B, grafted on a real molecule."""

    link = "O"

    @dataclass(frozen=True)
    class Params(PairParams, DiHaloParams):
        """The recipe's numbers."""

        def __post_init__(self) -> None:
            super().__post_init__()
            if "O" not in self.atoms:
                raise ValueError("atoms must hold O, which ring B is bonded through")

    params: Params

    def schema(self) -> Schema:
        """Return that of molecules, with the causes."""
        return self.molecule_schema(*PAIR_COLUMNS)

    def plan_from_sources(
        self, fractions: Sequence[float], graphs: int, sources: Sources, draws: Draws
    ) -> Planned:
        """Return class, rank of the background and split; the last two are those of all causes."""
        label, index = self.plan(graphs)
        own = rng_for(draws.seed, f"{self.name}/splits")
        split = assign_splits(self.strata(graphs), index, fractions, own)
        pool = ranked_pool(sources["zinc"], self.params, _places, draws.seed)
        ranks = pool.take(split, family_splits(self.params, fractions, graphs, draws))
        return label, ranks, split

    def read(self, sources: Sources, group: Ints, seed: int) -> tuple[list[Background], Rejected]:
        """Return the background of each graph, and how many molecules were rejected and why."""
        pool = ranked_pool(sources["zinc"], self.params, _places, seed)
        backgrounds, rejected = pool.backgrounds(group)
        return backgrounds, {"zinc": rejected}

    def draw(self, plan: Plan, seed: int, classes: Ints) -> Columns:
        """Return the planned graphs with these classes [2, g] of A and B."""
        records = [
            _draw(self.params, seed, background, index, group, pair)
            for background, index, group, pair in zip(
                plan.raw or (), plan.index.tolist(), plan.group.tolist(), classes.T, strict=True
            )
        ]
        return pack(records, self.schema(), plan.index, plan.split)

    def check(self, columns: Columns) -> list[str]:
        """Return what is wrong with the stored arrays of many graphs."""
        problems = super().check(columns)
        findings = Findings(columns)
        classes = columns["cause_y"].astype(np.int64).T
        source, target = global_edges(columns)
        for number, link in ((1, "C"), (2, "O")):
            mask = columns["cause"] == number
            check_ring(findings, columns, self.params, mask, classes[number - 1])
            linked = columns["x"][target] == self.params.atoms.index(link)
            findings.require(
                findings.edges(mask[source] & ~mask[target] & linked) == 1,
                f"ring {'AB'[number - 1]} is not attached at {link}",
            )
        halogens = np.isin(columns["x"], halogen_ids(self.params))
        findings.require(findings.nodes(halogens) == 4, "it does not have four halogens")
        if not findings.problems:
            for number in (1, 2):
                mask = columns["cause"] == number
                check_position(findings, columns, self.params, mask, classes[number - 1])
        return problems + findings.problems

    def prover(self, sources: Sources) -> Prover:
        """Return the proof by independent code."""
        from graphxai_data.generators.dihalo_pair_proof import DiHaloPairProver

        return DiHaloPairProver(self.params, sources)

    def rules(self) -> tuple[Rule, ...]:
        """Return simple rules that look for halogens; none of them says which ring counts."""
        return dihalo_rules(self.params.atoms, ())


def _draw(
    params: DiHaloPairGenerator.Params,
    seed: int,
    background: Background,
    index: int,
    group: int,
    classes: Ints,
) -> GraphRecord:
    # The random words of a background decide on the two carbons; for each ring and position the
    # places on the ring; the order of nodes. None of them depends on the classes. Both rings have
    # eight atoms and three hydrogens whatever their class, so the other nodes keep their numbers.
    positions = len(params.positions)
    words = rng_for(seed, "dihalo_pair", group).words(2 + 2 * positions + MAX_ATOMS)
    carbons, closure = list(background.places), free_ring_closure(background.smiles)
    branches: dict[int, str] = {}
    for number, (label, link) in enumerate(zip(classes.tolist(), LINKS, strict=True)):
        attached_to = carbons.pop(int(words[number]) % len(carbons))
        halogen, position = params.classes[label]
        place = int(words[2 + number * positions + label % positions])
        branches[attached_to] = link + di_halo_ring(halogen, position, place, closure)
    smiles, first_atom = insert_branches(background.smiles, branches)
    graph = molecule_graph(params, smiles, words[2 + 2 * positions :], index)
    cause = np.zeros(len(graph.atom_at), np.uint8)
    for number, attached_to in enumerate(branches):
        first = first_atom[attached_to] + LINKS[number].count("O")
        cause[(graph.atom_at >= first) & (graph.atom_at < first + RATIONALE_ATOMS)] = number + 1
    # `PairGenerator.with_truth` replaces label and masks by those of the recipe's cause.
    return GraphRecord(
        x=graph.x,
        edge_index=graph.edge_index,
        edge_attr=graph.edge_attr,
        y=0,
        node_mask=cause > 0,
        edge_mask=np.zeros(graph.edge_index.shape[1], bool),
        group=group,
        meta={
            "smiles": smiles,
            "smiles_atom": graph.atom_at.astype(np.uint8),
            "cause": cause,
            "cause_y": classes,
        },
    )


def _places(molecule: Chem.Mol, background: Background) -> tuple[int, ...] | str:
    """Return the carbons that two rings may be grafted on, or why they do not fit."""
    places = aromatic_places(molecule, background)
    if len(places) < 2:
        return "has fewer than two aromatic C-H"
    if may_gain_stereo(molecule, background):
        return "a graft could make a stereo centre"
    return places
