"""Floors of predictions: what a rule that learns one threshold reaches, and a model has to beat."""

import numpy as np
import numpy.typing as npt

from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.metrics import accuracy, macro_f1, roc_auc, weighted_accuracy
from graphxai_data.training.state import Scores

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

DEGREE_FLOOR = "degree (no model)"


def degree_floor(dataset: GraphXAIDataset) -> dict[str, Scores] | None:
    """Return the scores, by split, of a rule that only looks at the degree of a node.

    The degree is standardised within its graph. Validation nodes decide which class has the higher
    degrees, and the threshold: the one with the best macro F1. Test nodes are used once.

    Returns:
        Scores of "valid" and "test", named as those of models. None unless nodes have two classes,
        and those of both splits have both of them.
    """
    if dataset.task != "node" or dataset.num_classes != 2:
        return None
    rows = dataset.get_idx_split()
    scores, labels = {}, {}
    for split in ("valid", "test"):
        scores[split], labels[split] = _standardised_degrees(dataset, rows[split].tolist())
        if len(np.unique(labels[split])) != 2:
            return None
    sign = 1.0 if roc_auc(scores["valid"], labels["valid"]) >= 0.5 else -1.0
    threshold = best_threshold(sign * scores["valid"], labels["valid"])
    floor = {}
    for split, label in labels.items():
        predicted = (sign * scores[split] >= threshold).astype(np.int64)
        floor[split] = {
            "accuracy": accuracy(predicted, label),
            "f1": macro_f1(predicted, label),
            "roc_auc": roc_auc(sign * scores[split], label),
            "weighted_accuracy": weighted_accuracy(predicted, label),
        }
    return floor


def best_threshold(scores: Floats, label: Ints) -> float:
    """Return the score from which on class 1 is predicted, with the best macro F1 of classes 0, 1.

    Of equally good ones, the lowest.

    >>> best_threshold(np.array([0.1, 0.4, 0.3, 0.9]), np.array([0, 0, 1, 1]))
    0.3
    """
    order = np.argsort(scores, kind="stable")
    ordered, positive = scores[order], label[order] == 1
    starts = np.flatnonzero(np.insert(np.diff(ordered) > 0, 0, values=True))
    # With the threshold at ordered[i], the first i nodes are predicted as 0, the others as 1.
    positives_below = np.insert(np.cumsum(positive), 0, 0)[starts]
    hits_0, hits_1 = starts - positives_below, positive.sum() - positives_below
    f1_0 = 2 * hits_0 / (starts + (~positive).sum())
    f1_1 = 2 * hits_1 / (len(ordered) - starts + positive.sum())
    return float(ordered[starts[np.argmax(f1_0 + f1_1)]])


def _standardised_degrees(dataset: GraphXAIDataset, rows: list[int]) -> tuple[Floats, Ints]:
    """Return degree and class [N] of the nodes of some graphs, one graph after the other.

    Where all nodes of a graph have the same degree, it is 0.
    """
    scores, labels = [np.empty(0)], [np.empty(0, np.int64)]
    for row in rows:
        graph = dataset[row]
        degree = np.bincount(graph.edge_index[0].numpy(), minlength=graph.num_nodes)
        deviation = degree.std()
        scores.append((degree - degree.mean()) / (deviation if deviation > 0 else 1.0))
        labels.append(graph.y.numpy())
    return np.concatenate(scores), np.concatenate(labels)
