"""The explainers that a table compares, and the models that each one is for.

Where a choice decides the rank of an explainer, every choice has its own row: which output is
explained, whether signs count, and how scores of edges become scores of nodes.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from torch import nn

from graphxai_data.errors import CheckFailedError, InputError, nearest
from graphxai_data.explain.edges import RULES, Rule
from graphxai_data.explain.functions import first_line, load_function, takes_model
from graphxai_data.explain.models import takes_edge_masks
from graphxai_data.files.plugins import Group, Origin
from graphxai_data.nn.bcos import DynamicLinear
from graphxai_data.nn.bcos_gin import BcosGINE
from graphxai_data.nn.ensemble import first_member
from graphxai_data.nn.gin import DeepSets
from graphxai_data.nn.gsat import GSAT
from graphxai_data.recipe import Recipe
from graphxai_data.rings.colour_rules import ROWS
from graphxai_data.rings.rules import GENERAL
from graphxai_data.rings.scored_rules import own_rules

# Models that an explainer is for: "any" for plug-ins, "none" if it looks at no model.
Kind = Literal["bcos", "relu", "gsat", "any", "none"]


@dataclass(frozen=True)
class Variant:
    """A row of a table of explainers, with method and options for `explain`."""

    name: str
    method: str
    kind: Kind
    what: str
    options: Mapping[str, Any] = field(default_factory=dict)
    rule: Rule | None = None  # how edge scores become node scores
    paper: str = ""  # the row of the paper's table that it may be; the paper does not say which
    generators: tuple[str, ...] = ()  # of the datasets it makes sense for; all if empty
    origin: Origin | None = None  # of a plug-in; None if it is ours
    is_floor: bool = False  # a rule of `rings.floors`, scored for all graphs at once
    knows_labels: bool = False  # it knows training labels and the explained class

    def options_for(self, recipe: Recipe | None, seed: int = 0) -> dict[str, Any]:
        """Return the options for `explain`, with those that depend on dataset and seed.

        The recipe is None for graphs that are of no build of ours.
        """
        options = dict(self.options)
        if recipe is None and self.generators:
            raise InputError(
                f"explainer '{self.name}' is for builds of {' and '.join(self.generators)} only; "
                "these graphs are of no build: leave it out"
            )
        if self.method in ("random", "gnn-explainer") or self.origin is not None:
            options["seed"] = seed
        return options


def _by_rule(name: str, kind: Kind, what: str) -> list[Variant]:
    what += "; a node has the {} of its edges"
    return [
        Variant(f"{name}-{rule}", name, kind, what.format(rule), rule=rule, paper=name)
        for rule in RULES
    ]


VARIANTS = (
    Variant("bcos", "bcos", "bcos", "contribution map of the predicted logit", paper="bcos"),
    Variant(
        "bcos-contrast", "bcos", "bcos",
        "contribution map of the predicted logit minus the mean of the others",
        {"row": "contrast"},
    ),
    Variant(
        "bcos-folded", "bcos", "bcos",
        "contribution map, each edge's contribution given to its two nodes",
        {"fold_edges": True},
    ),
    Variant(
        "bcos-input-x-gradient", "input-x-gradient", "bcos",
        "input times plain gradient of a B-cos model: not its map, even where sums are the same",
    ),
    Variant(
        "integrated-gradients", "integrated-gradients", "relu",
        "50 steps from zero features, contributions of a node's features summed",
        paper="integrated-gradients",
    ),
    Variant(
        "integrated-gradients-contrast", "integrated-gradients", "relu",
        "the same for the predicted logit minus the mean of the others: cross-entropy determines "
        "no single logit",
        {"row": "contrast"}, paper="integrated-gradients",
    ),
    Variant(
        "integrated-gradients-abs", "integrated-gradients", "relu",
        "the first, with magnitudes summed", {"absolute": True}, paper="integrated-gradients",
    ),
    *_by_rule("gnn-explainer", "relu", "edge mask learned in 200 steps"),
    Variant(
        "gnn-explainer-features", "gnn-explainer", "relu",
        "edge and feature masks learned together in 200 steps; a node has the sum of its features",
        {"node_mask": True, "node_scores": "features"},
    ),
    Variant("saliency", "saliency", "relu", "magnitudes of the gradient summed"),
    Variant("input-x-gradient", "input-x-gradient", "relu", "input times gradient, summed"),
    *_by_rule("gsat", "gsat", "attention of edges"),
    Variant("random", "random", "none", "uniform draws"),
    Variant("degree", "degree", "none", "number of neighbours"),
    # Elsewhere features are one-hot or constant, and all of one length.
    Variant(
        "feature-norm", "feature-norm", "none", "length of a node's features",
        generators=("mnist75sp", "mnist75sp_pair"),
    ),
    Variant("oracle", "oracle", "none", "the ground truth itself"),
)  # fmt: skip


# Rules for all datasets that are not rows above; a dataset's own are those of its generator.
FLOORS = tuple(
    Variant(rule.name, rule.name, "none", rule.what, is_floor=True)
    for rule in GENERAL
    if rule.name not in ("degree", "feature-norm")
) + tuple(
    Variant(row.name, row.name, "none", row.what, is_floor=True, knows_labels=row.knows_labels)
    for row in ROWS
)

# Rules of shipped datasets, and their generators: names that plug-ins cannot take.
RULES_OF_DATASETS: dict[str, tuple[str, ...]] = {
    "intensity": ("mnist75sp", "mnist75sp_pair"),
    "halogen-closeness": ("dihalo", "dihalo_pair"),
    "aryl-halogens": ("dihalo", "dihalo_pair"),
    "like-pair": ("dihalo", "dihalo_pair"),
    "di-halo-ring": ("dihalo", "dihalo_pair"),
    "one-colour-motif": ("ba2motif_balanced",),
    "red-then-blue-motif": ("ba2motif_pair",),
    "lipophilic-elements": ("crippen",),
    "lipophilic-surroundings": ("crippen",),
    "hydrogens-on-carbon": ("crippen",),
    "heteroatoms": ("smarts",),
    "named-heteroatoms": ("smarts",),
    "aromatic-atoms": ("smarts",),
    "substructures": ("smarts",),
    "five-node-block": ("spmotif",),
}
_NAMES = {name for v in (*VARIANTS, *FLOORS) for name in (v.name, v.method)}
_NAMES |= {"all", "floors", *RULES_OF_DATASETS}
# `explain` takes names with "_" as well.
EXPLAINERS = Group(
    "graphxai_data.explainers", "explainer", _NAMES | {n.replace("-", "_") for n in _NAMES}
)


def own_floors(recipe: Recipe | None) -> tuple[Variant, ...]:
    """Return the rows of a dataset's own rules; none for graphs that are of no build."""
    rows = {name for v in VARIANTS for name in (v.name, v.method)}
    for rule in own_rules(recipe):
        if rule.name in rows:
            raise CheckFailedError(
                f"rules: '{rule.name}' is the name of an explainer; rename the rule of "
                f"'{recipe.name if recipe else ''}'"
            )
    return tuple(
        Variant(rule.name, rule.name, "none", rule.what, is_floor=True)
        for rule in own_rules(recipe)
    )


def kind_of(model: nn.Module | None) -> Kind:
    """Return the kind of a model, which decides the explainers that are for it."""
    if model is None:
        return "none"
    if isinstance(first_member(model), GSAT):
        return "gsat"
    dynamic = any(isinstance(module, DynamicLinear) for module in model.modules())
    return "bcos" if dynamic else "relu"


def variants_for(
    model: nn.Module | None, recipe: Recipe | None, among: Iterable[Variant] | None = None
) -> list[Variant]:
    """Return the rows `among` these that make sense for a dataset and a model, or for no model.

    The recipe is None for graphs that are of no build of ours. Without `among`: built-in rows and
    the dataset's own rules.
    """
    among = (*VARIANTS, *own_floors(recipe)) if among is None else among
    kinds = (kind_of(model),) if model is None else (kind_of(model), "any")
    variants = [
        variant
        for variant in among
        if variant.kind in kinds
        and (not variant.generators or (recipe and recipe.generator in variant.generators))
    ]
    if recipe is not None and recipe.schema.label == "number":  # there are no other logits
        variants = [variant for variant in variants if variant.options.get("row") != "contrast"]
    member = first_member(model)
    if not (isinstance(member, BcosGINE) and member.additive):  # edges contribute nothing
        variants = [variant for variant in variants if not variant.options.get("fold_edges")]
    # A model that sees no edges, or that cannot be told to see only some of them.
    if isinstance(member, DeepSets) or (model is not None and not takes_edge_masks(model)):
        variants = [variant for variant in variants if variant.method != "gnn-explainer"]
    return variants


def check_contrast(variant: Variant, recipe: Recipe | None) -> None:
    """Raise an `InputError` for a contrast of classes where labels are numbers."""
    if recipe is None or recipe.schema.label != "number":
        return
    if variant.options.get("row") == "contrast":
        raise InputError(
            f"explainer '{variant.name}': contrasts compare classes, and the labels of "
            f"'{recipe.name}' are numbers; use '{variant.name.removesuffix('-contrast')}'"
        )


class FloorNames(NamedTuple):
    """Rules that rank the nodes of some graphs, and those of them that a table has to show."""

    measured: Collection[str] = ()
    strongest: Collection[str] = ()


def select_variants(
    names: Iterable[str], recipe: Recipe | None = None, floors: FloorNames | None = None
) -> list[Variant]:
    """Return the rows of these names; a method such as "gsat" is all its rows.

    "all" is every row but floors, of which it has the strongest and the dataset's own, if they were
    measured: a rule can be constant in one dataset and not in the next. "floors" is all that were
    measured. Plug-ins are selected by their names only: "all" must not depend on what is installed.
    """
    own, floors = own_floors(recipe), floors or FloorNames()
    known = (*VARIANTS, *own, *FLOORS)
    measured = tuple(v for v in own if v.name in floors.measured)
    groups = {
        "all": (*VARIANTS, *measured, *(v for v in FLOORS if v.name in floors.strongest)),
        "floors": tuple(v for v in known if v.name in floors.measured),
    }
    selected: list[Variant] = []
    for name in [names] if isinstance(names, str) else names:
        new = list(groups.get(name, ()))
        new = new or [v for v in known if v.name == name]
        new = new or [v for v in known if v.method == name]
        if not new and name in EXPLAINERS.names():
            new = [plugin_variant(name)]
        if not new:
            if generators := RULES_OF_DATASETS.get(name):
                raise InputError(
                    f"explainer '{name}' is for builds of {' and '.join(generators)} only; leave "
                    "it out"
                )
            named = ("all", "floors", *(v.name for v in known), *EXPLAINERS.names())
            raise InputError(f"unknown explainer '{name}'; {nearest(name, named)}")
        selected += [variant for variant in new if variant not in selected]
    return selected


def plugin_variant(name: str) -> Variant:
    """Return the row of a plug-in; an `InputError` if it cannot be imported or is no function."""
    expected = "a function fn(batch) or fn(model, batch)"
    function, origin = load_function(EXPLAINERS, name, expected)
    kind: Kind = "any" if takes_model(function, str(origin), "batch") else "none"
    what = first_line(function, f"explainer of {origin.words}")
    return Variant(name, name, kind, what, origin=origin)
