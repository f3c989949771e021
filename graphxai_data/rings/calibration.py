"""How often the separability test is right: simulated studies whose truth is known."""

from typing import NamedTuple

import numpy as np

from graphxai_data.errors import finite_number, whole_number
from graphxai_data.rings.permutation_tests import ALPHA, PERMUTATIONS, separability
from graphxai_data.seeds import rng_for, uniform


class Rates(NamedTuple):
    """Shares of simulated studies.

    Attributes:
        each: share of all comparisons that found the original separable.
        any: share of the studies in which at least one comparison did. Without a true difference,
            this is the family-wise rate of false positives.
    """

    each: float
    any: float


def separability_rates(
    runs: int,
    shift: float = 0.0,
    comparisons: int = 1,
    alpha: float = ALPHA,
    permutations: int = PERMUTATIONS,
    trials: int = 200,
    seed: int = 0,
) -> Rates:
    """Simulate studies, and return how often `separability` tells the original from its rivals.

    The scores of every mode are normal with deviation 1; those of the original are higher by
    `shift`. A shift of 0 gives the rates of false positives, any other the power.

    Args:
        runs: scores per mode.
        shift: true difference, in deviations of the scores.
        comparisons: number of rivals; p-values are corrected for it.
        alpha: level of the test.
        permutations: random permutations per test.
        trials: number of studies.
        seed: of all random numbers.
    """
    from scipy.special import ndtri

    whole_number("runs", runs, 2, 10_000)
    whole_number("comparisons", comparisons, 1, 1000)
    whole_number("trials", trials, 1, 10**7)
    finite_number("shift", shift)
    names = [f"rival-{i}" for i in range(comparisons)]
    separable = np.zeros((trials, comparisons), bool)
    for trial in range(trials):
        words = rng_for(seed, "rings/calibration", trial).words((comparisons + 1) * runs)
        positive = np.maximum(uniform(words), 2.0**-54)  # 0 would give minus infinity
        scores = ndtri(positive).reshape(comparisons + 1, runs)
        scores[0] += shift
        rows = separability(
            dict(zip(["original", *names], scores.tolist(), strict=True)),
            [("original", name) for name in names],
            alpha,
            permutations,
            seed=trial,
        )
        separable[trial] = [row.separable for row in rows]
    return Rates(float(separable.mean()), float(separable.any(axis=1).mean()))
