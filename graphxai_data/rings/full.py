"""The full check: a GIN trained on every mode (DeepSets where there are no edges), several runs."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from graphxai_data.errors import InputError, whole_number
from graphxai_data.files.disk import write_atomically
from graphxai_data.graphs.columns import Ints
from graphxai_data.graphs.union import Graphs
from graphxai_data.metrics import weighted_accuracy
from graphxai_data.nn import GIN, GINE, DeepSets
from graphxai_data.nn.random import seeded
from graphxai_data.progress import Progress, no_progress
from graphxai_data.rings.embeddings import dense_rows, shortcut
from graphxai_data.rings.modes import MODES, digest, in_mode
from graphxai_data.rings.probes import fold_of_group
from graphxai_data.rings.quick import measurement, shuffled_labels, unmeasurable
from graphxai_data.rings.sample import Sample
from graphxai_data.rings.verdict import CONTROL, PROBES, Measurement, inconclusive
from graphxai_data.seeds import Draws, rng_for

# Fewer runs cannot be separable after correction for twelve comparisons: with six runs per mode,
# one order in 462 is as extreme as all scores of one mode above all of the other.
MIN_RUNS = 6
_MODEL: dict[str, Any] = {"hidden": 64, "layers": 3, "readout_layers": 1, "norm": "batch"}
_BATCH, _RATE = 32, 5e-3
# After this share of the epochs, the statistics of batch normalisation are frozen.
_SETTLING = 0.75
# Limit of node pairs in all complete graphs together.
_MAX_PAIRS = 10_000_000


def full_check(
    sample: Sample,
    seed: int = 0,
    runs: int = 8,
    graphs: int = 2000,
    epochs: int = 20,
    progress: Progress | None = None,
    resume: Path | None = None,
) -> Measurement:
    """Measure both principles by training a model in every mode, `runs` times.

    Run i has the same split in every mode. At most so many `graphs` are used, drawn in whole
    groups. A stopped check resumes from the scores in the file `resume`.
    """
    progress = progress or no_progress
    whole_number("runs", runs, MIN_RUNS, 1000)
    whole_number("epochs", epochs, 1, 100_000)
    whole_number("graphs", graphs, 1, 10**9)
    sample = _fewer(sample, graphs, rng_for(seed, "rings/full/sample"))
    if reason := unmeasurable(sample):
        return inconclusive("full", reason, len(sample))
    how = {"batch": _BATCH, "rate": _RATE, "settling": _SETTLING}
    settings = {"seed": seed, "epochs": epochs, "model": _MODEL | how, "sample": _digest(sample)}
    stored = _StoredScores(resume, settings)
    names = (*MODES, *PROBES, CONTROL)
    for run in range(runs):
        for name in names:
            if run >= len(stored.scores.setdefault(name, [])):
                stored.add(name, _trained_score(sample, name, seed, run, epochs))
            done = run * len(names) + names.index(name) + 1
            progress(done, runs * len(names), f"RINGS, {name}, run {run + 1}")
    scores = {name: stored.scores[name][:runs] for name in names}
    result = measurement("full", sample, scores)
    if resume is not None:
        resume.unlink(missing_ok=True)
    return result


class _StoredScores:
    """Scores that survive a stop, in a JSON file if a path is given."""

    def __init__(self, path: Path | None, settings: dict[str, object]) -> None:
        self._path, self._settings = path, settings
        self.scores: dict[str, list[float]] = {}
        if path is not None and path.is_file():
            try:
                content = json.loads(path.read_text(encoding="utf-8"))
                if content["settings"] == settings:
                    self.scores = dict(content["scores"])
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(f"{path}: not scores of a check ({error}); delete it") from None

    def add(self, name: str, score: float) -> None:
        self.scores[name].append(score)
        if self._path is not None:
            text = json.dumps({"settings": self._settings, "scores": self.scores})
            write_atomically(self._path, text.encode())


def _digest(sample: Sample) -> str:
    graphs = sample.graphs
    attributes = [] if graphs.edge_attr is None else [graphs.edge_attr]
    return digest(sample.label, sample.group, graphs.edges, graphs.x, graphs.node_ptr, *attributes)


def _fewer(sample: Sample, most: int, draws: Draws) -> Sample:
    """Return at most `most` graphs, from groups in random order."""
    pairs = float(np.square(sample.graphs.sizes.astype(float)).mean())
    most = min(most, max(1, int(_MAX_PAIRS / pairs)))
    if len(sample) <= most:
        return sample
    groups, member = np.unique(sample.group, return_inverse=True)
    place = np.argsort(draws.permutation(len(groups)))[member.ravel()]
    selected = np.sort(np.argsort(place, kind="stable")[:most])
    return replace(
        sample,
        graphs=sample.graphs.take(selected),
        label=sample.label[selected],
        group=sample.group[selected],
    )


def _trained_score(sample: Sample, name: str, seed: int, run: int, epochs: int) -> float:
    """Return the balanced accuracy on held-out graphs after training in one mode."""
    draws = rng_for(seed, f"rings/full/{name}", run)
    label = sample.label
    if name in MODES:
        graphs = in_mode(sample.graphs, name, draws)
    elif name == CONTROL:
        graphs, label = sample.graphs, shuffled_labels(sample, draws)
    else:
        # A shortcut is trained on as a graph of one node, whose features are its columns.
        rows = shortcut(name, sample.graphs, seed)
        graphs = Graphs(rows, np.empty((2, 0), np.int64), None, np.arange(len(label) + 1))
    # The split of a run is the same in every mode.
    split = rng_for(seed, "rings/full/split", run)
    held_out = fold_of_group(sample.label, sample.group, split) == 0
    _, label = np.unique(label, return_inverse=True)
    attributes = None if graphs.edge_attr is None else dense_rows(graphs.edge_attr)
    dense = replace(graphs, x=_scaled(dense_rows(graphs.x)), edge_attr=attributes)
    train, test = np.flatnonzero(~held_out), np.flatnonzero(held_out)
    with seeded(int(draws.words(1)[0] >> np.uint64(1))):
        model = _model_for(dense, int(label.max()) + 1)
        _train(model, dense, label, train, epochs)
    model.train(mode=False)
    with torch.no_grad():
        logits = torch.cat([model(*_tensors(dense.take(part))) for part in _batches(test)])
    return weighted_accuracy(logits.argmax(dim=1).numpy(), label[test])


def _scaled(x: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return columns divided by their root mean square: zero stays zero, and none is huge."""
    size = np.sqrt(np.square(x.astype(np.float64)).mean(axis=0))
    scaled: npt.NDArray[np.float32] = (x / np.where(size == 0, 1, size)).astype(np.float32)
    return scaled


def _model_for(graphs: Graphs, classes: int) -> nn.Module:
    width = graphs.x.shape[1]
    if graphs.edges.shape[1] == 0:
        return DeepSets(width, classes, **_MODEL)
    if graphs.edge_attr is None:
        return GIN(width, classes, **_MODEL)
    return GINE(width, graphs.edge_attr.shape[1], classes, **_MODEL)


def _tensors(graphs: Graphs) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
    """Return the arguments of a model: x, edge_index, edge_attr, batch."""
    x, edges, owner = map(torch.from_numpy, (graphs.x, graphs.edges, graphs.owner))
    attributes = None if graphs.edge_attr is None else torch.from_numpy(graphs.edge_attr)
    return x, edges, attributes, owner


def _train(model: nn.Module, graphs: Graphs, label: Ints, train: Ints, epochs: int) -> None:
    classes = np.bincount(label)
    weight = torch.from_numpy(len(label) / (len(classes) * classes)).float()
    optimiser = torch.optim.Adam(model.parameters(), lr=_RATE)
    steps = epochs * -(-len(train) // _BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, _RATE, total_steps=steps)
    targets = torch.from_numpy(label)
    for epoch in range(epochs):
        if epoch >= _SETTLING * epochs:
            _freeze_statistics(model)
        order = train[torch.randperm(len(train)).numpy()]
        for part in _batches(order):
            logits = model(*_tensors(graphs.take(part)))
            loss = nn.functional.cross_entropy(logits, targets[part], weight=weight)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()


def _freeze_statistics(model: nn.Module) -> None:
    """Train on with the statistics of batch normalisation that evaluation will use.

    With few kinds of nodes, batch and running statistics lead to different answers: 5 of 60
    trainings that were perfect in training mode predicted a single class in evaluation.
    """
    for module in model.modules():
        if isinstance(module, nn.BatchNorm1d):
            module.train(mode=False)


def _batches(order: Ints) -> list[Ints]:
    return np.split(order, range(_BATCH, len(order), _BATCH))
