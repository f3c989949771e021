"""Rules that look at no model, with their scores: general ones, a dataset's, those of colours."""

import re
from collections.abc import Container, Iterator
from typing import Any, NamedTuple

import numpy as np

from graphxai_data.errors import CheckFailedError, InputError
from graphxai_data.files.plugins import Origin, blamed
from graphxai_data.generators.base import Rule
from graphxai_data.graphs.union import Graphs
from graphxai_data.metrics import Floats, Ints, checked_scores
from graphxai_data.recipe import Recipe
from graphxai_data.rings.colour_rules import ROWS, Training
from graphxai_data.rings.known import KnownGraphs
from graphxai_data.rings.rules import GENERAL, MAX_NODES, OF_DISTANCES, random_scores


class ScoredRule(NamedTuple):
    """A rule with its scores [N], or with the reason why it has none; fields as in `Floor`."""

    name: str
    what: str
    scores: Floats | None
    labels: bool = False
    definition: bool = False
    why: str = ""

    def says_something(self, known: KnownGraphs) -> bool:
        """Return whether its scores differ between nodes of some graph that is ranked."""
        return self.scores is not None and not known.rationales.constant(self.scores).all()


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
    label, target, classes = _classes(known, training, recipe)
    try:
        counted = Training.of(training.graphs, label, classes)
    except InputError as error:
        for row in rows:
            yield ScoredRule(row.name, row.what, None, row.knows_labels, why=str(error))
        return
    for row, scores in counted.scores(graphs, target, rows):
        why = "" if scores is not None else f"a graph has more than {MAX_NODES} nodes"
        yield ScoredRule(row.name, row.what, scores, row.knows_labels, why=why)


def _classes(known: KnownGraphs, training: KnownGraphs, recipe: Recipe) -> tuple[Ints, Ints, int]:
    """Return the classes of training graphs, the class to explain of each graph, and their number.

    For labels that are numbers, class 1 is above the median of training labels. Weights say what
    makes the number higher, or with two classes what speaks for class 1: then that class is the
    one to explain in every graph.
    """
    schema, ones = recipe.schema, np.ones(len(known), np.int64)
    if schema.label == "number":
        return (training.label > np.median(training.label)).astype(np.int64), ones, 2
    own = known.label.astype(np.int64)
    target = ones if schema.has_weights and schema.num_classes == 2 else own
    return training.label.astype(np.int64), target, schema.num_classes


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
