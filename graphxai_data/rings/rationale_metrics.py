"""Metrics for rationales with alternatives, for null ones, and for signed weights of nodes.

Arrays and ties are as in `metrics`. `bits` [n] has bit j where a node belongs to alternative j of
its graph. Every function is for graphs in which its metric exists; it raises an `InputError` for
the others, which `scoring` leaves out and counts.
"""

from collections.abc import Iterator
from typing import Literal

import numpy as np
import numpy.typing as npt

from graphxai_data.errors import InputError
from graphxai_data.metrics import (
    Bools,
    Floats,
    Ints,
    Ties,
    as_array,
    checked_mask,
    checked_scores,
    count_true,
    graph_of,
    outranked,
    places,
)

Sides = Literal["high", "both"]


def best_jaccard_at_k(scores: npt.ArrayLike, alternatives: npt.ArrayLike) -> float:
    """Return the highest Jaccard@k over alternatives, where k is the size of the alternative.

    Args:
        scores: [n] of the nodes of one graph.
        alternatives: [a, n] bool, rationales of which each is enough.

    >>> best_jaccard_at_k([0.1, 0.2, 0.9, 0.8], [[1, 1, 0, 0], [0, 0, 1, 0]])
    1.0
    """
    return float(best_jaccard_per_graph(*_one_graph(scores, alternatives))[0])


def best_auroc(scores: npt.ArrayLike, alternatives: npt.ArrayLike, ties: Ties = "strict") -> float:
    """Return the highest AUROC over alternatives, against the nodes outside all alternatives.

    Nodes of other alternatives are left out: it is neither right nor wrong to mark them.

    Args:
        scores: [n] of the nodes of one graph.
        alternatives: [a, n] bool, rationales of which each is enough.
        ties: as for `node_auroc`.

    >>> best_auroc([0.1, 0.9, 0.8, 0.5], [[1, 0, 0, 0], [0, 0, 1, 0]])
    0.5
    """
    return float(best_auroc_per_graph(*_one_graph(scores, alternatives), ties)[0])


def best_jaccard_per_graph(scores: Floats, bits: Ints, ptr: Ints) -> Floats:
    """Return `best_jaccard_at_k` [g] of every graph."""
    best = np.zeros(len(ptr) - 1)
    for hits, k in _top_hits(scores, bits, ptr):
        best = np.maximum(best, hits / np.maximum(2 * k - hits, 1))
    return best


def best_precision_per_graph(scores: Floats, bits: Ints, ptr: Ints) -> Floats:
    """Return the highest `precision_at_k` over alternatives, [g] of every graph."""
    best = np.zeros(len(ptr) - 1)
    for hits, k in _top_hits(scores, bits, ptr):
        best = np.maximum(best, hits / np.maximum(k, 1))
    return best


def best_auroc_per_graph(scores: Floats, bits: Ints, ptr: Ints, ties: Ties = "strict") -> Floats:
    """Return `best_auroc` [g] of every graph."""
    others = bits == 0
    right = outranked(checked_scores(scores, ptr), others, ptr, ties)
    best = np.zeros(len(ptr) - 1)
    for nodes, graph, size in _alternatives(bits, ptr):
        pairs = np.maximum(size * count_true(others, ptr), 1)
        best = np.maximum(best, np.bincount(graph, right[nodes], len(best)) / pairs)
    return best


def has_outlier_per_graph(scores: npt.ArrayLike, ptr: Ints, sides: Sides = "high") -> Bools:
    """Return [g] whether a score of the graph stands out: it is outside Tukey's fences.

    With the quartiles Q1 and Q3 of a graph's scores, between which NumPy and PyTorch interpolate,
    a score stands out above Q3 + 1.5 (Q3 − Q1). With "both" sides, a score below
    Q1 − 1.5 (Q3 − Q1) stands out too, as in B-XAIC (Proszewska et al., 2025).

    >>> has_outlier_per_graph([0.0, 0.1, 0.0, 0.1, 0.9], np.array([0, 5])).tolist()
    [True]
    >>> has_outlier_per_graph([0.5, 0.5, 0.5, 0.5, 0.5], np.array([0, 5])).tolist()
    [False]
    """
    values = checked_scores(scores, ptr) / 8  # exact, and no difference below can overflow
    ordered = values[np.lexsort((values, graph_of(ptr)))]
    last = np.diff(ptr) - 1

    def quantile(share: float) -> Floats:
        place = share * last
        below = np.floor(place).astype(np.int64)
        low = ordered[ptr[:-1] + below]
        high = ordered[ptr[:-1] + np.minimum(below + 1, last)]
        return np.asarray(low + (place - below) * (high - low))

    q1, q3 = quantile(0.25), quantile(0.75)
    fence = 1.5 * (q3 - q1)
    stands_out = ordered[ptr[1:] - 1] > q3 + fence
    if sides == "both":
        stands_out |= ordered[ptr[:-1]] < q1 - fence
    return np.asarray(stands_out)


def spearman_per_graph(scores: npt.ArrayLike, weight: npt.ArrayLike, ptr: Ints) -> Floats:
    """Return [g] the rank correlation of scores with weights [n]; equal values share their rank.

    It is 0 where all scores of a graph are equal. A graph whose weights are all equal is an error.

    >>> spearman_per_graph([3.0, 1.0, 2.0], [0.5, -1.0, -0.2], np.array([0, 3])).tolist()
    [1.0]
    """
    first = _centred_ranks(checked_scores(scores, ptr), ptr)
    second = _centred_ranks(checked_scores(weight, ptr, "weights"), ptr)
    squares = [np.add.reduceat(ranks**2, ptr[:-1]) for ranks in (first, second)]
    _require(squares[1] > 0, "weights: all equal in graph {}, so they rank nothing")
    scale = np.sqrt(squares[0] * squares[1])
    products = np.add.reduceat(first * second, ptr[:-1])
    return np.asarray(np.divide(products, scale, out=np.zeros(len(scale)), where=scale > 0))


def sign_accuracy_per_graph(scores: npt.ArrayLike, weight: npt.ArrayLike, ptr: Ints) -> Floats:
    """Return [g] the share of nodes with a weight that is not 0 whose score has the same sign.

    A score of 0 has no sign, so it is wrong. A graph of zero weights is an error.

    >>> sign_accuracy_per_graph([0.2, 0.1, -3.0, 0.0], [1.0, -1.0, -1.0, 0.0], np.array([0, 4]))
    array([0.66666667])
    """
    values, weights = checked_scores(scores, ptr), checked_scores(weight, ptr, "weights")
    signed = weights != 0
    total = count_true(signed, ptr)
    _require(total > 0, "weights: all zero in graph {}, so there is no sign to find")
    return count_true(signed & (np.sign(values) == np.sign(weights)), ptr) / total


def rmse_after_scaling(scores: npt.ArrayLike, weight: npt.ArrayLike, ptr: Ints) -> float:
    """Return the root mean squared error of a · scores against weights [n], the mean over graphs.

    a ≥ 0 is the same for all graphs: the least-squares factor a = max(0, Σ w s / Σ s²) over all
    nodes. There is no offset, so a score of 0 stays 0.

    >>> rmse_after_scaling([2.0, 0.0, -2.0], [1.0, 0.0, -1.0], np.array([0, 3]))
    0.0
    """
    values, weights = checked_scores(scores, ptr), checked_scores(weight, ptr, "weights")
    values = values / (np.abs(values).max(initial=0.0) or 1.0)  # squares cannot overflow
    squares = float(values @ values)
    factor = max(0.0, float(weights @ values) / squares) if squares else 0.0
    errors = np.add.reduceat((weights - factor * values) ** 2, ptr[:-1]) / np.diff(ptr)
    return float(np.sqrt(errors).mean())


def graphs_taken(ptr: Ints, selected: Ints) -> tuple[Ints, Ints]:
    """Return the rows of the selected graphs, in the order given, and their pointers."""
    sizes = np.diff(ptr)[selected]
    ends = np.insert(sizes.cumsum(), 0, 0)
    return np.arange(ends[-1]) + np.repeat(ptr[:-1][selected] - ends[:-1], sizes), ends


def _alternatives(bits: Ints, ptr: Ints) -> Iterator[tuple[Ints, Ints, Ints]]:
    """Yield the nodes of the first alternatives of all graphs, of the second ones, and so on.

    They are rows [c], their graphs [c], and how many nodes each graph has among them [g]: 0 if it
    has fewer alternatives.
    """
    checked_mask(bits != 0, ptr)
    nodes = bits.nonzero()[0]
    graph = graph_of(ptr)[nodes]
    for number in range(int(bits.max()).bit_length()):
        inside = (bits[nodes] >> number & 1).astype(bool)
        yield nodes[inside], graph[inside], np.bincount(graph[inside], minlength=len(ptr) - 1)


def _top_hits(scores: Floats, bits: Ints, ptr: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Yield, for each alternative, how many of the top k nodes [g] belong to it, and k [g]."""
    place = places(checked_scores(scores, ptr), ptr)
    for nodes, graph, size in _alternatives(bits, ptr):
        yield np.bincount(graph[place[nodes] < size[graph]], minlength=len(size)), size


def _centred_ranks(values: Floats, ptr: Ints) -> Floats:
    """Return the ranks [n] of values in their graph, minus their mean; equal ones share a rank."""
    graph = graph_of(ptr)
    order = np.lexsort((values, graph))
    ordered, owner = values[order], graph[order]
    is_first = np.ones(len(order), bool)
    is_first[1:] = (ordered[1:] != ordered[:-1]) | (owner[1:] != owner[:-1])
    firsts = is_first.nonzero()[0]
    lasts = np.append(firsts[1:], len(order)) - 1
    ranks = np.empty(len(order))
    ranks[order] = ((firsts + lasts) / 2)[is_first.cumsum() - 1]
    return np.asarray(ranks - ((ptr[:-1] + ptr[1:] - 1) / 2)[graph])


def _require(holds: Bools, sentence: str) -> None:
    if not holds.all():
        graph = int((~holds).nonzero()[0][0])
        raise InputError(f"{sentence.format(graph)}; leave such graphs out")


def _one_graph(scores: npt.ArrayLike, alternatives: npt.ArrayLike) -> tuple[Floats, Ints, Ints]:
    values, masks = as_array(scores), as_array(alternatives)
    if values.ndim != 1 or masks.ndim != 2 or masks.shape[1:] != values.shape:
        raise InputError(
            f"expected scores [n] and alternatives [a, n], got {list(values.shape)} and "
            f"{list(masks.shape)}"
        )
    if not 1 <= len(masks) <= 63 or not np.isin(masks, (0, 1)).all() or not masks.any(axis=1).all():
        raise InputError(
            f"alternatives: expected 1 to 63 of them, of true and false, none without nodes, got "
            f"{len(masks)} of {masks.dtype}; leave null graphs out"
        )
    bits = (masks.astype(np.int64) << np.arange(len(masks))[:, None]).sum(axis=0)
    return values, bits, np.array([0, len(values)])
