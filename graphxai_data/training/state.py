"""What it takes to go on with a training that was stopped: one file, written after every epoch."""

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
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


@dataclass
class TrainingState:
    """Weights, Adam's moments, the best weights so far, and the history that schedules rest on."""

    model: nn.Module
    optimiser: torch.optim.Adam
    best: dict[str, Tensor]
    history: list[Epoch]

    @classmethod
    def fresh(cls, model: nn.Module, rate: float) -> "TrainingState":
        """The state before the first epoch."""
        # Fused: models here are so small that a step of the plain one is mostly calls.
        optimiser = torch.optim.Adam(model.parameters(), lr=rate, fused=True)
        return cls(model, optimiser, copy_of(model), [])

    def save(self, folder: Path, card: Card, conditions: dict[str, Any]) -> None:
        """Write the state of the training that `card` describes, under these conditions."""
        tensors = _with("model.", self.model.state_dict()) | _with("best.", self.best)
        for i, moments in self.optimiser.state_dict()["state"].items():
            tensors |= _with(f"adam.{i}.", moments)
        about = {
            "card": dataclasses.asdict(card),
            "conditions": conditions,
            "history": [dataclasses.asdict(epoch) for epoch in self.history],
        }
        text = json.dumps(about)
        tensors = {key: tensor.contiguous() for key, tensor in tensors.items()}
        content = save(tensors, {"about": text, "sha256": _digest(text, tensors)})
        write_atomically(folder / STATE, content)

    def load(self, folder: Path) -> None:
        """Go back to the state in a folder."""
        about, tensors = _read(folder / STATE)
        try:
            self.history = [_epoch(line) for line in about["history"]]
            self.best = _under("best.", tensors)
            self.model.load_state_dict(_under("model.", tensors))
            optimiser = self.optimiser.state_dict()
            moments = _under("adam.", tensors)
            parameters = optimiser["param_groups"][0]["params"]
            optimiser["state"] = {
                i: {key: moments[f"{i}.{key}"] for key in ("step", "exp_avg", "exp_avg_sq")}
                for i in parameters
            }
            self.optimiser.load_state_dict(optimiser)
        except (KeyError, TypeError, ValueError, RuntimeError, AttributeError) as error:
            raise _damaged(folder / STATE, error) from None


def begun_in(folder: Path) -> tuple[Card, dict[str, Any]]:
    """What the training that was stopped in a folder is of, and its conditions."""
    path = folder / STATE
    about, _ = _read(path)
    try:
        return parse_table(Card, about["card"], str(path)), dict(about["conditions"])
    except (InputError, TypeError, ValueError) as error:
        raise _damaged(path, error) from None


def copy_of(model: nn.Module) -> dict[str, Tensor]:
    """The weights of a model as they are now."""
    return {key: tensor.detach().clone() for key, tensor in model.state_dict().items()}


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            said = file.metadata()
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        if said["sha256"] != _digest(said["about"], tensors):
            raise ValueError("it does not have the digest written in it")
        about = json.loads(said["about"])
        if set(about) != {"card", "conditions", "history"}:
            raise ValueError("its description lacks something")
        return about, tensors
    except (
        safetensors.SafetensorError, OSError, ValueError, KeyError, TypeError, RecursionError,
    ) as error:  # fmt: skip
        raise _damaged(path, error) from None


def _digest(about: str, tensors: Mapping[str, Tensor]) -> str:
    """SHA-256 of all that a state holds: of a wrong bit one would never know otherwise."""
    return hashlib.sha256(save(dict(tensors), {"about": about})).hexdigest()


def _epoch(line: dict[str, Any]) -> Epoch:
    epoch = Epoch(**line)
    for value in (epoch.train_loss, epoch.valid["loss"], epoch.valid["accuracy"]):
        float(value)
    return epoch


def _damaged(path: Path, error: Exception) -> DamagedError:
    reason = " ".join(str(error).split())[:200]
    return DamagedError(f"{path}: not the state of a training ({reason}); delete it to begin anew")


def _with(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {prefix + key: tensor for key, tensor in tensors.items()}


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
