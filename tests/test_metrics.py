import doctest
import itertools
import math
import statistics

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score, jaccard_score, roc_auc_score

from graphxai_data import jaccard_at_k, metrics, node_auroc
from graphxai_data.errors import InputError
from graphxai_data.metrics import (
    accuracy,
    auroc_per_graph,
    jaccard_per_graph,
    macro_f1,
    mean_and_deviation,
    plus_minus,
    precision_at_k,
    precision_per_graph,
)

PAIRS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=30)


@given(PAIRS)
def test_accuracy_and_f1_are_those_of_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    predicted, label = np.array(pairs, np.int64).T
    assert np.isclose(accuracy(predicted, label), accuracy_score(label, predicted))
    expected = f1_score(label, predicted, average="macro", zero_division=0.0)
    assert np.isclose(macro_f1(predicted, label), expected)


@st.composite
def scored_graphs(draw: st.DrawFn) -> list[tuple[np.ndarray, np.ndarray]]:
    """Graphs with scores that often tie, and masks that are neither empty nor full."""
    values = st.one_of(st.sampled_from([-1.0, 0.0, 0.5]), st.floats(-1e300, 1e300))
    graphs = []
    for _ in range(draw(st.integers(1, 5))):
        size = draw(st.integers(2, 8))
        scores = draw(st.lists(values, min_size=size, max_size=size))
        mask = draw(
            st.lists(st.booleans(), min_size=size, max_size=size).filter(
                lambda m: 0 < sum(m) < len(m)
            )
        )
        graphs.append((np.array(scores), np.array(mask)))
    return graphs


@given(scored_graphs())
def test_metrics_of_many_graphs_are_those_of_scikit_learn_per_graph(
    graphs: list[tuple[np.ndarray, np.ndarray]],
) -> None:
    scores, mask = (np.concatenate(parts) for parts in zip(*graphs, strict=True))
    ptr = np.cumsum([0] + [len(s) for s, _ in graphs])
    average = auroc_per_graph(scores, mask, ptr, "average")
    strict = auroc_per_graph(scores, mask, ptr)
    jaccard = jaccard_per_graph(scores, mask, ptr)
    precision = precision_per_graph(scores, mask, ptr)
    for i, (s, m) in enumerate(graphs):
        assert abs(average[i] - roc_auc_score(m, s)) < 1e-12
        pairs = list(itertools.product(s[m], s[~m]))
        assert abs(strict[i] - sum(a > b for a, b in pairs) / len(pairs)) < 1e-12
        top = np.zeros(len(s), bool)
        top[sorted(range(len(s)), key=lambda n: (-s[n], n))[: m.sum()]] = True
        assert abs(jaccard[i] - jaccard_score(m, top)) < 1e-12
        assert abs(precision[i] - (top & m).sum() / m.sum()) < 1e-12
        assert jaccard_at_k(s, m) == jaccard[i]
        assert precision_at_k(s, m) == precision[i]
        assert node_auroc(s, m) == strict[i]
        assert node_auroc(s, m, ties="average") == average[i]


def test_values_by_hand() -> None:
    scores, mask = [0.9, 0.8, 0.8, 0.1], [True, False, True, False]
    # The first of the two equal scores is in the top 2: {0, 1} against {0, 2}.
    assert jaccard_at_k(scores, mask) == pytest.approx(1 / 3)
    assert jaccard_at_k(scores, mask, k=3) == pytest.approx(2 / 3)
    # Pairs: 0 beats 1 and 3, 2 beats 3 and ties with 1.
    assert node_auroc(scores, mask) == 3 / 4
    assert node_auroc(scores, mask, ties="average") == 3.5 / 4
    tensor = torch.tensor(scores, requires_grad=True)
    assert node_auroc(tensor, torch.tensor(mask)) == 3 / 4
    assert node_auroc([1, 1, 1], [1, 0, 0]) == 0
    assert node_auroc([1, 1, 1], [1, 0, 0], ties="average") == 0.5


@pytest.mark.parametrize(
    ("scores", "mask", "options", "message"),
    [
        ([1.0, float("nan")], [True, False], {}, "nan at 1 of graph 0; expected finite"),
        ([1.0, float("inf")], [True, False], {}, "inf at 1 of graph 0"),
        ([1.0, 2.0], [True, True], {}, "2 of the 2 in graph 0; where all or none"),
        ([1.0, 2.0], [False, False], {}, "0 of the 2 in graph 0"),
        ([], [], {}, "0 of the 0 in graph 0"),
        ([1.0, 2.0], [True], {}, r"scores and mask of one length, got \[2\] and \[1\]"),
        ([[1.0], [2.0]], [[True], [False]], {}, "scores and mask of one length"),
        (["a", "b"], [True, False], {}, "expected numbers, got"),
        ([1.0, 2.0], [0.3, 0.7], {}, "mask: expected true and false, or 1 and 0"),
        ([1.0, 2.0], [True, False], {"k": 0}, "k: expected a whole number from 1 to 2"),
        ([1.0, 2.0], [True, False], {"k": 3}, "k: expected a whole number from 1 to 2"),
    ],
)
def test_invalid_input_is_refused(
    scores: list[float], mask: list[bool], options: dict[str, int], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        jaccard_at_k(scores, mask, **options)
    if not options:
        with pytest.raises(InputError, match=message):
            node_auroc(scores, mask)


def test_unknown_ties_are_refused() -> None:
    with pytest.raises(InputError, match="ties: expected 'strict' or 'average', got 'mean'"):
        node_auroc([1.0, 2.0], [True, False], ties="mean")  # type: ignore[arg-type]


def test_examples_in_docstrings_are_right() -> None:
    result = doctest.testmod(metrics)
    assert result.attempted > 0
    assert result.failed == 0


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20))
def test_mean_and_deviation_are_those_of_a_sample(values: list[float]) -> None:
    mean, deviation = mean_and_deviation(values)
    assert mean == pytest.approx(statistics.mean(values), abs=1e-6)
    assert deviation == pytest.approx(statistics.stdev(values), abs=1e-6)


def test_a_missing_value_makes_the_mean_nan() -> None:
    assert all(map(math.isnan, mean_and_deviation([1.0, None, 2.0])))
    assert plus_minus(math.nan, 1.0) == ""
    assert plus_minus(math.inf, 1.0) == ""
