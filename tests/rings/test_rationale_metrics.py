"""Metrics of alternatives, null graphs and signed weights against plain code, graph by graph."""

import doctest
import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.metrics import root_mean_squared_error

from graphxai_data import jaccard_at_k, node_auroc
from graphxai_data.errors import InputError
from graphxai_data.graphs.rationale import alternatives_of
from graphxai_data.metrics import precision_at_k
from graphxai_data.rings import rationale_metrics
from graphxai_data.rings.rationale_metrics import (
    best_auroc,
    best_auroc_per_graph,
    best_jaccard_at_k,
    best_jaccard_per_graph,
    best_precision_per_graph,
    has_outlier_per_graph,
    rmse_after_scaling,
    sign_accuracy_per_graph,
    spearman_per_graph,
)

Array = npt.NDArray[Any]
VALUES = st.one_of(st.sampled_from([-1.0, 0.0, 0.5]), st.floats(-1e6, 1e6))


@st.composite
def arrays(draw: st.DrawFn, values: st.SearchStrategy[Any], sizes: list[int]) -> list[Array]:
    """Arrays of these sizes, one per graph."""
    return [np.array(draw(st.lists(values, min_size=n, max_size=n))) for n in sizes]


@st.composite
def graphs_with_alternatives(draw: st.DrawFn) -> tuple[list[Array], list[Array]]:
    """Scores that often tie, and bits of alternatives, which leave at least one node out."""
    sizes = draw(st.lists(st.integers(2, 8), min_size=1, max_size=5))
    few = st.integers(0, 7)
    bits = [
        np.array(draw(st.lists(few, min_size=n, max_size=n).filter(lambda b: any(b) and 0 in b)))
        for n in sizes
    ]
    return draw(arrays(VALUES, sizes)), bits


def pointers(graphs: list[Array]) -> Array:
    return np.cumsum([0] + [len(graph) for graph in graphs])


@given(graphs_with_alternatives())
def test_the_best_alternative_is_that_of_a_loop(graphs: tuple[list[Array], list[Array]]) -> None:
    all_scores, all_bits = graphs
    scores, bits, ptr = np.concatenate(all_scores), np.concatenate(all_bits), pointers(all_scores)
    jaccard = best_jaccard_per_graph(scores, bits, ptr)
    precision = best_precision_per_graph(scores, bits, ptr)
    strict, average = (best_auroc_per_graph(scores, bits, ptr, t) for t in ("strict", "average"))
    for i, (s, b) in enumerate(zip(all_scores, all_bits, strict=True)):
        masks = [mask for mask in alternatives_of(b) if mask.any()]  # bits may have gaps here
        assert jaccard[i] == max(jaccard_at_k(s, mask) for mask in masks)
        assert precision[i] == max(precision_at_k(s, mask) for mask in masks)
        kept = [mask | (b == 0) for mask in masks]
        pairs = [list(itertools.product(s[mask], s[b == 0])) for mask in masks]
        expected = max(sum(x > y for x, y in among) / len(among) for among in pairs)
        assert strict[i] == pytest.approx(expected, abs=1e-12)
        half = [node_auroc(s[k], mask[k], "average") for k, mask in zip(kept, masks, strict=True)]
        assert average[i] == max(half)
        assert best_jaccard_at_k(s, masks) == jaccard[i]
        assert best_auroc(torch.tensor(s), torch.tensor(np.array(masks))) == strict[i]


@given(graphs_with_alternatives())
def test_one_alternative_is_the_usual_metric(graphs: tuple[list[Array], list[Array]]) -> None:
    for scores, bits in zip(*graphs, strict=True):
        mask, ptr = bits != 0, np.array([0, len(bits)])
        ones = mask.astype(np.int64) << 5
        assert best_jaccard_per_graph(scores, ones, ptr) == jaccard_at_k(scores, mask)
        assert best_precision_per_graph(scores, ones, ptr) == precision_at_k(scores, mask)
        for ties in ("strict", "average"):
            assert best_auroc_per_graph(scores, ones, ptr, ties) == node_auroc(scores, mask, ties)


def test_a_node_of_another_alternative_is_not_wrong_for_auroc() -> None:
    alternatives = [[1, 1, 0, 0, 0], [0, 0, 1, 1, 0]]
    assert best_auroc([0.5, 0.6, 0.8, 0.9, 0.1], alternatives) == 1  # marks both
    assert best_auroc([0.5, 0.6, 0.0, 0.0, 0.1], alternatives) == 1  # marks the first alone
    assert best_auroc([0.0, 0.6, 0.0, 0.9, 0.1], alternatives) == 0.5  # half of each
    assert best_jaccard_at_k([0.5, 0.6, 0.8, 0.9, 0.1], alternatives) == 1
    assert best_jaccard_at_k([0.0, 0.6, 0.0, 0.9, 0.1], alternatives) == pytest.approx(1 / 3)


# Quarters of whole numbers are exact in floating point, so rounding decides nothing.
@given(st.lists(st.lists(st.integers(-20, 20), min_size=1, max_size=12), min_size=1, max_size=5))
def test_outliers_are_those_of_b_xaic(graphs: list[list[int]]) -> None:
    ptr, scores = pointers([np.array(graph) for graph in graphs]), np.concatenate(graphs)
    both, high = (has_outlier_per_graph(scores, ptr, sides) for sides in ("both", "high"))
    for i, graph in enumerate(graphs):
        # B-XAIC's definition, in the library that it uses.
        x = torch.tensor(graph, dtype=torch.float64)
        q1, q3 = torch.quantile(x, 0.25), torch.quantile(x, 0.75)
        lowest, highest = q1 - 1.5 * (q3 - q1), q3 + 1.5 * (q3 - q1)
        assert both[i] == bool(((x < lowest) | (x > highest)).any())
        assert high[i] == bool((x > highest).any())


def test_outliers_by_hand() -> None:
    # Quartiles of 0, 0, 0, 1 are 0 and 0.25: the fence is at 0.625.
    ptr = np.array([0, 4, 7, 8, 12])
    scores = np.concatenate([[0, 0, 0, 1], [0, 0, 9], [5], [1, 1, 1, -9]])
    assert has_outlier_per_graph(scores, ptr).tolist() == [True, False, False, False]
    assert has_outlier_per_graph(scores, ptr, "both").tolist() == [True, False, False, True]
    huge = [-1.7e308, 1.7e308, 1.7e308, -1.7e308]
    assert has_outlier_per_graph(huge, np.array([0, 4])).tolist() == [False]


@st.composite
def weighted_graphs(draw: st.DrawFn) -> tuple[list[Array], list[Array]]:
    sizes = draw(st.lists(st.integers(2, 9), min_size=1, max_size=5))
    weight = st.sampled_from([-2.0, -0.25, 0.0, 0.25, 1.0])
    weights = [
        np.array(draw(st.lists(weight, min_size=n, max_size=n).filter(lambda w: len(set(w)) > 1)))
        for n in sizes
    ]
    return draw(arrays(st.one_of(st.sampled_from([-1.0, 0.0, 2.0]), VALUES), sizes)), weights


@given(weighted_graphs())
def test_spearman_is_that_of_scipy(graphs: tuple[list[Array], list[Array]]) -> None:
    all_scores, weights = graphs
    joined = np.concatenate(all_scores), np.concatenate(weights)
    values = spearman_per_graph(*joined, pointers(weights))
    for value, scores, weight in zip(values, all_scores, weights, strict=True):
        constant = len(set(scores)) == 1
        expected = 0 if constant else spearmanr(scores, weight).statistic
        assert value == pytest.approx(expected, abs=1e-12)


@given(weighted_graphs())
def test_signs_are_those_of_a_loop(graphs: tuple[list[Array], list[Array]]) -> None:
    all_scores, weights = graphs
    joined = np.concatenate(all_scores), np.concatenate(weights)
    values = sign_accuracy_per_graph(*joined, pointers(weights))
    for value, scores, weight in zip(values, all_scores, weights, strict=True):
        pairs = [(s, w) for s, w in zip(scores, weight, strict=True) if w != 0]
        right = [(s > 0 and w > 0) or (s < 0 and w < 0) for s, w in pairs]
        assert value == pytest.approx(sum(right) / len(right))


@given(weighted_graphs(), st.floats(1e-3, 1e3))
def test_no_other_factor_has_a_lower_squared_error_and_scales_do_not_count(
    graphs: tuple[list[Array], list[Array]], scale: float
) -> None:
    all_scores, weights = graphs
    scores, weight, ptr = np.concatenate(all_scores), np.concatenate(weights), pointers(weights)
    value = rmse_after_scaling(scores, weight, ptr)
    assert rmse_after_scaling(scores * scale, weight, ptr) == pytest.approx(value, abs=1e-9)
    # Least squares without an intercept, by NumPy's solver.
    fitted = max(0.0, float(np.linalg.lstsq(scores[:, None], weight, rcond=None)[0][0]))
    expected = np.mean(
        [root_mean_squared_error(w, fitted * s) for s, w in zip(all_scores, weights, strict=True)]
    )
    assert value == pytest.approx(expected, abs=1e-6)
    reversed_signs = rmse_after_scaling(-weight, weight, ptr)
    nothing = rmse_after_scaling(np.zeros(len(weight)), weight, ptr)
    assert reversed_signs == nothing  # a reversed explanation is no better than none
    assert rmse_after_scaling(3 * weight, weight, ptr) == pytest.approx(0, abs=1e-12)


def test_scores_of_any_size_can_be_scaled() -> None:
    ptr = np.array([0, 2])
    assert rmse_after_scaling([1e300, -1e300], [1.0, -1.0], ptr) == pytest.approx(0)
    assert rmse_after_scaling([0.0, 0.0], [3.0, -3.0], ptr) == 3


@pytest.mark.parametrize(
    ("scores", "alternatives", "message"),
    [
        ([1.0, 2.0], [True, False], r"scores \[n\] and alternatives \[a, n\], got \[2\] and \[2\]"),
        ([1.0, 2.0], [[1, 0, 0]], r"got \[2\] and \[1, 3\]"),
        ([1.0, 2.0], np.zeros((0, 2)), "expected 1 to 63 of them, .* got 0 of .*null graphs"),
        ([1.0, 2.0], [[0, 0]], "none without nodes, got 1 of"),
        ([1.0, 2.0], [[0.5, 0]], "of true and false"),
        ([1.0, 2.0], [[1, 0], [0, 1]], "mask: 2 of the 2 in graph 0; where all or none"),
        ([1.0, math.nan], [[1, 0]], "nan at 1 of graph 0; expected finite"),
    ],
)
def test_invalid_alternatives_are_refused(scores: Any, alternatives: Any, message: str) -> None:
    for metric in (best_jaccard_at_k, best_auroc):
        with pytest.raises(InputError, match=message):
            metric(scores, alternatives)


def test_weights_without_order_or_sign_are_refused() -> None:
    ptr = np.array([0, 2, 4])
    with pytest.raises(InputError, match="weights: all equal in graph 1, .* leave such graphs out"):
        spearman_per_graph([1, 2, 1, 2], [1, 2, 3, 3], ptr)
    with pytest.raises(InputError, match="weights: all zero in graph 1"):
        sign_accuracy_per_graph([1, 2, 1, 2], [1, 2, 0, 0], ptr)
    with pytest.raises(InputError, match=r"weights: expected \[4\]"):
        spearman_per_graph([1, 2, 1, 2], [1, 2, 3], ptr)


def test_examples_in_docstrings_are_right() -> None:
    result = doctest.testmod(rationale_metrics)
    assert result.attempted > 0
    assert result.failed == 0
