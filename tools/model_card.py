"""The model card of a shipped reference model: its use, its training data and its scores."""

from graphxai_data.evaluation.benchmark.plan import Plan
from graphxai_data.nn.zoo import ModelName
from graphxai_data.training.checkpoint import Card

_KINDS = {
    "bcos-gin": "B-cos GIN: {output} is an exact sum over the node features and a fixed bias",
    "bcos-gine": "B-cos GINE: {output} is an exact sum over the node features and a fixed bias",
    "gin": "GIN with ReLU, the twin of the B-cos GIN: same depth, width and readout",
    "gine": "GINE with ReLU, the twin of the B-cos GINE: same depth, width and readout",
}
_SIZES = (
    "It is right on test graphs of the size of training graphs, and not on larger ones: "
    "`docs/results-rationales.md` has both."
)
_PAIR = (
    "One half of a pair: evaluate it together with the model of the other half, "
    "`evaluate(Pair.load(…), …, (model_a, model_b))`."
)
# What a user of the model has to know about the dataset.
_LIMITS = {
    "ba2motif": "The classes can be told apart without any edge (`graphxai-data rings` measures "
    "it): a good score here does not show that a model reads structure. The 2-core, a rule that "
    "looks at no model, is exactly the motif: use `ba2motif-balanced` or `ba2motif-pair` where "
    "that matters.",
    "dihalo": "Closeness to a halogen, a rule that looks at no model, explains about as well as "
    "the B-cos map. Compare with it, and use `dihalo-decoy` or `dihalo-pair` where that matters.",
    "mnist75sp-r23": "The superpixels without ink show the digit as well, so a map may rightly "
    "point at them. The rationale is the ink, and sorting superpixels by intensity finds it "
    "perfectly.",
    "benzene": "In molecules without a benzene ring there is nothing to find: look at "
    "`null_outliers` there, not at Jaccard@k.",
    "fluoride-carbonyl": "Most negatives lack fluorine, so counting fluorine atoms almost solves "
    "it, and a model need not look at the carbonyl group. `logic-7` is the same rule without that "
    "shortcut.",
    "logic-10": "There are 2,240 training graphs only, so models are not perfect on it.",
    "dihalo-nonet": "As on `dihalo`, rules that look at no model explain about as well.",
    "dihalo-decoy": "A rule that knows training labels explains well (`wl-log-odds-ball-3`), but "
    "none without labels does. Use `dihalo-pair` where that matters.",
    "dihalo-pair-a": _PAIR,
    "dihalo-pair-b": _PAIR,
    "ba2motif-balanced": "A rule that knows training labels finds the motif "
    "(`wl-log-odds-ball-2`), but none without labels does. Use `ba2motif-pair` where that matters.",
    "ba2motif-pair-a": _PAIR,
    "ba2motif-pair-b": _PAIR,
    "spmotif-33": _SIZES,
    "spmotif-90": _SIZES,
    "spmotif-90-degree": _SIZES,
    "crippen": "The label is a sum of published contributions of atoms: an estimate of logP, not a "
    "measurement.",
}
# Other datasets are opened by their name.
_CLASSES = {"ba2motif": "BA2Motif", "dihalo": "DiHaloBenzene", "mnist75sp-r23": "MNIST75sp"}
_VARIANTS = {"mnist75sp-r23": ', variant="r23"'}
# Where the raw data have a licence of their own.
_DATA_LICENCES = {"mnist75sp-r23": " The images it was trained on, MNIST, are CC BY-SA 3.0."}
_SCORES = {
    "accuracy": "accuracy",
    "f1": "macro F1",
    "mae": "MAE",
    "rmse": "RMSE",
    "r2": "R²",
    "loss": "loss",
    "jaccard": "Jaccard@k of its contribution map",
    "auroc": "node AUROC of its contribution map",
    "spearman": "Spearman correlation of its contribution map with the weights of nodes",
}
_TEXT = """\
# {name}

{kind}. {labels}, {shape.in_features} node features. {members}Seed {card.seed} of the \
default configuration, not selected by its scores: `docs/{page}` has the scores of several seeds.

```python
from graphxai_data import {names}

dataset = {dataset}("data"{variant})
model = load_model("{name}", dataset)
{use}
```

## Scores on test graphs

| | |
| --- | --- |
{table}

## Training data

`{data.dataset}`, seed {data.seed}, content SHA-256 `{data.content_sha256}`, as \
`graphxai-data build {data.dataset}` makes it. Weights were selected on validation graphs. \
Train it again with `graphxai-data train {data.dataset} --model {card.model} --seed {card.seed} \
--threads {card.run[threads]}`; `model.toml` has every setting.

## Intended use and limits

A reference for comparing explainers, and a way to try the package. Not for decisions about \
molecules or images: the model knows nothing but this dataset.

{limits}

Licence: MIT, like the package.{data_licence}
"""


def model_card(name: str, card: Card) -> str:
    """Return the card of the model `name` as Markdown."""
    data, scores = card.data, card.scores["test"]
    dataset, variant = _CLASSES.get(data.dataset), _VARIANTS.get(data.dataset, "")
    if dataset is None:
        dataset, variant = "GraphXAIDataset", f', "{data.dataset}"'
    is_number = card.shape.label == "number"
    names, use = f"{dataset}, explain, load_model", "explain(model, dataset[0]).node_scores"
    use += "  # what each node contributes"
    if not card.model.startswith("bcos"):
        names = f"{dataset}, load_model"
        output = "number" if is_number else "logits"
        use = f"{output} = model(dataset[0].x, dataset[0].edge_index, dataset[0].edge_attr)"
    return _TEXT.format(
        name=name,
        card=card,
        data=data,
        shape=card.shape,
        members=_members(card),
        page=_page(data.dataset),
        kind=_KINDS[ModelName.parse(card.model).kind].format(
            output="the output" if is_number else "each logit"
        ),
        labels="One number per graph" if is_number else f"{card.shape.classes} classes",
        names=names,
        use=use,
        dataset=dataset,
        variant=variant,
        table="\n".join(f"| {_SCORES[k]} | {scores[k]:.4f} |" for k in _SCORES if k in scores),
        limits=_LIMITS[data.dataset],
        data_licence=_DATA_LICENCES.get(data.dataset, ""),
    )


def _members(card: Card) -> str:
    """Return a sentence about the members of an ensemble."""
    members = ModelName.parse(card.model).members
    if members == 1:
        return ""
    seeds = ", ".join(map(str, card.run["member_seeds"]))
    return f"An ensemble of {members} trainings (seeds {seeds}): logits and maps are means. "


def _page(dataset: str) -> str:
    """Return the page with the scores of a dataset's models."""
    plan = Plan.load()
    if dataset in {build for name in plan.names for build in plan.builds(name).values()}:
        return "results.md"
    if dataset in ("ba2motif", "mnist75sp-r23"):
        return "paper-tables.md"
    return "results-rationales.md"
