"""Train a reference model on a dataset: one loop, top to bottom.

The result depends on dataset, settings, seed and number of threads only. Every random draw in epoch
e comes from (seed, e), and the learning rate is a function of the validation scores so far. So an
interrupted training resumes with the same result from weights, Adam's moments and the history.
"""

import dataclasses
import json
import math
import time
from collections.abc import Mapping
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

import torch
from torch import nn

from graphxai_data import __version__
from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.datasets.loader import BatchLoader
from graphxai_data.errors import CheckFailedError, InputError, whole_number
from graphxai_data.files.disk import explained_disk_errors, folder_lock, sweep, write_atomically
from graphxai_data.graphs.record import SPLIT_NAMES
from graphxai_data.nn import GSAT
from graphxai_data.nn.bcos_gin import BcosGIN
from graphxai_data.nn.random import seeded, torch_seed
from graphxai_data.nn.zoo import ModelName, Settings, make_model
from graphxai_data.progress import Progress, no_progress
from graphxai_data.seeds import MAX_SEED
from graphxai_data.training.checkpoint import (
    CARD,
    WEIGHTS,
    Card,
    Shape,
    TrainingData,
    load_checkpoint,
    read_card,
    save_checkpoint,
)
from graphxai_data.training.ensemble import join_checkpoints, member_seeds
from graphxai_data.training.loss import check_evidence_cost, training_loss
from graphxai_data.training.schedule import best_epoch, is_over, learning_rate
from graphxai_data.training.scores import predictive_scores, split_loaders
from graphxai_data.training.state import STATE, Epoch, Scores, TrainingState, read_description

HISTORY = "history.jsonl"


def train(
    dataset: GraphXAIDataset,
    model: str = "bcos-gin",
    configuration: str = "default",
    seed: int = 0,
    out: str | Path = "runs",
    *,
    changes: Mapping[str, Any] | None = None,
    device: str = "auto",
    force: bool = False,
    progress: Progress | None = None,
) -> tuple[nn.Module, Card]:
    """Train a model, resume a training that was interrupted, or load one that is finished.

    Args:
        dataset: with all its splits. Test graphs are used once, at the end.
        model: name in `graphxai_data.nn.zoo.MODELS`. A name such as "bcos-gine-x5" trains an
            ensemble: five models, the first with the seed, in folders of their own.
        configuration: "default", or "paper".
        seed: of initial weights, order of graphs, dropout and noise.
        out: folder of all runs; this one goes to `<out>/<model>-<dataset>/seed-<seed>`.
        changes: settings that differ from the configuration's, such as {"b": 2.5}.
        device: "auto" is CUDA where there is one, else the CPU.
        force: discard a training in the folder.
        progress: called after every epoch with epochs done, epochs in all, and its scores.

    Returns:
        The model with the best weights on validation, in evaluation mode, and its card.
    """
    progress = progress or no_progress
    whole_number("seed", seed, 0, MAX_SEED)
    shape, generator = Shape.of(dataset), dataset.manifest.load_recipe().generator
    settings = Settings.named(model, generator, configuration, changes, shape.label)
    _check_data(dataset)
    card = Card(
        model=model,
        configuration=configuration,
        seed=seed,
        complete=False,
        shape=shape,
        architecture=settings.architecture,
        training=settings.training,
        data=TrainingData.of(dataset),
    )
    folder = run_folder(out, model, dataset.name, seed)
    torch_device = device_of(device)
    kind, members = ModelName.parse(model)
    if members > 1:
        if not force and _is_finished(folder, card, torch_device):
            return load_checkpoint(folder)
        folders = []
        for place, member_seed in enumerate(member_seeds(seed, members)):
            report = partial(_member_progress, progress, place, members)
            train(
                dataset, kind, configuration, member_seed, out,
                changes=changes, device=device, force=force, progress=report,
            )  # fmt: skip
            folders.append(run_folder(out, kind, dataset.name, member_seed))
        return join_checkpoints(folder, folders, dataset, torch_device)
    loaders = split_loaders(dataset, card)
    with seeded(torch_seed(seed, "train/weights")):
        # Before anything on disk is touched: with some settings there is nothing to learn from.
        new_model = _initial_model(card, loaders["train"], torch_device)
        with (
            explained_disk_errors(folder, "--out", "the last whole epoch"),
            folder_lock(folder, wait=False, work="training", option="--out"),
        ):
            sweep(folder)
            if force:
                for name in (CARD, WEIGHTS, HISTORY, STATE):
                    (folder / name).unlink(missing_ok=True)
            if not _is_finished(folder, card, torch_device):
                folder.mkdir(parents=True, exist_ok=True)
                _train(folder, card, new_model, loaders, progress)
            (folder / STATE).unlink(missing_ok=True)
            return load_checkpoint(folder)


def _member_progress(
    progress: Progress, place: int, members: int, done: int, total: int, scores: str
) -> None:
    """Report an epoch of one member as one of the whole ensemble's."""
    what = f"member {place + 1} of {members}: {scores}"
    progress(place * total + done, members * total, what)


def run_folder(out: str | Path, model: str, dataset: str, seed: int) -> Path:
    """Return the folder of a training and its checkpoint."""
    return Path(out) / f"{model}-{dataset}" / f"seed-{seed}"


def _train(
    folder: Path, card: Card, model: nn.Module, loaders: dict[str, BatchLoader], progress: Progress
) -> None:
    """Train to the end, from the start or from the state in the folder, and save the checkpoint."""
    settings = card.training
    training, validation, test = (loaders[split] for split in SPLIT_NAMES)
    device = next(model.parameters()).device
    state = TrainingState.new(model, settings.learning_rate)
    if (folder / STATE).is_file():
        state.load(folder)

    while not is_over(settings, state.history):
        start, epoch = time.perf_counter(), len(state.history)
        torch.manual_seed(torch_seed(card.seed, "train/epoch", epoch))
        training.epoch = epoch
        loss_sum, examples = 0.0, 0
        for step, batch in enumerate(training):
            epochs_done = epoch + step / len(training)
            rate = learning_rate(settings, state.history, epochs_done)
            for group in state.optimiser.param_groups:
                group["lr"] = rate
            if isinstance(model, GSAT):
                model.anneal(epochs_done / settings.epochs)
            loss = training_loss(model, batch.to(device), settings.loss, settings.evidence_cost)
            state.optimiser.zero_grad()
            loss.backward()
            if not (torch.isfinite(loss) and _gradients_are_finite(model)):
                _stop(folder, card, state, f"the loss, or its gradient, in batch {step + 1}")
            state.optimiser.step()
            loss_sum += loss.item() * len(batch.y)  # graphs, or nodes
            examples += len(batch.y)
        valid = predictive_scores(model, validation, settings.loss, device)
        if not math.isfinite(valid["loss"]):
            _stop(folder, card, state, "the loss on validation")
        seconds = time.perf_counter() - start
        state.history.append(Epoch(loss_sum / examples, valid, rate, seconds))
        best = best_epoch(settings, state.history)
        if best == epoch:
            state.keep_best()
        state.save(folder, card, conditions(device))
        headline = "accuracy" if "accuracy" in valid else "mae"
        scores = (
            f"loss {loss_sum / examples:.4f}, valid loss {valid['loss']:.4f}, "
            f"{headline} {valid[headline]:.4f}, best epoch {best + 1}"
        )
        progress(epoch + 1, settings.epochs, scores)

    model.load_state_dict(state.best)
    test_scores = predictive_scores(model, test, settings.loss, device)
    _save(folder, dataclasses.replace(card, complete=True), state, test=test_scores)


def conditions(device: torch.device) -> dict[str, Any]:
    """Return what the result depends on in addition to data, settings and seed."""
    return {
        "device": device.type,
        "threads": torch.get_num_threads(),
        "graphxai_data": __version__,
        "torch": version("torch"),
    }


def device_of(name: str) -> torch.device:
    """Return the device of this name; "auto" is CUDA where there is one, else the CPU."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.zeros(1, device=name).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"device: '{name}' cannot be used here ({reason}); try cpu") from None
    return torch.device(name)


def _initial_model(card: Card, training: BatchLoader, device: torch.device) -> nn.Module:
    model = make_model(card.model, card.architecture, **dataclasses.asdict(card.shape)).to(device)
    check_evidence_cost(model, card.model, card.training.evidence_cost)
    if card.training.calibrate and isinstance(model, BcosGIN):
        first = next(iter(training)).to(device)
        numbers = first.y if card.shape.label == "number" else None
        model.calibrate(first.x, first.edge_index, first.edge_attr, first.batch, numbers)
    return model


def _gradients_are_finite(model: nn.Module) -> bool:
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    return bool(torch.isfinite(torch.stack([torch.linalg.vector_norm(g) for g in gradients])).all())


def _stop(folder: Path, card: Card, state: TrainingState, what: str) -> NoReturn:
    """Save the best weights so far, and raise an error about a value that is not finite."""
    kept, advice = "nothing was learned before", "look at features and settings"
    if state.history:
        best = _save(folder, card, state)
        kept = f"the weights of epoch {best + 1}, the best so far, are kept in it"
        advice = "try a lower learning_rate"
    raise CheckFailedError(
        f"{folder}: {what}, is not finite in epoch {len(state.history) + 1}; {kept}; {advice}"
    )


def _save(folder: Path, card: Card, state: TrainingState, **scores: Scores) -> int:
    """Write the checkpoint of the best weights, and the history; return the best epoch."""
    best = best_epoch(card.training, state.history)
    scores = {"valid": state.history[best].valid, **scores}
    run = {"epochs": len(state.history), "best_epoch": best + 1}
    run |= conditions(next(state.model.parameters()).device)
    lines = [json.dumps(dataclasses.asdict(epoch)) + "\n" for epoch in state.history]
    write_atomically(folder / HISTORY, "".join(lines).encode())
    save_checkpoint(folder, state.best, dataclasses.replace(card, scores=scores, run=run))
    return best


def _is_finished(folder: Path, card: Card, device: torch.device) -> bool:
    """Return whether a folder has this training's result; raise an error if it has another's."""
    if (folder / CARD).is_file():
        old = read_card(folder)
        _check_same(folder, old, card)
        if old.complete:
            return True
    if (folder / STATE).is_file():
        description = read_description(folder)
        _check_same(folder, description.card, card)
        _check_equal(folder, "under other conditions", description.conditions, conditions(device))
    return False


def _check_same(folder: Path, old: Card, new: Card) -> None:
    contents = ({"content": card.data.content_sha256} for card in (old, new))
    _check_equal(folder, f"on another build of '{old.data.dataset}'", *contents)
    for table in ("shape", "architecture", "training"):
        values = (dataclasses.asdict(card)[table] for card in (old, new))
        _check_equal(folder, "with other settings", *values)


def _check_equal(folder: Path, how: str, old: dict[str, Any], new: dict[str, Any]) -> None:
    for key in sorted(old | new):
        if old.get(key) != new.get(key):
            raise InputError(
                f"{folder}: a training {how} ({key} {old.get(key)}, expected {new.get(key)}); "
                "choose another --out, or discard it with `train --force`"
            )


def _check_data(dataset: GraphXAIDataset) -> None:
    """Raise an `InputError` unless the dataset is whole, and all its features are finite."""
    changes = {
        "transform": dataset.transform,
        "pre_transform": dataset.pre_transform,
        "pre_filter": dataset.pre_filter,
        "choice of graphs": dataset._indices,
    }
    for how, value in changes.items():
        if value is not None:
            raise InputError(
                f"'{dataset.name}' is loaded with a {how}, so that no digest would identify the "
                "training data; load the dataset without it"
            )
    for split, rows in dataset.get_idx_split().items():
        if not len(rows):
            raise InputError(f"'{dataset.name}' has no {split} graphs; its recipe needs some")
    data, slices = dataset._data, dataset.slices
    if not slices["x"].diff().all():
        graph = int((slices["x"].diff() == 0).nonzero()[0])
        raise InputError(f"'{dataset.name}': graph {graph} has no nodes; leave it out")
    for key in ("x", "edge_attr"):
        if key in data and not (finite := torch.isfinite(data[key]).all(dim=1)).all():
            row = int((~finite).nonzero()[0])
            graph = int(torch.searchsorted(slices[key], row, right=True)) - 1
            raise InputError(
                f"'{dataset.name}': {key} of graph {graph} has a value that is not finite; "
                "correct its source"
            )
