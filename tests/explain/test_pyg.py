"""Explanations go to PyG and come back, and PyG's metrics take them."""

import sys
from types import ModuleType
from typing import Any

import pytest
import sklearn.metrics
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.explain import Explainer, GNNExplainer
from torch_geometric.explain import Explanation as PyGExplanation
from torch_geometric.explain.metric import (
    characterization_score,
    fidelity,
    groundtruth_metrics,
    unfaithfulness,
)
from torch_geometric.nn import GINConv, global_add_pool

from graphxai_data import explain
from graphxai_data.errors import InputError
from graphxai_data.explain import BcosExplainer, Explanation, nodes_from_edges
from graphxai_data.nn import GIN, BcosGIN, BcosGINE
from tests.explain.test_other_explainers import CLASSES, FEATURES, some_batch, some_gin, some_graph

CONFIG = {"mode": "multiclass_classification", "task_level": "graph", "return_type": "raw"}


def explainer_of(model: nn.Module, **options: Any) -> Explainer:
    usual = {"explanation_type": "model", "model_config": CONFIG, "node_mask_type": "object"}
    return Explainer(model, GNNExplainer(), **{**usual, **options})


def unit(scores: Tensor, graph: Tensor) -> Tensor:
    """Return scores moved to 0…1, graph by graph."""
    parts = [scores[graph == i] for i in range(int(graph.max()) + 1)]
    return torch.cat([(part - part.min()) / (part.max() - part.min()) for part in parts])


def test_node_scores_become_a_mask_from_0_to_1_in_each_graph() -> None:
    model, data = BcosGIN(FEATURES, CLASSES, 8, 2).double().train(mode=False), some_batch()
    explanation = explain(model, data)
    pyg = explanation.to_pyg()
    assert pyg.validate()
    assert pyg.available_explanations == ["node_mask"]
    assert pyg.node_mask.shape == (21, 1)
    torch.testing.assert_close(pyg.node_mask[:, 0], unit(explanation.node_scores, data.batch))
    by_feature = explanation.to_pyg("attributes")
    assert by_feature.validate()
    assert by_feature.node_mask.shape == (21, FEATURES)
    features = unit(explanation.feature_scores, data.batch)
    torch.testing.assert_close(by_feature.node_mask, features)
    raw = explanation.to_pyg("attributes", scale="none")
    assert torch.equal(raw.node_mask, explanation.feature_scores)


def test_edge_scores_become_a_mask_where_there_are_any() -> None:
    explanation = explain(some_gin(), some_batch(), method="gnn-explainer", epochs=5)
    factors = explanation.to_pyg(None, "object", scale="none")
    assert factors.validate()
    assert factors.available_explanations == ["edge_mask"]
    assert torch.equal(factors.edge_mask, explanation.edge_scores)
    edges = explanation.to_pyg(None, "object").edge_mask
    torch.testing.assert_close(edges, unit(explanation.edge_scores, explanation.edge_graph))
    assert len(explanation.to_pyg("object", "object").available_explanations) == 2


def test_equal_scores_and_graphs_without_edges_are_kept() -> None:
    lonely = Data(x=torch.ones(1, FEATURES).double(), edge_index=torch.zeros(2, 0).long())
    lonely.graph_id, lonely.node_mask = torch.tensor([5]), torch.tensor([True])
    data = Batch.from_data_list([some_graph(5, 1), lonely])
    explanation = explain(None, data, method="degree")
    assert explanation.to_pyg().node_mask[-1] == 1
    mask = explain(some_gin(), lonely, method="gnn-explainer", epochs=1).to_pyg(None, "object")
    assert mask.edge_mask.shape == (0,)


@pytest.mark.parametrize("kind", ["object", "attributes"])
def test_fidelity_and_unfaithfulness_of_pyg_take_explanations(kind: Any) -> None:
    model, data = some_gin(), some_batch()
    explanation = explain(model, data, method="input-x-gradient")
    pyg = explanation.to_pyg(kind)
    explainer = explainer_of(model, node_mask_type=kind)
    scores = explanation.node_scores[:, None] if kind == "object" else explanation.feature_scores
    mask = unit(scores, data.batch)

    def logits(x: Tensor) -> Tensor:
        return model(x, data.edge_index, None, data.batch).detach()

    whole, kept, rest = (logits(data.x * factor) for factor in (1, mask, 1 - mask))
    changed = [float((y.argmax(1) != whole.argmax(1)).double().mean()) for y in (rest, kept)]
    assert fidelity(explainer, pyg) == pytest.approx(changed)
    p, q = whole.softmax(1), kept.softmax(1)
    divergence = float((q * (q.log() - p.log())).sum(1).mean())
    expected = 1 - torch.exp(torch.tensor(-divergence)).item()
    assert unfaithfulness(explainer, pyg) == pytest.approx(expected, abs=1e-6)
    assert 0 < unfaithfulness(explainer, pyg) < 1
    phenomenon = explainer_of(model, node_mask_type=kind, explanation_type="phenomenon")
    assert fidelity(phenomenon, pyg) == pytest.approx(changed)


def test_masks_of_edges_reach_the_metrics_of_pyg() -> None:
    model, data = some_gin(), some_batch()
    explanation = explain(model, data, method="gnn-explainer", epochs=30)
    pyg = explanation.to_pyg(None, "object", scale="none")
    explainer = explainer_of(model, node_mask_type=None, edge_mask_type="object")
    weights = explanation.edge_scores
    whole, kept, rest = (
        model(data.x, data.edge_index, None, data.batch, edge_weight=weight).argmax(1)
        for weight in (torch.ones_like(weights), weights, 1 - weights)
    )
    changed = [float((y != whole).double().mean()) for y in (rest, kept)]
    assert fidelity(explainer, pyg) == pytest.approx(changed)
    assert unfaithfulness(explainer, pyg) > 0
    kinds = explainer(data.x, data.edge_index, batch=data.batch)
    assert set(pyg.keys()) - {"logit", "bias"} <= set(kinds.keys()) | {"edge_mask"}


def test_pygs_characterisation_of_a_necessary_and_sufficient_explanation_is_1() -> None:
    class FirstNode(nn.Module):
        def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
            value = global_add_pool(x[:, :1], batch)
            return torch.cat([torch.full_like(value, 0.5), value], dim=1)

    data = Data(x=torch.eye(4), edge_index=torch.tensor([[0, 1, 2], [1, 2, 3]]))
    model = FirstNode().train(mode=False)
    pyg = explain(model, data, method="input-x-gradient").to_pyg()
    assert pyg.node_mask.flatten().tolist() == [1, 0, 0, 0]
    assert pyg._model_args == ["batch"]
    plus, minus = fidelity(explainer_of(model), pyg)
    assert (plus, minus) == (1, 0)
    assert characterization_score(torch.tensor(plus), torch.tensor(minus)) == 1


class NoEdgeAttr(nn.Module):
    """A model of one's own that does not take the features that edges have."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = GINConv(nn.Linear(FEATURES, CLASSES)).double()

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        return global_add_pool(self.conv(x, edge_index), batch)


def test_pyg_gets_the_arguments_that_the_model_takes() -> None:
    data = some_batch()
    data.edge_attr = torch.rand(data.num_edges, 2).double()
    own = NoEdgeAttr().train(mode=False)
    pyg = explain(own, data, method="saliency").to_pyg()
    assert pyg._model_args == ["batch"]
    assert sum(fidelity(explainer_of(own), pyg)) >= 0
    gine = BcosGINE(FEATURES, 2, CLASSES, 8, 2).double().train(mode=False)
    pyg = explain(gine, data).to_pyg()
    assert sorted(pyg._model_args) == ["batch", "edge_attr"]
    assert unfaithfulness(explainer_of(gine), pyg) >= 0


def test_a_node_is_explained_in_pygs_metrics_by_its_index() -> None:
    model = GIN(FEATURES, CLASSES, 8, 2, level="node").double().train(mode=False)
    graph = some_graph(7, 1)
    explanation = explain(model, graph, node=3, method="saliency")
    pyg = explanation.to_pyg()
    assert pyg.index.tolist() == [3]
    explainer = explainer_of(model, model_config=CONFIG | {"task_level": "node"})
    mask = unit(explanation.node_scores, graph.x[:, 0].long() * 0)[:, None]
    predicted = [
        int(model(graph.x * factor, graph.edge_index)[3].argmax()) for factor in (1, mask, 1 - mask)
    ]
    expected = float(predicted[2] != predicted[0]), float(predicted[1] != predicted[0])
    assert fidelity(explainer, pyg) == expected
    back = Explanation.from_pyg(pyg)
    assert (back.node, int(back.target), back.logit) == (3, int(explanation.target), None)
    back = Explanation.from_pyg(explanation.to_pyg(scale="none"))
    assert (back.node, float(back.logit)) == (3, float(explanation.logit))


@pytest.fixture
def torchmetrics(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let PyG find torchmetrics; where it is not installed, the functions of scikit-learn."""
    try:
        import torchmetrics  # noqa: F401
    except ImportError:
        package, functions = ModuleType("torchmetrics"), ModuleType("torchmetrics.functional")

        def thresholded(metric: Any) -> Any:
            return lambda pred, target, _, threshold: metric(target, pred > threshold)

        functions.accuracy = thresholded(sklearn.metrics.accuracy_score)  # type: ignore[attr-defined]
        functions.recall = thresholded(sklearn.metrics.recall_score)  # type: ignore[attr-defined]
        functions.precision = thresholded(sklearn.metrics.precision_score)  # type: ignore[attr-defined]
        functions.f1_score = thresholded(sklearn.metrics.f1_score)  # type: ignore[attr-defined]
        functions.auroc = lambda p, t, _: sklearn.metrics.roc_auc_score(t, p)  # type: ignore[attr-defined]
        package.functional = functions  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "torchmetrics", package)
        monkeypatch.setitem(sys.modules, "torchmetrics.functional", functions)


@pytest.mark.usefixtures("torchmetrics")
def test_groundtruth_metrics_of_pyg_take_masks() -> None:
    graph = some_graph(9, 2)
    explanation = explain(some_gin(), graph, method="input-x-gradient")
    mask = explanation.to_pyg().node_mask
    accuracy, *_, auroc = groundtruth_metrics(mask, graph.node_mask)
    pairs = [
        (a > b) + (a == b) / 2
        for a in explanation.node_scores[graph.node_mask].tolist()
        for b in explanation.node_scores[~graph.node_mask].tolist()
    ]
    assert auroc == pytest.approx(sum(pairs) / len(pairs))  # scaling keeps the order
    right = (mask[:, 0] > 0.5) == graph.node_mask
    assert accuracy == pytest.approx(float(right.double().mean()))


def test_an_explanation_comes_back_from_pyg() -> None:
    for method, options in (("bcos", {}), ("gnn-explainer", {"epochs": 3})):
        model = BcosGIN(FEATURES, CLASSES, 8, 2, logit_bias=-1.0).double().train(mode=False)
        explanation = explain(model, some_batch(), method=method, **options)
        edges = None if explanation.edge_scores is None else "object"
        back = Explanation.from_pyg(explanation.to_pyg("object", edges, scale="none"))
        for part in (
            "node_scores", "edge_scores", "bias", "logit", "target", "batch", "edge_graph",
        ):  # fmt: skip
            expected, found = getattr(explanation, part), getattr(back, part)
            assert (expected is None and found is None) or torch.equal(expected, found)
        assert back.arguments == tuple(explanation.to_pyg()._model_args)
        assert "node_mask" not in back.data  # it would be taken for the rationale
        assert back.to_pyg().validate()


def test_explanations_of_pyg_become_ours() -> None:
    model, data = some_gin(), some_batch()
    explainer = explainer_of(model, node_mask_type="attributes", edge_mask_type="object")
    explainer.algorithm.epochs = 2
    pyg = explainer(data.x, data.edge_index, batch=data.batch)
    ours = Explanation.from_pyg(pyg)
    torch.testing.assert_close(ours.node_scores, pyg.node_mask.sum(1))
    assert torch.equal(ours.feature_scores, pyg.node_mask)
    assert torch.equal(ours.edge_scores, pyg.edge_mask)
    logits = model(data.x, data.edge_index, None, data.batch)
    assert ours.target.tolist() == logits.argmax(1).tolist()
    assert ours.logit is None  # PyG's prediction may be a probability
    assert ours.graphs == 3
    assert ours.top(2).sum() == 6
    for rule in ("mean", "max", "sum"):
        alone = PyGExplanation(edge_mask=pyg.edge_mask, edge_index=data.edge_index, x=data.x)
        expected = nodes_from_edges(pyg.edge_mask, data.edge_index, 21, rule)
        assert torch.equal(Explanation.from_pyg(alone, rule).node_scores, expected)
    flat = Explanation.from_pyg(PyGExplanation(node_mask=torch.tensor([1.0, 3, 2])))
    assert flat.node_scores.tolist() == [1, 3, 2]
    assert flat.logit is None
    assert flat.top(1).tolist() == [False, True, False]


@pytest.mark.parametrize(
    ("message", "act"),
    [
        ("has no scores of edges; leave 'object' out", lambda e: e.to_pyg(None, "object")),
        ("has no scores of features", lambda e: e.to_pyg("attributes")),
        ("node_mask_type: expected one of 'object', 'attributes', None", lambda e: e.to_pyg("x")),
        ("edge_mask_type: expected one of 'object', None", lambda e: e.to_pyg(None, "attributes")),
        ("scale: expected one of unit, none, got 'rank'", lambda e: e.to_pyg(scale="rank")),
        ("expected a PyG Explanation, got Explanation", Explanation.from_pyg),
        ("without a mask", lambda e: Explanation.from_pyg(PyGExplanation(x=e.data.x))),
        ("edge_mask: expected an edge_index as well",
         lambda e: Explanation.from_pyg(PyGExplanation(edge_mask=torch.ones(3)))),
        (r"edge_mask: expected \[\d+\], got \[3\]", lambda e: Explanation.from_pyg(
            PyGExplanation(edge_mask=torch.ones(3), edge_index=e.data.edge_index))),
        (r"node_mask: expected 21 rows, one per node, got 2", lambda e: Explanation.from_pyg(
            PyGExplanation(node_mask=torch.ones(2, 1), x=e.data.x))),
        (r"node_mask: expected \[n\], \[n, 1\] or \[n, p\], got \[2, 1, 1\]",
         lambda e: Explanation.from_pyg(PyGExplanation(node_mask=torch.ones(2, 1, 1)))),
    ],
)  # fmt: skip
def test_what_pyg_cannot_have_is_refused(message: str, act: Any) -> None:
    explanation = explain(None, some_batch(), method="degree")
    with pytest.raises(InputError, match=message):
        act(explanation)


def test_an_explanation_without_graphs_cannot_go_to_pyg() -> None:
    flat = Explanation.from_pyg(PyGExplanation(node_mask=torch.ones(3)))
    with pytest.raises(InputError, match="has no graphs; use the result of `explain`"):
        flat.to_pyg()


def test_maps_of_a_bcos_explainer_add_up_on_the_way_back() -> None:
    model = BcosGIN(FEATURES, CLASSES, 8, 2, logit_bias=-3.0).double().train(mode=False)
    data = some_batch()
    explainer = Explainer(
        model, BcosExplainer(), "model", model_config=CONFIG, node_mask_type="attributes"
    )
    back = Explanation.from_pyg(explainer(data.x, data.edge_index, batch=data.batch))
    assert back.bias.tolist() == [-3.0] * 3
    assert back.completeness_gap().max() < 1e-9
    # Part of the graphs, or scores of another scale, add up to no logit.
    some = Explanation.from_pyg(explainer(data.x, data.edge_index, batch=data.batch, index=1))
    scaled = Explanation.from_pyg(explain(model, data).to_pyg())
    for explanation in (some, scaled):
        with pytest.raises(InputError, match="completeness is about a logit"):
            explanation.completeness_gap()
    kept = Explanation.from_pyg(explain(model, data).to_pyg("attributes", scale="none"))
    assert kept.completeness_gap().max() < 1e-9
