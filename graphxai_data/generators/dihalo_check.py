"""Checks of stored di-halo rings, for many graphs at once."""

import numpy as np
import numpy.typing as npt

from graphxai_data.generators.dihalo_graft import RATIONALE_ATOMS, RING_ATOMS
from graphxai_data.generators.dihalo_molecules import BONDS, DiHaloParams
from graphxai_data.graphs.columns import Columns, Ints, global_edges, graph_of_rows
from graphxai_data.graphs.invariants import Findings

Mask = npt.NDArray[np.bool_]


def halogen_ids(params: DiHaloParams) -> Ints:
    """Return the node features of the recipe's halogens, in the order of the classes."""
    return np.array([params.atoms.index(halogen) for halogen in params.halogens], np.int64)


def check_ring(
    findings: Findings,
    columns: Columns,
    params: DiHaloParams,
    mask: Mask,
    label: Ints,
    is_grafted: bool = True,
) -> None:
    """Add to the findings where `mask` [N] is not a di-halo ring of class `label` [g].

    A grafted ring is attached by one bond.
    """
    x = columns["x"].astype(np.int64)
    source, target = global_edges(columns)
    halogen_of_class = halogen_ids(params)[label // len(params.positions)]
    carbon = mask & (x == params.atoms.index("C"))
    halogen = mask & (x == halogen_of_class[graph_of_rows(columns["node_ptr"])])
    ring_edge = carbon[source] & carbon[target]
    in_ring = np.bincount(source[ring_edge], minlength=len(x))
    aromatic = columns["edge_attr"] == BONDS.index("aromatic")
    for holds, sentence in (
        (findings.nodes(mask) == RATIONALE_ATOMS, "the rationale does not have eight atoms"),
        (findings.nodes(carbon) == RING_ATOMS, "the rationale does not have six carbons"),
        (findings.nodes(halogen) == 2, "the rationale does not have two of the class's halogen"),
        (findings.nodes(carbon & (in_ring != 2)) == 0, "the six carbons are not a ring"),
        (findings.edges(ring_edge & ~aromatic) == 0, "the ring is not aromatic"),
    ):
        findings.require(holds, sentence)
    if is_grafted:
        hydrogen = params.atoms.index("H") if "H" in params.atoms else -1
        crossing = mask[source] & ~mask[target] & (x[target] != hydrogen)
        findings.require(
            findings.edges(crossing) == 1, "the ring is not attached by exactly one bond"
        )


def check_position(
    findings: Findings, columns: Columns, params: DiHaloParams, mask: Mask, label: Ints
) -> None:
    """Add where the halogens of a ring that passes `check_ring` are not at the class's position."""
    source, target = global_edges(columns)
    carbon = mask & (columns["x"] == params.atoms.index("C"))
    ring_edge = carbon[source] & carbon[target]
    bearing = np.zeros(len(mask), bool)
    bearing[target[(mask & ~carbon)[source]]] = True
    adjacent = findings.edges(ring_edge & bearing[source] & bearing[target]) > 0
    # A ring carbon between the two that bear halogens: they are meta to each other.
    both = np.bincount(source[ring_edge & bearing[target]], minlength=len(mask)) == 2
    between = findings.nodes(both & ~bearing) > 0
    position = np.where(adjacent, "ortho", np.where(between, "meta", "para"))
    names = np.array(params.positions)
    findings.require(
        position == names[label % len(names)], "the halogens' position is not the label's"
    )
