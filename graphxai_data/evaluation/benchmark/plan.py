"""What the big table has: datasets, trainings, graphs and explainers, as `plan.toml` says."""

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.errors import InputError, nearest
from graphxai_data.evaluation.pairs import HALVES

# Fewer seeds give neither a deviation nor an interval over trainings.
FEWEST_SEEDS = 3
# Kinds of models: B-cos, alone and as an ensemble, its ReLU twin, and GSAT.
KINDS = ("bcos", "twin", "gsat")


@dataclass(frozen=True)
class Plan:
    """The datasets, trainings and explainers of a table; `plan.toml` describes each field."""

    datasets: tuple[str, ...]
    pairs: tuple[str, ...]
    seeds: tuple[int, ...]
    members: int
    ensembles: tuple[str, ...]
    graphs: int
    fewer: dict[str, int] = field(default_factory=dict)

    @classmethod
    def load(cls, only: Sequence[str] = (), seeds: Sequence[int] | None = None) -> "Plan":
        """Return the shipped plan; with `only`, some of its datasets and pairs."""
        path = Path(__file__).with_name("plan.toml")
        values: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
        known = (*values["datasets"], *values["pairs"])
        for name in only:
            if name not in known:
                raise InputError(f"'{name}' is not in the big table; {nearest(name, known)}")
        selected = only or known
        values["seeds"] = check_seeds(values["seeds"] if seeds is None else seeds)
        for key in ("datasets", "pairs", "ensembles"):
            values[key] = tuple(name for name in values[key] if name in selected)
        return cls(**values)

    @property
    def names(self) -> tuple[str, ...]:
        """The rows of the table: datasets and pairs."""
        return (*self.datasets, *self.pairs)

    def builds(self, name: str) -> dict[str, str]:
        """Return the datasets that models of a row are trained on, by half; "" for no pair."""
        return {half: f"{name}-{half}" for half in HALVES} if name in self.pairs else {"": name}

    def graphs_for(self, *names: str) -> int:
        """Return on how many graphs an explainer is scored, by its name or method."""
        return min(self.fewer.get(name, self.graphs) for name in names)

    def tasks(self) -> Iterator["Task"]:
        """Yield all trainings, seed by seed: a table that is stopped has some of every dataset."""
        for seed, name in product(self.seeds, self.names):
            for (half, dataset), kind in product(self.builds(name).items(), KINDS):
                yield Task(name, dataset, half, kind, seed)

    def models(self, task: "Task", dataset: GraphXAIDataset) -> tuple[str, ...]:
        """Return the names of a task's models; with edge features where the dataset has some."""
        edges = "e" if dataset.num_edge_features else ""
        bcos = f"bcos-gin{edges}"
        ensemble = (f"{bcos}-x{self.members}",) if task.name in self.ensembles else ()
        return {"bcos": (bcos, *ensemble), "twin": (f"gin{edges}",), "gsat": ("gsat",)}[task.kind]


@dataclass(frozen=True)
class Task:
    """Models of one kind to train on one dataset with one seed, and to explain.

    A single B-cos model is the first member of the ensemble, so both are one task.
    """

    name: str  # the row of the table: a dataset or a pair
    dataset: str
    half: str
    kind: str  # one of `KINDS`
    seed: int

    def __str__(self) -> str:
        return f"{self.kind} on {self.dataset}, seed {self.seed}"


def check_seeds(seeds: Sequence[int]) -> tuple[int, ...]:
    """Return the seeds; an `InputError` if they are too few for statistics."""
    if len(set(seeds)) < FEWEST_SEEDS:
        raise InputError(
            f"seeds: expected at least {FEWEST_SEEDS}, got {len(set(seeds))}; an interval over "
            "trainings needs several: `evaluate NAME --seeds 0` shows one training"
        )
    return tuple(dict.fromkeys(seeds))
