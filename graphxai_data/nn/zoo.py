"""The models by name, and the configurations in `zoo.toml` that make and train them."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from torch import nn

from graphxai_data.errors import InputError, known_name, nearest
from graphxai_data.files.toml import Between, Checked, parse_table
from graphxai_data.nn.bcos_gin import BcosGIN, BcosGINE
from graphxai_data.nn.ensemble import Ensemble
from graphxai_data.nn.gin import GIN, GINE, DeepSets, GraphModel
from graphxai_data.nn.gsat import GSAT

MODELS: dict[str, type[GraphModel]] = {
    "bcos-gin": BcosGIN,
    "bcos-gine": BcosGINE,
    "gin": GIN,
    "gine": GINE,
    "gsat": GSAT,
    "deepsets": DeepSets,
}
_ENSEMBLE = re.compile(r"(?P<kind>.+)-x(?P<members>[0-9]+)")
MOST_MEMBERS = 100
CONFIGURATIONS = ("default", "paper")
# Losses, by what the label of a graph or node is.
LOSSES: dict[str, tuple[str, ...]] = {"class": ("ce", "bce"), "number": ("mse", "mae")}
# Options that the dataset decides, not a configuration.
_SHAPE = ("in_features", "edge_features", "classes", "level")
Count = Annotated[int, Between(1, 10**8)]


class ModelName(NamedTuple):
    """A model's name in `MODELS`, and how many of it make an ensemble; 1 for a single model."""

    kind: str
    members: int = 1

    @classmethod
    def parse(cls, name: str) -> "ModelName":
        """Return the parts of a name such as "bcos-gine", or "bcos-gine-x5" for five of them."""
        match = _ENSEMBLE.fullmatch(str(name))
        if match is None or match["kind"] not in MODELS:
            known_name("model", name, MODELS)
            return cls(name)
        kind, members = match["kind"], int(match["members"])
        if not 2 <= members <= MOST_MEMBERS:
            single = f"; a single model is '{kind}'" if members < 2 else ""
            raise InputError(
                f"model '{name}': expected 2 to {MOST_MEMBERS} members, got {members}{single}"
            )
        return cls(kind, members)

    def __str__(self) -> str:
        return self.kind if self.members == 1 else f"{self.kind}-x{self.members}"


@dataclass(frozen=True)
class Training(Checked):
    """How a model is trained.

    Attributes:
        loss: "ce" over the classes, or "bce" for each class separately; for labels that are
            numbers "mse", the mean squared error, or "mae", the mean absolute error.
        select: the best epoch has the lowest "loss" or the highest "accuracy" on validation; of
            equal epochs, the first is best. Numbers have no accuracy.
        batch_size: graphs per step.
        epochs: maximum number of epochs.
        learning_rate: of Adam, at the beginning.
        schedule: "plateau": multiply the rate by `rate_factor` whenever validation has not improved
            for more than `rate_patience` epochs (as torch counts), down to `minimum_rate`.
            "cosine": rise to `learning_rate` in the first twentieth of all steps, then fall to
            `minimum_rate` along half a cosine.
        stop_patience: training ends when validation has not improved for so many epochs.
        calibrate: scale initial logits to standard deviation 1, or to the root mean square of the
            labels if these are numbers (B-cos models).
        evidence_cost: weight of the sparsity penalty on the contributions of a B-cos model
            (`training.loss.evidence`).
    """

    loss: Literal["ce", "bce", "mse", "mae"]
    select: Literal["loss", "accuracy"]
    batch_size: Count
    epochs: Count
    learning_rate: float
    schedule: Literal["plateau", "cosine"]
    minimum_rate: Annotated[float, Between(0, excluded=(0,))]
    stop_patience: Count
    rate_factor: Annotated[float, Between(0, 1, excluded=(0, 1))] = 0.5
    rate_patience: Count = 25
    calibrate: bool = False
    evidence_cost: Annotated[float, Between(0)] = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.minimum_rate <= self.learning_rate:
            raise InputError(
                f"learning_rate: expected at least minimum_rate {self.minimum_rate}, "
                f"got {self.learning_rate}"
            )


@dataclass(frozen=True)
class Settings:
    """Everything that defines a training, except data and seed."""

    model: str
    architecture: dict[str, Any]  # arguments of its class, except those that the dataset decides
    training: Training

    @classmethod
    def named(
        cls,
        model: str,
        generator: str,
        configuration: str = "default",
        changes: Mapping[str, Any] | None = None,
        label: str = "class",
    ) -> "Settings":
        """Return a configuration for datasets of a generator, with some values changed.

        `label` is that of the dataset's schema, "class" or "number". The settings of an ensemble
        are those of each member.
        """
        model = ModelName.parse(model).kind
        known_name("configuration", configuration, CONFIGURATIONS)
        tables = _zoo()[configuration]
        model_table, number_table = tables.get(model, {}), tables["number"]
        values = tables["all"] | model_table
        if label == "number":
            values |= number_table | number_table.get(model, {})
        values |= model_table.get(generator, {}) | dict(changes or {})
        values = {key: value for key, value in values.items() if not isinstance(value, dict)}
        training_keys = {field.name for field in fields(Training)}
        known = training_keys | set(architecture_keys(model))
        for key in values:
            # The tables for all models may have options that this one lacks.
            shared = key in tables["all"] or key in number_table
            if key not in known and (not shared or key in (changes or {})):
                raise InputError(f"{model}: unknown setting '{key}'; {nearest(key, known)}")
        # TOML and JSON have no tuples: settings that are read back have to be equal to these.
        architecture = {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in values.items()
            if key in known - training_keys
        }
        table = {key: value for key, value in values.items() if key in training_keys}
        training = parse_table(Training, table, "training")
        _check_label(training, label)
        return cls(model, architecture, training)


def architecture_keys(model: str) -> list[str]:
    """Return the options of a model that a configuration may set."""
    return [field.name for field in fields(MODELS[model].Config) if field.name not in _SHAPE]


def _check_label(training: Training, label: str) -> None:
    """Raise an `InputError` unless labels of this kind can be learned with these settings."""
    kinds = "classes" if label == "class" else "numbers"
    if training.loss not in LOSSES[label]:
        expected = " or ".join(LOSSES[label])
        raise InputError(
            f"loss: expected {expected}, since the labels are {kinds}, got {training.loss}; leave "
            "it out"
        )
    if label == "number" and training.select != "loss":
        raise InputError(
            f"select: expected loss, since the labels are numbers, got {training.select}; leave it "
            "out"
        )


def make_model(
    model: str,
    architecture: Mapping[str, Any],
    in_features: int,
    edge_features: int,
    classes: int,
    level: str = "graph",
    label: str = "class",
) -> nn.Module:
    """Return a new model for a dataset, with its shape and the architecture of `Settings`.

    A model for a `label` that is a "number" has one output. A name such as "gin-x5" is an
    `Ensemble`.
    """
    kind, members = ModelName.parse(model)
    for key in architecture:
        if key not in (known := architecture_keys(kind)):
            raise InputError(f"{model}: unknown setting '{key}'; {nearest(key, known)}")
    if label == "number" and (classes, level) != (1, "graph"):
        raise InputError(
            f"classes: expected 1 per graph, since the label is a number, got {classes} per {level}"
        )
    shape: dict[str, Any] = {"in_features": in_features, "classes": classes, "level": level}
    if kind in ("gine", "bcos-gine", "gsat"):
        shape["edge_features"] = edge_features
    if kind in ("gine", "bcos-gine") and not edge_features:
        without = str(ModelName(kind.removesuffix("e"), members))
        raise InputError(
            f"model '{model}' needs edge features, which this dataset lacks; use {without}"
        )
    models = [MODELS[kind](**shape, **architecture) for _ in range(members)]
    return models[0] if members == 1 else Ensemble(models)


@cache
def _zoo() -> dict[str, dict[str, Any]]:
    return tomllib.loads(Path(__file__).with_name("zoo.toml").read_text(encoding="utf-8"))
