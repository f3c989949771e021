"""Metrics as pure functions of arrays."""

import numpy as np
import numpy.typing as npt

Labels = npt.NDArray[np.int64]


def accuracy(predicted: Labels, label: Labels) -> float:
    """Share of the labels [g] that were predicted."""
    return float((predicted == label).mean())


def macro_f1(predicted: Labels, label: Labels) -> float:
    """Mean over classes of 2 TP / (2 TP + FP + FN); a class found on neither side is left out."""
    classes = int(max(predicted.max(), label.max())) + 1
    hits = np.bincount(label[predicted == label], minlength=classes)
    occurrences = np.bincount(predicted, minlength=classes) + np.bincount(label, minlength=classes)
    there = occurrences > 0
    return float((2 * hits[there] / occurrences[there]).mean())
