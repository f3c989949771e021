"""Plan: class, group and split of every graph, settled before a graph is drawn."""

from dataclasses import replace

import numpy as np

from graphxai_data.errors import InputError
from graphxai_data.files.raw import Source
from graphxai_data.generators import generator_module
from graphxai_data.graphs.columns import Ints
from graphxai_data.graphs.record import Plan
from graphxai_data.graphs.splits import assign_splits
from graphxai_data.recipe import Recipe
from graphxai_data.seeds import rng_for


def make_plan(
    recipe: Recipe, seed: int, graphs: int, sources: dict[str, Source] | None = None
) -> Plan:
    """Class, group and split of every graph, settled before a graph is drawn.

    Args:
        recipe: of the dataset.
        seed: decides the splits.
        graphs: how many.
        sources: needed where classes come with a source.
    """
    generator, fractions = generator_module(recipe.generator), recipe.splits.fractions
    draws = rng_for(seed, f"{recipe.name}/splits")
    try:
        if plans_from_sources(recipe):
            label, group, split = generator.plan_from_sources(
                recipe.params, fractions, graphs, sources, draws
            )
        else:
            label, group = generator.plan(recipe.params, graphs)
            strata = _whole_strata(recipe, graphs)
            split = assign_splits(label if strata is None else strata, group, fractions, draws)
        return Plan(np.arange(graphs, dtype=np.int64), label, group, split)
    except MemoryError:
        raise InputError(
            f"graphs: the plan of {graphs} graphs does not fit into memory; "
            "build fewer, or several seeds"
        ) from None


def _whole_strata(recipe: Recipe, graphs: int) -> Ints | None:
    """What every split has its share of beside classes, where those shares are whole numbers."""
    generator = generator_module(recipe.generator)
    if not hasattr(generator, "strata"):
        return None
    strata: Ints = generator.strata(recipe.params, graphs)
    shares = np.outer(np.bincount(strata), recipe.splits.fractions)
    return strata if np.allclose(shares, shares.round(), rtol=0, atol=1e-9) else None


def plans_from_sources(recipe: Recipe) -> bool:
    """Whether classes come with a source, so that without it nothing is known of a graph."""
    return hasattr(generator_module(recipe.generator), "plan_from_sources")


def read_sources(
    plan: Plan, recipe: Recipe, sources: dict[str, Source], seed: int
) -> tuple[Plan, dict[str, dict[str, int]]]:
    """The plan with what each graph is made from; for each source, what was rejected and why."""
    if not sources:
        return plan, {}
    generator = generator_module(recipe.generator)
    raw, rejected = generator.read(recipe.params, sources, plan.group, seed)
    return replace(plan, raw=raw), rejected
