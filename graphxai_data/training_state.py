"""What it takes to go on with a training that was stopped: one file, written after every epoch."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import safetensors
import torch
from safetensors.torch import save
from torch import Tensor, nn

from graphxai_data.checkpoint import Card
from graphxai_data.disk import write_atomically
from graphxai_data.errors import DamagedError
from graphxai_data.typed_table import parse_table

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
        content = save(
            {key: tensor.contiguous() for key, tensor in tensors.items()},
            {"about": json.dumps(about)},
        )
        write_atomically(folder / STATE, content)

    def load(self, folder: Path) -> None:
        """Go back to the state in a folder."""
        about, tensors = _read(folder / STATE)
        try:
            self.history = [Epoch(**line) for line in about["history"]]
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
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise _damaged(folder / STATE, error) from None


def begun_in(folder: Path) -> tuple[Card, dict[str, Any]]:
    """What the training that was stopped in a folder is of, and its conditions."""
    path = folder / STATE
    about, _ = _read(path)
    return parse_table(Card, about["card"], str(path)), dict(about["conditions"])


def copy_of(model: nn.Module) -> dict[str, Tensor]:
    """The weights of a model as they are now."""
    return {key: tensor.detach().clone() for key, tensor in model.state_dict().items()}


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    try:
        with safetensors.safe_open(path, framework="pt") as file:
            about = json.loads(file.metadata()["about"])
            if set(about) != {"card", "conditions", "history"}:
                raise ValueError("its description lacks something")
            return about, {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except (safetensors.SafetensorError, ValueError, KeyError, TypeError) as error:
        raise _damaged(path, error) from None


def _damaged(path: Path, error: Exception) -> DamagedError:
    reason = " ".join(str(error).split())[:200]
    return DamagedError(f"{path}: not the state of a training ({reason}); delete it to begin anew")


def _with(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {prefix + key: tensor for key, tensor in tensors.items()}


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
