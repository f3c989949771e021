"""Ensembles: several models of one architecture as one model, with the mean of their logits.

An ensemble of B-cos models is dynamically linear, as its members are: its contribution map is the
mean of theirs, and adds up to its logit. Trainings with the same accuracy may have different maps;
what is special to one training counts less in their mean.
"""

from collections.abc import Sequence
from dataclasses import fields
from typing import cast

import torch
from torch import Tensor, nn

from graphxai_data.errors import InputError
from graphxai_data.nn.config import NetworkConfig
from graphxai_data.nn.gin import GraphModel
from graphxai_data.nn.sums import Edges


class Ensemble(nn.Module):
    """The mean of the logits of several models that differ in their weights only.

    Args:
        members: at least two models of the same class and options.
    """

    def __init__(self, members: Sequence[GraphModel]) -> None:
        super().__init__()
        if len(members) < 2:
            raise InputError(
                f"ensemble: expected at least two members, got {len(members)}; use a single model "
                "as it is"
            )
        for place, member in enumerate(members):
            _check_alike(members[0], member, place)
        self.members = nn.ModuleList(members)
        self.train(mode=any(member.training for member in members))

    @property
    def first(self) -> GraphModel:
        """The first member: what it is, all members are, except for their weights."""
        return cast(GraphModel, self.members[0])

    @property
    def config(self) -> NetworkConfig:
        """The options of every member."""
        return self.first.config

    @property
    def level(self) -> str:
        """Whether there is a row of logits per "graph" or per "node"."""
        return self.first.level

    @property
    def logit_bias(self) -> float:
        """The constant in every logit: that of each member."""
        return float(getattr(self.first, "logit_bias", 0.0))

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
        *,
        edge_weight: Tensor | None = None,
        batch_size: int | None = None,
    ) -> Tensor:
        """Return the mean of the members' logits; arguments as for each of them."""
        edges = Edges(edge_index, x.shape[0], edge_attr, edge_weight)
        models = [cast(GraphModel, member) for member in self.members]
        return torch.stack([m.logits(x, edges, batch, batch_size) for m in models]).mean(dim=0)


def first_member(model: nn.Module | None) -> nn.Module | None:
    """Return the first member of an ensemble; any other model itself."""
    return model.first if isinstance(model, Ensemble) else model


def _check_alike(first: GraphModel, member: GraphModel, place: int) -> None:
    """Raise an `InputError` unless a member has the class and the options of the first one."""
    if not isinstance(member, GraphModel):
        raise InputError(
            f"ensemble: member {place} is a {type(member).__name__}, expected a model of "
            "graphxai_data.nn"
        )
    if type(member) is not type(first):
        raise InputError(
            f"ensemble: member {place} is a {type(member).__name__}, the first a "
            f"{type(first).__name__}; members may differ in their weights only"
        )
    for field in fields(first.config):
        values = [getattr(model.config, field.name) for model in (first, member)]
        if values[0] != values[1]:
            raise InputError(
                f"ensemble: member {place} has {field.name} {values[1]}, the first {values[0]}; "
                "members may differ in their weights only"
            )
