"""Fill the big table: what is missing is trained and measured, here or on workers."""

from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch

from graphxai_data.building import engine as engines
from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.errors import GraphXAIDataError
from graphxai_data.evaluation.benchmark.cell import (
    Place,
    explainers_of,
    identity,
    load_build,
    rounded,
    run_task,
    scored_graphs,
)
from graphxai_data.evaluation.benchmark.plan import Plan, Task
from graphxai_data.evaluation.benchmark.store import Cell, Store, is_same_training
from graphxai_data.evaluation.floors import floor_scores
from graphxai_data.explain.third_party import THIRD_PARTY
from graphxai_data.explain.variants import FLOORS, own_floors
from graphxai_data.nn.zoo import Settings, make_model
from graphxai_data.progress import Progress, no_progress
from graphxai_data.rings.floors import Floors, measure_floors
from graphxai_data.training.checkpoint import Shape


class Wanted(NamedTuple):
    """A task, and for each of its models the explainers that are not measured yet."""

    task: Task
    explainers: dict[str, list[str]]


def fill(
    plan: Plan,
    results: str | Path,
    place: Place,
    *,
    engine: str = "serial",
    jobs: int | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> None:
    """Measure everything that a plan has and the results lack.

    Args:
        plan: what the table has.
        results: folder of the results, which is read and completed after every model.
        place: where builds and trainings are. Workers train in the same place, on their own disk.
        engine: "serial" is this process; "processes", "dask", or the address of a scheduler.
        jobs: worker processes, all cores by default.
        force: measure again what was measured before. Models are kept.
        progress: called with the tasks done, all tasks, and the last one.
    """
    progress, store = progress or no_progress, Store(results)
    engines.check_engine(engine)
    for name in plan.names:
        _add_floors(store, name, plan, place)
    wanted = list(_missing(store, plan, place, force))
    run = partial(run_wanted, plan=plan, place=place)
    parts = "the models that are measured already"
    for done, (task, cells) in enumerate(
        engines.run(run, wanted, engine=engine, jobs=jobs, parts=parts), 1
    ):
        store.add(task.name, cells)
        progress(done, len(wanted), str(task))


def run_wanted(wanted: Wanted, plan: Plan, place: Place) -> tuple[Task, list[Cell]]:
    """Run a task on a worker; an error names the task."""
    try:
        return wanted.task, run_task(wanted.task, plan, place, wanted.explainers)
    except GraphXAIDataError as error:
        raise type(error)(f"{wanted.task}: {error}") from None


def _missing(store: Store, plan: Plan, place: Place, force: bool) -> Iterator[Wanted]:
    """Yield the tasks that lack a cell, or explainers in it."""
    known = {name: store.cells(name) for name in plan.names}
    for task in plan.tasks():
        dataset = load_build(place.root, task.dataset, place.data_seed)
        explainers = {}
        for model in plan.models(task, dataset):
            cell = identity(task, model, dataset)
            old = known[task.name].get((task.dataset, model, task.seed), {})
            rows = {} if force or not is_same_training(old, cell) else old["rows"]
            asked = explainers_of(_empty(model, dataset), dataset, plan)
            if missing := [name for name in asked if not _has(rows, name)]:
                explainers[model] = missing
        if explainers:
            yield Wanted(task, explainers)


def _has(rows: dict[str, Any], name: str) -> bool:
    """Return whether an explainer has its row, or rows: one of others may score edges."""
    return name in rows or (name in THIRD_PARTY and any(r.startswith(f"{name}-") for r in rows))


def _empty(name: str, dataset: GraphXAIDataset) -> torch.nn.Module:
    """Return a model without weights: only its kind is needed."""
    recipe = dataset.manifest.load_recipe()
    settings = Settings.named(name, recipe.generator, "default", None, recipe.schema.label)
    with torch.device("meta"):
        return make_model(name, settings.architecture, **asdict(Shape.of(dataset)))


def _add_floors(store: Store, name: str, plan: Plan, place: Place) -> None:
    """Add the strongest rules that look at no model, scored on the same graphs.

    Those of any build of a pair are scored on all of them: a rule may find one cause only.
    """
    builds = plan.builds(name)
    builds |= {f"both_{half}": f"{name}-both" for half in builds if half}
    datasets = {build: load_build(place.root, build, place.data_seed) for build in builds.values()}
    rules = {rule for dataset in datasets.values() for rule in _strongest(dataset)}
    floors: dict[str, dict[str, Any]] = {}
    ids: dict[str, list[int]] = {}
    bounds: dict[str, float] = {}
    for key, build in builds.items():
        half = key.removeprefix("both_")
        known = scored_graphs(place, build, half, plan.graphs)
        ids[build] = known.truth.graph_id.tolist()
        if half:
            bounds["both" if key.startswith("both_") else "own"] = known.bound
        rows = [*own_floors(datasets[build].manifest.load_recipe()), *FLOORS]
        selected = [row for row in rows if row.name in rules]
        for rule, scores in floor_scores(selected, known.truth.part).items():
            jaccard, auroc = known.measure(scores)
            row = {"jaccard": rounded(jaccard), "auroc": rounded(auroc)}
            floors.setdefault(rule, {})[key] = row
    whole = {rule: values for rule, values in floors.items() if values.keys() == builds.keys()}
    store.add(name, [], floors=whole, graph_id=ids, bounds=bounds)


def _strongest(dataset: GraphXAIDataset) -> list[str]:
    """Return the strongest rules of a build, measured if its `floors.json` is missing."""
    floors = Floors.load(dataset.folder) or measure_floors(dataset.folder, dataset.manifest)
    return floors.strongest
