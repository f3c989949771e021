"""Floors of explanations: how well rules that look at no model find the rationale of a build.

RINGS asks whether a prediction has a shortcut; floors ask whether an explanation has one. An
explainer that is not above the best floor may have read the data, not the model.
"""

import json
import math
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from threadpoolctl import threadpool_limits

from graphxai_data.errors import DamagedError, InputError
from graphxai_data.files.disk import write_atomically
from graphxai_data.files.toml import parse_table
from graphxai_data.manifest import FLOORS_NAME, Manifest
from graphxai_data.metrics import Floats, Ints, jaccard_per_graph
from graphxai_data.rings.known import KnownGraphs, read_split
from graphxai_data.rings.scored_rules import ScoredRule, scored_rules
from graphxai_data.rings.scoring import mean

_CONSTANT = "the same for all nodes of every graph"
_NOTHING_TO_RANK = "no graph has nodes inside and outside its rationale; build more graphs"

By = Literal["jaccard", "spearman", "pair_mean"]


@dataclass(frozen=True)
class Floor:
    """How well one rule finds the rationale, in the mean over test graphs that have one.

    Attributes:
        jaccard: Jaccard@k; where there are alternatives, against the best of them.
        auroc: strict, as in the paper; `auroc_average` counts ties half.
        what: what the rule does.
        labels: it knows the labels of training graphs, and the class that is explained: that of the
            graph that it scores, or class 1 for weights of two classes. Labels that are numbers
            make two classes, above the median of training labels (class 1) or not.
        definition: it repeats how the dataset defines its rationale.
        pair_mean: for pairs, the mean of Jaccard@k on A and on B; None for rules that know labels
            if these say which cause counts: they rank the graphs of the other half differently.
        jaccard_union: Jaccard@k against the union of alternatives, where there are any.
        auroc_union: strict AUROC against this union.
        spearman: rank correlation with weights, where nodes have weights.
        null_outliers: share of null graphs in which the top score stands out, where there are any.
    """

    jaccard: float
    auroc: float
    auroc_average: float
    what: str = ""
    labels: bool = False
    definition: bool = False
    pair_mean: float | None = None
    jaccard_union: float | None = None
    auroc_union: float | None = None
    spearman: float | None = None
    null_outliers: float | None = None


@dataclass(frozen=True)
class Floors:
    """The content of `floors.json`.

    Attributes:
        rows: the floors by the name of their rule.
        split: whose graphs were scored: "test", or another one where there are no test graphs.
        best: the rule with the highest value of what `by` names, except for the definition itself;
            empty if there are no rows, since no graph of a small build can be ranked.
        best_without_labels: the best of those that know no labels.
        by: what decides which is best: "jaccard"; "spearman" where nodes have weights; "pair_mean"
            where the rationale is both causes of a pair, of which a model goes by one.
        graphs: number of graphs in which the rationale was ranked; `training_graphs` those that
            colours were counted in.
        null_graphs: graphs with a null rationale, which are not ranked.
        unranked_graphs: graphs without positive weights, or with no others.
        bound: for pairs, what no rule that looks neither at model nor labels can exceed in
            `pair_mean`.
        left_out: rules that were not measured, and why.
    """

    rows: dict[str, Floor]
    best: str
    best_without_labels: str
    graphs: int
    training_graphs: int
    split: str = "test"
    by: By = "jaccard"
    bound: float | None = None
    left_out: dict[str, str] = field(default_factory=dict)
    content_sha256: str = ""
    null_graphs: int | None = None
    unranked_graphs: int | None = None

    def value(self, name: str) -> float:
        """Return what a rule is ranked by."""
        return float(getattr(self.rows[name], self.by))

    @property
    def strongest(self) -> list[str]:
        """The best rules with and without labels, random, and the definition, if it is a rule."""
        if not self.rows:
            return []
        knowing = [name for name in self.rows if self.rows[name].labels]
        best = max(knowing, key=self.value, default=self.best)
        names = dict.fromkeys((self.best_without_labels, best, "random"))
        return [*names, *(name for name in self.rows if self.rows[name].definition)]

    def to_json(self) -> str:
        """Return the content of `floors.json`."""
        plain = asdict(self)
        for name, row in plain["rows"].items():
            plain["rows"][name] = {
                key: value for key, value in row.items() if value is not None and value is not False
            }
        return json.dumps({k: v for k, v in plain.items() if v is not None}, indent=2)

    def save(self, folder: Path) -> None:
        """Write `floors.json` into a build folder."""
        write_atomically(folder / FLOORS_NAME, (self.to_json() + "\n").encode())

    @classmethod
    def load(cls, folder: Path) -> "Floors | None":
        """Return the floors of a build; None if it has none."""
        path = folder / FLOORS_NAME
        if not path.is_file():
            return None
        try:
            floors = parse_table(cls, json.loads(path.read_text(encoding="utf-8")), str(path))
            for name in (floors.best, floors.best_without_labels) if floors.rows else ():
                floors.rows[name]
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise DamagedError(
                f"{path}: no floors of explanations ({error}); measure again: `graphxai-data rings`"
            ) from None
        return floors


def measure_floors(folder: Path, manifest: Manifest) -> Floors:
    """Measure all rules on the test graphs of a build, whose manifest need not be on disk yet."""
    require_rationale(manifest)
    recipe = manifest.load_recipe()
    split, test = _ranked_split(folder, manifest)
    training = read_split(folder, manifest, "train")
    rationales = test.rationales
    can_rank = bool(rationales.ranked.any())
    rows: dict[str, Floor] = {}
    left_out: dict[str, str] = {}
    # On a busy machine, BLAS threads that wait for each other take twenty times as long.
    with threadpool_limits(1, "blas"):
        for scored in scored_rules(test, recipe, training):
            if can_rank and scored.scores is not None and scored.says_something(test):
                rows[scored.name] = _measured(scored, scored.scores, test)
            else:
                reason = _CONSTANT if can_rank else _NOTHING_TO_RANK
                left_out[scored.name] = scored.why or reason
    bound: float | None = None
    by: By = "spearman" if any(row.spearman is not None for row in rows.values()) else "jaccard"
    if test.cause is not None:
        bound = pair_bound(test.cause, test.graphs.node_ptr)
        by = "jaccard" if test.labels_tell else "pair_mean"
    unranked = ~rationales.ranked & ~rationales.null
    floors = Floors(
        rows, "", "", int(rationales.ranked.sum()), len(training), split, by, bound, left_out,
        manifest.content_sha256, int(rationales.null.sum()) or None, int(unranked.sum()) or None,
    )  # fmt: skip
    names = [name for name, row in rows.items() if not row.definition]
    blind = [name for name in names if not rows[name].labels]
    best, without = (max(among, key=floors.value, default="") for among in (names, blind))
    return replace(floors, best=best, best_without_labels=without)


def _ranked_split(folder: Path, manifest: Manifest) -> tuple[str, KnownGraphs]:
    """Return the first split with graphs that can be ranked; the first with graphs if none has."""
    read = []
    for split in ("test", "valid", "train"):
        if manifest.statistics["splits"][split]:
            read.append((split, read_split(folder, manifest, split)))
            if read[-1][1].rationales.ranked.any():
                return read[-1]
    return read[0]


def require_rationale(manifest: Manifest) -> None:
    """Raise an `InputError` if a build has no rationale that rules could find."""
    if not manifest.has_rationale:
        raise InputError(
            f"'{manifest.dataset}' has no rationale: there is nothing that a rule could find; "
            "floors are for datasets with a rationale"
        )


def pair_bound(cause: Any, ptr: Ints) -> float:
    """Return the highest mean Jaccard@k over A and B that one ranking of the nodes can have.

    In a graph with a nodes of A and b of B it is max(a, b) / (a + b), which is 1/2 for causes of
    equal size; docs/pairs.md proves it.
    """
    sizes = np.stack([np.add.reduceat(cause == c, ptr[:-1], dtype=np.int64) for c in (1, 2)])
    return float((sizes.max(axis=0) / sizes.sum(axis=0)).mean())


def _measured(scored: ScoredRule, scores: Floats, known: KnownGraphs) -> Floor:
    rationales, ptr = known.rationales, known.graphs.node_ptr
    pair_mean = None
    if known.cause is not None and not (scored.labels and known.labels_tell):
        both = [jaccard_per_graph(scores, known.cause == c, ptr) for c in (1, 2)]
        pair_mean = mean(np.stack(both))
    columns: dict[str, float | None] = {
        **rationales.union_columns(scores),
        "spearman": rationales.spearman(scores),
        "null_outliers": rationales.null_columns(scores).get("null_outliers"),
        "pair_mean": pair_mean,
    }
    return Floor(
        _rounded(mean(rationales.jaccard(scores))),
        _rounded(mean(rationales.auroc(scores))),
        _rounded(mean(rationales.auroc(scores, "average"))),
        scored.what,
        scored.labels,
        scored.definition,
        **{k: _rounded(v) for k, v in columns.items() if v is not None and math.isfinite(v)},
    )


def _rounded(value: float) -> float:
    return round(value, 6)
