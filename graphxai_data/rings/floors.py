"""Floors of explanations: how well rules that look at no model find the rationale of a build.

RINGS asks whether a prediction has a shortcut; floors ask whether an explanation has one. An
explainer that is not above the best floor may have read the data, not the model.
"""

import json
import re
from collections.abc import Container, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from graphxai_data.errors import CheckFailedError, DamagedError, InputError
from graphxai_data.files.disk import write_atomically
from graphxai_data.files.plugins import Origin, blamed
from graphxai_data.files.toml import parse_table
from graphxai_data.generators.base import Rule
from graphxai_data.graphs.union import Graphs
from graphxai_data.manifest import FLOORS_NAME, Manifest
from graphxai_data.metrics import (
    Floats,
    Ints,
    auroc_per_graph,
    checked_scores,
    constant_graphs,
    jaccard_per_graph,
)
from graphxai_data.recipe import Recipe
from graphxai_data.rings.colour_rules import ROWS, Training
from graphxai_data.rings.known import KnownGraphs, read_split
from graphxai_data.rings.rules import GENERAL, MAX_NODES, OF_DISTANCES, random_scores


@dataclass(frozen=True)
class Floor:
    """How well one rule finds the rationale, in the mean over test graphs.

    Attributes:
        jaccard: Jaccard@k.
        auroc: strict, as in the paper; `auroc_average` counts ties half.
        what: what the rule does.
        labels: it knows the labels of training graphs, and of the graph that it scores.
        definition: it repeats how the dataset defines its rationale.
        pair_mean: for pairs, the mean of Jaccard@k on A and on B; None for rules that know labels
            if these say which cause counts: they rank the graphs of the other half differently.
    """

    jaccard: float
    auroc: float
    auroc_average: float
    what: str = ""
    labels: bool = False
    definition: bool = False
    pair_mean: float | None = None


@dataclass(frozen=True)
class Floors:
    """The content of `floors.json`.

    Attributes:
        rows: the floors by the name of their rule.
        split: whose graphs were scored: "test", or another one where there are no test graphs.
        best: the rule with the highest Jaccard@k that is not the definition itself.
        best_without_labels: the best of those that know no labels.
        by: what decides which is best: "jaccard", or "pair_mean" where the rationale is both causes
            of a pair, of which a model goes by one.
        graphs: number of test graphs; `training_graphs` those that colours were counted in.
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
    by: Literal["jaccard", "pair_mean"] = "jaccard"
    bound: float | None = None
    left_out: dict[str, str] = field(default_factory=dict)
    content_sha256: str = ""

    def value(self, name: str) -> float:
        """Return what a rule is ranked by."""
        return float(getattr(self.rows[name], self.by))

    @property
    def strongest(self) -> list[str]:
        """The best rules with and without labels, random, and the definition, if it is a rule."""
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
            for name in (floors.best, floors.best_without_labels):
                floors.rows[name]
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise DamagedError(
                f"{path}: no floors of explanations ({error}); measure again: `graphxai-data rings`"
            ) from None
        return floors


class ScoredRule(NamedTuple):
    """A rule with its scores [N], or with the reason why it has none; fields as in `Floor`."""

    name: str
    what: str
    scores: Floats | None
    labels: bool = False
    definition: bool = False
    why: str = ""

    def says_something(self, ptr: Ints) -> bool:
        """Return whether there are scores that are not the same for all nodes of every graph."""
        return self.scores is not None and not constant_graphs(self.scores, ptr).all()


def measure_floors(folder: Path, manifest: Manifest) -> Floors:
    """Measure all rules on the test graphs of a build, whose manifest need not be on disk yet."""
    require_rationale(manifest)
    recipe = manifest.load_recipe()
    split = next(s for s in ("test", "valid", "train") if manifest.statistics["splits"][s])
    test = read_split(folder, manifest, split)
    training = read_split(folder, manifest, "train")
    rows: dict[str, Floor] = {}
    left_out: dict[str, str] = {}
    # On a busy machine, BLAS threads that wait for each other take twenty times as long.
    with threadpool_limits(1, "blas"):
        for scored in scored_rules(test, recipe, training):
            if scored.scores is not None and scored.says_something(test.graphs.node_ptr):
                rows[scored.name] = _measured(scored, scored.scores, test)
            else:
                constant = "the same for all nodes of every graph"
                left_out[scored.name] = scored.why or constant
    bound: float | None = None
    by: Literal["jaccard", "pair_mean"] = "jaccard"
    if test.cause is not None:
        bound = pair_bound(test.cause, test.graphs.node_ptr)
        by = "jaccard" if test.labels_tell else "pair_mean"
    floors = Floors(
        rows, "", "", len(test), len(training), split, by, bound, left_out,
        manifest.content_sha256,
    )  # fmt: skip
    names = [name for name, row in rows.items() if not row.definition]
    blind = [name for name in names if not rows[name].labels]
    return replace(
        floors, best=max(names, key=floors.value), best_without_labels=max(blind, key=floors.value)
    )


def require_rationale(manifest: Manifest) -> None:
    """Raise an `InputError` if a build has no rationale that rules could find."""
    if not manifest.has_rationale:
        raise InputError(
            f"'{manifest.dataset}' has no rationale: there is nothing that a rule could find; "
            "floors are for datasets with a rationale"
        )


def scored_rules(
    known: KnownGraphs,
    recipe: Recipe | None,
    training: KnownGraphs | None,
    names: Container[str] | None = None,
) -> Iterator[ScoredRule]:
    """Yield rules with their scores of some graphs: general ones, the dataset's, of colours.

    Without training graphs, rules of colours are left out. `names` are the rules that are needed;
    all if None.
    """
    graphs = _read_only(known.graphs)
    if names is None or "random" in names:
        yield ScoredRule("random", "uniform draws", random_scores(known.ids, graphs.sizes))
    known_scores: dict[str, Floats] = {}
    rules = (*GENERAL, *own_rules(recipe))
    for rule in (rule for rule in rules if names is None or rule.name in names):
        scored = ScoredRule(rule.name, rule.what, None, definition=rule.is_definition)
        if rule.name in OF_DISTANCES and graphs.sizes.max(initial=0) > MAX_NODES:
            yield scored._replace(why=f"a graph has more than {MAX_NODES} nodes")
        else:
            plugin = recipe.plugin if recipe and rule not in GENERAL else None
            if rule in GENERAL and (opposite := rule.name.removeprefix("low-")) in known_scores:
                # A low closeness takes as long as a high one.
                yield scored._replace(scores=-known_scores[opposite])
            else:
                known_scores[rule.name] = _scores_of(rule, graphs, plugin)
                yield scored._replace(scores=known_scores[rule.name])
    rows = tuple(row for row in ROWS if names is None or row.name in names)
    if training is None or recipe is None or not rows:
        return
    try:
        counted = Training.of(training.graphs, training.label, recipe.schema.num_classes)
    except InputError as error:
        for row in rows:
            yield ScoredRule(row.name, row.what, None, row.knows_labels, why=str(error))
        return
    for row, scores in counted.scores(graphs, known.label, rows):
        why = "" if scores is not None else f"a graph has more than {MAX_NODES} nodes"
        yield ScoredRule(row.name, row.what, scores, row.knows_labels, why=why)


def _read_only(graphs: Graphs) -> Graphs:
    """Return the same graphs in arrays that a rule cannot change."""
    arrays = [graphs.x, graphs.edges, graphs.edge_attr, graphs.node_ptr]
    views = [None if array is None else array.view() for array in arrays]
    for view in views:
        if view is not None:
            view.flags.writeable = False
    return Graphs(*views)  # type: ignore[arg-type]


def _scores_of(rule: Rule, graphs: Graphs, plugin: Origin | None) -> Floats:
    with blamed(plugin):
        try:
            return checked_scores(rule.score(graphs), graphs.node_ptr, f"rule '{rule.name}'")
        except InputError as error:  # the error of who wrote the rule
            raise CheckFailedError(str(error)) from error


def own_rules(recipe: Recipe | None) -> tuple[Rule, ...]:
    """Return the rules of a recipe's generator, after checking that their names are free."""
    if recipe is None:
        return ()
    with blamed(recipe.plugin):
        rules: Any = recipe.generator_object.rules()
        if not isinstance(rules, tuple) or not all(isinstance(rule, Rule) for rule in rules):
            raise CheckFailedError("rules: expected a tuple of Rule objects, got something else")
        taken = {rule.name for rule in GENERAL} | {row.name for row in ROWS}
        taken |= {"random", "oracle", "all", "floors"}
        for rule in rules:
            _check_words(rule)
            if rule.name in taken:
                raise CheckFailedError(f"rules: the name '{rule.name}' is taken; choose another")
            taken.add(rule.name)
    own: tuple[Rule, ...] = rules
    return own


def _check_words(rule: Any) -> None:
    """Raise a `CheckFailedError` unless name and description of a rule fit into tables."""
    if not isinstance(rule.name, str) or not re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", rule.name):
        raise CheckFailedError(
            f"rules: expected a name of a-z, 0-9 and '-', such as 'low-degree', got {rule.name!r}"
        )
    if not isinstance(rule.what, str) or not rule.what.isprintable() or "|" in rule.what:
        raise CheckFailedError(
            f"rules: '{rule.name}': expected one line of text as what, got {rule.what!r}"
        )


def pair_bound(cause: Any, ptr: Ints) -> float:
    """Return the highest mean Jaccard@k over A and B that one ranking of the nodes can have.

    In a graph with a nodes of A and b of B it is max(a, b) / (a + b), which is 1/2 for causes of
    equal size; docs/pairs.md proves it.
    """
    sizes = np.stack([np.add.reduceat(cause == c, ptr[:-1], dtype=np.int64) for c in (1, 2)])
    return float((sizes.max(axis=0) / sizes.sum(axis=0)).mean())


def _measured(scored: ScoredRule, scores: Floats, known: KnownGraphs) -> Floor:
    ptr, mask = known.graphs.node_ptr, known.mask
    pair_mean = None
    if known.cause is not None and not (scored.labels and known.labels_tell):
        both = [jaccard_per_graph(scores, known.cause == c, ptr) for c in (1, 2)]
        pair_mean = _mean(np.stack(both))
    return Floor(
        _mean(jaccard_per_graph(scores, mask, ptr)),
        _mean(auroc_per_graph(scores, mask, ptr)),
        _mean(auroc_per_graph(scores, mask, ptr, "average")),
        scored.what,
        scored.labels,
        scored.definition,
        pair_mean,
    )


def _mean(values: Floats) -> float:
    return round(float(values.mean()), 6)
