"""Metrics of predictions, and of scores of nodes or edges, as pure functions of arrays.

Arrays of many graphs are concatenated; `ptr` [g+1] says where each graph begins and ends. In a
top-k, the first of several equal scores comes first; this is unbiased, since the nodes of every
dataset are shuffled. AUROC is either strict, as in the paper's formula (a tie is a miss), or
tie-averaged (a tie is half a hit, as in scikit-learn). A rationale of all nodes, or of none, is an
error.
"""

import math
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from graphxai_data.errors import InputError, whole_number

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Ties = Literal["strict", "average"]


def accuracy(predicted: Ints, label: Ints) -> float:
    """Return the share of labels [g] that were predicted.

    >>> accuracy(np.array([0, 1, 1]), np.array([0, 1, 0]))
    0.6666666666666666
    """
    return float((predicted == label).mean())


def weighted_accuracy(predicted: Ints, label: Ints) -> float:
    """Return the accuracy per class, averaged over the classes that occur.

    >>> weighted_accuracy(np.array([0, 0, 0, 1]), np.array([0, 0, 0, 0]))
    0.75
    >>> weighted_accuracy(np.array([0, 0, 0, 0]), np.array([0, 0, 0, 1]))
    0.5
    """
    counts = np.bincount(label)
    hits = np.bincount(label[predicted == label], minlength=len(counts))
    return float((hits[counts > 0] / counts[counts > 0]).mean())


def roc_auc(score: Floats, label: Ints) -> float:
    """Return the area under the ROC curve of scores [g] of class 1; ties count half.

    It is nan if there is only one class, or a score that is not finite.

    >>> roc_auc(np.array([0.1, 0.9, 0.9]), np.array([0, 1, 0]))
    0.75
    """
    positive = label == 1
    if positive.all() or not positive.any() or not np.isfinite(score).all():
        return math.nan
    return node_auroc(score, positive, "average")


def macro_f1(predicted: Ints, label: Ints) -> float:
    """Return F1 = 2 TP / (2 TP + FP + FN), averaged over classes; absent classes are left out.

    >>> macro_f1(np.array([0, 0, 2]), np.array([0, 2, 2]))
    0.6666666666666666
    """
    classes = int(max(predicted.max(), label.max())) + 1
    hits = np.bincount(label[predicted == label], minlength=classes)
    occurrences = np.bincount(predicted, minlength=classes) + np.bincount(label, minlength=classes)
    present = occurrences > 0
    return float((2 * hits[present] / occurrences[present]).mean())


def jaccard_at_k(scores: npt.ArrayLike, mask: npt.ArrayLike, k: int | None = None) -> float:
    """Return |S ∩ G| / |S ∪ G| for the k highest scores S and the rationale G (paper, "Metrics").

    Args:
        scores: [n] of the nodes of one graph.
        mask: [n] bool, the rationale.
        k: size of S; that of G if None.

    >>> jaccard_at_k([0.9, 0.8, 0.1, 0.0], [True, False, True, False])
    0.3333333333333333
    """
    return float(jaccard_per_graph(*_one_graph(scores, mask, k), k)[0])


def precision_at_k(scores: npt.ArrayLike, mask: npt.ArrayLike, k: int | None = None) -> float:
    """Return the share of the k highest scores in the rationale; arguments as `jaccard_at_k`.

    >>> precision_at_k([0.9, 0.8, 0.1, 0.0], [True, False, True, False])
    0.5
    """
    return float(precision_per_graph(*_one_graph(scores, mask, k), k)[0])


def node_auroc(scores: npt.ArrayLike, mask: npt.ArrayLike, ties: Ties = "strict") -> float:
    """Return the share of pairs (node of the rationale, other node) in the right order.

    Args:
        scores: [n] of the nodes of one graph.
        mask: [n] bool, the rationale.
        ties: "strict", a pair of equal scores is wrong (the paper's formula); "average", half
            right.

    >>> node_auroc([0.9, 0.8, 0.8, 0.1], [True, False, True, False])
    0.75
    >>> node_auroc([0.9, 0.8, 0.8, 0.1], [True, False, True, False], ties="average")
    0.875
    """
    return float(auroc_per_graph(*_one_graph(scores, mask), ties)[0])


def jaccard_per_graph(scores: Floats, mask: Bools, ptr: Ints, k: int | None = None) -> Floats:
    """Return `jaccard_at_k` [g] of every graph."""
    hits, top, rationale = _top_hits(scores, mask, ptr, k)
    return hits / (top + rationale - hits)


def precision_per_graph(scores: Floats, mask: Bools, ptr: Ints, k: int | None = None) -> Floats:
    """Return `precision_at_k` [g] of every graph."""
    hits, top, _ = _top_hits(scores, mask, ptr, k)
    return hits / top


def auroc_per_graph(scores: Floats, mask: Bools, ptr: Ints, ties: Ties = "strict") -> Floats:
    """Return `node_auroc` [g] of every graph; with ptr = [0, N], the AUROC pooled over graphs."""
    scores, mask = checked_scores(scores, ptr), checked_mask(mask, ptr)
    right = outranked(scores, ~mask, ptr, ties)[mask]
    graph, count = graph_of(ptr)[mask], len(ptr) - 1
    rationale = np.bincount(graph, minlength=count)
    pairs = rationale * (np.diff(ptr) - rationale)
    return np.asarray(np.bincount(graph, weights=right, minlength=count) / pairs)


def outranked(scores: Floats, others: Bools, ptr: Ints, ties: Ties = "strict") -> Floats:
    """Return [n] how many of the others [n] in its graph have a lower score than a node.

    Among equal scores it is none of them, or half of them with ties "average".
    """
    if ties not in ("strict", "average"):
        raise InputError(f"ties: expected 'strict' or 'average', got {ties!r}")
    graph = graph_of(ptr)
    order = np.lexsort((scores, graph))
    ordered, graph = scores[order], graph[order]
    # Equal scores of a graph form a group. A node outranks the nodes of lower groups.
    is_first = np.ones(len(order), bool)
    is_first[1:] = (ordered[1:] != ordered[:-1]) | (graph[1:] != graph[:-1])
    firsts = is_first.nonzero()[0]
    before = np.insert(others[order].cumsum(), 0, 0)
    tied = before[np.append(firsts[1:], len(order))] - before[firsts]
    lower = before[firsts] - before[ptr[graph[firsts]]]
    counts = np.empty(len(order))
    counts[order] = (lower + (tied / 2 if ties == "average" else 0))[is_first.cumsum() - 1]
    return counts


def completeness_gap(contributions: npt.ArrayLike, logit: float, bias: float = 0.0) -> float:
    """Return |Σ contributions + bias − logit| / |logit − bias| of one graph.

    >>> completeness_gap([1.0, 2.0], logit=4.5, bias=0.5)
    0.25
    """
    gap = abs(float(as_array(contributions).sum()) + bias - logit)
    return gap / abs(logit - bias) if gap else 0.0


def mean_and_deviation(values: Iterable[float | None]) -> tuple[float, float]:
    """Return the mean and the standard deviation of a sample; None counts as nan.

    A single value has no deviation: it is nan.

    >>> mean_and_deviation([1.0, 2.0, 3.0])
    (2.0, 1.0)
    >>> mean_and_deviation([1.0])
    (1.0, nan)
    """
    numbers = np.array(list(values), np.float64)
    return float(numbers.mean()), float(numbers.std(ddof=1)) if len(numbers) > 1 else math.nan


def plus_minus(mean: float, deviation: float, digits: int = 3) -> str:
    """Return "mean ± deviation"; a deviation that is nan is left out, a mean that is nan is "".

    >>> plus_minus(0.95, 0.0123)
    '0.950 ± 0.012'
    >>> plus_minus(0.95, math.nan, digits=2)
    '0.95'
    """
    if not math.isfinite(mean):
        return ""
    return f"{mean:.{digits}f}" + (f" ± {deviation:.{digits}f}" if math.isfinite(deviation) else "")


def checked_scores(scores: npt.ArrayLike, ptr: Ints, what: str = "scores") -> Floats:
    """Return scores [n] as floats; an `InputError` names the first graph with an unusable score."""
    array = as_array(scores)
    if array.shape != (ptr[-1],):
        raise InputError(
            f"{what}: expected [{ptr[-1]}], those of {len(ptr) - 1} graphs one after the other, "
            f"got {list(array.shape)}"
        )
    if array.dtype.kind not in "fiub":
        raise InputError(f"{what}: expected numbers, got {array.dtype}")
    if array.dtype.kind in "iu" and len(array) and int(np.abs(array).max()) > 2**53:
        array = np.unique(array, return_inverse=True)[1]  # as floats, different integers would tie
    array = array.astype(np.float64)
    finite = np.isfinite(array)
    if not finite.all():
        row = int((~finite).nonzero()[0][0])
        graph = int(np.searchsorted(ptr, row, side="right")) - 1
        raise InputError(
            f"{what}: {array[row]} at {row - int(ptr[graph])} of graph {graph}; "
            "expected finite numbers; replace inf and NaN by finite scores"
        )
    return array


def constant_graphs(scores: Floats, ptr: Ints) -> Bools:
    """Return [g] whether all nodes of a graph have the same score, which ranks nothing."""
    low, high = (f.reduceat(scores, ptr[:-1]) for f in (np.minimum, np.maximum))
    return np.asarray(low == high)


def checked_mask(mask: npt.ArrayLike, ptr: Ints) -> Bools:
    """Return a mask [n] as bools; an `InputError` names the first graph that cannot be ranked."""
    array = as_array(mask)
    if array.shape != (ptr[-1],):
        raise InputError(f"mask: expected [{ptr[-1]}], one value each, got {list(array.shape)}")
    if array.dtype != bool and not np.isin(array, (0, 1)).all():
        raise InputError("mask: expected true and false, or 1 and 0, got other values")
    array = array.astype(bool)
    inside, size = count_true(array, ptr), np.diff(ptr)
    unrankable = (inside == 0) | (inside == size)
    if unrankable.any():
        graph = int(unrankable.nonzero()[0][0])
        raise InputError(
            f"mask: {inside[graph]} of the {size[graph]} in graph {graph}; where all or none "
            "belong to the rationale there is nothing to rank: leave such graphs out"
        )
    return array


def _top_hits(
    scores: npt.ArrayLike, mask: npt.ArrayLike, ptr: Ints, k: int | None
) -> tuple[Ints, Ints, Ints]:
    """Return, per graph, the rationale nodes among the top k, k, and the size of the rationale."""
    scores, mask = checked_scores(scores, ptr), checked_mask(mask, ptr)
    rationale = count_true(mask, ptr)
    size = rationale if k is None else np.minimum(k, np.diff(ptr))
    return count_true(mask & top_rows(scores, ptr, size), ptr), size, rationale


def top_rows(scores: Floats, ptr: Ints, k: Ints) -> Bools:
    """Return [n] whether a score is among the k [g] highest of its graph; ties go to the first."""
    return np.asarray(places(scores, ptr) < k[graph_of(ptr)])


def places(scores: Floats, ptr: Ints) -> Ints:
    """Return [n] the place of a score in its graph, 0 for the highest; ties go to the first."""
    graph = graph_of(ptr)
    order = np.lexsort((-scores, graph))
    result = np.empty(len(scores), np.int64)
    result[order] = np.arange(len(order)) - ptr[graph]  # lexsort keeps graphs in place
    return result


def graph_of(ptr: Ints) -> Ints:
    """Return [n] the number of the graph that each row belongs to."""
    return np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))


def count_true(flags: Bools, ptr: Ints) -> Ints:
    """Return [g] how many flags [n] of each graph are true."""
    return np.diff(np.insert(flags.cumsum(), 0, 0)[ptr])


def _one_graph(
    scores: npt.ArrayLike, mask: npt.ArrayLike, k: int | None = None
) -> tuple[Any, Any, Ints]:
    array, inside = as_array(scores), as_array(mask)
    if array.ndim != 1 or array.shape != inside.shape:
        raise InputError(
            f"expected scores and mask of one length, got {list(array.shape)} and "
            f"{list(inside.shape)}"
        )
    if k is not None:
        whole_number("k", k, 1, len(array))
    return array, inside, np.array([0, len(array)])


def as_array(values: Any) -> npt.NDArray[Any]:
    """Return an array of an array, a list or a tensor, which may require a gradient."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        values = values.double() if values.is_floating_point() else values  # NumPy has no bfloat16
    return np.asarray(values)
