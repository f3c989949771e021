"""Checks of many Spurious-Motif graphs at once, and the table of their splits for the data card."""

from collections.abc import Sequence

import numpy as np

from graphxai_data.generators.motifs import MOTIF_NODES, is_connected, recognised_motifs
from graphxai_data.generators.spmotif_params import TEST, SPMotifParams
from graphxai_data.graphs.columns import Columns, global_edges
from graphxai_data.graphs.invariants import Findings
from graphxai_data.graphs.record import SPLIT_NAMES, GraphRecord


def problems(params: SPMotifParams, columns: Columns) -> list[str]:
    """Return what is wrong with the stored arrays of many graphs."""
    findings = Findings(columns)
    mask, base = columns["node_mask"].astype(bool), columns["base"].astype(bool)
    kind, large = columns["base_kind"].astype(np.int64), columns["large"].astype(np.int64)
    source, target = global_edges(columns)

    findings.require(is_connected(columns), "not connected")
    findings.require(findings.nodes(base == mask) == 0, "a node is not of base or motif, or both")
    five = findings.nodes(mask) == MOTIF_NODES
    findings.require(five, f"the rationale does not have {MOTIF_NODES} nodes")
    findings.require(kind < len(params.bases), "base_kind is not a kind of base")
    findings.require(large < 2, "large is neither 0 nor 1")
    if findings.problems:
        return findings.problems  # the rest needs five marked nodes and a kind per graph

    motif = recognised_motifs(params.motifs, columns, mask)
    findings.require(motif == columns["y"], "the label is not the motif's")
    crossing = findings.edges(mask[source] & base[target])
    findings.require(crossing == 1, "not exactly one bridge from motif to base")
    inside = findings.edges(base[source] & base[target])
    known = _nodes_and_edges(params)
    sizes = zip(kind.tolist(), large.tolist(), findings.nodes(base).tolist(), strict=True)
    pairs = zip(sizes, inside.tolist(), strict=True)
    drawn = np.array([known.get(size) == edges for size, edges in pairs], bool)
    findings.require(drawn, "the base does not have nodes and edges of a base of its kind")
    findings.require((large == 0) | (columns["split"] == TEST), "large, but not a test graph")
    x = columns["x"]
    if params.features == "noise":
        outside = np.any((x < 0) | (x > 1), axis=1)
        findings.require(findings.nodes(outside) == 0, "a feature is not from 0 to 1")
    else:
        degree = np.minimum(np.bincount(source, minlength=len(x)), params.feature_width - 1)
        findings.require(findings.nodes(x != degree) == 0, "a feature is not its degree")
    return findings.problems


def _nodes_and_edges(params: SPMotifParams) -> dict[tuple[int, int, int], int]:
    """Return the number of directed edges of a base by its kind, whether it is large, and nodes."""
    catalogue, known = params.catalogue, {}
    for (kind, large), first in np.ndenumerate(catalogue.first):
        for base in range(first, first + catalogue.count[kind, large]):
            edges = int(2 * np.diff(catalogue.edge_ptr)[base])
            known[(kind, large, int(catalogue.nodes[base]))] = edges
    return known


def split_table(params: SPMotifParams, records: Sequence[GraphRecord]) -> str:
    """Return a table of the share of graphs with their own base, per split, with its expectation.

    Args:
        params: of the recipe.
        records: a random sample of graphs.
    """
    lines = [
        f"Bases and classes, in a random sample of {len(records)} graphs:",
        "",
        "| split | graphs | own base | expected | large |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for number, split in enumerate(SPLIT_NAMES):
        of_split = [record for record in records if record.meta["split"] == number]
        if not of_split:
            continue
        own = np.mean([int(record.meta["base_kind"]) == record.y for record in of_split])
        large = np.mean([int(record.meta["large"]) for record in of_split])
        expected = params.bias if split in params.biased_splits else 1 / len(params.bases)
        lines.append(f"| {split} | {len(of_split)} | {own:.3f} | {expected:.3f} | {large:.3f} |")
    return "\n".join(lines)
