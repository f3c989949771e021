"""What training makes small: how wrong the logits are, and what an explanation costs."""

from typing import Any

import torch
from torch import Tensor, nn

from graphxai_data.errors import InputError
from graphxai_data.nn import GSAT
from graphxai_data.nn.bcos import contributions
from graphxai_data.nn.bcos_gin import BcosGIN, BcosGINE


def training_loss(model: nn.Module, batch: Any, loss: str, evidence_cost: float = 0.0) -> Tensor:
    """The objective, and beside it what the settings set a price on.

    Of GSAT that is the information in its attention, of a B-cos model the evidence it finds.
    """
    if isinstance(model, GSAT):
        found = model.attend(
            batch.x, batch.edge_index, batch.edge_attr, batch.batch, batch_size=batch.num_graphs
        )
        return objective(found.logits, batch.y, loss) + model.information_loss(found.scores)
    if evidence_cost and isinstance(model, BcosGIN):
        logits, total = evidence(model, batch)
        return objective(logits, batch.y, loss) + evidence_cost * total
    return objective(logits_of(model, batch), batch.y, loss)


def objective(logits: Tensor, label: Tensor, loss: str) -> Tensor:
    """Cross-entropy over the classes, or binary cross-entropy of every class by itself."""
    if loss == "ce":
        return nn.functional.cross_entropy(logits, label)
    wanted = nn.functional.one_hot(label, logits.shape[1]).to(logits.dtype)
    return nn.functional.binary_cross_entropy_with_logits(logits, wanted)


def evidence(model: BcosGIN, batch: Any) -> tuple[Tensor, Tensor]:
    """Logits of a batch, and how much evidence a graph holds on average: Σ_i |s_i|.

    The objective sees sums of contributions s_i only. Evidence that every graph holds, and that is
    taken back elsewhere in it, changes no sum: what empty superpixels say for a class and ink
    against it, for one. Σ_i |s_i| is the least when there is nothing of the kind.

    Of each graph it is the logit of its label or, as often, of a class at random: that a class is
    not there should take little evidence, too.
    """
    leaves = {"x": batch.x.detach().requires_grad_()}
    if isinstance(model, BcosGINE) and model.additive:  # edges hold evidence, too
        leaves["edge_attr"] = batch.edge_attr.detach().requires_grad_()
    logits = logits_of(model, batch, **leaves)
    at_random = torch.randint_like(batch.y, logits.shape[1])
    chosen = torch.where(torch.rand(len(batch.y), device=batch.y.device) < 0.5, batch.y, at_random)
    value = logits.gather(1, chosen.unsqueeze(1))
    parts = contributions(value, list(leaves.values()), model)
    return logits, torch.cat(parts).abs().sum() / len(batch.y)


def logits_of(
    model: nn.Module, batch: Any, x: Tensor | None = None, edge_attr: Tensor | None = None
) -> Tensor:
    """Logits of a batch, its features replaced, where given, by leaves to differentiate by."""
    x = batch.x if x is None else x
    edge_attr = batch.edge_attr if edge_attr is None else edge_attr
    logits: Tensor = model(x, batch.edge_index, edge_attr, batch.batch, batch_size=batch.num_graphs)
    return logits


def check_evidence_cost(model: nn.Module, name: str, evidence_cost: float) -> None:
    """Raise an `InputError` if contributions are penalised of a model that has none."""
    level = getattr(model, "level", "graph")
    if evidence_cost and not (isinstance(model, BcosGIN) and level == "graph"):
        raise InputError(
            f"evidence_cost: expected 0 for '{name}' and classes of {level}s, got "
            f"{evidence_cost:g}; it is for B-cos models that tell graphs apart"
        )
