"""The full check: a GIN trained on every mode, DeepSets where there are no edges, several runs."""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from graphxai_data.columns import Ints
from graphxai_data.disk import write_atomically
from graphxai_data.errors import InputError, whole_number
from graphxai_data.nn import GIN, GINE, DeepSets
from graphxai_data.rings import embeddings
from graphxai_data.rings.modes import MODES, Graphs, in_mode
from graphxai_data.rings.probes import fold_of_group
from graphxai_data.rings.quick import mean_complementarity, unmeasurable
from graphxai_data.rings.sample import Sample
from graphxai_data.rings.verdict import CONTROL, PROBES, Measurement, inconclusive, judge
from graphxai_data.seeds import rng_for

# With fewer, twelve comparisons cannot be separable at all: of two times six scores, one order in
# 462 is as extreme as all of one mode above all of the other.
FEWEST_RUNS = 6
_HIDDEN, _LAYERS, _BATCH, _RATE = 64, 3, 32, 5e-3

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Vectors:
    """What a shortcut sees of each graph [g, …]: a graph of one node, for the same training."""

    rows: npt.NDArray[np.float32]

    def as_graphs(self) -> Graphs:
        """One node a graph, standardised."""
        spread = self.rows.std(axis=0)
        rows = (self.rows - self.rows.mean(axis=0)) / np.where(spread == 0, 1, spread)
        nothing = np.empty((2, 0), np.int64)
        return Graphs(rows.astype(np.float32), nothing, None, np.arange(len(rows) + 1))


def full_check(
    sample: Sample,
    seed: int = 0,
    runs: int = 8,
    graphs: int = 2000,
    epochs: int = 20,
    progress: Progress | None = None,
    resume: Path | None = None,
) -> Measurement:
    """Measure both principles by training.

    Args:
        sample: the graphs.
        seed: of everything that is random; run i of every mode has the same split.
        runs: trainings a mode.
        graphs: how many graphs at most, evenly spread over the sample.
        epochs: passes over the training graphs.
        progress: called with (trainings done, trainings in all).
        resume: a file that keeps the scores found so far; a check that was stopped goes on from it.
    """
    whole_number("runs", runs, FEWEST_RUNS, 1000)
    whole_number("epochs", epochs, 1, 100_000)
    whole_number("graphs", graphs, 1, 10**9)
    if reason := unmeasurable(sample):
        return inconclusive("full", reason, graphs=len(sample))
    sample = _fewer(sample, graphs)
    settings = {"seed": seed, "graphs": len(sample), "epochs": epochs, "labels": _digest(sample)}
    kept = _Kept(resume, settings)
    names = (*MODES, *PROBES, CONTROL)
    for run in range(runs):
        for name in names:
            if run >= len(kept.scores.setdefault(name, [])):
                kept.add(name, _trained_score(sample, name, seed, run, epochs))
            if progress:
                progress(run * len(names) + names.index(name) + 1, runs * len(names))
    scores = {name: kept.scores[name][:runs] for name in names}
    principles, comparisons = judge(scores)
    kept.forget()
    return Measurement(
        "full",
        principles,
        graphs=len(sample),
        scores={name: tuple(round(v, 6) for v in values) for name, values in scores.items()},
        comparisons=tuple(c._asdict() for c in comparisons),
        complementarity=mean_complementarity(sample.graphs),
    )


class _Kept:
    """Scores that survive a stop: a JSON file, where there is one."""

    def __init__(self, path: Path | None, settings: dict[str, object]) -> None:
        self._path, self._settings = path, settings
        self.scores: dict[str, list[float]] = {}
        if path is not None and path.is_file():
            try:
                stored = json.loads(path.read_text(encoding="utf-8"))
                usable = stored["settings"] == settings
                self.scores = dict(stored["scores"]) if usable else {}
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(f"{path}: not scores of a check ({error}); delete it") from None

    def add(self, name: str, score: float) -> None:
        self.scores[name].append(score)
        if self._path is not None:
            text = json.dumps({"settings": self._settings, "scores": self.scores})
            write_atomically(self._path, text.encode())

    def forget(self) -> None:
        if self._path is not None:
            self._path.unlink(missing_ok=True)


def _digest(sample: Sample) -> str:
    parts = (sample.label, sample.group, sample.graphs.edges, sample.graphs.x)
    return hashlib.sha256(b"".join(np.ascontiguousarray(p).tobytes() for p in parts)).hexdigest()


def _fewer(sample: Sample, most: int) -> Sample:
    if len(sample) <= most:
        return sample
    chosen = np.unique(np.linspace(0, len(sample) - 1, most).astype(np.int64))
    return Sample(sample.graphs.take(chosen), sample.label[chosen], sample.group[chosen])


def _trained_score(sample: Sample, name: str, seed: int, run: int, epochs: int) -> float:
    """Balanced accuracy on held-out graphs after training in one mode."""
    draws = rng_for(seed, f"rings/full/{name}", run)
    label = sample.label
    if name in MODES:
        graphs = in_mode(sample.graphs, name, draws)
    elif name == CONTROL:
        graphs, label = sample.graphs, label[draws.permutation(len(label))]
    else:
        graphs = Vectors(getattr(embeddings, name)(sample.graphs)).as_graphs()
    # The split of a run is the same in every mode.
    held_out = (
        fold_of_group(sample.label, sample.group, rng_for(seed, "rings/full/split", run)) == 0
    )
    _, label = np.unique(label, return_inverse=True)
    attributes = None if graphs.edge_attr is None else _dense(graphs.edge_attr)
    dense = replace(graphs, x=_dense(graphs.x), edge_attr=attributes)
    train, test = np.flatnonzero(~held_out), np.flatnonzero(held_out)
    # Layers draw their weights from torch's own generator: it gets a seed, and its state back.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(draws.words(1)[0] >> np.uint64(1)))
        model = _model_for(dense, int(label.max()) + 1)
        _train(model, dense, label, train, epochs)
    model.eval()
    with torch.no_grad():
        votes = torch.cat([model(*_tensors(dense.take(part))) for part in _parts(test)])
    right = votes.argmax(dim=1).numpy() == label[test]
    return float(np.mean([right[label[test] == c].mean() for c in np.unique(label[test])]))


def _dense(rows: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """[rows, width] of features that may be class ids."""
    if rows.ndim == 2:
        return rows.astype(np.float32)
    return np.eye(int(rows.max(initial=0)) + 1, dtype=np.float32)[rows.astype(np.int64)]


def _model_for(graphs: Graphs, classes: int) -> nn.Module:
    width = graphs.x.shape[1]
    if graphs.edges.shape[1] == 0:
        return DeepSets(width, classes, _HIDDEN, _LAYERS)
    if graphs.edge_attr is None:
        return GIN(width, classes, _HIDDEN, _LAYERS)
    return GINE(width, graphs.edge_attr.shape[1], classes, _HIDDEN, _LAYERS)


def _tensors(graphs: Graphs) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
    """Arguments of a model: x, edge_index, edge_attr, batch."""
    attributes = None if graphs.edge_attr is None else torch.from_numpy(graphs.edge_attr)
    return (
        torch.from_numpy(graphs.x),
        torch.from_numpy(graphs.edges),
        attributes,
        torch.from_numpy(graphs.owner),
    )


def _train(model: nn.Module, graphs: Graphs, label: Ints, train: Ints, epochs: int) -> None:
    classes = np.bincount(label)
    weight = torch.from_numpy(len(label) / (len(classes) * classes)).float()
    optimiser = torch.optim.Adam(model.parameters(), lr=_RATE)
    steps = epochs * -(-len(train) // _BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, _RATE, total_steps=steps)
    targets = torch.from_numpy(label)
    for _ in range(epochs):
        order = train[torch.randperm(len(train)).numpy()]
        for part in _parts(order):
            if len(part) == 1:
                schedule.step()
                continue  # batch normalisation needs two
            logits = model(*_tensors(graphs.take(part)))
            loss = nn.functional.cross_entropy(logits, targets[part], weight=weight)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()


def _parts(order: Ints) -> Iterator[Ints]:
    for first in range(0, len(order), _BATCH):
        yield order[first : first + _BATCH]
