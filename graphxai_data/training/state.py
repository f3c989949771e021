"""The state of an unfinished training: one file, written after every epoch."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import safetensors
import torch
from safetensors.torch import save
from torch import Tensor, nn

from graphxai_data.errors import DamagedError, InputError
from graphxai_data.files.disk import write_atomically
from graphxai_data.files.toml import parse_table
from graphxai_data.training.checkpoint import Card

STATE = "training.safetensors"
Scores = dict[str, float]


@dataclass(frozen=True)
class Epoch:
    """One line of a training's history."""

    train_loss: float
    valid: Scores
    rate: float
    seconds: float

    def __post_init__(self) -> None:
        keys = self.valid.keys()
        if "loss" not in keys or not {"accuracy", "mae"} & keys:
            raise InputError(f"valid: expected loss, and accuracy or mae, got {list(keys)}")


@dataclass(frozen=True)
class Description:
    """The part of the file that is text, as JSON."""

    card: Card
    conditions: dict[str, Any]
    history: tuple[Epoch, ...]


@dataclass
class TrainingState:
    """Weights, Adam's moments, the best weights so far, and the history that schedules use."""

    model: nn.Module
    optimiser: torch.optim.Adam
    best: dict[str, Tensor] = field(default_factory=dict)
    history: list[Epoch] = field(default_factory=list)

    @classmethod
    def new(cls, model: nn.Module, rate: float) -> "TrainingState":
        """Return the state before the first epoch."""
        # Fused: with models as small as these, a plain step is mostly overhead of calls.
        optimiser = torch.optim.Adam(model.parameters(), lr=rate, fused=True)
        return cls(model, optimiser)

    def keep_best(self) -> None:
        """Copy the weights of the model, which are the best so far."""
        weights = self.model.state_dict()
        self.best = {key: tensor.detach().clone() for key, tensor in weights.items()}

    def save(self, folder: Path, card: Card, conditions: dict[str, Any]) -> None:
        """Write the state, with the card of the training and its conditions."""
        tensors = _prefixed("model.", self.model.state_dict()) | _prefixed("best.", self.best)
        for i, moments in self.optimiser.state_dict()["state"].items():
            tensors |= _prefixed(f"adam.{i}.", moments)
        description = Description(card, conditions, tuple(self.history))
        text = json.dumps(dataclasses.asdict(description))
        tensors = {key: tensor.contiguous() for key, tensor in tensors.items()}
        content = save(tensors, {"about": text, "sha256": _digest(text, tensors)})
        write_atomically(folder / STATE, content)

    def load(self, folder: Path) -> None:
        """Restore the state in a folder."""
        description, tensors = _read(folder / STATE)
        try:
            self.history = list(description.history)
            self.best = _unprefixed("best.", tensors)
            self.model.load_state_dict(_unprefixed("model.", tensors))
            optimiser = self.optimiser.state_dict()
            optimiser["state"] = {
                i: {key: tensors[f"adam.{i}.{key}"] for key in ("step", "exp_avg", "exp_avg_sq")}
                for i in optimiser["param_groups"][0]["params"]
            }
            self.optimiser.load_state_dict(optimiser)
        except (KeyError, TypeError, ValueError, RuntimeError, AttributeError) as error:
            raise _damaged(folder / STATE, error) from None


def read_description(folder: Path) -> Description:
    """Return the description of the unfinished training in a folder."""
    return _read(folder / STATE)[0]


def _read(path: Path) -> tuple[Description, dict[str, Tensor]]:
    """Return the description and the tensors in a file."""
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            metadata = file.metadata()
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        if metadata["sha256"] != _digest(metadata["about"], tensors):
            raise ValueError("its content does not have the digest stored in it")
        return parse_table(Description, json.loads(metadata["about"]), path.name), tensors
    except (
        safetensors.SafetensorError, OSError, ValueError, KeyError, TypeError, RecursionError,
    ) as error:  # fmt: skip
        raise _damaged(path, error) from None


def _digest(about: str, tensors: Mapping[str, Tensor]) -> str:
    """Return the SHA-256 of a whole state: a flipped bit would go unnoticed otherwise."""
    return hashlib.sha256(save(dict(tensors), {"about": about})).hexdigest()


def _damaged(path: Path, error: Exception) -> DamagedError:
    reason = " ".join(str(error).split())[:200]
    return DamagedError(f"{path}: not the state of a training ({reason}); delete it to start again")


def _prefixed(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {prefix + key: tensor for key, tensor in tensors.items()}


def _unprefixed(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
