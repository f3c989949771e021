"""Scores of a model's predictions: of classes, or of labels that are numbers."""

import numpy as np
import torch
from torch import Tensor, nn

from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.datasets.loader import BatchLoader
from graphxai_data.metrics import Floats, accuracy, macro_f1, roc_auc, weighted_accuracy
from graphxai_data.nn.zoo import LOSSES
from graphxai_data.training.checkpoint import Card
from graphxai_data.training.loss import logits_of, objective
from graphxai_data.training.state import Scores


def split_loaders(dataset: GraphXAIDataset, card: Card) -> dict[str, BatchLoader]:
    """Return the batches of every split, those of training graphs in an order drawn by the seed."""
    keys = ["x", "edge_index", "y"] + ["edge_attr"] * bool(card.shape.edge_features)
    return {
        split: BatchLoader(
            dataset[rows], card.training.batch_size, split == "train", card.seed, keys=keys
        )
        for split, rows in dataset.get_idx_split().items()
    }


def predictive_scores(
    model: nn.Module, loader: BatchLoader, loss: str, device: torch.device
) -> Scores:
    """Return the scores of a model on the graphs of a loader, or on their nodes.

    These are `loss`, and for classes `accuracy` and macro `f1`; with two classes also `roc_auc`,
    and for node-level models `weighted_accuracy`, with all classes weighted equally. For labels
    that are numbers, the others are those of `number_scores`.
    """
    was_training = model.training
    model.train(mode=False)
    with torch.no_grad():
        pairs = [(logits_of(model, batch.to(device)), batch.y) for batch in loader]
    model.train(mode=was_training)
    logits, label = (torch.cat(parts) for parts in zip(*pairs, strict=True))
    scores = {"loss": objective(logits, label, loss).item()}
    if loss in LOSSES["number"]:
        predicted, true = (t.double().cpu().numpy() for t in (logits.squeeze(1), label))
        return scores | number_scores(predicted, true)
    return scores | _class_scores(logits, label, getattr(model, "level", "graph"))


def _class_scores(logits: Tensor, label: Tensor, level: str) -> Scores:
    predicted, true = logits.argmax(dim=1).cpu().numpy(), label.cpu().numpy()
    scores = {"accuracy": accuracy(predicted, true), "f1": macro_f1(predicted, true)}
    if logits.shape[1] == 2 and len(np.unique(true)) == 2:
        margin = (logits[:, 1] - logits[:, 0]).double().cpu().numpy()
        scores["roc_auc"] = roc_auc(margin, true)
    if level == "node":
        scores["weighted_accuracy"] = weighted_accuracy(predicted, true)
    return scores


def number_scores(predicted: Floats, label: Floats) -> Scores:
    """Return `mae`, `rmse` and `r2` of predictions [g]; no `r2` where all labels [g] are equal.

    >>> number_scores(np.array([1.0, 2.0, 2.0]), np.array([1.0, 2.0, 5.0]))["mae"]
    1.0
    """
    error = predicted - label
    scores = {"mae": float(np.abs(error).mean()), "rmse": float(np.sqrt(np.square(error).mean()))}
    if np.ptp(label) > 0:
        scores["r2"] = r_squared(predicted, label)
    return scores


def r_squared(predicted: Floats, label: Floats) -> float:
    """Return R² = 1 − Σ (y − ŷ)² / Σ (y − ȳ)², where ȳ is the mean of these labels [g].

    1 is perfect. 0 is what ȳ reaches as the prediction for every graph, and no other constant is as
    good: the mean of the training labels has 0 or slightly less.

    >>> r_squared(np.array([2.0, 2.0]), np.array([1.0, 3.0]))
    0.0
    >>> r_squared(np.array([1.0, 2.0]), np.array([1.0, 3.0]))
    0.5
    """
    unexplained = np.square(label - predicted).sum()
    return float(1 - unexplained / np.square(label - label.mean()).sum())
