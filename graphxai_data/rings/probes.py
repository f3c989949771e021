"""Linear probes: how well can a class be read off the vectors of graphs? Cross-validated ridge."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from graphxai_data.graphs.columns import Ints
from graphxai_data.rings.embeddings import standardised
from graphxai_data.seeds import Draws, rng_for

Floats = npt.NDArray[np.float32]

FOLDS = 5
REPEATS = 2
# The more columns there are for each graph, the less each may say. Nothing is tuned, so no mode can
# be tuned better.
_RIDGE_PER_COLUMN = 0.3


def fold_of_group(label: Ints, group: Ints, draws: Draws, folds: int = FOLDS) -> Ints:
    """[g] fold of each graph: groups together, classes spread evenly."""
    groups, first, member = np.unique(group, return_index=True, return_inverse=True)
    shuffled = draws.permutation(len(groups))
    # Groups in random order, those of one leading class one after the other, dealt out in turn.
    order = shuffled[np.argsort(label[first][shuffled], kind="stable")]
    fold = np.empty(len(groups), np.int64)
    fold[order] = np.arange(len(groups)) % folds
    return fold[member.ravel()]


def scores(vectors: Floats, labels: Ints, group: Ints, seed: int = 0) -> npt.NDArray[np.float64]:
    """[k, runs] balanced accuracy of a probe on each fold, in `REPEATS` ways to cut folds.

    Args:
        vectors: [g, …] one for each graph.
        labels: [k, g] classes of the graphs, or k ways to deal them out; folds are those of the
            first.
        group: [g] graphs of one group are in one fold.
        seed: of the folds; the i-th scores of two modes are of the same fold, and so a pair.
    """
    classes, found = np.unique(labels, return_inverse=True)
    found = found.reshape(labels.shape)
    x = np.concatenate([standardised(vectors), np.ones((len(vectors), 1), np.float32)], axis=1)
    targets = np.eye(len(classes), dtype=np.float32)[found]
    shares = targets[0].mean(axis=0)  # dealt out anew, classes are as frequent as before
    runs = []
    for repeat in range(REPEATS):
        fold = fold_of_group(found[0], group, rng_for(seed, "rings/folds", repeat))
        for votes, part in _held_out_votes(x, targets - shares, fold):
            # A linear model of the probability of a class; divided by its share, rare classes
            # count as much as frequent ones.
            guesses = (votes / shares).argmax(axis=2)
            pairs = zip(guesses, found[:, part], strict=True)
            runs.append([balanced_accuracy(guess, label) for guess, label in pairs])
    return np.array(runs).T


def _held_out_votes(x: Floats, targets: Floats, fold: Ints) -> Iterator[tuple[Floats, Any]]:
    """For each fold, what a ridge regression on the others says of it: [k, part, classes]."""
    ways, graphs, classes = targets.shape
    columns = targets.transpose(1, 0, 2).reshape(graphs, ways * classes)
    parts = [fold == f for f in range(FOLDS)]
    # Each fold's part of the normal equations once; training sets are sums of them.
    grams = [x[p].T @ x[p] for p in parts]
    crosses = [x[p].T @ columns[p] for p in parts]
    for i, part in enumerate(parts):
        gram, cross = np.sum(grams, axis=0) - grams[i], np.sum(crosses, axis=0) - crosses[i]
        ridge = _RIDGE_PER_COLUMN * float(np.trace(gram)) / (graphs - int(part.sum()))
        solution = np.linalg.solve(gram + ridge * np.eye(len(gram), dtype=np.float32), cross)
        yield (x[part] @ solution).reshape(-1, ways, classes).transpose(1, 0, 2), part


def balanced_accuracy(guess: Ints, label: Ints) -> float:
    """Share of right guesses, averaged over the classes."""
    right = guess == label
    return float(np.mean([right[label == c].mean() for c in np.unique(label)]))
