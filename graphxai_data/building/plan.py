"""Plan: class, group and split of every graph, decided before any graph is drawn."""

from dataclasses import replace
from typing import Any

import numpy as np

from graphxai_data.errors import CheckFailedError, InputError, shown
from graphxai_data.files.plugins import blamed
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

    The seed decides the splits; `sources` are needed only if the generator `plans_from_sources`.
    """
    generator, fractions = recipe.generator_object, recipe.splits.fractions
    draws = rng_for(seed, f"{recipe.splits.like or recipe.name}/splits")
    try:
        with blamed(recipe.plugin):
            if generator.plans_from_sources:
                label, group, split = generator.plan_from_sources(
                    fractions, graphs, sources or {}, draws
                )
            else:
                label, group = generator.plan(graphs)
                strata = _usable_strata(recipe, graphs)
                split = assign_splits(label if strata is None else strata, group, fractions, draws)
            arrays: list[Any] = [np.asarray(values) for values in (label, group, split)]
            plan = Plan(np.arange(graphs, dtype=np.int64), *arrays)
            _check_plan(plan, recipe)
        return plan
    except MemoryError:
        raise InputError(
            f"graphs: the plan of {graphs} graphs does not fit into memory; "
            "build fewer, or several seeds"
        ) from None


def _usable_strata(recipe: Recipe, graphs: int) -> Ints | None:
    """Return the generator's strata; None if they need exact shares that splits cannot have."""
    strata = recipe.generator_object.strata(graphs)
    if strata is None or not recipe.generator_object.needs_exact_strata:
        return strata
    shares = np.outer(np.bincount(strata), recipe.splits.fractions)
    return strata if np.allclose(shares, shares.round(), rtol=0, atol=1e-9) else None


def _check_plan(plan: Plan, recipe: Recipe) -> None:
    """Raise a `CheckFailedError` unless a plan has a whole number from 0 for every graph."""
    for name in ("label", "group", "split"):
        values = getattr(plan, name)
        if values.shape != plan.index.shape or values.dtype.kind not in "iu":
            raise CheckFailedError(
                f"plan: {name} is {values.dtype} {list(values.shape)}, expected a whole number for "
                f"each of {len(plan.index)} graphs"
            )
    classes = recipe.schema.num_classes
    if not 0 <= plan.label.min() <= plan.label.max() < classes:
        got = f"{plan.label.min()} to {plan.label.max()}"
        raise CheckFailedError(f"plan: classes {got}, expected 0 to {classes - 1}")
    if plan.group.min() < 0:
        raise CheckFailedError(f"plan: group {plan.group.min()}, expected whole numbers from 0")


def read_sources(
    plan: Plan, recipe: Recipe, sources: dict[str, Source], seed: int
) -> tuple[Plan, dict[str, dict[str, int]]]:
    """Return the plan with the raw input of each graph, and rejected entries per source."""
    if not sources:
        return plan, {}
    with blamed(recipe.plugin):
        result = recipe.generator_object.read(sources, plan.group, seed)
        if not isinstance(result, tuple) or len(result) != 2:
            raise CheckFailedError("read: expected (items, rejected), got something else")
        raw, rejected = result
        if len(raw) != len(plan.index):
            raise CheckFailedError(f"read: {len(raw)} items for {len(plan.index)} graphs")
        try:
            counts = {
                name: {str(reason): int(count) for reason, count in rejected[name].items()}
                for name in sources
            }
        except (TypeError, KeyError, AttributeError, ValueError):
            form = {name: {"reason": 0} for name in sources}
            raise CheckFailedError(
                f"read: rejected: expected counts by source and reason, such as {form}, "
                f"got {shown(rejected)}"
            ) from None
    return replace(plan, raw=raw), counts
