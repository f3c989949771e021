"""Intervals and tests for explainers that are compared over trainings, test graphs and datasets.

The values of an explainer on a dataset are a matrix [s, g]: a metric of g test graphs, the same for
each of s trained models. NaN means: not measured.

Other trainings and other test graphs would both change a mean. The crossed bootstrap therefore
draws trainings and, independently, graphs, with replacement. Their order does not matter.

With few trainings, intervals are too narrow and p-values too small. If only trainings vary, 95 %
intervals hold the true mean in 76 % of cases for three trainings, 83 % for five, 90 % for ten.
"""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2, rankdata, studentized_range

from graphxai_data.errors import InputError, finite_number, nearest, whole_number
from graphxai_data.metrics import Floats, as_array
from graphxai_data.seeds import MAX_SEED, Draws, below, rng_for

TEST_DRAWS = 9_999  # the smallest p-value is 2 / (1 + draws)
_BLOCK = 4_000_000  # weights of graphs that are held in memory at once: 32 MB


class Interval(NamedTuple):
    """The mean of a metric with its bootstrap interval, from `low` to `high`."""

    mean: float
    low: float
    high: float
    deviation: float  # standard deviation, over trainings, of the mean of each training
    seeds: int  # trainings with a value
    graphs: int  # graphs with a value


class Paired(NamedTuple):
    """The mean difference, first minus second, with its bootstrap interval and p-value."""

    difference: float
    low: float
    high: float
    p: float


class PairResult(NamedTuple):
    """A `Paired` test of two explainers; `adjusted` is `p` after Holm's correction."""

    first: str
    second: str
    difference: float
    low: float
    high: float
    p: float
    adjusted: float


class Ranks(NamedTuple):
    """Mean ranks [k] of explainers; those that differ by `critical_difference` or more differ."""

    means: Floats  # 1 is the best
    friedman_p: float  # of "all explainers are alike"; nan for two explainers
    critical_difference: float  # Nemenyi's, at 5 %
    datasets: int


def interval(
    values: npt.ArrayLike, *, level: float = 0.95, draws: int = 2_000, seed: int = 0
) -> Interval:
    """Return the mean of values [s, g] with its percentile interval by the crossed bootstrap."""
    matrix = _measured(_matrix("values", values), "values")
    low, high = _percentiles(_bootstrap([matrix], draws, seed)[0], level)
    deviation = float(np.nanmean(matrix, axis=1).std(ddof=1))
    return Interval(float(np.nanmean(matrix)), low, high, deviation, *matrix.shape)


def paired_test(
    first: npt.ArrayLike, second: npt.ArrayLike, *,
    level: float = 0.95, draws: int = TEST_DRAWS, seed: int = 0,
) -> Paired:  # fmt: skip
    """Compare values [s, g] of two explainers, where both were measured, by the crossed bootstrap.

    The two-sided p-value is twice the share of draws that do not have the sign of the difference,
    as (1 + count) / (1 + draws), and at most 1.
    """
    matrix = _difference(_matrix("first", first), _matrix("second", second), "first and second")
    return _paired(matrix, _bootstrap([matrix], draws, seed)[0], level)


def compare_all(
    values: Mapping[str, npt.ArrayLike], against: str = "", *, level: float = 0.95, seed: int = 0
) -> list[PairResult]:
    """Compare every pair of explainers of one dataset by their values [s, g], given by name.

    With `against`, only the pairs of which it is the first. P-values are corrected by Holm's method
    for the number of pairs; there are enough draws for corrected ones of 1 %.
    """
    matrices = {name: _matrix(f"'{name}'", matrix) for name, matrix in values.items()}
    if len(matrices) < 2:
        raise InputError(f"values: expected two explainers or more, got {len(matrices)}")
    names = list(combinations(matrices, 2))
    if against:
        if against not in matrices:
            raise InputError(f"against: no values of '{against}'; {nearest(against, matrices)}")
        names = [(against, name) for name in matrices if name != against]
    gaps = {(a, b): _difference(matrices[a], matrices[b], f"'{a}' and '{b}'") for a, b in names}
    draws = max(TEST_DRAWS, 200 * len(gaps))
    tests: dict[tuple[str, str], Paired] = {}
    for shape in {matrix.shape for matrix in gaps.values()}:  # these share their draws
        pairs = [pair for pair, matrix in gaps.items() if matrix.shape == shape]
        samples = _bootstrap([gaps[pair] for pair in pairs], draws, seed)
        for pair, sample in zip(pairs, samples, strict=True):
            tests[pair] = _paired(gaps[pair], sample, level)
    adjusted = holm([tests[pair].p for pair in gaps]).tolist()
    return [PairResult(*pair, *tests[pair], p) for pair, p in zip(gaps, adjusted, strict=True)]


def holm(p_values: npt.ArrayLike) -> Floats:
    """Return p-values [m] corrected for their number by Holm's step-down method.

    >>> holm([0.04, 0.01, 0.03]).tolist()
    [0.06, 0.03, 0.06]
    """
    p = as_array(p_values).astype(np.float64)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise InputError(f"p_values: expected numbers [m] from 0 to 1, got {p.tolist()}")
    order = np.argsort(p, kind="stable")
    # The smallest is multiplied by m, the next by m - 1; none becomes smaller than one before it.
    p[order] = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    return np.minimum(p, 1.0)


def average_ranks(scores: npt.ArrayLike) -> Ranks:
    """Rank k explainers on each of d datasets by their scores [d, k] (Demšar, 2006).

    The highest score has rank 1; equal scores share the mean of their ranks.
    """
    table = as_array(scores).astype(np.float64)
    missing = int((~np.isfinite(table)).sum())
    if table.ndim != 2 or table.shape[0] < 3 or table.shape[1] < 2 or missing:
        raise InputError(
            "scores: expected those of at least 3 datasets and 2 explainers, all finite, got "
            f"{list(table.shape)}, {missing} not finite; leave out what was not measured"
        )
    datasets, explainers = table.shape
    ranks = rankdata(-table, axis=1)
    centred = ranks - (explainers + 1) / 2
    variance = (centred**2).sum() / (datasets * (explainers - 1))  # smaller if there are ties
    squares = datasets * (centred.mean(axis=0) ** 2).sum()
    p = chi2.sf(squares / variance, explainers - 1) if variance else 1.0
    quantile = studentized_range.ppf(0.95, explainers, np.inf) / np.sqrt(2)
    least = float(quantile * np.sqrt(explainers * (explainers + 1) / (6 * datasets)))
    return Ranks(ranks.mean(axis=0), float(p) if explainers > 2 else np.nan, least, datasets)


def cliques(mean_ranks: npt.ArrayLike, critical_difference: float) -> list[list[int]]:
    """Return the maximal groups, of two or more, of explainers that do not differ significantly.

    A group has indices into the mean ranks [k]. Groups, and the indices in each, are by rank.

    >>> cliques([1.0, 3.5, 2.0, 2.8], 1.6)
    [[0, 2], [2, 3, 1]]
    """
    means = as_array(mean_ranks).astype(np.float64)
    order = np.argsort(means, kind="stable")
    groups: list[list[int]] = []
    covered = 0
    for start, first in enumerate(order):
        end = int((means - means[first] < critical_difference).sum())
        if end > max(covered, start + 1):
            groups.append(order[start:end].tolist())
            covered = end
    return groups


def _paired(matrix: Floats, sample: Floats, level: float) -> Paired:
    """Return the test of differences [s, g] whose bootstrap has these means [draws]."""
    tiny = 1e-12 * float(np.nanmax(np.abs(matrix)))  # a mean of 0 may be off by rounding
    count = int(min((sample <= tiny).sum(), (sample >= -tiny).sum()))
    p = min(1.0, 2 * (1 + count) / (1 + len(sample)))
    return Paired(float(np.nanmean(matrix)), *_percentiles(sample, level), p)


def _percentiles(sample: Floats, level: float) -> tuple[float, float]:
    finite_number("level", level, 0, 1, excluded=(0, 1))
    low, high = np.quantile(sample, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def _bootstrap(matrices: Sequence[Floats], draws: int, seed: int) -> list[Floats]:
    """Return the means [draws] of each matrix [s, g]; draws that meet no value are left out."""
    whole_number("draws", draws, 1, 10**7)
    whole_number("seed", seed, 0, MAX_SEED)
    streams = rng_for(seed, "statistics/seeds"), rng_for(seed, "statistics/graphs")
    shape = matrices[0].shape  # all have the same one
    # Values, and whether they are finite, one below the other: [2 s, g].
    stacked = [np.vstack([np.nan_to_num(m, nan=0.0), np.isfinite(m)]) for m in matrices]
    parts: list[list[Floats]] = [[] for _ in matrices]
    size = max(1, _BLOCK // max(shape))
    for rows in (min(size, draws - start) for start in range(0, draws, size)):
        seeds, graphs = (_counts(*of, rows) for of in zip(streams, shape, strict=True))
        for part, both in zip(parts, stacked, strict=True):
            totals = (graphs @ both.T).reshape(rows, 2, -1)
            values, finite = np.einsum("dks,ds->kd", totals, seeds)
            part.append(values[finite > 0] / finite[finite > 0])
    return [np.concatenate(part) for part in parts]


def _counts(stream: Draws, items: int, rows: int) -> Floats:
    """Return [rows, items] how often each item is drawn, in as many draws as there are items."""
    drawn = below(stream.words(rows * items), items).reshape(rows, items)
    places = (drawn + items * np.arange(rows)[:, None]).ravel()
    return np.bincount(places, minlength=rows * items).reshape(rows, items).astype(np.float64)


def _matrix(name: str, values: npt.ArrayLike) -> Floats:
    array = as_array(values)
    usable = array.dtype.kind in "fiub" and not np.isinf(array).any()
    if array.ndim != 2 or not usable:
        raise InputError(
            f"{name}: expected [seeds, graphs], a row per training and a column per test graph, of "
            f"finite numbers, or NaN for what was not measured; got {array.dtype} "
            f"{list(array.shape)}{'' if usable else ' with other values'}"
        )
    return array.astype(np.float64)


def _difference(first: Floats, second: Floats, names: str) -> Floats:
    if first.shape != second.shape:
        raise InputError(
            f"{names}: expected the same trainings and graphs, got {list(first.shape)} and "
            f"{list(second.shape)}; give NaN for what was not measured"
        )
    return _measured(first - second, f"{names}, where both were measured")


def _measured(matrix: Floats, name: str) -> Floats:
    """Return a matrix [s, g] without empty rows and columns, in an order that its values give."""
    finite = np.isfinite(matrix)
    kept = matrix[finite.any(axis=1)][:, finite.any(axis=0)]
    if kept.shape[0] < 3 or kept.shape[1] < 2:
        raise InputError(
            f"{name}: values of {kept.shape[0]} trainings and {kept.shape[1]} graphs; expected at "
            "least 3 and 2, because a deviation and an interval over trainings need three; train "
            "with more seeds, such as --seeds 0-4, or measure more graphs"
        )
    by_row = np.sort(np.nan_to_num(kept, nan=np.inf), axis=1).tolist()
    kept = kept[sorted(range(len(kept)), key=by_row.__getitem__)]
    return kept[:, np.lexsort(kept)]
