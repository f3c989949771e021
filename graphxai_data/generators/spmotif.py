"""Spurious-Motif: the motif makes the class, the base goes with it only by a bias of the training.

Wu et al., "Discovering Invariant Rationales for Graph Neural Networks" (DIR). A graph is a base and
a motif, joined by one edge. Every class has a base of its own, which its graphs have with
probability b in the biased splits, and else with 1/3. Part of the test graphs have larger bases
than any training graph. `recipes/spmotif-90.toml` says which numbers are DIR's.
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from graphxai_data.generators.base import Generator, Prover, Rule, Sources
from graphxai_data.generators.motifs import (
    MOTIF_NODES,
    MOTIFS,
    both_directions_sorted,
    words_of_groups,
)
from graphxai_data.generators.spmotif_params import BRIDGED, CLASSES, TEST, SPMotifParams
from graphxai_data.graphs.columns import Columns, Ints, global_edges, pointers
from graphxai_data.graphs.record import SPLIT_NAMES, GraphRecord, Plan
from graphxai_data.graphs.schema import Column, Encoding, Feature, Schema
from graphxai_data.graphs.union import spans
from graphxai_data.seeds import Words, below, uniform


class SPMotifGenerator(Generator):
    """A motif, which makes the class, on a base that is correlated with the class."""

    proof_sample = 3_000

    Params: ClassVar = SPMotifParams

    params: SPMotifParams

    def schema(self) -> Schema:
        """Random numbers or degrees on nodes, no edge features, three classes, fields of bases."""
        extras = (Column("base", "node"), Column("base_kind", "graph"), Column("large", "graph"))
        encoding: Encoding = "dense" if self.params.features == "noise" else "onehot"
        return Schema(Feature(self.params.feature_width, encoding), None, CLASSES, extras)

    def class_names(self) -> list[str]:
        """Return the motifs."""
        return list(self.params.motifs)

    def node_values(self) -> dict[str, list[str] | None]:
        """Return the names of the random numbers, or the degrees that a node may have."""
        width = self.params.feature_width
        if self.params.features == "noise":
            return {f"noise {number}": None for number in range(width)}
        return {"degree": [*map(str, range(width - 1)), f"{width - 1} or more"]}

    def field_descriptions(self) -> dict[str, str]:
        """Return what the fields about bases mean."""
        kinds = ", ".join(f"{number} {name}" for number, name in enumerate(self.params.bases))
        return {
            "x": "uniform random numbers from 0 to 1, which say nothing about the class"
            if self.params.features == "noise"
            else "one-hot degree of the node",
            "base": "whether the node is of the base, which does not make the class; all others "
            "are of the motif",
            "base_kind": f"kind of the base: {kinds}; class c has base c as its own",
            "large": "whether the base is larger than those of all training graphs of its kind",
        }

    def strata(self, graphs: int) -> Ints:
        """Return a number [g] for each combination of class and whether a test graph is large."""
        index = np.arange(graphs, dtype=np.int64)
        return index % CLASSES + CLASSES * self._large_in_test(index)

    def generate(self, plan: Plan, seed: int) -> Columns:
        """Return the planned graphs, drawn all at once; each has a random stream of its own."""
        catalogue = self.params.catalogue
        slots = int(catalogue.nodes.max()) + MOTIF_NODES
        shapes: dict[str, tuple[int, ...]] = {
            "base": (2,), "size": (), "bridge": (), "order": (slots,),
        }  # fmt: skip
        if self.params.features == "noise":  # last: other features are on the same graphs
            shapes["noise"] = (slots, self.params.feature_width)
        words, position = words_of_groups(shapes, plan.index, seed, "spmotif")
        words = {name: part[position] for name, part in words.items()}
        kind = self._kinds(plan, words["base"])
        large = np.where(plan.split == TEST, self._large_in_test(plan.index), 0)
        base = catalogue.first[kind, large] + below(words["size"], catalogue.count[kind, large])
        base_nodes = catalogue.nodes[base]

        owner, u, v = self._edges(base, plan.label, below(words["bridge"], base_nodes))
        node_ptr = pointers(base_nodes + MOTIF_NODES)
        number, place = _shuffled(node_ptr, words["order"])
        u, v = number[node_ptr[owner] + u], number[node_ptr[owner] + v]
        edge_owner, edge_index = both_directions_sorted(owner, u, v, slots)
        graph = np.repeat(np.arange(len(base)), np.diff(node_ptr))
        columns: Columns = {
            "node_ptr": node_ptr,
            "edge_ptr": pointers(np.bincount(edge_owner, minlength=len(base))),
            "edge_index": edge_index,
            "node_mask": place >= base_nodes[graph],
            "base": (place < base_nodes[graph]).astype(np.uint8),
            "base_kind": kind.astype(np.uint8),
            "large": large.astype(np.uint8),
        }
        source, target = global_edges(columns)
        mask = columns["node_mask"]
        if self.params.features == "noise":
            columns["x"] = uniform(words["noise"][graph, place]).astype(np.float32)
        else:
            degree = np.bincount(source, minlength=len(mask))
            columns["x"] = np.minimum(degree, self.params.feature_width - 1).astype(np.uint8)
        return plan.columns() | columns | {"edge_mask": mask[source] & mask[target]}

    def check(self, columns: Columns) -> list[str]:
        """Return what is wrong with the stored arrays of many graphs."""
        from graphxai_data.generators.spmotif_check import problems

        return problems(self.params, columns)

    def prover(self, sources: Sources) -> Prover:
        """Return the proof by independent code."""
        from graphxai_data.generators.spmotif_proof import SPMotifProver

        return SPMotifProver(self.params, sources)

    def rules(self) -> tuple[Rule, ...]:
        """Return the definition of the rationale as a rule."""
        from graphxai_data.generators.ba2motif_rules import five_node_blocks

        return (
            Rule(
                "five-node-block",
                "five nodes that stay connected without bridges: the definition",
                five_node_blocks,
                is_definition=True,
            ),
        )

    def card_sections(self, records: Sequence[GraphRecord]) -> list[str]:
        """Return how many graphs of each split have their own base, and how many are large."""
        from graphxai_data.generators.spmotif_check import split_table

        return [split_table(self.params, records)]

    def _large_in_test(self, index: Ints) -> Ints:
        """Return 1 [g] where a graph is large if it is a test graph: evenly spread, else 0."""
        turn, share = index // CLASSES, self.params.large_share
        before, after = np.floor(turn * share), np.floor((turn + 1) * share)
        return np.asarray(after - before, np.int64)

    def _kinds(self, plan: Plan, words: Words) -> Ints:
        """Return the kind of base [g]: with the bias the class's own, or one of all three."""
        own = uniform(words[:, 0]) < self.params.bias
        other = (plan.label + 1 + below(words[:, 1], CLASSES - 1)) % CLASSES
        biased = [SPLIT_NAMES.index(name) for name in self.params.biased_splits]
        drawn = np.where(own, plan.label, other)
        kind: Ints = np.where(np.isin(plan.split, biased), drawn, below(words[:, 0], CLASSES))
        return kind

    def _edges(self, base: Ints, motif: Ints, bridge: Ints) -> tuple[Ints, Ints, Ints]:
        """Return graph [m] and ends [m] of all edges, each once: of base, motif and bridge.

        A graph is laid out with its base first: nodes 0, 1, … as in the catalogue, then its motif.
        """
        catalogue, motifs = self.params.catalogue, [MOTIFS[name] for name in self.params.motifs]
        graphs, base_nodes = np.arange(len(base)), catalogue.nodes[base]
        of_base = np.diff(catalogue.edge_ptr)[base]
        in_base = catalogue.edges[spans(catalogue.edge_ptr[base], of_base)]
        motif_ptr = pointers([len(edges) for edges in motifs])
        of_motif = np.diff(motif_ptr)[motif]
        in_motif = np.concatenate([np.array(edges) for edges in motifs])
        in_motif = in_motif[spans(motif_ptr[motif], of_motif)]
        in_motif = in_motif + np.repeat(base_nodes, of_motif)[:, None]
        end = np.array([BRIDGED[name] for name in self.params.motifs])[motif]
        joined = np.stack([bridge, base_nodes + end], axis=1)
        owner = np.concatenate([np.repeat(graphs, of_base), np.repeat(graphs, of_motif), graphs])
        u, v = np.concatenate([in_base, in_motif, joined]).T
        return owner, u, v


def _shuffled(node_ptr: Ints, order: Words) -> tuple[Ints, npt.NDArray[np.int64]]:
    """Return the new number [N] of each node, and the old one [N] of each shuffled node.

    Both are numbers within the graph; the random words `order` [g, slots] decide.
    """
    sizes = np.diff(node_ptr)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    place = np.arange(node_ptr[-1]) - node_ptr[owner]
    rows = np.lexsort([order[owner, place], owner])
    number = np.empty_like(place)
    number[rows] = place
    return number, place[rows]
