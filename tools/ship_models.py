"""Take trained models into `models/`, each with its card.

Run from a checkout with `python -m tools.ship_models --runs runs --root data`, after
`graphxai-data reproduce --table 3 --budget paper`. `--model NAME` ships one of them alone.
"""

import argparse
from dataclasses import replace
from pathlib import Path

from graphxai_data import GraphXAIDataset
from graphxai_data.evaluation.evaluate import evaluate
from graphxai_data.files.disk import write_atomically
from graphxai_data.report.model_card import model_card
from graphxai_data.training.checkpoint import load_checkpoint, save_checkpoint
from graphxai_data.training.train import run_folder

MODELS = {
    "ba2motif": ("bcos-gin", "gin"),
    "dihalo": ("bcos-gine", "gine"),
    "mnist75sp-r23": ("bcos-gin", "gin"),
}
SEED = 0


def main() -> None:
    """Ship them all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="folder of all trainings")
    parser.add_argument("--root", type=Path, default=Path("data"), help="folder of all builds")
    known = [f"{kind}-{name}" for name, kinds in MODELS.items() for kind in kinds]
    parser.add_argument("--model", choices=known, action="append", help="which; all by default")
    arguments = parser.parse_args()
    shipped = Path(__file__).parent.parent / "models"
    for name, models in MODELS.items():
        wanted = [k for k in models if f"{k}-{name}" in (arguments.model or known)]
        if not wanted:
            continue
        dataset = GraphXAIDataset(arguments.root, name)
        for kind in wanted:
            model, card = load_checkpoint(run_folder(arguments.runs, kind, name, SEED))
            scores = dict(card.scores["test"])
            if kind.startswith("bcos"):
                row = evaluate(dataset, ["bcos"], model).loc["bcos"].to_dict()
                scores |= {key: row[key] for key in ("jaccard", "auroc")}
            folder = shipped / f"{kind}-{name}"
            card = replace(card, scores={**card.scores, "test": scores})
            save_checkpoint(folder, model.state_dict(), card)
            text = model_card(folder.name, card)
            write_atomically(folder / "README.md", text.encode())


if __name__ == "__main__":
    main()
