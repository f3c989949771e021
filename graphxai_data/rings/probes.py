"""Linear probes: how well can a class be read off the vectors of graphs? Cross-validated ridge."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from graphxai_data.columns import Ints
from graphxai_data.seeds import Draws, rng_for, uniform

Floats = npt.NDArray[np.float32]

FOLDS = 5
REPEATS = 2
# Relative to the mean square of a column; nothing is tuned, so no mode can be tuned better.
_RIDGE = 0.03
# Few columns get random units beside them, so that a class that is no linear function of them (an
# exclusive or, a range) is found as well; many columns have such combinations among them.
_FEW, _UNITS = 64, 256


def fold_of_group(label: Ints, group: Ints, draws: Draws, folds: int = FOLDS) -> Ints:
    """[g] fold of each graph: groups together, classes spread evenly."""
    groups, first, member = np.unique(group, return_index=True, return_inverse=True)
    shuffled = draws.permutation(len(groups))
    # Groups in random order, those of one leading class one after the other, dealt out in turn.
    order = shuffled[np.argsort(label[first][shuffled], kind="stable")]
    fold = np.empty(len(groups), np.int64)
    fold[order] = np.arange(len(groups)) % folds
    return fold[member.ravel()]


def scores(
    columns_of_mode: dict[str, Floats], label: Ints, group: Ints, seed: int = 0
) -> dict[str, list[float]]:
    """Balanced accuracy of each mode's probe on each fold, in `REPEATS` ways to cut folds.

    The i-th scores of two modes are of the same fold, and so a pair.
    """
    classes, label = np.unique(label, return_inverse=True)
    prepared = {mode: _prepared(x, seed) for mode, x in columns_of_mode.items()}
    found: dict[str, list[float]] = {mode: [] for mode in columns_of_mode}
    for repeat in range(REPEATS):
        fold = fold_of_group(label, group, rng_for(seed, "rings/folds", repeat))
        for mode, x in prepared.items():
            found[mode] += _cross_validated(x, label, fold, len(classes))
    return found


def _cross_validated(x: Floats, label: Ints, fold: Ints, classes: int) -> list[float]:
    # Each fold's part of the normal equations once; training sets are sums of them.
    targets = np.eye(classes, dtype=np.float32)[label]
    # Classes weigh the same however rare they are.
    weight = (len(label) / (classes * np.bincount(label, minlength=classes)))[label]
    weighted = x * np.sqrt(weight)[:, None].astype(np.float32)
    centred = (targets - 1 / classes) * np.sqrt(weight)[:, None].astype(np.float32)
    parts = [fold == f for f in range(FOLDS)]
    grams = [weighted[p].T @ weighted[p] for p in parts]
    crosses = [weighted[p].T @ centred[p] for p in parts]
    gram_of_all, cross_of_all = np.sum(grams, axis=0), np.sum(crosses, axis=0)
    results = []
    for test in range(FOLDS):
        gram, cross = gram_of_all - grams[test], cross_of_all - crosses[test]
        ridge = _RIDGE * float(np.trace(gram)) / len(gram)
        solution = np.linalg.solve(gram + ridge * np.eye(len(gram), dtype=np.float32), cross)
        results.append(_balanced_accuracy(x[parts[test]] @ solution, label[parts[test]]))
    return results


def _balanced_accuracy(votes: Floats, label: Ints) -> float:
    right = votes.argmax(axis=1) == label
    present = np.unique(label)
    return float(np.mean([right[label == c].mean() for c in present]))


def _prepared(x: Floats, seed: int) -> Floats:
    """Standardised columns with a constant, and random units where there are few."""
    mean, spread = x.mean(axis=0, dtype=np.float64), x.std(axis=0, dtype=np.float64)
    # What differs by rounding only is a constant.
    varies = spread > 1e-6 * (1 + np.abs(mean))
    x = ((x[:, varies] - mean[varies]) / spread[varies]).astype(np.float32)
    blocks: Sequence[Floats] = [x, np.ones((len(x), 1), np.float32)]
    if 0 < x.shape[1] <= _FEW:
        words = rng_for(seed, "rings/units").words((x.shape[1] + 1) * _UNITS)
        weights = (uniform(words) * 2 - 1).reshape(-1, _UNITS).astype(np.float32)
        hidden = x @ (weights[:-1] * np.sqrt(3 / x.shape[1])) + 2 * weights[-1]
        blocks = [*blocks, np.maximum(hidden, 0)]
    return np.concatenate(blocks, axis=1).astype(np.float32)
