"""Checkpoints: a folder with `weights.safetensors` and `model.toml`; data only, nothing to run."""

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
from graphxai_data.nn.zoo import Training, make_model

WEIGHTS, CARD = "weights.safetensors", "model.toml"


@dataclass(frozen=True)
class Shape:
    """What a dataset decides of a model."""

    in_features: int
    edge_features: int
    classes: int
    level: Literal["graph", "node"] = "graph"

    @classmethod
    def of(cls, dataset: GraphXAIDataset) -> "Shape":
        """The shape of a model for a dataset."""
        return cls(
            dataset.num_node_features,
            dataset.num_edge_features,
            dataset.num_classes,
            "node" if dataset.task == "node" else "graph",
        )


@dataclass(frozen=True)
class TrainingData:
    """Which build a model was trained on."""

    dataset: str
    seed: int
    recipe_sha256: str
    content_sha256: str

    @classmethod
    def of(cls, dataset: GraphXAIDataset) -> "TrainingData":
        """The build behind a dataset."""
        manifest = dataset.manifest
        return cls(manifest.dataset, manifest.seed, manifest.recipe_sha256, manifest.content_sha256)


@dataclass(frozen=True)
class Card:
    """What `model.toml` says: enough to make the model again, and to make it anew.

    Attributes:
        model: name in the zoo.
        configuration: the settings it was trained with have this name, and maybe changes.
        seed: of the training.
        complete: whether training came to its end.
        scores: of the weights, by split: loss, accuracy, F1.
        weights_sha256: of the file with the weights.
        run: what else is known of the training: epochs, threads, versions.
    """

    model: str
    configuration: str
    seed: int
    complete: bool
    shape: Shape
    architecture: dict[str, Any]
    training: Training
    data: TrainingData
    scores: dict[str, dict[str, float]] = field(default_factory=dict)
    run: dict[str, Any] = field(default_factory=dict)
    weights_sha256: str = ""


def save_checkpoint(folder: Path, weights: Mapping[str, Tensor], card: Card) -> Card:
    """Write both files, the card last; gives the card as written."""
    content = weights_bytes(weights)
    card = dataclasses.replace(card, weights_sha256=hashlib.sha256(content).hexdigest())
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / WEIGHTS, content)
    write_atomically(folder / CARD, tomli_w.dumps(dataclasses.asdict(card)).encode())
    return card


def weights_bytes(weights: Mapping[str, Tensor]) -> bytes:
    """The file of some weights."""
    return save({key: tensor.contiguous().cpu() for key, tensor in weights.items()})


def read_card(folder: Path) -> Card:
    """The card of a checkpoint."""
    path = folder / CARD
    if not path.is_file():
        raise InputError(f"{folder}: no checkpoint here ({CARD} is missing); check the path")
    return parse_table(Card, read_toml(path), str(path))


def load_checkpoint(folder: Path) -> tuple[nn.Module, Card]:
    """The model of a checkpoint, in evaluation mode, and its card."""
    card = read_card(folder)
    path = folder / WEIGHTS
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DamagedError(
            f"{path}: cannot be read ({error.strerror}); copy it again from where it came, or "
            "train it again with --force"
        ) from None
    digest = hashlib.sha256(content).hexdigest()
    if digest != card.weights_sha256:
        raise DamagedError(
            f"{path}: truncated or changed: sha256 {digest}, expected {card.weights_sha256}; "
            "copy it again from where it came, or train it again with --force"
        )
    # On "meta" tensors have no content: nothing is drawn at random, and no card can ask for memory.
    with torch.device("meta"):
        model = make_model(card.model, card.architecture, **dataclasses.asdict(card.shape))
    try:
        weights = load(content)
        for key, wanted in model.state_dict().items():
            if key in weights and weights[key].dtype != wanted.dtype:
                raise ValueError(f"{key} is {weights[key].dtype}, expected {wanted.dtype}")
            if key in weights and not weights[key].isfinite().all():
                raise ValueError(f"{key} is not finite")
        model.load_state_dict(weights, assign=True)
    except (safetensors.SafetensorError, RuntimeError, ValueError) as error:
        reason = str(error).splitlines()[-1].strip()
        raise DamagedError(f"{path}: weights do not fit {CARD} beside them: {reason}") from None
    return model.train(mode=False), card


def check_fits(card: Card, dataset: GraphXAIDataset, where: object, force: bool = False) -> None:
    """An `InputError` unless a model was trained on this very dataset and can take its graphs.

    Args:
        card: of the model.
        dataset: that it is to be used on.
        where: the checkpoint, as named in errors.
        force: allow graphs of another build; features of another width are never possible.
    """
    wanted = Shape.of(dataset)
    if card.shape != wanted:
        raise InputError(
            f"{where}: a model for {_described(card.shape)}; '{dataset.name}' has "
            f"{_described(wanted)}; use a model trained on it"
        )
    if force or card.data.content_sha256 == dataset.manifest.content_sha256:
        return
    raise InputError(
        f"{where}: trained on another build: '{card.data.dataset}', seed {card.data.seed}, content "
        f"{card.data.content_sha256[:12]}…, but this is '{dataset.name}', seed {dataset.seed}, "
        f"content {dataset.manifest.content_sha256[:12]}…; its test graphs may have been trained "
        "on. Use force to go on all the same"
    )


def load_model(
    name: str | Path, dataset: GraphXAIDataset | None = None, force: bool = False
) -> nn.Module:
    """A trained model, ready to predict and to be explained.

    Args:
        name: of a shipped model, such as "bcos-gine-dihalo", or the folder of a checkpoint.
        dataset: if given, the model has to be trained on this very build.
        force: allow another build.
    """
    model, card = load_checkpoint(find_model(name))
    if dataset is not None:
        check_fits(card, dataset, name, force)
    return model


def weights_digest(model: nn.Module) -> str:
    """SHA-256 of the weights of a model, as `model.toml` has it of the file."""
    return hashlib.sha256(weights_bytes(model.state_dict())).hexdigest()


def find_model(name: str | Path) -> Path:
    """Folder of a shipped model, or of a user's own checkpoint."""
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
    what = " of nodes" if shape.level == "node" else ""
    return f"{shape.in_features} node features{edges}, {shape.classes} classes{what}"
