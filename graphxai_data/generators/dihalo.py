"""Di-Halo-Benzene isomers grafted on real molecules.

Paper, appendix "Di-Halo-Benzene-Isomer": nine classes, halogen (Cl, F, Br) times position (ortho,
meta, para) of two halogens on a benzene ring that is grafted on a ZINC molecule; the rationale is
the six carbons of the ring and the two halogens. Here one C-H of the background is replaced by the
bond to the ring, so that every graph is a valid molecule.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from graphxai_data.generators.base import Planned, Prover, Rejected, Rule, Sources
from graphxai_data.generators.dihalo_check import check_position, check_ring, halogen_ids
from graphxai_data.generators.dihalo_decoys import (
    DECOY_WORDS,
    decoy_places,
    graft_among_decoys,
)
from graphxai_data.generators.dihalo_family import BACKGROUNDS, family_splits, ranked_pool
from graphxai_data.generators.dihalo_graft import graft
from graphxai_data.generators.dihalo_molecules import (
    DiHaloParams,
    MoleculeGenerator,
    molecule_graph,
    reason_against,
)
from graphxai_data.generators.dihalo_rules import dihalo_rules
from graphxai_data.generators.molecule_pool import MAX_ATOMS, Background, select_backgrounds
from graphxai_data.graphs.columns import Columns, Ints, pack
from graphxai_data.graphs.invariants import Findings
from graphxai_data.graphs.record import GraphRecord, Plan
from graphxai_data.graphs.schema import Schema
from graphxai_data.seeds import Draws, rng_for


class DiHaloGenerator(MoleculeGenerator):
    """One of nine isomers, grafted on a real molecule."""

    @dataclass(frozen=True)
    class Params(DiHaloParams):
        """The recipe's numbers."""

        matched: bool  # every background carries all nine isomers at the same carbon, in one group
        # Every molecule has three benzene rings with two halogens each, two of each halogen in
        # all: the like pair makes the class.
        decoys: bool

        def __post_init__(self) -> None:
            super().__post_init__()
            if self.decoys and len(self.halogens) != 3:
                raise ValueError("decoys need three halogens, two of them for the unlike pairs")
            if self.decoys and self.matched:
                raise ValueError("matched and decoys cannot both be true")

        @property
        def group_size(self) -> int:
            """Graphs that share a background."""
            return len(self.classes) if self.matched else 1

    params: Params

    def schema(self) -> Schema:
        """Return that of molecules."""
        return self.molecule_schema()

    @property
    def plans_from_sources(self) -> bool:
        """Decoys need molecules with two benzene rings; `dihalo` itself takes them as they come."""
        return self.params.decoys

    def plan(self, graphs: int) -> tuple[Ints, Ints]:
        """Return class and group of every graph: classes in turn, one group per background."""
        index = np.arange(graphs, dtype=np.int64)
        return index % len(self.params.classes), index // self.params.group_size

    def plan_from_sources(
        self, fractions: Sequence[float], graphs: int, sources: Sources, draws: Draws
    ) -> Planned:
        """Return class, rank of the background and split, which is that of `dihalo`."""
        pool = ranked_pool(sources["zinc"], self.params, decoy_places, draws.seed)
        split = family_splits(self.params, fractions, graphs, draws)
        return self.plan(graphs)[0], pool.take(split, split), split

    def read(self, sources: Sources, group: Ints, seed: int) -> tuple[list[Background], Rejected]:
        """Return the background of each graph, and how many molecules were rejected and why."""
        if self.params.decoys:
            pool = ranked_pool(sources["zinc"], self.params, decoy_places, seed)
            backgrounds, rejected = pool.backgrounds(group)
            return backgrounds, {"zinc": rejected}
        usable = partial(reason_against, self.params)
        backgrounds, rejected = select_backgrounds(
            sources["zinc"].path, int(group[-1]) + 1, rng_for(seed, BACKGROUNDS), usable
        )
        return [backgrounds[g] for g in group.tolist()], {"zinc": rejected}

    def generate(self, plan: Plan, seed: int) -> Columns:
        """Return the planned graphs, grafted on the backgrounds in `plan.raw`."""
        plan_rows = zip(plan.index.tolist(), plan.label.tolist(), plan.group.tolist(), strict=True)
        records = [
            _draw(self.params, seed, background, *row)
            for background, row in zip(plan.raw or (), plan_rows, strict=True)
        ]
        return pack(records, self.schema(), plan.index, plan.split)

    def check(self, columns: Columns) -> list[str]:
        """Return what is wrong with the stored arrays of many graphs."""
        params = self.params
        findings = Findings(columns)
        mask, label = columns["node_mask"].astype(bool), columns["y"].astype(np.int64)
        check_ring(findings, columns, params, mask, label, is_grafted=not params.decoys)
        for number, halogen in enumerate(halogen_ids(params)):
            of_class = number == label // len(params.positions)
            findings.require(
                findings.nodes(columns["x"] == halogen) == 2 * (of_class | params.decoys),
                "its halogens are not as planned",
            )
        if not findings.problems:  # the position needs a ring with two halogens
            check_position(findings, columns, params, mask, label)
        return findings.problems

    def prover(self, sources: Sources) -> Prover:
        """Return the proof by independent code."""
        from graphxai_data.generators.dihalo_proof import DiHaloProver

        return DiHaloProver(self.params, sources)

    def rules(self) -> tuple[Rule, ...]:
        """Return simple rules that look for halogens."""
        definitions = {"di-halo-ring", *(["like-pair"] if self.params.decoys else [])}
        return dihalo_rules(self.params.atoms, definitions)


def _draw(
    params: DiHaloGenerator.Params,
    seed: int,
    background: Background,
    index: int,
    label: int,
    group: int,
) -> GraphRecord:
    # The random words of a background decide in turn on the C-H bond; for each position the places
    # on the ring; the decoys; for each class the order of nodes. So matched molecules of the same
    # position differ only in their halogens.
    classes, positions = len(params.classes), len(params.positions)
    words = rng_for(seed, "dihalo", group).words(1 + positions + (1 + classes) * MAX_ATOMS)
    bond, place = int(words[0]), int(words[1 + label % positions])
    by_atom = words[1 + positions :].reshape(1 + classes, MAX_ATOMS)
    halogen, position = params.classes[label]
    if params.decoys:
        one, other = (h for h in params.halogens if h != halogen)
        smiles, rationale = graft_among_decoys(
            background, (halogen, one, other), position, by_atom[0, :DECOY_WORDS]
        )
    else:
        smiles, rationale = graft(background, halogen, position, bond, place)
    graph = molecule_graph(params, smiles, by_atom[1 + label], index)
    inside = np.zeros(len(graph.atom_at), bool)
    inside[rationale] = True
    node_mask = inside[graph.atom_at]
    return GraphRecord(
        x=graph.x,
        edge_index=graph.edge_index,
        edge_attr=graph.edge_attr,
        y=label,
        node_mask=node_mask,
        edge_mask=node_mask[graph.edge_index[0]] & node_mask[graph.edge_index[1]],
        group=group,
        meta={"smiles": smiles, "smiles_atom": graph.atom_at.astype(np.uint8)},
    )
