"""Explanations of models for numbers: one output per graph."""

import math
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from captum.attr import IntegratedGradients
from torch import nn
from torch_geometric.explain import CaptumExplainer, DummyExplainer, Explainer, GNNExplainer

from graphxai_data import GraphXAIDataset, evaluate, explain
from graphxai_data.datasets.loader import BatchLoader
from graphxai_data.errors import InputError
from graphxai_data.evaluation.comparison import compare
from graphxai_data.explain import BcosExplainer, Explanation, Inputs
from graphxai_data.explain.gnn_explainer import Masks, gnn_explainer
from graphxai_data.explain.variants import VARIANTS, variants_for
from graphxai_data.nn import GIN, GSAT, BcosGIN, BcosGINE
from graphxai_data.recipe import Recipe
from graphxai_data.training.train import train
from tests.explain.test_other_explainers import FEATURES, PyGTwin, some_batch, some_graph

CONFIG = {"mode": "regression", "task_level": "graph"}


def one_output(bias: float = 0.0) -> BcosGIN:
    model = BcosGIN(FEATURES, 1, 8, 2, logit_bias=bias, norm="rms").double()
    return model.train(mode=False)


@pytest.mark.parametrize("target", [None, 0])
def test_contributions_and_bias_add_up_to_the_number(target: int | None) -> None:
    model, batch = one_output(bias=2.5), some_batch()
    model.logit_scale.fill_(-400.0)
    outputs = model(batch.x, batch.edge_index, None, batch.batch).squeeze(1)
    assert (outputs < 0).any()  # signs are those of the number
    explanation = explain(model, batch, target)
    assert explanation.target.tolist() == [0, 0, 0]
    torch.testing.assert_close(explanation.logit, outputs.detach())
    torch.testing.assert_close(explanation.node_sums + 2.5, outputs.detach())
    assert explanation.bias.tolist() == [2.5] * 3


def test_the_map_of_additive_edges_adds_up_to_the_number(numbers: GraphXAIDataset) -> None:
    batch = next(iter(BatchLoader(numbers, 20)))
    for edges in ("additive", "multiplicative"):
        model = BcosGINE(3, 2, 1, 8, 2, edges=edges, norm="rms").train(mode=False)
        explanation = explain(model, batch)
        assert explanation.completeness_gap().max() < 1e-4
        assert (explanation.edge_scores is not None) == (edges == "additive")


@pytest.mark.parametrize("method", ["saliency", "input-x-gradient", "integrated-gradients", "bcos"])
def test_a_contrast_of_numbers_is_refused(method: str) -> None:
    with pytest.raises(InputError, match="'contrast' is between the logits of classes, and this"):
        explain(one_output(), some_batch(), method=method, row="contrast")
    with pytest.raises(InputError, match="target: expected a class from 0 to 0, got 1"):
        explain(one_output(), some_batch(), 1, method=method)


def test_integrated_gradients_of_a_number_are_captums() -> None:
    model, data = GIN(FEATURES, 1, 8, 2).double().train(mode=False), some_graph(9, 4)

    def forward(x: torch.Tensor) -> torch.Tensor:  # Captum repeats x once per step
        copies = len(x) // 9
        parts = [model(part, data.edge_index) for part in x.view(copies, 9, -1)]
        return (
            torch.zeros(len(x))
            .double()
            .index_put((torch.arange(copies) * 9,), torch.cat(parts)[:, 0])
        )

    steps = IntegratedGradients(forward).attribute(data.x, n_steps=50, method="gausslegendre")
    explanation = explain(model, data, method="integrated-gradients")
    torch.testing.assert_close(explanation.feature_scores, steps.detach())


@pytest.mark.parametrize("node_mask", [True, False])
def test_gnn_explainer_of_a_number_is_pygs(node_mask: bool) -> None:
    model, data = GIN(FEATURES, 1, 8, 2).double().train(mode=False), some_graph(9, 4)
    explainer = Explainer(
        PyGTwin(model), GNNExplainer(epochs=60), explanation_type="model",
        node_mask_type="attributes" if node_mask else None, edge_mask_type="object",
        model_config=CONFIG,
    )  # fmt: skip
    torch.manual_seed(5)
    expected = explainer(data.x, data.edge_index)
    torch.manual_seed(5)
    features = torch.randn(9, FEATURES) * 0.1 if node_mask else None
    edges = torch.randn(data.num_edges) * math.sqrt(2) * math.sqrt(2 / 18)
    explanation = gnn_explainer(
        model, Inputs.of(data), epochs=60, node_mask=node_mask, initial=Masks(edges, features)
    )
    torch.testing.assert_close(explanation.edge_scores, expected.edge_mask, atol=1e-5, rtol=1e-4)
    assert expected.edge_mask.std() > 0.05
    if node_mask:
        torch.testing.assert_close(
            explanation.feature_scores, expected.node_mask, atol=1e-5, rtol=1e-4
        )


def test_gnn_explainer_gives_a_batch_of_numbers_the_same_as_its_graphs() -> None:
    model, batch = one_output(), some_batch()
    whole = explain(model, batch, method="gnn-explainer", epochs=15)
    alone = [explain(model, g, method="gnn-explainer", epochs=15) for g in batch.to_data_list()]
    torch.testing.assert_close(whole.edge_scores, torch.cat([e.edge_scores for e in alone]))


def test_the_attention_of_gsat_is_shown_for_a_number() -> None:
    model = GSAT(FEATURES, 1, 8, 2).double().train(mode=False)
    explanation = explain(model, some_batch(), method="gsat")
    assert explanation.target.tolist() == [0, 0, 0]
    assert (explanation.edge_scores > 0).all()


def test_contrasts_are_not_offered_for_numbers(numbers: GraphXAIDataset) -> None:
    recipe = numbers.manifest.load_recipe()
    for model in (one_output(), GIN(FEATURES, 1, 8, 2)):
        offered = {variant.name for variant in variants_for(model, recipe)}
        of_classes = {variant.name for variant in variants_for(model, Recipe.load("ba2motif"))}
        contrasts = {v.name for v in VARIANTS if v.options.get("row") == "contrast"}
        assert of_classes - offered == of_classes & contrasts != set()


@pytest.mark.parametrize("name", ["bcos", "integrated-gradients"])
def test_a_contrast_of_numbers_says_why_and_what_to_use(
    name: str, numbers: GraphXAIDataset, tmp_path: Path
) -> None:
    message = (
        f"explainer '{name}-contrast': contrasts compare classes, and the labels of "
        f"'{numbers.name}' are numbers; use '{name}'"
    )
    with pytest.raises(InputError, match=re.escape(message)):
        compare(numbers, None, [f"{name}-contrast"], (0,), tmp_path)
    with pytest.raises(InputError, match=re.escape(message)):
        evaluate(numbers, [f"{name}-contrast"], one_output())


@pytest.mark.parametrize("model", ["bcos-gine", "gine", "gsat"])
def test_all_explainers_that_are_offered_score_nodes_of_numbers(
    model: str, numbers: GraphXAIDataset, tmp_path: Path
) -> None:
    changes = {"epochs": 1, "hidden": 8}
    network, _ = train(numbers, model, out=tmp_path, changes=changes)
    batch = next(iter(BatchLoader(numbers[:4], 4)))
    variants = variants_for(network, numbers.manifest.load_recipe())
    assert variants
    for variant in variants:
        options = variant.options_for(numbers.manifest.load_recipe())
        options |= {"epochs": 2} if variant.method == "gnn-explainer" else {}
        explanation = explain(network, batch, method=variant.method, **options)
        assert torch.isfinite(explanation.node_scores).all()
        assert explanation.node_scores.std() > 0


def explainer_of(model: nn.Module, algorithm: Any, **options: Any) -> Explainer:
    settings = {"explanation_type": "model", "node_mask_type": "attributes"} | options
    return Explainer(model, algorithm, model_config=CONFIG, **settings)


def test_pygs_explainer_gets_the_map_of_a_number() -> None:
    model, data = one_output(bias=1.5), some_graph(9, 4)
    pyg = explainer_of(model, BcosExplainer())(data.x, data.edge_index)
    ours = explain(model, data)
    torch.testing.assert_close(pyg.node_mask, ours.feature_scores)
    back = Explanation.from_pyg(pyg)
    assert back.target.tolist() == [0]
    torch.testing.assert_close(back.node_scores, ours.node_scores)
    torch.testing.assert_close(back.logit, ours.logit)
    assert back.completeness_gap().max() < 1e-6
    with pytest.raises(InputError, match="mode 'regression': expected a model with one output, go"):
        several = BcosGIN(FEATURES, 3, 8, 2).double().train(mode=False)
        explainer_of(several, BcosExplainer())(data.x, data.edge_index)


def test_several_numbers_in_an_explanation_of_pyg_have_no_target() -> None:
    model, data = GIN(FEATURES, 3, 8, 2).double().train(mode=False), some_graph(9, 4)
    pyg = explainer_of(model, DummyExplainer())(data.x, data.edge_index)
    assert pyg.target.shape == (1, 3)
    assert Explanation.from_pyg(pyg).target is None


def test_explainers_of_pyg_are_rows_for_numbers(numbers: GraphXAIDataset) -> None:
    part = numbers[numbers.get_idx_split()["test"]][:4]
    model = GIN(3, 1, 8, 2).train(mode=False)
    rows = {
        "integrated": CaptumExplainer("IntegratedGradients"),
        "masks": GNNExplainer(epochs=3),
        "label": explainer_of(model, GNNExplainer(epochs=3), explanation_type="phenomenon"),
    }
    table = evaluate(part, rows, model)
    assert list(table.index) == list(rows)
    ours = evaluate(part, ["integrated-gradients"], model).loc["integrated-gradients"]
    assert table.loc["integrated", "auroc"] == pytest.approx(ours["auroc"])
    of_classes = Explainer(
        model, DummyExplainer(), "model", {"mode": "multiclass_classification",
        "task_level": "graph", "return_type": "raw"}, node_mask_type="object",
    )  # fmt: skip
    message = "made for mode 'multiclass_classification', expected 'regression': models have one"
    with pytest.raises(InputError, match=message):
        evaluate(part, {"classes": of_classes}, model)


def test_a_model_for_classes_is_refused_for_numbers(numbers: GraphXAIDataset) -> None:
    part, model = numbers[:4], GIN(3, 2, 8, 2).train(mode=False)
    message = r"expected outputs \[graphs, 1\], since the labels of these graphs are numbers, got 2"
    with pytest.raises(InputError, match=message):
        evaluate(part, ["saliency"], model)
