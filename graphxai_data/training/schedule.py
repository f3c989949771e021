"""The learning rate, and the end of a training, as functions of its validation scores so far."""

import math

from graphxai_data.nn.zoo import Training
from graphxai_data.training.state import Epoch

# The share of a cosine schedule in which the rate rises.
_WARM_UP = 0.05


def learning_rate(settings: Training, history: list[Epoch], epochs_done: float) -> float:
    """Return the learning rate of the step that comes after so many epochs."""
    highest, lowest = settings.learning_rate, settings.minimum_rate
    if settings.schedule == "cosine":
        share = epochs_done / settings.epochs
        if share < _WARM_UP:
            return highest * max(share / _WARM_UP, 0.01)
        fall = (1 + math.cos(math.pi * (share - _WARM_UP) / (1 - _WARM_UP))) / 2
        return lowest + (highest - lowest) * fall
    rate, best, waited = highest, math.inf, 0
    for epoch in history:
        cost = _cost(settings, epoch)
        best, waited = (cost, 0) if cost < best else (best, waited + 1)
        if waited > settings.rate_patience:
            rate, waited = max(rate * settings.rate_factor, lowest), 0
    return rate


def best_epoch(settings: Training, history: list[Epoch]) -> int:
    """Return the best epoch on validation, counted from 0; of equal ones, the first."""
    return min(range(len(history)), key=lambda i: _cost(settings, history[i]))


def is_over(settings: Training, history: list[Epoch]) -> bool:
    """Return whether all epochs are done, or validation has not improved for too many of them."""
    if not history or len(history) >= settings.epochs:
        return bool(history)
    return len(history) - 1 - best_epoch(settings, history) >= settings.stop_patience


def _cost(settings: Training, epoch: Epoch) -> float:
    """Return the value that is lowest in the best epoch."""
    return epoch.valid["loss"] if settings.select == "loss" else -epoch.valid["accuracy"]
