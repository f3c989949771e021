"""Choose the defaults of B-cos models without masks and without test graphs, then confirm them.

docs/ablation.md has the protocol: candidates, criteria and rule were written down before anything
was run. `python -m benchmarks.maps choose` trains candidates on build seed 1 and prints what the
rule needs: loss and accuracy on validation graphs, and the agreement of maps between restarts.
`python -m benchmarks.maps confirm` trains the defaults on builds 2 and 3 with fresh seeds, and
compares their maps with the masks. Finished trainings and measurements are reused.
"""

import argparse
import json
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import combinations, product
from multiprocessing import get_context
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from graphxai_data import GraphXAIDataset, evaluate, explain
from graphxai_data.datasets.loader import BatchLoader
from graphxai_data.nn import Ensemble
from graphxai_data.nn.gin import GraphModel
from graphxai_data.training.checkpoint import load_checkpoint
from graphxai_data.training.train import run_folder, train

Changes = dict[str, Any]
# Nothing else uses these seeds.
CHOOSE_SEEDS, CONFIRM_SEEDS = range(200, 203), range(300, 305)
# The nodes that hold this share of the positive evidence are the evidence set of a map.
SHARE = 0.9
MEMBERS = 5


@dataclass(frozen=True)
class Family:
    """Datasets that share a default, and the candidates for it by name, in stages."""

    model: str
    datasets: tuple[str, ...]
    base: Changes
    stages: tuple[dict[str, Changes], ...]


def _architectures(
    pressures: Iterable[tuple[float, bool]], depths: Iterable[int]
) -> dict[str, Changes]:
    return {
        f"{combine}, B = {b:g}{', gains' * gains}, {layers} layers": {
            "combine": combine, "b": b, "gains": gains, "layers": layers,
        }
        for combine, (b, gains), layers in product(("sum", "cat"), pressures, depths)
    }  # fmt: skip


PRICES = {f"sparsity penalty {cost:g}": {"evidence_cost": cost} for cost in (0.01, 0.03, 0.1)}
FAMILIES = {
    "molecules": Family(
        "bcos-gine",
        ("dihalo", "dihalo-decoy"),
        {"hidden": 64, "epochs": 3, "stop_patience": 3},
        (
            _architectures(((2.0, False), (2.5, True), (3.0, True)), (3, 4)),
            {
                "6 epochs": {"epochs": 6, "stop_patience": 6},
                "12 epochs": {"epochs": 12, "stop_patience": 12},
                "one layer per update": {"update_layers": 1},
                "width 128": {"hidden": 128},
                **PRICES,
            },
        ),
    ),
    "motifs": Family(
        "bcos-gin",
        ("ba2motif-balanced", "ba2motif-pair-a"),
        {"schedule": "cosine", "learning_rate": 4e-3, "epochs": 40, "stop_patience": 40},
        (
            _architectures(((3.0, False), (2.0, True), (2.5, True), (3.0, True)), (3,)),
            {
                "two layers per update": {"update_layers": 2},
                "4 layers": {"layers": 4},
                "sparsity penalty 0.03": {"evidence_cost": 0.03},
            },
        ),
    ),
    # The architecture of molecules, and the smallest dataset: the others are learned anyway.
    "rules": Family(
        "bcos-gine",
        ("logic-10",),
        {
            "hidden": 64, "layers": 4, "combine": "cat", "gains": True, "b": 3.0,
            "logit_bias": -6.0, "epochs": 20, "stop_patience": 20,
        },
        (
            {
                "20 epochs": {},
                "40 epochs": {"epochs": 40, "stop_patience": 40},
                "40 epochs, learning rate 4e-3": {
                    "epochs": 40, "stop_patience": 40, "learning_rate": 4e-3,
                },
                "learning rate 4e-3": {"learning_rate": 4e-3},
                "B = 2, learning rate 4e-3": {"b": 2.0, "learning_rate": 4e-3},
            },
        ),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Task:
    """One training of a candidate, and what is measured on it."""

    dataset: str
    build: int
    model: str
    seed: int
    name: str
    changes: tuple[tuple[str, Any], ...]
    with_masks: bool = False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("choose", "confirm"))
    parser.add_argument("--family", choices=FAMILIES, required=True)
    parser.add_argument("--stage", type=int, default=0, help="of candidates, from 0")
    parser.add_argument("--on", default="{}", help="JSON: the settings chosen in earlier stages")
    parser.add_argument("--datasets", nargs="+", help="of the family; all by default")
    parser.add_argument("--builds", type=int, nargs=2, default=(2, 3), help="to confirm on")
    parser.add_argument("--root", default="data", help="folder of builds")
    parser.add_argument("--out", type=Path, default=Path("runs/maps"), help="folder of runs")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    arguments = parser.parse_args()
    family, chosen = FAMILIES[arguments.family], json.loads(arguments.on)
    family = replace(family, datasets=tuple(arguments.datasets or family.datasets))
    run = partial(measured, root=arguments.root, out=arguments.out)
    with ProcessPoolExecutor(arguments.jobs, get_context("spawn")) as pool:
        if arguments.what == "choose":
            candidates = family.stages[arguments.stage]
            if arguments.stage:
                candidates = {"as chosen before": {}, **candidates}
            _print_choice(
                pool, run, family, {n: family.base | chosen | c for n, c in candidates.items()}
            )
        else:
            _print_confirmation(pool, run, family, arguments.builds, arguments.root, arguments.out)


def _print_choice(
    pool: ProcessPoolExecutor, run: Any, family: Family, candidates: dict[str, Changes]
) -> None:
    tasks = [
        Task(dataset, 1, family.model, seed, name, tuple(changes.items()))
        for (name, changes), dataset, seed in product(
            candidates.items(), family.datasets, CHOOSE_SEEDS
        )
    ]
    results = iter(pool.map(run, tasks))
    columns = [f"{name}: loss, accuracy, agreement, size" for name in family.datasets]
    print(f"| candidate | {' | '.join(columns)} | mean agreement |", flush=True)
    for name in candidates:
        cells, agreements = [], []
        for _ in family.datasets:
            restarts = [next(results) for _ in CHOOSE_SEEDS]
            loss, accuracy = (np.mean([r[key] for r in restarts]) for key in ("loss", "accuracy"))
            sets = [[np.array(s) for s in r["evidence"]] for r in restarts]
            agreements.append(agreement(sets))
            size = np.mean([len(s) for r in sets for s in r])
            cells.append(f"{loss:.2g}, {accuracy:.4f}, {agreements[-1]:.3f}, {size:.1f}")
        print(f"| {name} | " + " | ".join(cells) + f" | {np.mean(agreements):.3f} |", flush=True)


def agreement(restarts: list[list["np.ndarray"]]) -> float:
    """Return the mean Jaccard overlap of the evidence sets of two restarts, over graphs and pairs.

    Args:
        restarts: for each restart, for each graph the nodes of its evidence set.
    """
    return float(
        np.mean(
            [
                len(np.intersect1d(a, b)) / max(len(np.union1d(a, b)), 1)
                for one, other in combinations(restarts, 2)
                for a, b in zip(one, other, strict=True)
            ]
        )
    )


def evidence_sets(model: torch.nn.Module, part: GraphXAIDataset) -> Iterator["np.ndarray"]:
    """Yield the fewest nodes of each graph that hold `SHARE` of its positive evidence."""
    for batch in BatchLoader(part, 64):
        scores = explain(model, batch).node_scores.double().numpy()
        for start, end in zip(batch.ptr[:-1].tolist(), batch.ptr[1:].tolist(), strict=True):
            positive = scores[start:end].clip(min=0)
            order = np.argsort(-positive, kind="stable")
            total = positive[order].cumsum()
            yield np.sort(order[: int(np.searchsorted(total, SHARE * total[-1])) + 1])


def measured(task: Task, root: str, out: Path) -> dict[str, Any]:
    """Return validation scores and evidence sets; with masks, also scores of test graphs."""
    torch.set_num_threads(1)
    place = out / f"build-{task.build}" / task.name.replace(" ", "-")
    path = place / f"{task.dataset}-{task.model}-{task.seed}.json"
    settings = dict(task.changes)
    if path.is_file() and (known := json.loads(path.read_text()))["settings"] == settings:
        return dict(known)
    dataset = _dataset(root, task.dataset, task.build)
    model, card = train(dataset, task.model, "default", task.seed, place, changes=settings)
    result = {"settings": settings, **card.scores["valid"]}
    if task.with_masks:
        row = evaluate(dataset, ["bcos"], model).loc["bcos"]
        result |= {"jaccard": row.jaccard, "auroc": row.auroc}
    else:
        part = dataset[dataset.get_idx_split()["valid"]]
        result["evidence"] = [nodes.tolist() for nodes in evidence_sets(model, part)]
    path.write_text(json.dumps(result))
    return result


def _print_confirmation(
    pool: ProcessPoolExecutor,
    run: Any,
    family: Family,
    builds: Sequence[int],
    root: str,
    out: Path,
) -> None:
    tasks = [
        Task(dataset, build, family.model, seed, "default", (), with_masks=True)
        for dataset, build, seed in product(family.datasets, builds, CONFIRM_SEEDS)
    ]
    results = iter(pool.map(run, tasks))
    print("| dataset | build | accuracy | single models | lowest | ensembles of five |")
    for name, build in product(family.datasets, builds):
        rows = [next(results) for _ in CONFIRM_SEEDS]
        jaccard = [row["jaccard"] for row in rows]
        accuracy = np.mean([row["accuracy"] for row in rows])
        joined = []
        for first in CONFIRM_SEEDS[::MEMBERS]:
            place = out / f"build-{build}" / "default"
            folders = [run_folder(place, family.model, name, first + i) for i in range(MEMBERS)]
            members = [cast(GraphModel, load_checkpoint(folder)[0]) for folder in folders]
            table = evaluate(_dataset(root, name, build), ["bcos"], Ensemble(members))
            joined.append(f"{table.jaccard['bcos']:.3f}")
        print(f"| {name} | {build} | {accuracy:.4f} | {np.mean(jaccard):.3f} ± "
              f"{np.std(jaccard, ddof=1):.3f} | {min(jaccard):.3f} | {', '.join(joined)} |",
              flush=True)  # fmt: skip


@cache
def _dataset(root: str, name: str, seed: int) -> GraphXAIDataset:
    return GraphXAIDataset(root, name, seed)


if __name__ == "__main__":
    main()
