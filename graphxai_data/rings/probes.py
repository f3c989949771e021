"""Linear probes: cross-validated ridge regression from graph vectors to classes."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from graphxai_data.graphs.columns import Ints
from graphxai_data.metrics import weighted_accuracy
from graphxai_data.rings.embeddings import standardised
from graphxai_data.seeds import Draws, rng_for

Floats = npt.NDArray[np.float32]

FOLDS = 5
REPEATS = 2
# Fixed, not tuned: so no mode can be tuned better than another.
_RIDGE_PER_COLUMN = 0.3


def fold_of_group(label: Ints, group: Ints, draws: Draws, folds: int = FOLDS) -> Ints:
    """Return the fold of each graph [g]: groups stay together, classes are spread evenly."""
    groups, first, member = np.unique(group, return_index=True, return_inverse=True)
    shuffled = draws.permutation(len(groups))
    # Groups in random order within each class (that of their first graph), assigned in turn.
    order = shuffled[np.argsort(label[first][shuffled], kind="stable")]
    fold = np.empty(len(groups), np.int64)
    fold[order] = np.arange(len(groups)) % folds
    return fold[member.ravel()]


def scores(vectors: Floats, labels: Ints, group: Ints, seed: int = 0) -> npt.NDArray[np.float64]:
    """Return the balanced accuracy of a probe on each fold of `REPEATS` partitions [k, runs].

    Args:
        vectors: [g, …] one vector per graph.
        labels: [k, g] classes of the graphs, k times; the first row decides the folds.
        group: [g] graphs of one group are in one fold.
        seed: seed of the folds; the i-th scores of two modes belong to the same fold.
    """
    classes, y = np.unique(labels, return_inverse=True)
    y = y.reshape(labels.shape)
    x = np.concatenate([standardised(vectors), np.ones((len(vectors), 1), np.float32)], axis=1)
    targets = np.eye(len(classes), dtype=np.float32)[y]
    shares = targets[0].mean(axis=0)
    runs = []
    for repeat in range(REPEATS):
        fold = fold_of_group(y[0], group, rng_for(seed, "rings/folds", repeat))
        for votes, part in _held_out_votes(x, targets - shares, fold):
            # Votes are probabilities of classes; divided by the share of the class, rare classes
            # count as much as frequent ones.
            predicted = (votes / shares).argmax(axis=2)
            runs.append(list(map(weighted_accuracy, predicted, y[:, part])))
    return np.array(runs).T


def _held_out_votes(x: Floats, targets: Floats, fold: Ints) -> Iterator[tuple[Floats, Any]]:
    """Yield, for each fold, the output of a ridge regression on the others [k, part, classes]."""
    ways, graphs, classes = targets.shape
    columns = targets.transpose(1, 0, 2).reshape(graphs, ways * classes)
    parts = [fold == f for f in range(FOLDS)]
    # The normal equations of a training set are the sum of those of its folds.
    grams = [x[p].T @ x[p] for p in parts]
    crosses = [x[p].T @ columns[p] for p in parts]
    for i, part in enumerate(parts):
        gram, cross = np.sum(grams, axis=0) - grams[i], np.sum(crosses, axis=0) - crosses[i]
        ridge = _RIDGE_PER_COLUMN * float(np.trace(gram)) / (graphs - int(part.sum()))
        solution = np.linalg.solve(gram + ridge * np.eye(len(gram), dtype=np.float32), cross)
        yield (x[part] @ solution).reshape(-1, ways, classes).transpose(1, 0, 2), part
