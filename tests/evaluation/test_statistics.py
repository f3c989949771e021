"""Intervals, tests and ranks: as by enumeration, closed testing, SciPy and Demšar (2006)."""

import doctest
import random
from itertools import combinations, product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import friedmanchisquare

from graphxai_data.errors import InputError
from graphxai_data.evaluation import statistics
from graphxai_data.evaluation.statistics import (
    Paired,
    average_ranks,
    cliques,
    compare_all,
    holm,
    interval,
    paired_test,
)

Floats = npt.NDArray[np.float64]
NAN = np.nan

# Of 3 trainings and 3 graphs; one value is missing.
SMALL = np.array([[0.1, 0.45, 0.3], [0.62, NAN, 0.8], [0.33, 0.27, 0.91]])

# Table 6 of Demšar (2006): AUC of C4.5 without options, with -m, -cf, and both, on 14 datasets. He
# ranks the last two of "voting" as 2 and 3: they differ in a digit that he does not print.
DEMSAR = np.array(
    [
        [0.763, 0.768, 0.771, 0.798], [0.599, 0.591, 0.590, 0.569], [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657], [0.882, 0.888, 0.886, 0.898], [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685], [0.583, 0.583, 0.563, 0.625], [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000], [0.940, 0.962, 0.965, 0.962], [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.9751, 0.975], [0.957, 0.978, 0.946, 0.970],
    ]
)  # fmt: skip
# Table 5a, the two-tailed Nemenyi test at 5 %, for 2 to 10 classifiers.
NEMENYI = (1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164)


def crossed(rng: np.random.Generator, seeds: int, graphs: int, *scales: float) -> Floats:
    """Values with mean 0 and effects of trainings, of graphs, and of both together."""
    sizes = ((seeds, 1), (1, graphs), (seeds, graphs))
    return np.asarray(sum(s * rng.normal(size=n) for s, n in zip(scales, sizes, strict=True)))


def all_means(values: Floats) -> Floats:
    """The mean of every possible draw with a value, each as likely as any other."""
    seeds, graphs = (list(product(range(n), repeat=n)) for n in values.shape)
    drawn = [values[np.ix_(s, g)] for s, g in product(seeds, graphs)]
    return np.array([np.nanmean(part) for part in drawn if np.isfinite(part).any()])


def test_draws_are_those_of_a_full_enumeration() -> None:
    means = all_means(SMALL)
    (sample,) = statistics._bootstrap([SMALL], 100_000, 0)
    for share in (0.05, 0.2, 0.5, 0.8, 0.95):
        bound = np.quantile(means, share)
        assert (sample <= bound).mean() == pytest.approx((means <= bound).mean(), abs=0.006)
    assert set(sample.round(12)) <= set(means.round(12))
    result = interval(SMALL, level=0.8, draws=100_000)
    assert (result.low, result.high) == pytest.approx(np.quantile(means, [0.1, 0.9]), abs=0.01)


def test_means_and_deviations_are_over_the_values_that_there_are() -> None:
    result = interval(SMALL)
    assert result.mean == pytest.approx((0.85 + 1.42 + 1.51) / 8)
    means = [0.85 / 3, 0.71, 1.51 / 3]
    assert result.deviation == pytest.approx(np.std(means, ddof=1))
    assert (result.seeds, result.graphs) == (3, 3)


def test_trainings_and_graphs_without_values_change_nothing() -> None:
    wide = np.full((5, 7), NAN)
    wide[np.ix_([0, 2, 3], [1, 4, 6])] = SMALL
    assert interval(wide) == interval(SMALL)
    assert paired_test(wide, wide / 2) == paired_test(SMALL, SMALL / 2)


def test_constant_values_have_an_interval_without_width() -> None:
    result = interval(np.full((3, 20), 0.7))
    assert (result.low, result.high) == pytest.approx((0.7, 0.7), abs=1e-12)
    assert result.deviation == pytest.approx(0, abs=1e-12)


def test_a_draw_without_any_value_is_left_out() -> None:
    diagonal = np.where(np.eye(3) == 1, 0.4, NAN)
    assert interval(diagonal, draws=500)[:3] == pytest.approx((0.4, 0.4, 0.4))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.permutations(range(4)), st.permutations(range(9)))
def test_the_order_of_trainings_and_graphs_does_not_matter(
    number: int, seeds: list[int], graphs: list[int]
) -> None:
    rng = np.random.default_rng(number)
    first, second = rng.random((2, 4, 9))
    first[rng.random((4, 9)) < 0.1] = NAN
    second[:, 7:] = NAN
    other = np.ix_(seeds, graphs)
    assert interval(first[other], draws=50) == pytest.approx(interval(first, draws=50))
    assert paired_test(first[other], second[other], draws=50) == pytest.approx(
        paired_test(first, second, draws=50)
    )


def test_a_higher_level_has_a_wider_interval_and_the_seed_decides_about_draws() -> None:
    narrow, wide = (interval(SMALL, level=level) for level in (0.5, 0.99))
    assert wide.low < narrow.low < narrow.mean < narrow.high < wide.high
    values = crossed(np.random.default_rng(0), 4, 30, 1, 1, 1)
    assert interval(values, seed=1) == interval(values, seed=1)
    assert interval(values, seed=1).low != interval(values, seed=2).low


def test_draws_do_not_depend_on_how_many_are_made_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    values = crossed(np.random.default_rng(0), 4, 30, 1, 1, 1)
    expected = interval(values, draws=101)
    monkeypatch.setattr(statistics, "_BLOCK", 300)  # ten draws
    assert interval(values, draws=101) == pytest.approx(expected)


def test_intervals_hold_the_true_mean_as_often_as_they_say() -> None:
    rng = np.random.default_rng(0)
    held = within_trainings = 0
    trials = 300
    for trial in range(trials):
        values = crossed(rng, 12, 40, 0.6, 1.0, 0.5)
        result = interval(values, draws=400, seed=trial)
        held += result.low <= 0 <= result.high
        # All values as if they were independent: far too sure.
        error = 1.96 * values.std() / np.sqrt(values.size)
        within_trainings += abs(values.mean()) <= error
    assert 0.90 <= held / trials <= 0.985
    assert within_trainings / trials < 0.5


def test_the_documented_share_for_three_trainings_is_right() -> None:
    rng = np.random.default_rng(0)
    trials = 400
    held = 0
    for trial in range(trials):
        result = interval(crossed(rng, 3, 2, 1.0, 0.0, 0.0), draws=400, seed=trial)
        held += result.low <= 0 <= result.high
    assert held / trials == pytest.approx(0.76, abs=0.06)


def test_the_same_values_do_not_differ() -> None:
    assert paired_test(SMALL, SMALL) == Paired(0.0, 0.0, 0.0, 1.0)


def test_a_difference_of_one_sign_has_the_smallest_p_value() -> None:
    values = crossed(np.random.default_rng(0), 3, 20, 1, 1, 1)
    result = paired_test(values + 0.25, values, draws=999)
    assert result == pytest.approx((0.25, 0.25, 0.25, 2 / 1000))
    assert paired_test(values, values + 0.25, draws=999).difference == pytest.approx(-0.25)


def test_the_p_value_is_twice_the_share_of_draws_beyond_zero() -> None:
    second = np.array([[0.2, 0.3, 0.1], [0.5, 0.2, 0.6], [0.5, 0.1, 0.4]])
    means = all_means(SMALL - second)
    assert np.median(means) > 0
    expected = 2 * (means <= 1e-12).mean()
    assert 0.05 < expected < 0.95
    assert paired_test(SMALL, second, draws=50_000).p == pytest.approx(expected, abs=0.01)
    assert paired_test(second, SMALL, draws=50_000).p == pytest.approx(expected, abs=0.01)


def test_a_draw_that_is_exactly_zero_counts_for_both_signs() -> None:
    # Sums such as 0.1 + 0.2 - 0.3 are zero but for rounding.
    gap = np.tile([0.1, 0.2, -0.3], (3, 1))
    means = all_means(gap).round(12)
    share = min((means <= 0).mean(), (means >= 0).mean())
    assert (means == 0).mean() > 0.1
    p = paired_test(gap, np.zeros((3, 3)), draws=50_000).p
    assert p == pytest.approx(min(1, 2 * share), abs=0.01)


def test_pairs_are_compared_on_the_graphs_that_both_have() -> None:
    rng = np.random.default_rng(0)
    first = crossed(rng, 3, 30, 0.1, 1, 0.1)
    second = first - 0.05
    first[:, :5], second[:, 20:] = NAN, NAN
    first[:, 25:] += 100  # only one of them has these graphs
    assert paired_test(first, second).difference == pytest.approx(0.05)


def test_graphs_that_are_hard_for_both_do_not_hide_a_difference() -> None:
    rng = np.random.default_rng(0)
    graphs = rng.normal(size=(1, 50))
    first, second = (crossed(rng, 5, 50, 0, 0, 0.1) + graphs + shift for shift in (0.1, 0.0))
    alone = [interval(values) for values in (first, second)]
    assert alone[1].high > alone[0].low  # the intervals overlap
    assert paired_test(first, second).p < 0.01


@settings(max_examples=50)
@given(st.lists(st.sampled_from([0.0, 0.001, 0.01, 0.02, 0.04, 0.3, 1.0]), max_size=6))
def test_holm_is_closed_testing_by_bonferroni(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    assert len(adjusted) == len(p_values)
    for i in range(len(p_values)):
        # A hypothesis is rejected if every set that holds it is, by the smallest p of the set.
        sets = [
            s for n in range(1, len(p_values) + 1) for s in combinations(range(len(p_values)), n)
        ]
        worst = max(len(s) * min(p_values[j] for j in s) for s in sets if i in s)
        assert adjusted[i] == pytest.approx(min(1.0, worst))


def test_holm_leaves_its_input_alone() -> None:
    given_values = np.array([0.04, 0.01])
    holm(given_values)
    assert given_values.tolist() == [0.04, 0.01]


def test_all_pairs_have_their_own_test_and_holms_correction() -> None:
    rng = np.random.default_rng(0)
    graphs = rng.normal(size=(1, 40))
    values = {
        name: crossed(rng, 4, 40, 0.05, 0, 0.3) + graphs + shift
        for name, shift in {"a": 0.2, "b": 0.1, "c": 0.12, "d": 0.0}.items()
    }
    values["d"][:, 15:] = NAN  # a slow one
    results = compare_all(values)
    assert [(r.first, r.second) for r in results] == list(combinations("abcd", 2))
    tests = [paired_test(values[r.first], values[r.second]) for r in results]
    for result, test in zip(results, tests, strict=True):
        assert result[2:6] == pytest.approx(test)
    assert [r.adjusted for r in results] == pytest.approx(holm([test.p for test in tests]))
    assert {r.adjusted < 0.05 for r in results} == {True, False}


def test_many_explainers_can_still_differ() -> None:
    rng = np.random.default_rng(0)
    noise = crossed(rng, 3, 10, 0.01, 0.1, 0.01)
    results = compare_all({f"explainer {i}": noise + i for i in range(24)})
    assert len(results) == 276
    assert max(r.adjusted for r in results) < 0.0101


def test_ranks_are_those_of_the_published_example() -> None:
    ranks = average_ranks(DEMSAR)
    assert ranks.means == pytest.approx([3.143, 2.000, 2.893, 1.964], abs=5e-4)
    assert ranks.critical_difference == pytest.approx(1.25, abs=5e-3)
    assert ranks.datasets == 14
    assert ranks.friedman_p == pytest.approx(friedmanchisquare(*DEMSAR.T).pvalue)


@settings(max_examples=50)
@given(st.integers(0, 2**32), st.integers(3, 9), st.integers(3, 7), st.sampled_from([3, 1000]))
def test_friedman_is_scipys_also_with_ties(
    number: int, datasets: int, explainers: int, levels: int
) -> None:
    scores = np.random.default_rng(number).integers(levels, size=(datasets, explainers))
    ranks = average_ranks(scores)
    assert ranks.means.sum() == pytest.approx(explainers * (explainers + 1) / 2)
    if (scores == scores[:, :1]).all():
        assert ranks.friedman_p == 1
    else:
        assert ranks.friedman_p == pytest.approx(friedmanchisquare(*scores.T).pvalue)


@pytest.mark.parametrize(("explainers", "quantile"), list(enumerate(NEMENYI, start=2)))
def test_critical_differences_are_nemenyis(explainers: int, quantile: float) -> None:
    scores = np.random.default_rng(0).random((12, explainers))
    expected = quantile * np.sqrt(explainers * (explainers + 1) / (6 * 12))
    assert average_ranks(scores).critical_difference == pytest.approx(expected, rel=5e-4)


def test_equal_scores_share_their_ranks() -> None:
    ranks = average_ranks([[0.9, 0.9, 0.1], [0.5, 0.5, 0.5], [0.1, 0.2, 0.3]])
    assert ranks.means == pytest.approx([(1.5 + 2 + 3) / 3, (1.5 + 2 + 2) / 3, (3 + 2 + 1) / 3])
    assert average_ranks(np.ones((3, 3))).friedman_p == 1


def test_two_explainers_have_ranks_but_no_friedman_test() -> None:
    ranks = average_ranks([[0.9, 0.1], [0.8, 0.3], [0.2, 0.4]])
    assert ranks.means == pytest.approx([4 / 3, 5 / 3])
    assert np.isnan(ranks.friedman_p)


@settings(max_examples=100)
@given(st.lists(st.integers(4, 40), min_size=1, max_size=7), st.integers(0, 40))
def test_cliques_are_the_maximal_sets_within_the_critical_difference(
    quarters: list[int], cd: int
) -> None:
    ranks = np.array(quarters) / 4
    everyone = range(len(ranks))
    sets = [
        frozenset(s)
        for n in range(2, len(ranks) + 1)
        for s in combinations(everyone, n)
        if np.ptp(ranks[list(s)]) < cd / 4
    ]
    found = cliques(ranks, cd / 4)
    assert {frozenset(group) for group in found} == {
        s for s in sets if not any(s < other for other in sets)
    }
    assert len(found) == len({frozenset(group) for group in found})
    for group in found:
        assert (np.diff(ranks[group]) >= 0).all()
    assert sorted(found, key=lambda group: ranks[group[0]]) == found


def test_nothing_draws_from_the_global_generators() -> None:
    def state() -> tuple[Any, ...]:
        numpy = np.random.get_state()  # noqa: NPY002
        return random.getstate(), numpy[1].tolist(), numpy[2], torch.get_rng_state().tolist()  # type: ignore[index]

    before = state()
    interval(SMALL)
    compare_all({"a": SMALL, "b": SMALL**2})
    average_ranks(DEMSAR)
    assert state() == before


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.ones(5), r"values: expected \[seeds, graphs\], a row .* got float64 \[5\]$"),
        ([["a", "b"]] * 3, r"got <U1 \[3, 2\] with other values"),
        ([[0.1, np.inf]] * 3, r"got float64 \[3, 2\] with other values"),
        (np.full((3, 4), NAN), "values of 0 trainings and 0 graphs; expected at least 3 and 2"),
        (np.ones((2, 9)), "2 trainings and 9 graphs; .* because a deviation .* train with more"),
        ([[0.1, 0.2], [0.3, 0.4], [NAN, NAN]], "values of 2 trainings and 2 graphs"),
        ([[0.1, NAN]] * 3, "values of 3 trainings and 1 graphs"),
    ],
)
def test_values_without_an_interval_are_refused(values: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        interval(values)


def test_pairs_that_cannot_be_compared_are_refused_by_name() -> None:
    with pytest.raises(InputError, match=r"first and second: .* got \[3, 3\] and \[3, 2\]"):
        paired_test(SMALL, SMALL[:, :2])
    apart = np.full((2, 3, 8), NAN)
    apart[0, :, :4], apart[1, :, 4:] = 0.5, 0.5
    with pytest.raises(InputError, match="'x' and 'y', where both .* 0 trainings and 0 graphs"):
        compare_all({"x": apart[0], "y": apart[1]})
    with pytest.raises(InputError, match="'y': expected \\[seeds, graphs\\]"):
        compare_all({"x": SMALL, "y": [0.1]})
    with pytest.raises(InputError, match="two explainers or more, got 1"):
        compare_all({"x": SMALL})


@pytest.mark.parametrize("arguments", [{"level": 1.0}, {"level": 95}, {"draws": 0}, {"seed": -1}])
def test_options_out_of_range_are_refused(arguments: dict[str, Any]) -> None:
    (name,) = arguments
    with pytest.raises(InputError, match=f"^{name}: expected"):
        interval(SMALL, **arguments)


@pytest.mark.parametrize("p_values", [[0.1, 1.2], [0.1, NAN], [-0.1], [[0.1]], 0.1])
def test_what_is_no_p_value_is_refused(p_values: Any) -> None:
    with pytest.raises(InputError, match="p_values: expected numbers"):
        holm(p_values)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (np.ones(4), r"got \[4\], 0 not finite"),
        (np.ones((2, 4)), r"at least 3 datasets and 2 explainers, all finite, got \[2, 4\]"),
        (np.ones((4, 1)), r"got \[4, 1\]"),
        ([[0.1, 0.2], [0.3, NAN], [0.1, 0.2]], r"got \[3, 2\], 1 not finite; leave out"),
    ],
)
def test_scores_without_ranks_are_refused(scores: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        average_ranks(scores)


def test_the_examples_in_the_documentation_are_right() -> None:
    result = doctest.testmod(statistics)
    assert result.attempted > 1
    assert result.failed == 0
