"""Checkpoints: folders with `weights.safetensors` and `model.toml`; data only, no code."""

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import safetensors
import tomli_w
import torch
from safetensors.torch import load, save
from torch import Tensor, nn

from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.errors import DamagedError, InputError, nearest
from graphxai_data.files.disk import write_atomically
from graphxai_data.files.shipped import shipped
from graphxai_data.files.toml import parse_table, read_toml
from graphxai_data.graphs.schema import Label
from graphxai_data.nn.zoo import Training, make_model

WEIGHTS, CARD = "weights.safetensors", "model.toml"
_RENEW = "copy it again from its source, or train it again with --force"


@dataclass(frozen=True)
class Shape:
    """The options of a model that its dataset decides."""

    in_features: int
    edge_features: int
    classes: int
    level: Literal["graph", "node"] = "graph"
    label: Label = "class"

    @classmethod
    def of(cls, dataset: GraphXAIDataset) -> "Shape":
        """Return the shape of a model for a dataset."""
        return cls(
            dataset.num_node_features,
            dataset.num_edge_features,
            dataset.num_classes,
            "node" if dataset.task == "node" else "graph",
            dataset.manifest.load_recipe().schema.label,
        )


@dataclass(frozen=True)
class TrainingData:
    """The build that a model was trained on."""

    dataset: str
    seed: int
    recipe_sha256: str
    content_sha256: str

    @classmethod
    def of(cls, dataset: GraphXAIDataset) -> "TrainingData":
        """Return the build of a dataset."""
        manifest = dataset.manifest
        return cls(manifest.dataset, manifest.seed, manifest.recipe_sha256, manifest.content_sha256)


@dataclass(frozen=True)
class Card:
    """The content of `model.toml`: enough to load the model, and to train it again.

    Scores are loss, accuracy, F1 and others, or loss, MAE, RMSE and R², by split; `run` has epochs,
    threads and versions.
    """

    model: str  # its name in the zoo
    configuration: str  # the name of settings that may have been changed
    seed: int
    complete: bool  # whether the training is finished
    shape: Shape
    architecture: dict[str, Any]
    training: Training
    data: TrainingData
    scores: dict[str, dict[str, float]] = field(default_factory=dict)
    run: dict[str, Any] = field(default_factory=dict)
    weights_sha256: str = ""


def save_checkpoint(folder: Path, weights: Mapping[str, Tensor], card: Card) -> Card:
    """Write both files, the card last, and return the card as written."""
    content = weights_bytes(weights)
    card = dataclasses.replace(card, weights_sha256=hashlib.sha256(content).hexdigest())
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / WEIGHTS, content)
    write_atomically(folder / CARD, tomli_w.dumps(dataclasses.asdict(card)).encode())
    return card


def weights_bytes(weights: Mapping[str, Tensor]) -> bytes:
    """Return the content of a weights file."""
    return save({key: tensor.contiguous().cpu() for key, tensor in weights.items()})


def read_card(folder: Path) -> Card:
    """Return the card of a checkpoint."""
    path = folder / CARD
    if not path.is_file():
        raise InputError(f"{folder}: no checkpoint here ({CARD} is missing); check the path")
    return parse_table(Card, read_toml(path), str(path))


def load_checkpoint(folder: Path) -> tuple[nn.Module, Card]:
    """Return the model of a checkpoint, in evaluation mode, and its card."""
    card = read_card(folder)
    path = folder / WEIGHTS
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DamagedError(f"{path}: cannot be read ({error.strerror}); {_RENEW}") from None
    digest = hashlib.sha256(content).hexdigest()
    if digest != card.weights_sha256:
        raise DamagedError(
            f"{path}: truncated or changed: sha256 {digest}, expected {card.weights_sha256}; "
            f"{_RENEW}"
        )
    # Tensors on "meta" have no content: no random draws, and no card can claim memory.
    with torch.device("meta"):
        model = make_model(card.model, card.architecture, **dataclasses.asdict(card.shape))
    try:
        weights = load(content)
        for key, expected in model.state_dict().items():
            if key in weights and weights[key].dtype != expected.dtype:
                raise ValueError(f"{key} is {weights[key].dtype}, expected {expected.dtype}")
            if key in weights and not weights[key].isfinite().all():
                raise ValueError(f"{key} is not finite")
        model.load_state_dict(weights, assign=True)
    except (safetensors.SafetensorError, RuntimeError, ValueError) as error:
        reason = str(error).splitlines()[-1].strip()
        raise DamagedError(
            f"{path}: weights do not fit the {CARD} in the same folder: {reason}"
        ) from None
    return model.train(mode=False), card


def check_fits(card: Card, dataset: GraphXAIDataset, where: object, force: bool = False) -> None:
    """Raise an `InputError` unless a model, named `where`, was trained on the build of a dataset.

    With `force`, it may be another build, though never one with features of another width.
    """
    shape = Shape.of(dataset)
    if card.shape != shape:
        raise InputError(
            f"{where}: a model for {_described(card.shape)}; '{dataset.name}' has "
            f"{_described(shape)}; use a model trained on it"
        )
    if force or card.data.content_sha256 == dataset.manifest.content_sha256:
        return
    raise InputError(
        f"{where}: trained on another build: '{card.data.dataset}', seed {card.data.seed}, content "
        f"{card.data.content_sha256[:12]}…, but this is '{dataset.name}', seed {dataset.seed}, "
        f"content {dataset.manifest.content_sha256[:12]}…; the model may have seen its test graphs "
        "in training. Use force to accept that"
    )


def load_model(
    name: str | Path, dataset: GraphXAIDataset | None = None, force: bool = False
) -> nn.Module:
    """Return a trained model in evaluation mode.

    Args:
        name: of a shipped model, such as "bcos-gine-dihalo", or the folder of a checkpoint.
        dataset: if given, the model must have been trained on the same build.
        force: allow another build.
    """
    model, card = load_checkpoint(find_model(name))
    if dataset is not None:
        check_fits(card, dataset, name, force)
    return model


def weights_digest(model: nn.Module) -> str:
    """Return the SHA-256 of a model's weights, as in `model.toml`."""
    return hashlib.sha256(weights_bytes(model.state_dict())).hexdigest()


def find_model(name: str | Path) -> Path:
    """Return the folder of a shipped model, or of a user's own checkpoint."""
    folder = Path(name)
    if isinstance(name, Path) or "/" in name or folder.is_dir():
        return folder
    names = sorted(path.parent.name for path in shipped("models").glob(f"*/{CARD}"))
    if name not in names:
        raise InputError(
            f"unknown model '{name}'; {nearest(name, names)} "
            "(your own checkpoint is given as the path of its folder)"
        )
    return shipped("models") / name


def _described(shape: Shape) -> str:
    edges = f", {shape.edge_features} edge features" if shape.edge_features else ""
    what = f"{shape.classes} classes" + " of nodes" * (shape.level == "node")
    if shape.label == "number":
        what = "a label that is a number"
    return f"{shape.in_features} node features{edges}, {what}"
