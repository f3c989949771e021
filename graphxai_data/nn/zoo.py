"""The models by name, and the named configurations in `zoo.toml` to make and train them with."""

import inspect
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, Literal

from torch import nn

from graphxai_data.errors import InputError, finite_number, known_name, nearest, whole_number
from graphxai_data.files.toml import parse_table
from graphxai_data.nn.bcos_gin import BcosGIN, BcosGINE
from graphxai_data.nn.gin import GIN, GINE, DeepSets
from graphxai_data.nn.gsat import GSAT

MODELS: dict[str, type[nn.Module]] = {
    "bcos-gin": BcosGIN,
    "bcos-gine": BcosGINE,
    "gin": GIN,
    "gine": GINE,
    "gsat": GSAT,
    "deepsets": DeepSets,
}
CONFIGURATIONS = ("default", "paper")
# What a dataset decides, not a configuration.
_SHAPE = ("in_features", "edge_features", "classes", "level")


@dataclass(frozen=True)
class Training:
    """How a model is trained.

    Attributes:
        loss: "ce" over the classes, or "bce" for each class by itself.
        select: what is best on validation: the lowest "loss", or the highest "accuracy"; of equal
            epochs, the first.
        batch_size: graphs a step.
        epochs: at most.
        learning_rate: of Adam, at the beginning.
        schedule: "plateau": times `rate_factor` whenever validation has not been better for more
            than `rate_patience` epochs (as torch counts), down to `minimum_rate`. "cosine": up to
            `learning_rate` in the first twentieth of all steps, then down to `minimum_rate` along
            half a cosine.
        stop_patience: training ends when validation has not been better for so many epochs.
        calibrate: scale initial logits to standard deviation 1 (B-cos models).
        evidence_cost: what is added to the loss of a graph for every unit of evidence, for or
            against a class, that a B-cos model finds in it (`training.loss.evidence`).
    """

    loss: Literal["ce", "bce"]
    select: Literal["loss", "accuracy"]
    batch_size: int
    epochs: int
    learning_rate: float
    schedule: Literal["plateau", "cosine"]
    minimum_rate: float
    stop_patience: int
    rate_factor: float = 0.5
    rate_patience: int = 25
    calibrate: bool = False
    evidence_cost: float = 0.0

    def __post_init__(self) -> None:
        for name in ("batch_size", "epochs", "stop_patience", "rate_patience"):
            whole_number(name, getattr(self, name), 1, 10**8)
        if not 0 < self.minimum_rate <= self.learning_rate:
            raise InputError(
                f"learning_rate: expected at least minimum_rate {self.minimum_rate}, "
                f"got {self.learning_rate}"
            )
        if not 0 < self.rate_factor < 1:
            raise InputError(f"rate_factor: expected between 0 and 1, got {self.rate_factor}")
        finite_number("evidence_cost", self.evidence_cost, low=0)


@dataclass(frozen=True)
class Settings:
    """Everything about a training but data and seed.

    Attributes:
        model: name in `MODELS`.
        architecture: arguments of its class, but those that the dataset decides.
        training: how it is trained.
    """

    model: str
    architecture: dict[str, Any]
    training: Training

    @classmethod
    def named(
        cls,
        model: str,
        generator: str,
        configuration: str = "default",
        changes: Mapping[str, Any] | None = None,
    ) -> "Settings":
        """Settings of a configuration for datasets of a generator, with some values changed."""
        known_name("model", model, MODELS)
        known_name("configuration", configuration, CONFIGURATIONS)
        tables = _zoo()[configuration]
        of_model = tables.get(model, {})
        values = tables["all"] | of_model | of_model.get(generator, {}) | dict(changes or {})
        values = {key: value for key, value in values.items() if not isinstance(value, dict)}
        trained = {field.name for field in fields(Training)}
        known = trained | set(architecture_keys(model))
        for key in values:
            # A default for all models may be about what this one lacks.
            if key not in known and (key not in tables["all"] or key in (changes or {})):
                raise InputError(f"{model}: unknown setting '{key}'; {nearest(key, known)}")
        # As TOML and JSON give it back: they have no tuples.
        architecture = {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in values.items()
            if key in known - trained
        }
        table = {k: v for k, v in values.items() if k in trained}
        return cls(model, architecture, parse_table(Training, table, "training"))


def architecture_keys(model: str) -> list[str]:
    """The arguments of a model that a configuration may set."""
    # A constructor hands keyword arguments on to that of its base class.
    names: dict[str, None] = {}
    for constructor in (vars(cls).get("__init__") for cls in MODELS[model].__mro__):
        if constructor is not None:
            parameters = inspect.signature(constructor).parameters.values()
            names |= {p.name: None for p in parameters if p.kind is not p.VAR_KEYWORD}
            if all(p.kind is not p.VAR_KEYWORD for p in parameters):
                break
    return [name for name in names if name not in ("self", *_SHAPE)]


def make_model(
    model: str,
    architecture: Mapping[str, Any],
    in_features: int,
    edge_features: int,
    classes: int,
    level: str = "graph",
) -> nn.Module:
    """A new model for a dataset.

    Args:
        model: name in `MODELS`.
        architecture: as in `Settings`.
        in_features: width of the dataset's node features.
        edge_features: width of its edge features, 0 if there are none.
        classes: number of its classes.
        level: "graph" or "node".
    """
    known_name("model", model, MODELS)
    for key in architecture:
        if key not in (known := architecture_keys(model)):
            raise InputError(f"{model}: unknown setting '{key}'; {nearest(key, known)}")
    shape = {"in_features": in_features, "classes": classes, "level": level}
    if model in ("gine", "bcos-gine", "gsat"):
        shape["edge_features"] = edge_features
    if model in ("gine", "bcos-gine") and not edge_features:
        without = model.removesuffix("e")
        raise InputError(
            f"model '{model}' needs edge features, which this dataset lacks; use {without}"
        )
    return MODELS[model](**shape, **architecture)


@cache
def _zoo() -> dict[str, dict[str, Any]]:
    return tomllib.loads(Path(__file__).with_name("zoo.toml").read_text(encoding="utf-8"))
