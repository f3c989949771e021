import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ks_2samp, wilcoxon

from graphxai_data.errors import InputError
from graphxai_data.rings import Scores, separability

VALUES = st.lists(st.integers(0, 6).map(float), min_size=5, max_size=9)


@settings(max_examples=60, deadline=None)
@given(VALUES, VALUES)
def test_statistics_are_those_of_scipy(a: list[float], b: list[float]) -> None:
    [row] = separability({"a": a, "b": b}, permutations=99)
    assert row.ks == pytest.approx(ks_2samp(a, b, method="asymp").statistic)
    above = np.mean([x > y for x in a for y in b])
    below = np.mean([x < y for x in a for y in b])
    assert row.cliffs_delta == pytest.approx(above - below)
    assert row.difference == pytest.approx(np.mean(a) - np.mean(b))
    if len(a) == len(b) and a != b:
        positive = wilcoxon(a, b, alternative="greater").statistic
        assert row.wilcoxon == pytest.approx(positive)


def test_p_values_come_near_the_exact_ones() -> None:
    rng = np.random.default_rng(5)
    a, b = rng.normal(0, 1, 9), rng.normal(0.9, 1, 9)
    [row] = separability({"a": a, "b": b}, permutations=19_999)
    assert row.ks_p == pytest.approx(ks_2samp(a, b, method="exact").pvalue, abs=0.01)
    assert row.wilcoxon_p == pytest.approx(wilcoxon(a, b, method="exact").pvalue, abs=0.01)


def test_p_is_never_zero_and_is_corrected_for_the_number_of_comparisons() -> None:
    low, high = [0.1, 0.2, 0.3, 0.15, 0.25, 0.12], [0.8, 0.9, 0.7, 0.95, 0.85, 0.75]
    [alone] = separability({"low": low, "high": high}, permutations=99)
    assert alone.ks_p >= 1 / 100
    three = separability({"low": low, "high": high, "other": high}, permutations=9999)
    assert len(three) == 3
    pair = separability({"low": low, "high": high}, permutations=9999)[0]
    assert three[0].ks_p == pytest.approx(3 * pair.ks_p)
    assert three[0].separable
    assert not three[2].separable
    assert three[2].ks_p == three[2].wilcoxon_p == 1


def test_equal_modes_are_rarely_called_separable() -> None:
    rng = np.random.default_rng(0)
    wrong = 0
    for i in range(200):
        a, b = rng.normal(size=(2, 8))
        wrong += separability({"a": a, "b": b}, permutations=199, seed=i)[0].separable
    assert wrong <= 20


def test_unequal_numbers_of_runs_are_compared_by_rank_sum() -> None:
    [row] = separability({"a": [1, 2, 3], "b": [4, 5, 6, 7]}, permutations=999)
    assert row.wilcoxon == 6
    assert row.wilcoxon_p == pytest.approx(2 / 35, abs=0.03)


def test_a_training_loop_records_and_reads_the_table() -> None:
    scores = Scores()
    for seed in range(8):
        scores.record("original", 0.9 + seed / 1000)
        scores.record("empty_graph", 0.5 + seed / 1000)
    [row] = scores.table()
    assert (row.first, row.second, row.separable) == ("original", "empty_graph", True)
    assert row.cliffs_delta == 1
    with pytest.raises(InputError, match="mode 'original': score nan is not a finite number"):
        scores.record("original", float("nan"))


def test_the_same_seed_gives_the_same_table() -> None:
    scores = {"a": [0.1, 0.4, 0.3, 0.2], "b": [0.3, 0.5, 0.4, 0.45]}
    assert separability(scores, seed=3) == separability(scores, seed=3)


def test_too_few_scores_are_refused() -> None:
    with pytest.raises(InputError, match="mode 'a': expected two finite scores or more"):
        separability({"a": [0.5], "b": [0.5, 0.6]})
    with pytest.raises(InputError, match="no scores of mode 'c'; known: a, b"):
        separability({"a": [0.5, 0.6], "b": [0.5, 0.6]}, pairs=[("a", "c")])
    with pytest.raises(InputError, match="permutations"):
        separability({"a": [0.5, 0.6], "b": [0.5, 0.6]}, permutations=0)
