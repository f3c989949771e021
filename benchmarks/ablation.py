"""What each choice of the default configurations is worth, by validation alone.

Every line changes one setting of a default, and trains for as many epochs as its first line. Run
with `python -m benchmarks.ablation [--root data] [--out runs/ablation]`; what is trained already is
not trained again.
"""

import argparse
import statistics
from pathlib import Path
from typing import Any

import torch

from graphxai_data import GraphXAIDataset
from graphxai_data.train import train

# Seeds that the table of results does not use.
SEEDS = range(100, 103)
Changes = dict[str, Any]

# Shorter than the defaults, so that all of it ends within half an hour on one core.
STUDIES: list[tuple[str, str, range, Changes, dict[str, Changes]]] = [
    (
        "ba2motif",
        "bcos-gin",
        SEEDS,
        {"epochs": 40},
        {
            "two B-cos layers an update": {"update_layers": 2},
            "no logit bias": {"logit_bias": 0.0},
            "initial logits not scaled": {"calibrate": False},
            "RMS normalisation": {"norm": "rms"},
            "cross-entropy, no bias": {"loss": "ce", "logit_bias": 0.0},
            "selected by accuracy": {"select": "accuracy"},
            "B = 1": {"b": 1.0},
            "B = 1.5": {"b": 1.5},
            "B = 2.5": {"b": 2.5},
            "B = 3": {"b": 3.0},
        },
    ),
    (
        "dihalo",
        "bcos-gine",
        SEEDS[:1],
        {"epochs": 5, "stop_patience": 5},
        {
            "one B-cos layer an update": {"update_layers": 1},
            "additive edges": {"edges": "additive"},
            "dropout 0.5": {"dropout": 0.5},
            "no logit bias": {"logit_bias": 0.0},
            "initial logits not scaled": {"calibrate": False},
            "RMS normalisation": {"norm": "rms"},
            "cross-entropy, no bias": {"loss": "ce", "logit_bias": 0.0},
            "64 wide": {"hidden": 64},
        },
    ),
    (
        "dihalo",
        "gine",
        SEEDS[:1],
        {"epochs": 5, "stop_patience": 5},
        {"no batch normalisation": {"norm": "none"}, "dropout 0.5": {"dropout": 0.5}},
    ),
    (
        "mnist75sp-r23",
        "bcos-gin",
        SEEDS[:1],
        {"epochs": 4, "stop_patience": 4},
        {
            "no MaxOut": {"max_out": 1},
            "no normalisation": {"norm": "none"},
            "one B-cos layer an update": {"update_layers": 1},
            "cross-entropy, no bias": {"loss": "ce", "logit_bias": 0.0},
            "learning rate 1e-3": {"learning_rate": 1e-3},
        },
    ),
    (
        "mnist75sp-r23",
        "gin",
        SEEDS[:1],
        {"epochs": 4, "stop_patience": 4},
        {"no batch normalisation": {"norm": "none"}},
    ),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default="data", help="folder of builds")
    parser.add_argument("--out", type=Path, default=Path("runs/ablation"), help="folder of runs")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    for name, model, seeds, short, variants in STUDIES:
        dataset = GraphXAIDataset(arguments.root, name)
        print(f"\n{model} on {name}, {short['epochs']} epochs, {len(seeds)} seed(s)\n", flush=True)
        print("| change | validation loss | validation accuracy |\n| --- | --- | --- |", flush=True)
        for label, changes in {"none": {}, **variants}.items():
            folder = arguments.out / label.replace(" ", "-")
            cards = [
                train(dataset, model, "default", seed, folder, changes=short | changes)[1]
                for seed in seeds
            ]
            loss, accuracy = (
                statistics.mean(card.scores["valid"][key] for card in cards)
                for key in ("loss", "accuracy")
            )
            print(f"| {label} | {loss:.2g} | {accuracy:.3f} |", flush=True)


if __name__ == "__main__":
    main()
