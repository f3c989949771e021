"""Performance separability (RINGS): whether the scores of two modes differ by more than chance."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from graphxai_data.errors import InputError, whole_number
from graphxai_data.seeds import Draws, rng_for

Floats = npt.NDArray[np.float64]

PERMUTATIONS = 9_999
ALPHA = 0.05


class Comparison(NamedTuple):
    """Comparison of the scores of two modes.

    Attributes:
        difference: mean score of the first minus that of the second.
        cliffs_delta: share of pairs in which the first is higher, minus the share in which it is
            lower: 1 if all of its scores are higher, 0 if the modes are alike.
        ks: Kolmogorov–Smirnov statistic.
        ks_p: its p-value by permutation, corrected (Bonferroni).
        wilcoxon: signed-rank statistic of paired scores, rank sum of unpaired ones.
        wilcoxon_p: its p-value by permutation, corrected (Bonferroni).
        separable: whether `ks_p` is below the level.
    """

    first: str
    second: str
    difference: float
    cliffs_delta: float
    ks: float
    ks_p: float
    wilcoxon: float
    wilcoxon_p: float
    separable: bool

    @property
    def above(self) -> bool:
        """Whether the first mode is separably better, in the mean and in most pairs of runs."""
        return self.separable and self.difference > 0 and self.cliffs_delta > 0


@dataclass
class Scores:
    """Scores of one model on several modes, recorded one by one."""

    of_mode: dict[str, list[float]] = field(default_factory=dict)

    def record(self, mode: str, score: float) -> None:
        """Add the score of one run; record all modes in the same order of seeds to pair them."""
        if not np.isfinite(score):
            raise InputError(f"mode '{mode}': score {score} is not a finite number")
        self.of_mode.setdefault(mode, []).append(float(score))

    def table(self, alpha: float = ALPHA, seed: int = 0) -> list[Comparison]:
        """Return comparisons of every pair of modes."""
        return separability(self.of_mode, alpha=alpha, seed=seed)


def separability(
    scores: Mapping[str, Sequence[float]],
    pairs: Sequence[tuple[str, str]] | None = None,
    alpha: float = ALPHA,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
) -> list[Comparison]:
    """Compare modes pairwise by permutation tests.

    Args:
        scores: scores of each mode, one per run. If two modes have equally many, the i-th ones are
            taken as a pair (the same seed).
        pairs: the comparisons to make, all by default; p-values are corrected for their number.
        alpha: level below which two modes count as separable.
        permutations: random permutations per test; p = (b + 1) / (permutations + 1), where b of
            them are at least as extreme as the observation.
        seed: seed of the permutations.
    """
    whole_number("permutations", permutations, 1, 10**7)
    pairs = list(combinations(scores, 2)) if pairs is None else pairs
    for mode in {mode for pair in pairs for mode in pair} - set(scores):
        raise InputError(f"no scores of mode '{mode}'; known: {', '.join(scores)}")
    for mode, values in scores.items():
        if len(values) < 2 or not np.isfinite(values).all():
            raise InputError(f"mode '{mode}': expected two finite scores or more, got {values}")
    comparisons = []
    for first, second in pairs:
        a, b = np.asarray(scores[first], float), np.asarray(scores[second], float)
        draws = rng_for(seed, f"rings/separability/{first}/{second}")
        ks, ks_p = _kolmogorov_smirnov(a, b, permutations, draws)
        test = _signed_rank if len(a) == len(b) else _rank_sum
        wilcoxon, wilcoxon_p = test(a, b, permutations, draws)
        corrected = [min(1.0, p * len(pairs)) for p in (ks_p, wilcoxon_p)]
        comparisons.append(
            Comparison(
                first=first,
                second=second,
                difference=float(a.mean() - b.mean()),
                cliffs_delta=float(np.sign(a[:, None] - b[None, :]).mean()),
                ks=ks,
                ks_p=corrected[0],
                wilcoxon=wilcoxon,
                wilcoxon_p=corrected[1],
                separable=corrected[0] < alpha,
            )
        )
    return comparisons


def _kolmogorov_smirnov(
    a: Floats, b: Floats, permutations: int, draws: Draws
) -> tuple[float, float]:
    both = np.concatenate([a, b])
    order = np.argsort(both, kind="stable")
    # With ties, distribution functions are compared after the last of the equal values.
    last = np.append(np.diff(both[order]) > 0, values=True)
    in_first = np.zeros((permutations + 1, len(both)), bool)
    in_first[0, : len(a)] = True
    in_first[1:] = _random_order(permutations, len(both), draws) < len(a)
    in_first = in_first[:, order]
    below_a = np.cumsum(in_first, axis=1)[:, last] / len(a)
    below_b = np.cumsum(~in_first, axis=1)[:, last] / len(b)
    return _observed_and_p(np.abs(below_a - below_b).max(axis=1))


def _signed_rank(a: Floats, b: Floats, permutations: int, draws: Draws) -> tuple[float, float]:
    """Wilcoxon's test for pairs: the sum of ranks of the positive differences.

    Under the null hypothesis, the two scores of a pair may be swapped. Equal pairs do not count.
    """
    differences = (a - b)[a != b]
    if len(differences) == 0:
        return 0.0, 1.0
    ranks = _ranks(np.abs(differences))
    words = draws.words(permutations * len(ranks)).reshape(permutations, -1)
    positive = np.vstack([differences > 0, words % np.uint64(2) == 0])
    statistic = (positive * ranks).sum(axis=1)
    _, p = _observed_and_p(np.abs(statistic - ranks.sum() / 2))
    return float(statistic[0]), p


def _rank_sum(a: Floats, b: Floats, permutations: int, draws: Draws) -> tuple[float, float]:
    """Wilcoxon's test for two samples: the sum of the ranks of the first."""
    ranks = _ranks(np.concatenate([a, b]))
    shuffled = ranks[_random_order(permutations, len(ranks), draws)]
    statistic = np.concatenate([[ranks[: len(a)].sum()], shuffled[:, : len(a)].sum(axis=1)])
    _, p = _observed_and_p(np.abs(statistic - ranks.mean() * len(a)))
    return float(statistic[0]), p


def _random_order(permutations: int, length: int, draws: Draws) -> npt.NDArray[np.int64]:
    words = draws.words(permutations * length).reshape(permutations, length)
    return np.argsort(words, axis=1, kind="stable").astype(np.int64)


def _observed_and_p(statistics: Floats) -> tuple[float, float]:
    """Return the first statistic, and the share of all that are at least as extreme."""
    # Equal statistics may differ by rounding.
    extreme = statistics >= statistics[0] - 1e-12
    return float(statistics[0]), float(extreme.sum() / len(statistics))


def _ranks(values: Floats) -> Floats:
    """Return ranks from 1; equal values share the mean of theirs.

    As `scipy.stats.rankdata`, whose import would take most of the time of a small build.
    """
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(counts) - (counts - 1) / 2)[place]
    return ranks
