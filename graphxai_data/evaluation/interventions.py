"""Interventions: what a model of a pair goes by, shown by changing one cause and nothing else."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn
from torch_geometric.data import InMemoryDataset

from graphxai_data.building.plan import make_plan, read_sources
from graphxai_data.building.verify import sources_of
from graphxai_data.datasets.in_memory import GraphXAIDataset, assemble
from graphxai_data.errors import InputError
from graphxai_data.evaluation.faithfulness import graph_logits
from graphxai_data.generators.pairs import Cause, PairGenerator
from graphxai_data.graphs.record import Plan
from graphxai_data.recipe import Recipe


@dataclass(frozen=True)
class Interventions:
    """Test graphs of one half of a pair, and the same graphs with one cause changed.

    Attributes:
        graphs: as they are.
        own: with another class of the cause that makes the label.
        other: with another class of the other cause.
    """

    graphs: GraphXAIDataset
    own: InMemoryDataset
    other: InMemoryDataset

    @classmethod
    def of(cls, dataset: GraphXAIDataset, part: GraphXAIDataset) -> "Interventions":
        """Draw the graphs of a part of a dataset again, from recipe and seed, with changes."""
        recipe = dataset.manifest.load_recipe()
        generator, seed = recipe.generator_object, dataset.manifest.seed
        if not isinstance(generator, PairGenerator):
            raise InputError(
                f"'{dataset.name}' is no half of a pair: its generator '{recipe.generator}' has "
                "one cause per graph; interventions are for pairs"
            )
        positions = torch.as_tensor(list(part.indices()))
        plan = _plan_of(dataset, recipe, part._data.graph_id[positions].numpy())
        own: Cause = "b" if recipe.params.cause == "b" else "a"
        other: Cause = "a" if own == "b" else "b"
        changed = {
            cause: _as_dataset(generator.intervene(plan, seed, cause), recipe)
            for cause in (own, other)
        }
        return cls(part, changed[own], changed[other])

    def measure(self, model: nn.Module, batch_size: int = 256) -> dict[str, float]:
        """Return the shares of graphs in which the prediction does what it should.

        `moves`: it changes with the own cause. `stays`: it does not change with the other one.
        `agrees`: both. `follows`: it changes with the own cause to the new label.
        """
        with torch.no_grad():
            before, own, other = (
                graph_logits(model, graphs, batch_size).argmax(dim=1).cpu()
                for graphs in (self.graphs, self.own, self.other)
            )
        moves, stays = own != before, other == before
        follows = own == self.own._data.y
        shares = {"moves": moves, "stays": stays, "agrees": moves & stays, "follows": follows}
        return {name: float(share.double().mean()) for name, share in shares.items()}


def _plan_of(dataset: GraphXAIDataset, recipe: Recipe, ids: Any) -> Plan:
    """Return the plan of these graphs, with what they are made from."""
    manifest = dataset.manifest
    sources, missing = sources_of(dataset.folder, manifest, recipe, {})
    if missing:
        files = ", ".join(record.file for record in manifest.sources.values())
        raise InputError(
            f"'{dataset.name}' was made from {files}, which is no registered source; interventions "
            "draw its graphs again: build it from the source that its recipe names"
        )
    plan = make_plan(recipe, manifest.seed, manifest.graphs, sources)
    plan, _ = read_sources(plan, recipe, sources, manifest.seed)
    raw = None if plan.raw is None else [plan.raw[i] for i in ids.tolist()]
    return replace(
        plan, index=plan.index[ids], label=plan.label[ids], group=plan.group[ids],
        split=plan.split[ids], raw=raw,
    )  # fmt: skip


def _as_dataset(columns: Any, recipe: Recipe) -> InMemoryDataset:
    """Return drawn graphs as a dataset that batches can be cut from."""
    dataset = InMemoryDataset()
    dataset._data, dataset.slices = assemble([columns], recipe.schema, None)
    return dataset
