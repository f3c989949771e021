"""Validation loss and accuracy after changing one setting of a default configuration at a time.

All rows of a table train for the same number of epochs. Run with
`python -m benchmarks.ablation [--root data] [--out runs/ablation]`. Finished trainings are reused.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from graphxai_data import GraphXAIDataset, build
from graphxai_data.training.train import train

# No table of results uses this seed.
SEED = 100
Changes = dict[str, Any]


@dataclass(frozen=True)
class Study:
    """Changes to the default of a model on a dataset, each in a training of its own.

    Trainings are shorter than the defaults, and some use fewer graphs, so all studies together take
    less than an hour on one core.
    """

    dataset: str
    model: str
    short: Changes
    changes: dict[str, Changes]
    graphs: int | None = None


CROSS_ENTROPY = {"loss": "ce", "logit_bias": 0.0}
DENSE = {"evidence_cost": 0.0}
STUDIES = [
    Study(
        "ba2motif",
        "bcos-gin",
        {"epochs": 40},
        {
            # With B = 3, the initial logits of two layers per update underflow.
            "two B-cos layers per update, B = 2": {"update_layers": 2, "b": 2.0},
            "no logit bias": {"logit_bias": 0.0},
            "initial logits not scaled": {"calibrate": False},
            "RMS normalisation": {"norm": "rms"},
            "cross-entropy, no bias": CROSS_ENTROPY,
            "selected by accuracy": {"select": "accuracy"},
            "B = 1": {"b": 1.0},
            "B = 1.5": {"b": 1.5},
            "B = 2": {"b": 2.0},
            "B = 2.5": {"b": 2.5},
        },
    ),
    Study(
        "dihalo",
        "bcos-gine",
        {"epochs": 4},
        {
            "one B-cos layer per update": {"update_layers": 1},
            "additive edges": {"edges": "additive"},
            "dropout 0.5": {"dropout": 0.5},
            "no logit bias": {"logit_bias": 0.0},
            "logit bias -6": {"logit_bias": -6.0},
            "initial logits not scaled": {"calibrate": False},
            "RMS normalisation": {"norm": "rms"},
            "cross-entropy, no bias": CROSS_ENTROPY,
            "width 64": {"hidden": 64},
        },
    ),
    Study(
        "dihalo",
        "gine",
        {"epochs": 4},
        {"no batch normalisation": {"norm": "none"}, "dropout 0.5": {"dropout": 0.5}},
    ),
    Study(
        "mnist75sp-r23",
        "bcos-gin",
        {"epochs": 12},
        {
            # These rows compare architectures, without the sparsity penalty.
            **{f"no sparsity penalty, ε = {e:g}": DENSE | {"eps": e} for e in (20, 0, 5, 10, 40)},
            **{f"no sparsity penalty, B = {b:g}": DENSE | {"b": b} for b in (2.5, 3.0)},
            # Default: 0.03, the highest whose accuracy is within a standard error of the best.
            **{f"sparsity penalty {c:g}": {"evidence_cost": c} for c in (0.01, 0.02, 0.05, 0.1)},
            "no MaxOut": {"max_out": 1},
            "no normalisation": {"norm": "none"},
            "one B-cos layer per update": {"update_layers": 1},
            "cross-entropy, no bias": CROSS_ENTROPY,
            "learning rate 1e-3": {"learning_rate": 1e-3},
            "dropout 0.1": {"dropout": 0.1},
        },
        graphs=5200,
    ),
    Study(
        "mnist75sp-r23",
        "gin",
        {"epochs": 12},
        {"no batch normalisation": {"norm": "none"}},
        graphs=5200,
    ),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default="data", help="folder of builds")
    parser.add_argument("--out", type=Path, default=Path("runs/ablation"), help="folder of runs")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for study in STUDIES:
        root = arguments.root
        if study.graphs is not None:
            root = arguments.out / "data"
            build(study.dataset, root=root, graphs=study.graphs, rings=False)
        dataset = GraphXAIDataset(root, study.dataset)
        epochs = study.short["epochs"]
        print(f"\n{study.model} on {len(dataset):,} graphs of {study.dataset}, {epochs} epochs\n")
        print("| change | validation loss | validation accuracy |\n| --- | --- | --- |", flush=True)
        for label, changes in {"none": {}, **study.changes}.items():
            settings = study.short | {"stop_patience": epochs} | changes
            folder = arguments.out / label.replace(" ", "-")
            _, card = train(dataset, study.model, "default", SEED, folder, changes=settings)
            loss, accuracy = (card.scores["valid"][key] for key in ("loss", "accuracy"))
            print(f"| {label} | {loss:.2g} | {accuracy:.3f} |", flush=True)


if __name__ == "__main__":
    main()
