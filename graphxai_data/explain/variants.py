"""The explainers that a table compares: what each is, and which models it is for.

Where a choice decides the rank of an explainer, every choice is a row of its own: which output is
explained, whether signs count, and how scores of edges become scores of nodes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from torch import nn

from graphxai_data.errors import InputError, nearest
from graphxai_data.explain.base import RULES, Rule
from graphxai_data.nn.bcos import DynamicLinear
from graphxai_data.nn.bcos_gin import BcosGINE
from graphxai_data.nn.gin import DeepSets
from graphxai_data.nn.gsat import GSAT
from graphxai_data.recipe import Recipe

Kind = Literal["bcos", "relu", "gsat", "none"]


@dataclass(frozen=True)
class Variant:
    """A row of a table of explainers.

    Attributes:
        name: of the row.
        method: for `explain`.
        kind: of the models it is for; "none" for what looks at no model.
        options: for `explain`.
        rule: how edge scores become those of nodes, where the method has edge scores.
        what: one line for people.
        paper: the row of the paper's table that it may be; which one it is, the paper leaves open.
        generators: the datasets it makes sense for, by their generator; all if empty.
    """

    name: str
    method: str
    kind: Kind
    what: str
    options: Mapping[str, Any] = field(default_factory=dict)
    rule: Rule | None = None
    paper: str = ""
    generators: tuple[str, ...] = ()

    def options_for(self, recipe: Recipe, seed: int = 0) -> dict[str, Any]:
        """Options for `explain`, with what only the dataset or the run knows."""
        options = dict(self.options)
        if self.method == "halogen-closeness":
            options["atoms"] = recipe.params.atoms
        if self.method in ("random", "gnn-explainer"):
            options["seed"] = seed
        return options


def _by_rule(name: str, kind: Kind, what: str) -> tuple[Variant, ...]:
    return tuple(
        Variant(
            f"{name}-{rule}",
            name,
            kind,
            f"{what}; a node has the {rule} of its edges",
            rule=rule,
            paper=name,
        )
        for rule in RULES
    )


VARIANTS = (
    Variant("bcos", "bcos", "bcos", "contribution map of the predicted logit",
            paper="bcos"),
    Variant(
        "bcos-contrast", "bcos", "bcos",
        "contribution map of the predicted logit minus the mean of the others",
        {"row": "contrast"},
    ),
    Variant(
        "bcos-folded", "bcos", "bcos",
        "contribution map, what edges carry given to the nodes at their ends",
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
        "the same of the predicted logit minus the mean of the others: cross-entropy determines no "
        "single logit",
        {"row": "contrast"}, paper="integrated-gradients",
    ),
    Variant(
        "integrated-gradients-abs", "integrated-gradients", "relu",
        "the first, magnitudes summed", {"absolute": True}, paper="integrated-gradients",
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
        generators=("mnist75sp",),
    ),
    Variant(
        "intensity", "intensity", "none", "grey value: the rationale is a function of it",
        generators=("mnist75sp",),
    ),
    Variant(
        "halogen-closeness", "halogen-closeness", "none",
        "closeness to a halogen, of atoms equally near carbon first", generators=("dihalo",),
    ),
    Variant("oracle", "oracle", "none", "the ground truth itself"),
)  # fmt: skip


def kind_of(model: nn.Module | None) -> Kind:
    """What kind of explainers a model is for."""
    if model is None:
        return "none"
    if isinstance(model, GSAT):
        return "gsat"
    dynamic = any(isinstance(module, DynamicLinear) for module in model.modules())
    return "bcos" if dynamic else "relu"


def variants_for(model: nn.Module | None, recipe: Recipe) -> list[Variant]:
    """All rows that make sense for a model, None for those of no model, and a dataset."""
    found = [
        variant
        for variant in VARIANTS
        if variant.kind == kind_of(model)
        and (not variant.generators or recipe.generator in variant.generators)
    ]
    if not (isinstance(model, BcosGINE) and model.additive):  # edges carry nothing to be folded
        found = [variant for variant in found if not variant.options.get("fold_edges")]
    if isinstance(model, DeepSets):  # it sees no edges to be masked
        found = [variant for variant in found if variant.method != "gnn-explainer"]
    return found


def chosen_variants(names: Iterable[str]) -> list[Variant]:
    """The rows of these names; "all" is all of them, and "gsat" all of that method."""
    chosen: list[Variant] = []
    for name in [names] if isinstance(names, str) else names:
        new = [v for v in VARIANTS if name in ("all", v.name)]
        new = new or [v for v in VARIANTS if v.method == name]
        if not new:
            known = ("all", *(v.name for v in VARIANTS))
            raise InputError(f"unknown explainer '{name}'; {nearest(name, known)}")
        chosen += [variant for variant in new if variant not in chosen]
    return chosen
