"""Ensembles of trained models: their seeds, and one checkpoint for all members."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import torch

from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.errors import InputError
from graphxai_data.files.disk import explained_disk_errors, folder_lock
from graphxai_data.nn.ensemble import Ensemble
from graphxai_data.nn.gin import GraphModel
from graphxai_data.nn.zoo import ModelName
from graphxai_data.training.checkpoint import Card, check_fits, load_checkpoint, save_checkpoint
from graphxai_data.training.scores import predictive_scores, split_loaders

# From the seed of a member to that of the next.
SEED_STEP = 1000
# What the cards of all members have in common.
_SHARED = ("model", "shape", "architecture", "training", "data")


def member_seeds(seed: int, members: int) -> list[int]:
    """Return the seeds of the trainings of an ensemble: `seed`, `seed` + 1000, and so on.

    Ensembles with different seeds share no member, so only seeds below 1000 are allowed.
    """
    if seed >= SEED_STEP:
        raise InputError(
            f"seed: expected less than {SEED_STEP} for an ensemble, got {seed}; its members have "
            f"the seeds {seed}, {seed + SEED_STEP}, …, and other ensembles must not have the same"
        )
    return [seed + SEED_STEP * place for place in range(members)]


def join_checkpoints(
    folder: str | Path,
    members: Sequence[str | Path],
    dataset: GraphXAIDataset,
    device: torch.device | None = None,
) -> tuple[Ensemble, Card]:
    """Write the ensemble of some trained models as one checkpoint, and return it with its card.

    Args:
        folder: of the new checkpoint.
        members: folders of finished trainings of the same model and settings on one build.
        dataset: that build, for the scores of the ensemble.
        device: on which scores are computed; the CPU if None.
    """
    device = device or torch.device("cpu")
    folder, paths = Path(folder), [Path(member) for member in members]
    loaded = [load_checkpoint(path) for path in paths]
    cards = [card for _, card in loaded]
    for path, card in zip(paths, cards, strict=True):
        _check_alike(paths[0], cards[0], path, card)
    ensemble = Ensemble([cast(GraphModel, model) for model, _ in loaded]).to(device)
    check_fits(cards[0], dataset, paths[0])
    loaders, loss = split_loaders(dataset, cards[0]), cards[0].training.loss
    card = dataclasses.replace(
        cards[0],
        model=str(ModelName(cards[0].model, len(cards))),
        scores={
            split: predictive_scores(ensemble, loaders[split], loss, device)
            for split in ("valid", "test")
        },
        run={
            **cards[0].run,
            "epochs": max(card.run["epochs"] for card in cards),
            "best_epoch": max(card.run["best_epoch"] for card in cards),
            "member_seeds": [card.seed for card in cards],
            "member_weights_sha256": [card.weights_sha256 for card in cards],
        },
    )
    with (
        explained_disk_errors(folder, "--out", "the trained members"),
        folder_lock(folder, wait=False, work="training", option="--out"),
    ):
        return ensemble, save_checkpoint(folder, ensemble.state_dict(), card)


def _check_alike(first_path: Path, first: Card, path: Path, card: Card) -> None:
    """Raise an `InputError` unless a member was trained like the first, except for its seed."""
    if not card.complete:
        raise InputError(f"{path}: its training is not finished; finish it before it is a member")
    if path != first_path and card.seed == first.seed:
        raise InputError(
            f"{path}: has seed {card.seed}, like {first_path}; members need different seeds"
        )
    for key in _SHARED:
        one, two = (dataclasses.asdict(c)[key] for c in (first, card))
        if one != two:
            raise InputError(
                f"{path}: differs from {first_path} in its {key}{_difference(one, two)}; members "
                "may differ in their seeds only"
            )


def _difference(one: object, two: object) -> str:
    """Return the first value that differs, in words."""
    if isinstance(one, dict) and isinstance(two, dict):
        name = next(name for name in sorted(one | two) if one.get(name) != two.get(name))
        one, two = f"{name} {one.get(name)}", f"{name} {two.get(name)}"
    return f" ({two}, expected {one})"
