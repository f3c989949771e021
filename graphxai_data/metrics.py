"""Metrics as pure functions of arrays: of predictions, and of scores of nodes or edges.

Graphs differ in size, so arrays of many graphs are concatenated, and `ptr` [g+1] says where each
begins and ends. Scores rank: of equal scores the one with the lower number comes first in a top-k,
which says nothing here, since the nodes of every dataset are shuffled. AUROC is both strict, as the
paper's formula has it (a tie is a miss), and tie-averaged (a tie is half a hit, as scikit-learn has
it). Where every node, or none, is in the rationale there is nothing to rank: an error, no number.
"""

import math
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from graphxai_data.errors import InputError, whole_number

Labels = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Ties = Literal["strict", "average"]


def accuracy(predicted: Labels, label: Labels) -> float:
    """Share of the labels [g] that were predicted."""
    return float((predicted == label).mean())


def weighted_accuracy(predicted: Labels, label: Labels) -> float:
    """Mean over the classes that occur of the share of a class that was predicted."""
    counts = np.bincount(label)
    hits = np.bincount(label[predicted == label], minlength=len(counts))
    return float((hits[counts > 0] / counts[counts > 0]).mean())


def roc_auc(score: Floats, label: Labels) -> float:
    """Area under the ROC curve of scores [g] of class 1, ties counted half.

    It is nan where there is one class, or a score that is not finite.
    """
    positive = label == 1
    if positive.all() or not positive.any() or not np.isfinite(score).all():
        return math.nan
    whole = np.array([0, len(score)])
    return float(auroc_per_graph(score, positive, whole, "average")[0])


def macro_f1(predicted: Labels, label: Labels) -> float:
    """Mean over classes of 2 TP / (2 TP + FP + FN); a class found on neither side is left out."""
    classes = int(max(predicted.max(), label.max())) + 1
    hits = np.bincount(label[predicted == label], minlength=classes)
    occurrences = np.bincount(predicted, minlength=classes) + np.bincount(label, minlength=classes)
    there = occurrences > 0
    return float((2 * hits[there] / occurrences[there]).mean())


def jaccard_at_k(scores: npt.ArrayLike, mask: npt.ArrayLike, k: int | None = None) -> float:
    """|S ∩ G| / |S ∪ G| of the k highest scores S and the rationale G (paper, section "Metrics").

    Args:
        scores: [n] of the nodes of one graph.
        mask: [n] bool, the rationale.
        k: size of S; that of G if None.
    """
    return float(jaccard_per_graph(*_one_graph(scores, mask, k), k)[0])


def precision_at_k(scores: npt.ArrayLike, mask: npt.ArrayLike, k: int | None = None) -> float:
    """Share of the k highest scores that is in the rationale; arguments as for `jaccard_at_k`."""
    return float(precision_per_graph(*_one_graph(scores, mask, k), k)[0])


def node_auroc(scores: npt.ArrayLike, mask: npt.ArrayLike, ties: Ties = "strict") -> float:
    """Share of pairs (node of the rationale, other node) that the scores rank rightly.

    Args:
        scores: [n] of the nodes of one graph.
        mask: [n] bool, the rationale.
        ties: "strict", a pair with equal scores is wrong (the paper's formula); "average", half
            right.
    """
    return float(auroc_per_graph(*_one_graph(scores, mask), ties)[0])


def jaccard_per_graph(scores: Floats, mask: Bools, ptr: Ints, k: int | None = None) -> Floats:
    """[g] `jaccard_at_k` of every graph."""
    hits, chosen, wanted = _top_hits(scores, mask, ptr, k)
    found: Floats = hits / (chosen + wanted - hits)
    return found


def precision_per_graph(scores: Floats, mask: Bools, ptr: Ints, k: int | None = None) -> Floats:
    """[g] `precision_at_k` of every graph."""
    hits, chosen, _ = _top_hits(scores, mask, ptr, k)
    found: Floats = hits / chosen
    return found


def auroc_per_graph(scores: Floats, mask: Bools, ptr: Ints, ties: Ties = "strict") -> Floats:
    """[g] `node_auroc` of every graph; of a single long one, the pooled AUROC."""
    if ties not in ("strict", "average"):
        raise InputError(f"ties: expected 'strict' or 'average', got {ties!r}")
    scores, mask = checked_scores(scores, ptr), _checked_mask(mask, ptr)
    graph = _graph_of(ptr)
    order = np.lexsort((scores, graph))
    ordered, inside, graph = scores[order], mask[order], graph[order]
    # The rows of one graph with one score are a group; a node outranks the others in lower groups.
    begins = np.ones(len(order), bool)
    begins[1:] = (ordered[1:] != ordered[:-1]) | (graph[1:] != graph[:-1])
    firsts = begins.nonzero()[0]
    group = begins.cumsum() - 1
    others_before = np.insert((~inside).cumsum(), 0, 0)
    of_group = others_before[np.append(firsts[1:], len(order))] - others_before[firsts]
    below = others_before[firsts] - others_before[ptr[graph[firsts]]]
    right = below + (of_group / 2 if ties == "average" else 0)
    count = len(ptr) - 1
    won = np.bincount(graph[inside], weights=right[group[inside]], minlength=count)
    wanted = np.bincount(graph[inside], minlength=count)
    auroc: Floats = won / (wanted * (np.diff(ptr) - wanted))
    return auroc


def completeness_gap(contributions: npt.ArrayLike, logit: float, bias: float = 0.0) -> float:
    """|Σ contributions + bias − logit|, relative to the evidence |logit − bias|, of one graph."""
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
    """Scores [n] as floats, or an `InputError` that names the graph where they cannot be used."""
    array = as_array(scores)
    if array.shape != (ptr[-1],):
        raise InputError(
            f"{what}: expected [{ptr[-1]}], those of {len(ptr) - 1} graphs one after the other, "
            f"got {list(array.shape)}"
        )
    if array.dtype.kind not in "fiub":
        raise InputError(f"{what}: expected numbers, got {array.dtype}")
    if array.dtype.kind in "iu" and len(array) and int(np.abs(array).max()) > 2**53:
        array = np.unique(array, return_inverse=True)[1]  # floats would make ties of them
    array = array.astype(np.float64)
    finite = np.isfinite(array)
    if not finite.all():
        row = int((~finite).nonzero()[0][0])
        graph = int(np.searchsorted(ptr, row, side="right")) - 1
        raise InputError(
            f"{what}: {array[row]} at {row - int(ptr[graph])} of graph {graph}; "
            "expected finite numbers: say how low or high they are meant to rank"
        )
    return array


def _checked_mask(mask: npt.ArrayLike, ptr: Ints) -> Bools:
    array = as_array(mask)
    if array.shape != (ptr[-1],):
        raise InputError(f"mask: expected [{ptr[-1]}], one value each, got {list(array.shape)}")
    if array.dtype != bool and not np.isin(array, (0, 1)).all():
        raise InputError("mask: expected true and false, or 1 and 0, got other values")
    array = array.astype(bool)
    inside, size = _count(array, ptr), np.diff(ptr)
    senseless = (inside == 0) | (inside == size)
    if senseless.any():
        graph = int(senseless.nonzero()[0][0])
        raise InputError(
            f"mask: {inside[graph]} of the {size[graph]} in graph {graph}; where all or none "
            "belong to the rationale there is nothing to rank: leave such graphs out"
        )
    return array


def _top_hits(
    scores: npt.ArrayLike, mask: npt.ArrayLike, ptr: Ints, k: int | None
) -> tuple[Ints, Ints, Ints]:
    """Of every graph: rationale nodes among the top k, k, and size of the rationale."""
    scores, mask = checked_scores(scores, ptr), _checked_mask(mask, ptr)
    wanted = _count(mask, ptr)
    chosen = wanted if k is None else np.minimum(k, np.diff(ptr))
    top = top_rows(scores, ptr, chosen)
    return _count(mask & top, ptr), chosen, wanted


def top_rows(scores: Floats, ptr: Ints, k: Ints) -> Bools:
    """[n] whether a score is among the k [g] highest of its graph; of equal ones, the first are."""
    graph = _graph_of(ptr)
    order = np.lexsort((-scores, graph))
    chosen = np.zeros(len(scores), bool)
    chosen[order] = np.arange(len(order)) - ptr[graph] < k[graph]  # lexsort keeps graphs in place
    return chosen


def _graph_of(ptr: Ints) -> Ints:
    return np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))


def _count(flags: Bools, ptr: Ints) -> Ints:
    sums = np.insert(flags.cumsum(), 0, 0)
    counts: Ints = sums[ptr[1:]] - sums[ptr[:-1]]
    return counts


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
    """An array of what may be one already, a list, or a tensor, maybe with a gradient."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        values = values.double() if values.is_floating_point() else values  # NumPy has no bfloat16
    return np.asarray(values)
