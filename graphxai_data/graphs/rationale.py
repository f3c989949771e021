"""Rationales: null, one, several alternatives, or signed weights, as arrays with a row per node.

Each alternative is a set of nodes that explains the label by itself; its edges are those with both
ends in it. `alternative_bits` [N] has bit j where a node belongs to alternative j of its graph. So
alternatives have one row per node, like masks: batches, slices and transforms need not know them.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphxai_data.errors import InputError

# One bit each, in a signed integer of 64 bits.
MAX_ALTERNATIVES = 63

Bits = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def bits_of(alternatives: npt.ArrayLike, nodes: int) -> Bits:
    """Return [n] the bits of alternatives [a, n], in their order; none at all for a null rationale.

    >>> bits_of([[1, 1, 0], [0, 1, 0]], 3).tolist()
    [1, 3, 0]
    """
    try:
        given = np.asarray(alternatives)
    except ValueError as error:
        raise InputError(f"alternatives: expected masks of one length ({error})") from None
    masks = given.reshape(0, nodes) if given.shape == (0,) else given
    if masks.ndim != 2 or masks.shape[1] != nodes or not np.isin(masks, (0, 1)).all():
        raise InputError(
            f"alternatives: expected true or false for each of {nodes} nodes, per alternative, got "
            f"{masks.dtype} {list(given.shape)}"
        )
    if len(masks) > MAX_ALTERNATIVES:
        raise InputError(
            f"alternatives: {len(masks)} of them, expected at most {MAX_ALTERNATIVES}; leave the "
            "graph out"
        )
    masks = masks.astype(bool)
    if not masks.any(axis=1).all():
        raise InputError("alternatives: one has no nodes; a null rationale has no alternatives")
    bits = np.zeros(nodes, np.int64)
    for number, mask in enumerate(masks):
        bits |= mask.astype(np.int64) << number
    return bits


def alternatives_of(bits: Any) -> Bools:
    """Return the alternatives [a, n] of one graph from their bits [n]; a = 0 for a null rationale.

    >>> alternatives_of(np.array([1, 3, 0])).tolist()
    [[True, True, False], [False, True, False]]
    """
    array = np.asarray(bits, np.int64)
    count = int(np.bitwise_or.reduce(array, initial=0)).bit_length()
    return (array >> np.arange(count)[:, None] & 1).astype(bool)


def counts_of(bits: Bits, ptr: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return [g] how many alternatives each graph has, from the bits [N] of all."""
    counts = np.zeros(len(ptr) - 1, np.int64)
    used = np.bitwise_or.reduceat(np.append(bits, 0), ptr[:-1]) * (np.diff(ptr) > 0)
    for number in range(MAX_ALTERNATIVES):
        counts += used >> number & 1
    return counts


def are_numbered(bits: Bits, ptr: npt.NDArray[np.int64]) -> Bools:
    """Return [g] whether a graph's alternatives are numbers 0, 1, … without a gap."""
    # A negative number has the highest bit, so its graph uses it too.
    used = np.bitwise_or.reduceat(np.append(bits, 0), ptr[:-1]) * (np.diff(ptr) > 0)
    return np.asarray((used >= 0) & (used & (used + 1) == 0))


def edges_inside(marks: npt.NDArray[Any], source: Any, target: Any) -> Bools:
    """Return [M] whether both ends of an edge are in the rationale, or in one of its alternatives.

    Args:
        marks: [N] bool masks, or bits of alternatives.
        source: [M] first ends of the edges, rows of `marks`.
        target: [M] second ends.
    """
    return np.asarray((marks[source] & marks[target]) != 0)
