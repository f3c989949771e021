"""Training loss and explanation penalty."""

from typing import Any

import torch
from torch import Tensor, nn

from graphxai_data.errors import InputError
from graphxai_data.nn import GSAT
from graphxai_data.nn.bcos import contributions
from graphxai_data.nn.bcos_gin import BcosGIN, BcosGINE
from graphxai_data.nn.ensemble import first_member
from graphxai_data.nn.sums import Edges
from graphxai_data.nn.zoo import LOSSES


def training_loss(model: nn.Module, batch: Any, loss: str, evidence_cost: float = 0.0) -> Tensor:
    """Return the objective of a batch, plus the configured regulariser.

    That is the information in the attention of GSAT, or a sparsity penalty on the contributions of
    a B-cos model.
    """
    if isinstance(model, GSAT):
        edges = Edges(batch.edge_index, len(batch.x), batch.edge_attr)
        logits, _, scores = model.attend(batch.x, edges, batch.batch, batch.num_graphs)
        return objective(logits, batch.y, loss) + model.information_loss(scores)
    if evidence_cost and isinstance(model, BcosGIN):
        logits, penalty = evidence(model, batch)
        return objective(logits, batch.y, loss) + evidence_cost * penalty
    return objective(logits_of(model, batch), batch.y, loss)


def objective(logits: Tensor, label: Tensor, loss: str) -> Tensor:
    """Return the loss of outputs [g, c] for labels [g].

    Cross-entropy over the classes ("ce"), binary cross-entropy per class ("bce"), or, for outputs
    [g, 1] and labels that are numbers, the mean squared ("mse") or absolute ("mae") error.
    """
    if loss == "ce":
        return nn.functional.cross_entropy(logits, label)
    if loss in LOSSES["number"]:
        error = logits.squeeze(1) - label
        return error.square().mean() if loss == "mse" else error.abs().mean()
    target = nn.functional.one_hot(label, logits.shape[1]).to(logits.dtype)
    return nn.functional.binary_cross_entropy_with_logits(logits, target)


def evidence(model: BcosGIN, batch: Any) -> tuple[Tensor, Tensor]:
    """Return the logits of a batch, and the mean evidence Σ_i |s_i| per graph.

    The loss sees only sums of contributions s_i; evidence that cancels within a graph is invisible,
    such as empty superpixels that speak for a class and ink against it. Σ_i |s_i| penalises it.

    The contributions of a graph are those to the logit of its label or, in half of the cases, of a
    random class: little evidence should suffice against a class as well. Where labels are numbers,
    they are those to the only output.
    """
    leaves = {"x": batch.x.detach().requires_grad_()}
    if isinstance(model, BcosGINE) and model.additive:  # edges contribute as well
        leaves["edge_attr"] = batch.edge_attr.detach().requires_grad_()
    logits = logits_of(model, batch, **leaves)
    value = logits
    if not batch.y.is_floating_point():
        random_class = torch.randint_like(batch.y, logits.shape[1])
        use_label = torch.rand(len(batch.y), device=batch.y.device) < 0.5
        target = torch.where(use_label, batch.y, random_class)
        value = logits.gather(1, target.unsqueeze(1))
    parts = contributions(value, list(leaves.values()), model)
    return logits, torch.cat(parts).abs().sum() / len(batch.y)


def logits_of(
    model: nn.Module, batch: Any, x: Tensor | None = None, edge_attr: Tensor | None = None
) -> Tensor:
    """Return the logits of a batch, with its features replaced by leaves where these are given."""
    x = batch.x if x is None else x
    edge_attr = batch.edge_attr if edge_attr is None else edge_attr
    logits: Tensor = model(x, batch.edge_index, edge_attr, batch.batch, batch_size=batch.num_graphs)
    return logits


def check_evidence_cost(model: nn.Module, name: str, evidence_cost: float) -> None:
    """Raise an `InputError` for a sparsity penalty on a model without contributions."""
    level = getattr(model, "level", "graph")
    if evidence_cost and not (isinstance(first_member(model), BcosGIN) and level == "graph"):
        raise InputError(
            f"evidence_cost: expected 0 for '{name}' and labels of {level}s, got "
            f"{evidence_cost:g}; it is for B-cos models and labels of graphs"
        )
