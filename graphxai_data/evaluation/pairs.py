"""Pairs of datasets: the same graphs with two causes, and explainers scored on both.

A pair is the builds `NAME-a` and `NAME-b`, the same graphs with the label of cause A or of cause B,
and optionally `NAME-both`, where labels do not say which cause counts. An explainer is right if it
marks the cause that its model was trained on, whichever that is. docs/pairs.md proves what a rule
that looks at no model can reach.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn

from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.datasets.loader import BatchLoader
from graphxai_data.errors import InputError
from graphxai_data.evaluation.parts import select_split
from graphxai_data.evaluation.score_sources import (
    Explainer,
    built_in,
    check_model,
    resolve,
    scores_of,
)
from graphxai_data.evaluation.truth import Truth
from graphxai_data.explain.variants import Variant
from graphxai_data.generators.pairs import PairGenerator
from graphxai_data.metrics import Bools, Floats, auroc_per_graph, checked_scores, jaccard_per_graph
from graphxai_data.progress import Progress, no_progress
from graphxai_data.recipe import Recipe, find
from graphxai_data.remote import is_built
from graphxai_data.rings.floors import pair_bound
from graphxai_data.training.checkpoint import load_model

HALVES = ("a", "b")
# Arrays in which the halves of a pair are the same.
_SHARED = ("x", "edge_index", "edge_attr", "split", "cause", "cause_y")


@dataclass(frozen=True)
class Pair:
    """Two builds with the same graphs, of which one has the label of A and the other that of B.

    Attributes:
        a: the build whose label is the class of A.
        b: the build whose label is the class of B.
        both: a build in which A and B have the same class, or None.
    """

    a: GraphXAIDataset
    b: GraphXAIDataset
    both: GraphXAIDataset | None = None

    def __post_init__(self) -> None:
        recipes = {}
        for cause in (*HALVES, "both"):
            dataset = getattr(self, cause)
            if dataset is not None or cause in HALVES:
                recipes[cause] = _recipe_of_half(dataset, cause)
                self._check_alike(dataset, recipes[cause], recipes["a"])
        if list(self.a.indices()) != list(self.b.indices()):
            raise InputError(
                f"pair: '{self.a.name}' and '{self.b.name}' are different selections of graphs; "
                "give both whole, or the same part of each"
            )
        for key in (k for k in _SHARED if k in self.a._data):
            if not torch.equal(getattr(self.a._data, key), getattr(self.b._data, key)):
                raise InputError(
                    f"pair: {key} of '{self.a.name}' and '{self.b.name}' differ, though their "
                    "recipes say that only labels and masks do; build both again"
                )

    def _check_alike(self, dataset: GraphXAIDataset, recipe: Recipe, first: Recipe) -> None:
        """Raise an `InputError` unless a build has the seed, size and sources of `a`."""
        mine, theirs = dataset.manifest, self.a.manifest
        sources = [{n: s.sha256 for n, s in m.sources.items()} for m in (mine, theirs)]
        params = [{**r.to_dict()["params"], "cause": ""} for r in (recipe, first)]
        for what, values in {
            "seed": (mine.seed, theirs.seed),
            "number of graphs": (mine.graphs, theirs.graphs),
            "sources": tuple(sources),
            "generator": (recipe.generator, first.generator),
            "params": tuple(params),
        }.items():
            if values[0] != values[1]:
                shown = "" if what in ("sources", "params") else f" ({values[1]} and {values[0]})"
                raise InputError(
                    f"pair: '{self.a.name}' and '{dataset.name}' differ in their {what}{shown}; "
                    "build both from the same seed, size and sources"
                )

    @classmethod
    def load(
        cls,
        root: str | Path,
        name: str,
        seed: int = 0,
        *,
        graphs: int | None = None,
        progress: Progress | None = None,
    ) -> "Pair":
        """Return the pair of a name such as "dihalo-pair"; missing builds are built.

        Arguments as for `GraphXAIDataset`. A recipe file is given as for a dataset, without its
        ending: "mine/pair.toml" stands for "mine/pair-a.toml", "mine/pair-b.toml" and, if it
        exists, "mine/pair-both.toml".
        """
        names = pair_names(name)
        if names is None:
            half_a, half_b = half_names(name)[:2]
            raise InputError(
                f"'{name}' is no pair: it needs recipes '{half_a}' and '{half_b}'; "
                "`graphxai-data list` shows all"
            )
        builds: dict[str, GraphXAIDataset] = {}
        for half, name_of_half in names.items():
            size = graphs
            if builds and not is_built(root, Recipe.load(name_of_half).name, seed):
                size = builds["a"].manifest.graphs  # what is missing is built in the same size
            dataset = GraphXAIDataset(root, name_of_half, seed, graphs=size, progress=progress)
            builds[half] = dataset
        return cls(**builds)

    @property
    def halves(self) -> dict[str, GraphXAIDataset]:
        """The builds a and b."""
        return {"a": self.a, "b": self.b}


def pair_names(name: str) -> dict[str, str] | None:
    """Return the recipes of a pair by half; None if there is no such pair."""
    names = dict(zip((*HALVES, "both"), half_names(name), strict=True))
    known = {half: recipe for half, recipe in names.items() if _exists(recipe)}
    return known if set(HALVES) <= known.keys() else None


def half_names(name: str) -> list[str]:
    """Return the names that the recipes of a pair have to have: a, b and both."""
    stem, ending = (name[:-5], ".toml") if name.endswith(".toml") else (name, "")
    return [f"{stem}-{half}{ending}" for half in (*HALVES, "both")]


def _exists(recipe: str) -> bool:
    try:
        find(recipe)
    except InputError:
        return False
    return True


def _recipe_of_half(dataset: Any, cause: str) -> Recipe:
    """Return the recipe of one half; an `InputError` if it is not that half."""
    if not isinstance(dataset, GraphXAIDataset):
        raise InputError(f"pair: expected GraphXAIDatasets, got {type(dataset).__name__}")
    recipe = dataset.manifest.load_recipe()
    if not isinstance(recipe.generator_object, PairGenerator):
        raise InputError(f"pair: '{dataset.name}' is no half of a pair; it has one cause per graph")
    if recipe.params.cause != cause:
        raise InputError(
            f"pair: expected the build of cause {cause}, got '{dataset.name}', whose cause is "
            f"{recipe.params.cause}; give them in the order a, b, both"
        )
    return recipe


@dataclass(frozen=True)
class PairTruth:
    """The test graphs of one build of a pair with both causes."""

    truth: Truth
    cause: "np.ndarray[Any, np.dtype[np.uint8]]"  # [N] 1 for A, 2 for B

    @classmethod
    def of(cls, dataset: GraphXAIDataset, split: str | None = "test") -> "PairTruth":
        """Return the graphs of a split."""
        part = select_split(dataset, split)
        whole = next(iter(BatchLoader(part, len(part), keys=("x", "edge_index", "cause"))))
        return cls(Truth.of(part), whole.cause.numpy())

    @property
    def bound(self) -> float:
        """What one ranking of the nodes can reach in the mean over A and B."""
        return pair_bound(self.cause, self.truth.node_ptr)

    def measure(self, name: str, nodes: Floats, own: str) -> dict[str, float]:
        """Return Jaccard@k on the own cause and on the other one, and AUROC on the own."""
        ptr = self.truth.node_ptr
        scores = checked_scores(nodes, ptr, f"scores of '{name}'")
        mine, other = self.mask(own), self.mask("b" if own == "a" else "a")
        return {
            "own": float(jaccard_per_graph(scores, mine, ptr).mean()),
            "other": float(jaccard_per_graph(scores, other, ptr).mean()),
            "auroc": float(auroc_per_graph(scores, mine, ptr).mean()),
        }

    def mask(self, half: str) -> Bools:
        """Return the nodes [N] of a cause."""
        return np.asarray(self.cause == 1 + HALVES.index(half))


def evaluate_pair(
    pair: Pair,
    explainers: Mapping[str, Explainer] | Iterable[str],
    models: Sequence[nn.Module | str | Path] | None = None,
    *,
    split: str | None = None,
    batch_size: int = 64,
    force: bool = False,
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Score explainers on both causes; arguments as for `evaluate`, with a model for each half.

    Returns:
        A row per explainer: Jaccard@k on the own cause of model A (`own_a`) and of model B
        (`own_b`), their mean (`jaccard`), on the other cause (`other`), AUROC on the own cause, and
        the `bound` of rules that look at no model. With `pair.both`, the same on its graphs
        (`both_jaccard`, `both_other`, `both_bound`).
    """
    progress = progress or no_progress
    loaded = _models(pair, models, force)
    rows: dict[str, dict[str, float]] = {}
    for half, dataset in pair.halves.items():
        model = loaded[half]
        builds = {"": dataset} | ({"both_": pair.both} if pair.both is not None else {})
        for prefix, build in builds.items():
            known = PairTruth.of(build, split or "test")
            if isinstance(explainers, Mapping):
                named: Mapping[str, Explainer] = explainers
            else:
                named = built_in(explainers, model, known.truth.part)
            for name, explainer in named.items():
                source = resolve(name, explainer, model, build.manifest.load_recipe())
                if isinstance(source, Variant) and source.method == "oracle":
                    source = known.mask(half).astype(float)  # masks of `both` have both causes
                by_row = scores_of(name, source, known.truth, model, batch_size, force, progress)
                for row, scores in by_row.items():
                    values = known.measure(row, scores.nodes, half)
                    cells = {f"{prefix}{key}_{half}": value for key, value in values.items()}
                    rows.setdefault(row, {}).update(cells | {f"{prefix}bound": known.bound})
    frame = pd.DataFrame.from_dict(
        {name: _pair_row(row) for name, row in rows.items()}, orient="index"
    )
    return frame.rename_axis("explainer")


def _pair_row(row: dict[str, float]) -> dict[str, float]:
    """Return the row of a table from the values of both halves."""
    result: dict[str, float] = {f"own_{h}": row[f"own_{h}"] for h in HALVES if f"own_{h}" in row}
    for prefix in ("", "both_"):
        if f"{prefix}bound" not in row:
            continue
        for title, key in (("jaccard", "own"), ("other", "other"), ("auroc", "auroc")):
            values = [row.get(f"{prefix}{key}_{half}", np.nan) for half in HALVES]
            result[f"{prefix}{title}"] = float(np.mean(values))
        result[f"{prefix}bound"] = row[f"{prefix}bound"]
    return result


def _models(
    pair: Pair, models: Sequence[nn.Module | str | Path] | None, force: bool
) -> dict[str, nn.Module | None]:
    """Return the model of each half, loaded if it is given by its name or folder."""
    if models is None:
        return dict.fromkeys(HALVES)
    if len(models) != len(HALVES):
        raise InputError("models: expected two, one trained on each half, as (model_a, model_b)")
    loaded: dict[str, nn.Module | None] = {}
    for (half, dataset), model in zip(pair.halves.items(), models, strict=True):
        ready = load_model(model, dataset, force) if isinstance(model, str | Path) else model
        check_model(ready)
        loaded[half] = ready
    return loaded
