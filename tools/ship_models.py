"""Copy trained models into `models/`, each with its model card.

Run from a checkout with `python -m tools.ship_models --runs runs --root data`, after
`graphxai-data reproduce --table 3 --budget paper`, and for the other datasets after
`graphxai-data train DATASET --model MODEL`. `--model NAME` ships that model only, `--cards` only
writes the model cards of shipped models again.
"""

import argparse
from dataclasses import replace
from pathlib import Path

from graphxai_data import GraphXAIDataset
from graphxai_data.evaluation.evaluate import evaluate
from graphxai_data.files.disk import write_atomically
from graphxai_data.training.checkpoint import load_checkpoint, read_card, save_checkpoint
from graphxai_data.training.train import run_folder
from tools.model_card import model_card

MODELS = {
    f"{model}-{dataset}": (model, dataset)
    for dataset, models in {
        "ba2motif": ("bcos-gin", "gin"),
        "dihalo": ("bcos-gine", "bcos-gine-x5", "gine"),
        "dihalo-nonet": ("bcos-gine-x5", "gine"),
        "dihalo-decoy": ("bcos-gine-x5", "gine"),
        "dihalo-pair-a": ("bcos-gine", "gine"),
        "dihalo-pair-b": ("bcos-gine", "gine"),
        "ba2motif-balanced": ("bcos-gin", "gin"),
        "ba2motif-pair-a": ("bcos-gin", "gin"),
        "ba2motif-pair-b": ("bcos-gin", "gin"),
        "mnist75sp-r23": ("bcos-gin", "gin"),
        "benzene": ("bcos-gine", "gine"),
        "fluoride-carbonyl": ("bcos-gine", "gine"),
        "logic-10": ("bcos-gine", "gine"),
        "crippen": ("bcos-gine", "gine"),
        "spmotif-33": ("gin",),
        "spmotif-90": ("gin",),
        "spmotif-90-degree": ("bcos-gin",),
    }.items()
    for model in models
}
SEED = 0


def main() -> None:
    """Ship the models that the arguments name."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="folder of all trainings")
    parser.add_argument("--root", type=Path, default=Path("data"), help="folder of all builds")
    parser.add_argument("--model", choices=MODELS, action="append", help="which; all by default")
    parser.add_argument("--cards", action="store_true", help="write model cards again, only")
    arguments = parser.parse_args()
    if arguments.cards:
        for path in (Path(__file__).parent.parent / "models").glob("*/model.toml"):
            text = model_card(path.parent.name, read_card(path.parent))
            write_atomically(path.with_name("README.md"), text.encode())
        return
    for name in arguments.model or MODELS:
        ship(name, arguments.runs, arguments.root)


def ship(name: str, runs: Path, root: Path) -> None:
    """Write checkpoint and card of one model, its map scored on the test graphs."""
    kind, dataset = MODELS[name]
    model, card = load_checkpoint(run_folder(runs, kind, dataset, SEED))
    scores = dict(card.scores["test"])
    if kind.startswith("bcos"):
        row = evaluate(GraphXAIDataset(root, dataset), ["bcos"], model).loc["bcos"].to_dict()
        scores |= {key: row[key] for key in ("jaccard", "auroc", "spearman") if key in row}
    folder = Path(__file__).parent.parent / "models" / name
    card = replace(card, scores={**card.scores, "test": scores})
    save_checkpoint(folder, model.state_dict(), card)
    write_atomically(folder / "README.md", model_card(name, card).encode())


if __name__ == "__main__":
    main()
