"""One model of the big table: train it, and score its explainers graph by graph."""

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import torch
from torch import nn

from graphxai_data import __version__
from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.datasets.loader import BatchLoader
from graphxai_data.evaluation.benchmark.plan import Plan, Task
from graphxai_data.evaluation.given_scores import function_scores
from graphxai_data.evaluation.interventions import Interventions
from graphxai_data.evaluation.pairs import HALVES
from graphxai_data.evaluation.score_sources import variant_scores
from graphxai_data.evaluation.study import group_by_run
from graphxai_data.evaluation.truth import Scores, Truth
from graphxai_data.explain.models import device_of_model
from graphxai_data.explain.third_party import THIRD_PARTY, third_party_function
from graphxai_data.explain.variants import VARIANTS, kind_of, variants_for
from graphxai_data.metrics import Bools, Floats, auroc_per_graph, jaccard_per_graph
from graphxai_data.nn.zoo import Settings
from graphxai_data.progress import no_progress
from graphxai_data.rings.floors import pair_bound
from graphxai_data.rings.scoring import Rationales
from graphxai_data.seeds import rng_for
from graphxai_data.training.checkpoint import Card, Shape
from graphxai_data.training.train import train

Row = dict[str, Any]


@dataclass(frozen=True)
class Place:
    """Where builds and trainings are, and how models run."""

    root: str
    data_seed: int
    out: str
    threads: int = 1


@dataclass(frozen=True)
class ScoredGraphs:
    """Some test graphs, and the nodes that an explanation of a model has to find in them.

    For a half of a pair these are the nodes of its own cause.
    """

    truth: Truth
    cause: Bools | None = None  # [N]; None if the rationale is the truth
    bound: float = math.nan  # for a pair: what rules can reach that look at no model

    def measure(self, scores: Scores) -> tuple[Floats, Floats]:
        """Return Jaccard@k and AUROC [g] of every graph."""
        nodes = np.asarray(scores.nodes, dtype=np.float64)
        if self.cause is None:
            rationales = self.truth.rationales
            return rationales.jaccard(nodes), rationales.auroc(nodes)
        ptr = self.truth.node_ptr
        return jaccard_per_graph(nodes, self.cause, ptr), auroc_per_graph(nodes, self.cause, ptr)

    @cached_property
    def sufficient(self) -> Rationales | None:
        """The smallest parts that decide the label, where the generator knows them."""
        mask = self.truth.node_mask if self.cause is None else self.cause
        return self.truth.sufficient_in(mask)

    def first(self, count: int) -> "ScoredGraphs":
        """Return the first graphs."""
        part = self.truth.part
        if count >= len(part):
            return self
        truth = Truth.of(part[:count])
        cause = None if self.cause is None else self.cause[: truth.node_ptr[-1]]
        return ScoredGraphs(truth, cause, self.bound)


def run_task(task: Task, plan: Plan, place: Place, wanted: dict[str, list[str]]) -> list[Row]:
    """Train the models of a task, or load them, and return a cell of results for each.

    Args:
        task: what to train.
        plan: how many graphs, and which explainers.
        place: where.
        wanted: for each model, the explainers that are still missing.
    """
    torch.set_num_threads(place.threads)
    dataset = load_build(place.root, task.dataset, place.data_seed)
    cells = []
    for name in plan.models(task, dataset):
        if name not in wanted:
            continue
        model, card = train(dataset, name, "default", task.seed, place.out, device="cpu")
        cell = identity(task, name, dataset) | {
            "weights_sha256": card.weights_sha256,
            "versions": {"graphxai_data": __version__, "torch": torch.__version__},
            "threads": place.threads,
            "accuracy": card.scores["test"]["accuracy"],
            "f1": card.scores["test"]["f1"],
            "rows": dict(_rows(model, card, task, plan, place, wanted[name])),
        }
        if task.half:
            cell["interventions"] = _interventions(place, task.dataset).measure(model)
        cells.append(cell)
    return cells


def identity(task: Task, model: str, dataset: GraphXAIDataset) -> Row:
    """Return what tells the cells of a table apart, and whether one is still valid."""
    recipe = dataset.manifest.load_recipe()
    settings = Settings.named(model, recipe.generator, "default", None, recipe.schema.label)
    text = json.dumps([asdict(settings), asdict(Shape.of(dataset))], sort_keys=True)
    return {
        "dataset": task.dataset,
        "half": task.half,
        "model": model,
        "seed": task.seed,
        "content_sha256": dataset.manifest.content_sha256,
        "settings_sha256": hashlib.sha256(text.encode()).hexdigest(),
    }


def explainers_of(model: nn.Module, dataset: GraphXAIDataset, plan: Plan) -> list[str]:
    """Return the explainers of a model: ours, and those of PyG and Captum for ReLU networks."""
    recipe = dataset.manifest.load_recipe()
    names = [variant.name for variant in variants_for(model, recipe, VARIANTS)]
    if kind_of(model) == "relu":
        names += [name for name in THIRD_PARTY if plan.graphs_for(name)]
    return names


def _rows(
    model: nn.Module, card: Card, task: Task, plan: Plan, place: Place, wanted: list[str]
) -> Iterator[tuple[str, Row]]:
    """Yield the rows of the explainers of a model, by name."""
    graphs = [("", scored_graphs(place, task.dataset, task.half, plan.graphs))]
    if task.half:  # also the build in which labels do not say which cause counts
        both = scored_graphs(place, f"{task.name}-both", task.half, plan.graphs)
        graphs.append(("both_", both))
    variants = [variant for variant in VARIANTS if variant.name in wanted]
    for group in group_by_run(variants):
        rows: dict[str, Row] = {variant.name: {} for variant in group}
        for prefix, known in graphs:
            part = known.first(plan.graphs_for(group[0].name, group[0].method))
            start = time.perf_counter()
            scores = variant_scores(group, model, part.truth.part, seed=card.seed)
            elapsed = time.perf_counter() - start
            for variant in group:
                rows[variant.name] |= _row(prefix, part, scores[variant.name], elapsed)
        yield from rows.items()
    for name in (name for name in THIRD_PARTY if name in wanted):
        yield from _third_party_rows(name, model, card, place, task, graphs, plan)


def _third_party_rows(
    name: str,
    model: nn.Module,
    card: Card,
    place: Place,
    task: Task,
    graphs: list[tuple[str, ScoredGraphs]],
    plan: Plan,
) -> Iterator[tuple[str, Row]]:
    """Yield the rows of an explainer of PyG or Captum; three if it scores edges."""
    dataset = load_build(place.root, task.dataset, place.data_seed)
    training = dataset[dataset.get_idx_split()["train"]]
    start = time.perf_counter()
    function: Callable[[Any], Any] = third_party_function(name, model, training, card.seed)
    preparation = time.perf_counter() - start
    rows: dict[str, Row] = {}
    for prefix, known in graphs:
        part = known.first(plan.graphs_for(name))
        start = time.perf_counter()
        scores = function_scores(name, function, part.truth, device_of_model(model), no_progress)
        elapsed = time.perf_counter() - start
        for row, own in scores.items():
            rows.setdefault(row, {"seconds_before": round(preparation, 2)})
            rows[row] |= _row(prefix, part, own, elapsed)
    yield from rows.items()


def _row(prefix: str, part: ScoredGraphs, scores: Scores, seconds: float) -> Row:
    """Return the values of all graphs; those of `-both` have a prefix and no time."""
    jaccard, auroc = part.measure(scores)
    row: Row = {f"{prefix}jaccard": rounded(jaccard), f"{prefix}auroc": rounded(auroc)}
    if not prefix and part.sufficient is not None:
        values = part.sufficient.jaccard(np.asarray(scores.nodes, dtype=np.float64))
        row["sufficient"] = rounded(values)
    if not prefix:
        row["ms_per_graph"] = round(1000 * seconds / len(jaccard), 3)
    return row


def rounded(values: Floats) -> list[float]:
    """Return the values of all graphs as they are stored: with four digits."""
    return [round(float(value), 4) for value in values]


@lru_cache(maxsize=32)
def load_build(root: str, name: str, seed: int) -> GraphXAIDataset:
    """Return a build, which is built if it is missing."""
    return GraphXAIDataset(root, name, seed)


@lru_cache(maxsize=32)
def scored_graphs(place: Place, name: str, half: str, count: int) -> ScoredGraphs:
    """Return some test graphs of a build: those with something to rank, in an order drawn once."""
    dataset = load_build(place.root, name, place.data_seed)
    test = dataset[dataset.get_idx_split()["test"]]
    ranked = Truth.of(test).rationales.ranked.nonzero()[0]
    order = rng_for(place.data_seed, "benchmark/graphs").permutation(len(ranked))
    part = test[torch.from_numpy(ranked[order[:count]])]
    if not half:
        return ScoredGraphs(Truth.of(part))
    whole = next(iter(BatchLoader(part, len(part), keys=("x", "edge_index", "cause"))))
    truth, cause = Truth.of(part), whole.cause.numpy()
    bound = pair_bound(cause, truth.node_ptr)
    return ScoredGraphs(truth, cause == 1 + HALVES.index(half), bound)


@lru_cache(maxsize=4)
def _interventions(place: Place, name: str) -> Interventions:
    dataset = load_build(place.root, name, place.data_seed)
    return Interventions.of(dataset, dataset[dataset.get_idx_split()["test"]])
