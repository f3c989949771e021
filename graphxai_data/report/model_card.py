"""The card of a shipped reference model: what it is for, what it was trained on, how good it is."""

from graphxai_data.training.checkpoint import Card

_KINDS = {
    "bcos-gin": "B-cos GIN: each logit is an exact sum over the node features and a fixed bias",
    "bcos-gine": "B-cos GINE: each logit is an exact sum over the node features and a fixed bias",
    "gin": "GIN with ReLU, the twin of the B-cos GIN: same depth, width and readout",
    "gine": "GINE with ReLU, the twin of the B-cos GINE: same depth, width and readout",
}
# What somebody who takes the model has to know about the dataset.
_LIMITS = {
    "ba2motif": "The classes can be told without any edge (`graphxai-data rings` measures it): a "
    "good score here does not show that a model reads structure.",
    "dihalo": "Closeness to a halogen, a rule that looks at no model, explains about as well as "
    "the B-cos map: compare with it, and use `dihalo-decoy` where that matters.",
    "mnist75sp-r23": "The digit can be read off the superpixels without ink, too, so that a map "
    "may be right to point at them; the rationale is the ink, and sorting superpixels by intensity "
    "finds it perfectly.",
}
_CLASSES = {"ba2motif": "BA2Motif", "dihalo": "DiHaloBenzene", "mnist75sp-r23": "MNIST75sp"}
_VARIANTS = {"mnist75sp-r23": ', variant="r23"'}
# Where the raw data ask for more than the package does.
_DATA_LICENCES = {"mnist75sp-r23": " The images it was trained on, MNIST, are CC BY-SA 3.0."}


def model_card(name: str, card: Card) -> str:
    """Markdown."""
    data, test = card.data, card.scores["test"]
    dataset, variant = _CLASSES[data.dataset], _VARIANTS.get(data.dataset, "")
    rows = [("accuracy", "accuracy"), ("macro F1", "f1"), ("loss", "loss")]
    rows += [("Jaccard@k of its contribution map", "jaccard"), ("node AUROC of it", "auroc")]
    table = [f"| {label} | {test[key]:.4f} |" for label, key in rows if key in test]
    if card.model.startswith("bcos"):
        names = f"{dataset}, explain, load_model"
        use = "explain(model, dataset[0]).node_scores  # what each node contributes"
    else:
        names = f"{dataset}, load_model"
        use = "logits = model(dataset[0].x, dataset[0].edge_index, dataset[0].edge_attr)"
    return "\n".join(
        [
            f"# {name}",
            "",
            f"{_KINDS[card.model]}. {card.shape.classes} classes, {card.shape.in_features} node "
            f"features. Seed {card.seed} of the default configuration, not chosen for its scores: "
            "`docs/results.md` has those of five seeds.",
            "",
            "```python",
            f"from graphxai_data import {names}",
            "",
            f'dataset = {dataset}("data"{variant})',
            f'model = load_model("{name}", dataset)',
            use,
            "```",
            "",
            "## Scores on test graphs",
            "",
            "| | |",
            "| --- | --- |",
            *table,
            "",
            "## Training data",
            "",
            f"`{data.dataset}`, seed {data.seed}, content SHA-256 `{data.content_sha256}`, as "
            f"`graphxai-data build {data.dataset}` makes it. Weights were chosen on validation "
            f"graphs. Train it again with `graphxai-data train {data.dataset} --model {card.model} "
            f"--seed {card.seed} --threads {card.run['threads']}`; `model.toml` has every setting.",
            "",
            "## Intended use and limits",
            "",
            "A fixed point for comparing explainers, and a start for trying the package out. Not "
            "for decisions about molecules or images: it knows nothing but this dataset.",
            "",
            _LIMITS[data.dataset],
            "",
            f"Licence: MIT, as the package.{_DATA_LICENCES.get(data.dataset, '')}",
            "",
        ]
    )
