"""Plan: class, group and split of every graph, decided before any graph is drawn."""

from dataclasses import replace

import numpy as np

from graphxai_data.errors import InputError
from graphxai_data.files.raw import Source
from graphxai_data.graphs.columns import Ints
from graphxai_data.graphs.record import Plan
from graphxai_data.graphs.splits import assign_splits
from graphxai_data.recipe import Recipe
from graphxai_data.seeds import rng_for


def make_plan(
    recipe: Recipe, seed: int, graphs: int, sources: dict[str, Source] | None = None
) -> Plan:
    """Return class, group and split of every graph.

    The seed decides the splits; `sources` are needed only if `plans_from_sources(recipe)`.
    """
    generator, fractions = recipe.module, recipe.splits.fractions
    draws = rng_for(seed, f"{recipe.name}/splits")
    try:
        if plans_from_sources(recipe):
            label, group, split = generator.plan_from_sources(
                recipe.params, fractions, graphs, sources, draws
            )
        else:
            label, group = generator.plan(recipe.params, graphs)
            strata = _exact_strata(recipe, graphs)
            split = assign_splits(label if strata is None else strata, group, fractions, draws)
        return Plan(np.arange(graphs, dtype=np.int64), label, group, split)
    except MemoryError:
        raise InputError(
            f"graphs: the plan of {graphs} graphs does not fit into memory; "
            "build fewer, or several seeds"
        ) from None


def _exact_strata(recipe: Recipe, graphs: int) -> Ints | None:
    """Return the generator's strata if every split can have its exact share of each, or None."""
    if not hasattr(recipe.module, "strata"):
        return None
    strata: Ints = recipe.module.strata(recipe.params, graphs)
    shares = np.outer(np.bincount(strata), recipe.splits.fractions)
    return strata if np.allclose(shares, shares.round(), rtol=0, atol=1e-9) else None


def plans_from_sources(recipe: Recipe) -> bool:
    """Return whether classes come from a source, so that no plan can be made without it."""
    return hasattr(recipe.module, "plan_from_sources")


def read_sources(
    plan: Plan, recipe: Recipe, sources: dict[str, Source], seed: int
) -> tuple[Plan, dict[str, dict[str, int]]]:
    """Return the plan with the raw input of each graph, and rejected entries per source."""
    if not sources:
        return plan, {}
    raw, rejected = recipe.module.read(recipe.params, sources, plan.group, seed)
    return replace(plan, raw=raw), rejected
