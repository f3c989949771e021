"""The outputs that are explained: the logit of a class, its contrast to the others, or a number."""

from typing import Literal

import torch
from torch import Tensor, nn

from graphxai_data.errors import InputError

Row = Literal["logit", "contrast"]
# A class for all graphs, or [g] one per graph; None is the predicted one. A number is output 0.
Target = int | Tensor | None
ROWS: tuple[Row, ...] = ("logit", "contrast")


def explained(logits: Tensor, target: Target, row: Row) -> tuple[Tensor, Tensor]:
    """Return [g] the explained values of logits [g, c], and [g] the classes they are for.

    A value is the logit of the class, or its difference to the mean of the other logits.
    Cross-entropy does not determine a shift common to all logits, and so no single logit, but it
    does determine their contrast. The only output [g, 1] of a model for numbers is its own value,
    that of class 0.
    """
    if row not in ROWS:
        raise InputError(f"row: expected one of {', '.join(ROWS)}, got {row!r}")
    classes = _target_classes(logits, target)
    logit = logits.gather(1, classes.unsqueeze(1)).squeeze(1)
    if row == "logit":
        return logit, classes
    if logits.shape[1] < 2:
        raise InputError(
            "row: 'contrast' is between the logits of classes, and this model has one output; use "
            "'logit'"
        )
    return logit - (logits.sum(dim=1) - logit) / (logits.shape[1] - 1), classes


def _target_classes(logits: Tensor, target: Target) -> Tensor:
    if target is None:
        return logits.argmax(dim=1)
    try:
        classes = torch.as_tensor(target, device=logits.device)
        if classes.is_floating_point() or classes.dtype == torch.bool or classes.ndim > 1:
            raise ValueError
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"target: expected a class, or one per graph, got {target!r}") from None
    if classes.ndim and len(classes) != len(logits):
        raise InputError(
            f"target: expected {len(logits)} classes, one per graph, got {len(classes)}"
        )
    if bool(((classes < 0) | (classes >= logits.shape[1])).any()):
        raise InputError(f"target: expected a class from 0 to {logits.shape[1] - 1}, got {target}")
    return classes.expand(len(logits)).to(torch.int64)


def disclosed_bias(model: nn.Module, row: Row) -> float:
    """Return the constant that the model adds to every logit; a contrast does not contain it."""
    return float(getattr(model, "logit_bias", 0.0)) if row == "logit" else 0.0
