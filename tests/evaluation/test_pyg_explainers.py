"""`evaluate` takes explainers, algorithms and explanations of PyG, for our models and others'."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.datasets import ExplainerDataset
from torch_geometric.datasets.graph_generator import BAGraph
from torch_geometric.explain import (
    AttentionExplainer,
    CaptumExplainer,
    DummyExplainer,
    Explainer,
    ExplainerAlgorithm,
    GNNExplainer,
    GraphMaskExplainer,
    PGExplainer,
)
from torch_geometric.explain import Explanation as PyGExplanation
from torch_geometric.explain.algorithm.utils import clear_masks, set_masks
from torch_geometric.nn import GINConv, global_add_pool, models

from graphxai_data import GraphXAIDataset, build, evaluate, explain, jaccard_at_k, node_auroc
from graphxai_data.errors import InputError
from graphxai_data.explain import BcosExplainer, nodes_from_edges
from graphxai_data.nn import GIN, GSAT, BcosGIN, DeepSets
from graphxai_data.nn.random import seeded
from tests.evaluation.test_other_datasets import global_random_state
from tests.nn.conftest import weights_from_a_seed as weights_from_a_seed

CONFIG = {"mode": "multiclass_classification", "task_level": "graph", "return_type": "raw"}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> GraphXAIDataset:
    root = tmp_path_factory.mktemp("builds")
    build("ba2motif", root=root, graphs=60, engine="serial", rings=False)
    return GraphXAIDataset(root, "ba2motif")


@pytest.fixture(scope="module")
def part(dataset: GraphXAIDataset) -> GraphXAIDataset:
    return dataset[dataset.get_idx_split()["test"]]


@pytest.fixture(scope="module")
def gin(dataset: GraphXAIDataset) -> nn.Module:
    with seeded(0):
        return GIN(dataset.num_node_features, 2, 8, 2).train(mode=False)


class OwnGIN(nn.Module):
    """A GIN as PyG's users write it: no edge_attr, no edge_weight."""

    def __init__(self, features: int, classes: int = 2) -> None:
        super().__init__()
        widths = [(features, 8), (8, 8)]
        self.convs = nn.ModuleList(GINConv(nn.Linear(a, b)) for a, b in widths)
        self.out = nn.Linear(8, classes)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        for conv in self.convs:
            x = conv(x, edge_index).relu()
        return self.out(global_add_pool(x, batch))


@pytest.fixture(scope="module")
def own(dataset: GraphXAIDataset) -> nn.Module:
    with seeded(1):
        return OwnGIN(dataset.num_node_features).train(mode=False)


@pytest.fixture(autouse=True)
def unchanged_logging() -> Iterator[None]:
    handlers, filters = list(logging.root.handlers), list(logging.root.filters)
    yield
    assert logging.root.handlers == handlers
    assert logging.root.filters == filters


def test_explainers_and_algorithms_of_pyg_are_rows(
    dataset: GraphXAIDataset, part: GraphXAIDataset, gin: nn.Module
) -> None:
    whole = Explainer(
        gin, CaptumExplainer("IntegratedGradients"), "model", CONFIG, node_mask_type="attributes"
    )
    explainers = {
        "explainer": whole, "algorithm": CaptumExplainer("InputXGradient"),
        "steps": CaptumExplainer("IntegratedGradients"), "gnn": GNNExplainer(epochs=2),
    }  # fmt: skip
    table = evaluate(dataset, explainers | {"ours": "integrated-gradients"}, gin)
    assert list(table.index) == [*explainers, "ours"]
    for name in ("explainer", "steps"):  # Captum's 50 steps are ours
        assert table.loc[name, "auroc"] == pytest.approx(table.loc["ours", "auroc"], abs=0.02)
    gradients = [explain(gin, data, method="input-x-gradient").node_scores for data in part]
    masks = [data.node_mask for data in part]
    pairs = list(zip(gradients, masks, strict=True))
    row = table.loc["algorithm"]
    assert row.jaccard == pytest.approx(np.mean([jaccard_at_k(s, m) for s, m in pairs]), abs=0.02)
    assert row.auroc == pytest.approx(np.mean([node_auroc(s, m) for s, m in pairs]), abs=0.02)
    assert np.isfinite(table.loc["gnn", "edge_auroc_pooled"])  # it scores edges as well
    assert np.isnan(table.loc["steps", "edge_auroc_pooled"])


def test_edges_alone_are_rows_by_mean_max_and_sum(
    dataset: GraphXAIDataset, part: GraphXAIDataset, gin: nn.Module
) -> None:
    saliency = Explainer(gin, CaptumExplainer("Saliency"), "model", CONFIG, edge_mask_type="object")
    table = evaluate(dataset, {"edges": saliency}, gin, timing=True)
    assert list(table.index) == ["edges-mean", "edges-max", "edges-sum"]
    assert (table.ms_per_graph > 0).all()
    assert table.edge_auroc_pooled.nunique() == 1
    for rule in ("mean", "max", "sum"):
        aurocs = []
        for data in part:
            weight = torch.ones(data.num_edges, requires_grad=True)
            logits = gin(data.x, data.edge_index, edge_weight=weight)
            (gradient,) = torch.autograd.grad(logits.max(), weight)
            scores = nodes_from_edges(gradient.abs(), data.edge_index, data.num_nodes, rule)
            aurocs.append(node_auroc(scores, data.node_mask))
        assert table.loc[f"edges-{rule}", "auroc"] == pytest.approx(np.mean(aurocs), abs=0.02)
    with pytest.raises(InputError, match="two rows have the name 'edges-max'; rename one"):
        evaluate(dataset, {"edges": saliency, "edges-max": "degree"}, gin)


def test_an_explainer_brings_its_model(dataset: GraphXAIDataset, gin: nn.Module) -> None:
    explainer = Explainer(gin, DummyExplainer(), "model", CONFIG, node_mask_type="object")
    table = evaluate(dataset, {"dummy": explainer, "random": "random"})
    assert list(table.index) == ["dummy", "random"]


def test_lists_of_explanations_are_rows(dataset: GraphXAIDataset, part: GraphXAIDataset) -> None:
    scores = [data.x.argmax(1).double() for data in part]
    edges = [data.x.argmax(1).double()[data.edge_index[0]] for data in part]
    ways: dict[str, Any] = {
        "plain": scores,
        "[n]": [PyGExplanation(node_mask=s) for s in scores],
        "[n, 1]": [PyGExplanation(node_mask=s[:, None]) for s in scores],
        "[n, p]": [PyGExplanation(node_mask=s[:, None] * torch.ones(1, 4)) for s in scores],
        "NumPy": [PyGExplanation(node_mask=s.numpy()) for s in scores],
        "whole": [PyGExplanation(node_mask=s.int()[:, None]) for s in scores],
        "ours": [explain(None, data, method="degree") for data in part],
        "with edges": [
            PyGExplanation(node_mask=s, edge_mask=e) for s, e in zip(scores, edges, strict=True)
        ],
        "of all": PyGExplanation(node_mask=torch.cat(scores)),
    }
    table = evaluate(dataset, ways)
    assert list(table.index) == list(ways)
    degree = table.index != "ours"
    assert (table.auroc[degree] == table.auroc.iloc[0]).all()
    alone = evaluate(dataset, {"e": [PyGExplanation(edge_mask=mask) for mask in edges]})
    assert list(alone.index) == ["e-mean", "e-max", "e-sum"]
    together = evaluate(dataset, {"e": PyGExplanation(edge_mask=torch.cat(edges))})
    assert together.equals(alone)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda e: e[:-1], "expected 6 explanations, one per graph, got 5"),
        (lambda e: [torch.ones(3), *e[1:]], "expected an explanation for graph 0, .*got Tensor"),
        (lambda e: [PyGExplanation(node_mask=torch.ones(99, 1)), *e[1:]],
         r"node scores of 'mine': expected \[\d+\] for graph 0, got \[99\]"),
        (lambda e: [PyGExplanation(node_mask=torch.ones(1, 10)), *e[1:]],
         r"node scores of 'mine': expected \[\d+\] for graph 0, got \[1\]"),
        (lambda e: [*e[:2], PyGExplanation(edge_mask=torch.ones(3)), *e[3:]],
         "those of graph 2 are of edges alone, those of others are not"),
        (lambda e: [PyGExplanation(edge_mask=torch.ones(3))] * 6,
         r"edge scores of 'mine': expected \[\d+\] for graph 0, got \[3\]"),
        (lambda e: [PyGExplanation(node_mask=torch.ones(2, 2, 2)), *e[1:]],
         r"'mine', graph 0: node_mask: expected \[n\], \[n, 1\] or \[n, p\], got \[2, 2, 2\]"),
        (lambda e: [PyGExplanation(x=torch.ones(2, 2)), *e[1:]],
         "'mine', graph 0: a PyG Explanation without a mask"),
        (lambda e: PyGExplanation(node_mask=torch.ones(3, 1)),
         r"scores of 'mine': expected \[\d+\], those of 6 graphs"),
        (lambda e: GNNExplainer, r"got the class GNNExplainer; make one, as in GNNExplainer\("),
    ],
)  # fmt: skip
def test_explanations_that_do_not_fit_are_refused(
    change: Any, message: str, dataset: GraphXAIDataset, part: GraphXAIDataset
) -> None:
    explanations = [PyGExplanation(node_mask=torch.rand(data.num_nodes, 1)) for data in part]
    with pytest.raises(InputError, match=message):
        evaluate(dataset, {"mine": change(explanations)})


def test_draws_of_explainers_are_reproducible(
    dataset: GraphXAIDataset, part: GraphXAIDataset, gin: nn.Module
) -> None:
    ways: dict[str, Any] = {
        "dummy": DummyExplainer(), "gnn": GNNExplainer(epochs=2),
        "function": lambda data: torch.rand(data.num_nodes),
        "shapley": CaptumExplainer("ShapleyValueSampling", n_samples=1),
    }  # fmt: skip
    state = torch.get_rng_state()
    first = evaluate(part[:3], ways, gin)
    assert torch.equal(torch.get_rng_state(), state)
    with seeded(99):
        again = evaluate(part[:3], dict(reversed(ways.items())), gin)
    assert again.loc[list(ways)].equals(first)
    # A graph has the same scores among others.
    seen: list[Tensor] = []

    def remember(data: Data) -> Tensor:
        seen.append(torch.rand(data.num_nodes))
        return seen[-1]

    evaluate(part[:1], {"r": remember})
    evaluate(part[[2, 0]], {"r": remember})
    assert torch.equal(seen[0], seen[2])
    assert evaluate(part[:3], {"dummy": ways["dummy"]}, gin, timing=True) is not None
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(
    "algorithm",
    [GNNExplainer(epochs=3), CaptumExplainer("Saliency"), CaptumExplainer("GuidedBackprop"),
     DummyExplainer(), GraphMaskExplainer(2, epochs=2, log=False)],
    ids=lambda algorithm: type(algorithm).__name__,
)  # fmt: skip
def test_explainers_leave_models_as_they_were(
    algorithm: ExplainerAlgorithm, part: GraphXAIDataset, gin: nn.Module, own: nn.Module
) -> None:
    for model in (gin, own):
        if isinstance(algorithm, GraphMaskExplainer) and model is own:
            continue  # GraphMask asks layers for channels that PyG's GINConv does not have
        data = part[0]
        weights = {key: value.clone() for key, value in model.state_dict().items()}
        logits = model(data.x, data.edge_index)
        table = evaluate(part[:2], {"row": algorithm}, model)
        assert table.loc["row", "graphs"] == 2
        assert model.state_dict().keys() == weights.keys()
        assert all(torch.equal(value, weights[key]) for key, value in model.state_dict().items())
        assert torch.equal(model(data.x, data.edge_index), logits)
        assert all(p.grad is None and p.requires_grad for p in model.parameters())
        assert not model.training


def test_algorithms_get_the_masks_that_they_and_the_model_have(
    dataset: GraphXAIDataset, part: GraphXAIDataset
) -> None:
    features = dataset.num_node_features
    with seeded(0):
        gsat = GSAT(features, 2, 8, 2).train(mode=False)
        deepsets = DeepSets(features, 2, 8, 2).train(mode=False)
        bcos = BcosGIN(features, 2, 8, 2).train(mode=False)
    attention = evaluate(dataset, {"attention": AttentionExplainer(), "ours": "gsat-mean"}, gsat)
    assert list(attention.index[:3]) == ["attention-mean", "attention-max", "attention-sum"]
    columns = ["auroc", "edge_auroc_pooled"]
    expected = attention.loc["ours", columns].tolist()
    assert attention.loc["attention-mean", columns].tolist() == pytest.approx(expected, abs=1e-6)
    nodes = evaluate(part, {"gnn": GNNExplainer(epochs=2)}, deepsets)
    assert np.isnan(nodes.loc["gnn", "edge_auroc_pooled"])
    table = evaluate(part, {"pyg": BcosExplainer(), "ours": "bcos"}, bcos)
    assert table.loc["pyg", "auroc"] == pytest.approx(table.loc["ours", "auroc"])


def test_an_explainer_of_phenomena_explains_the_label(
    dataset: GraphXAIDataset, part: GraphXAIDataset, gin: nn.Module
) -> None:
    class Target(ExplainerAlgorithm):
        def forward(self, model: Any, x: Tensor, *_: Any, target: Tensor, **__: Any) -> Any:
            seen.append(int(target))
            return PyGExplanation(node_mask=torch.rand(len(x), 1))

        def supports(self) -> bool:
            return True

    seen: list[int] = []
    labels = [int(data.y) for data in part]
    explainer = Explainer(gin, Target(), "phenomenon", CONFIG, node_mask_type="object")
    evaluate(dataset, {"label": explainer}, gin)
    assert seen == labels
    seen.clear()
    evaluate(dataset, {"predicted": Target()}, gin)
    assert seen == [int(gin(data.x, data.edge_index).argmax()) for data in part]
    graphs = [Data(x=d.x, edge_index=d.edge_index, node_mask=d.node_mask) for d in part]
    with pytest.raises(InputError, match="explains the label y of a graph, and these graphs have"):
        evaluate(graphs, {"label": explainer}, gin)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model_config": CONFIG | {"task_level": "node"}},
         "made for task_level 'node', expected 'graph'"),
        ({"model_config": {"mode": "regression", "task_level": "graph"}},
         "made for mode 'regression', expected 'multiclass_classification'"),
        ({"node_mask_type": "common_attributes"}, "ranks features, not nodes; use 'object'"),
    ],
)  # fmt: skip
def test_explainers_for_other_tasks_are_refused(
    options: dict[str, Any], message: str, dataset: GraphXAIDataset, gin: nn.Module
) -> None:
    usual = {"explanation_type": "model", "model_config": CONFIG, "node_mask_type": "object"}
    explainer = Explainer(gin, DummyExplainer(), **{**usual, **options})
    with pytest.raises(InputError, match=f"explainer 'gx': .*{message}"):
        evaluate(dataset, {"gx": explainer}, gin)


def test_explainers_that_do_not_fit_the_model_are_refused(
    dataset: GraphXAIDataset, gin: nn.Module, own: nn.Module
) -> None:
    explainer = Explainer(own, DummyExplainer(), "model", CONFIG, node_mask_type="object")
    with pytest.raises(InputError, match="explainer 'gx': made for another model, a OwnGIN"):
        evaluate(dataset, {"gx": explainer}, gin)
    training = OwnGIN(dataset.num_node_features)
    explainer = Explainer(training, DummyExplainer(), "model", CONFIG, node_mask_type="object")
    with pytest.raises(InputError, match="in training mode"):
        evaluate(dataset, {"gx": explainer})
    with pytest.raises(InputError, match="explainer 'gx': GNNExplainer explains a model; give one"):
        evaluate(dataset, {"gx": GNNExplainer()})
    with pytest.raises(InputError, match="PGExplainer supports no explanation of the predicted"):
        evaluate(dataset, {"gx": PGExplainer(epochs=1)}, gin)
    with pytest.raises(InputError, match="'gx': Could not collect any attention coefficients"):
        evaluate(dataset, {"gx": AttentionExplainer()}, gin)
    deepsets = DeepSets(dataset.num_node_features, 2).train(mode=False)
    explainer = Explainer(deepsets, DummyExplainer(), "model", CONFIG, edge_mask_type="object")
    with pytest.raises(InputError, match="edge_mask_type: expected None; DeepSets has no Message"):
        evaluate(dataset, {"gx": explainer}, deepsets)


class NoLayers(nn.Module):
    """A model of one's own whose edges cannot be masked."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, 2)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        sums = x.index_add(0, edge_index[1], x[edge_index[0]])
        return global_add_pool(self.linear(sums).relu(), batch)


def test_all_leaves_out_rows_that_a_model_cannot_have(
    dataset: GraphXAIDataset, own: nn.Module, caplog: pytest.LogCaptureFixture
) -> None:
    gnn = {f"gnn-explainer-{row}" for row in ("mean", "max", "sum", "features")}
    table = evaluate(dataset, ["all"], own)
    assert gnn <= set(table.index)
    assert not caplog.records
    with seeded(0):
        model = NoLayers(dataset.num_node_features).train(mode=False)
    left = evaluate(dataset, ["all"], model)
    assert set(table.index) - set(left.index) == gnn
    (record,) = caplog.records
    assert "'all' without gnn-explainer: NoLayers takes no edge_weight" in record.getMessage()
    with pytest.raises(InputError, match="NoLayers has neither"):
        evaluate(dataset, ["gnn-explainer-mean"], model)
    times = evaluate(dataset, ["saliency"], model, timing=True, faithfulness=True)
    assert times.loc["saliency", "ms_forward_batched"] > 0


def test_models_that_do_not_classify_these_graphs_are_refused(
    dataset: GraphXAIDataset, part: GraphXAIDataset
) -> None:
    features = dataset.num_node_features
    of_nodes = models.GIN(features, 8, 2, 2).train(mode=False)
    message = (
        r"model: expected logits \[2, classes\], a row per graph, got \[\d\d, 2\], a row per n"
    )
    for explainers in (["saliency"], {"gx": GNNExplainer(epochs=2)}):
        with pytest.raises(InputError, match=message):
            evaluate(dataset, explainers, of_nodes)
    with pytest.raises(InputError, match=message):
        evaluate(dataset, ["degree"], of_nodes, faithfulness=True)
    seven = OwnGIN(features, 7).train(mode=False)
    with pytest.raises(InputError, match=r"expected logits \[graphs, 2\], .* got 7 classes; use a"):
        evaluate(dataset, ["saliency"], seven)
    with pytest.raises(InputError, match="got 7 classes"):
        evaluate(dataset, ["degree"], seven)
    one = OwnGIN(features, 1).train(mode=False)
    with pytest.raises(
        InputError, match=r"expected logits \[graphs, at least 2\], .* got 1 classe"
    ):
        evaluate(list(part), ["saliency"], one)
    assert len(evaluate(list(part), ["saliency"], seven)) == 1  # others may have more classes
    # What a function does with a model is its own business.
    assert len(evaluate(dataset, {"mine": lambda model, data: data.x.argmax(1)}, seven)) == 1

    class Needy(nn.Module):
        def forward(self, x: Tensor, positions: Tensor) -> Tensor:
            return x

    with pytest.raises(InputError, match="Needy.forward needs positions; models are given x, edge"):
        evaluate(dataset, ["saliency"], Needy().train(mode=False))


def test_graphs_of_others_without_features_have_ones_for_explainers() -> None:
    with global_random_state(0):
        houses = ExplainerDataset(
            BAGraph(num_nodes=12, num_edges=1), "house", num_motifs=1, num_graphs=3
        )
        model = OwnGIN(1).train(mode=False)
    table = evaluate(houses, {"gnn": GNNExplainer(epochs=2), "function": lambda d: d.y}, model)
    assert list(table.index) == ["gnn", "function"]


def test_the_graphs_of_a_function_are_where_its_model_is(
    dataset: GraphXAIDataset, gin: nn.Module, tmp_path: Path
) -> None:
    devices: list[str] = []

    def mine(model: nn.Module, data: Data) -> Tensor:
        devices.append(data.x.device.type)
        return torch.arange(data.num_nodes)

    away = GIN(dataset.num_node_features, 2, 8, 2).train(mode=False).to("meta")
    table = evaluate(dataset, {"mine": mine}, away, timing=True)
    assert set(devices) == {"meta"}
    assert table.loc["mine", "timed_on"] == "meta"


@pytest.mark.parametrize("kind", ["probs", "log_probs"])
def test_an_explainer_for_probabilities_of_a_model_with_logits_is_refused(
    kind: str, part: GraphXAIDataset, gin: nn.Module
) -> None:
    config = CONFIG | {"return_type": kind}
    explainer = Explainer(gin, GNNExplainer(epochs=1), "model", config, edge_mask_type="object")
    with pytest.raises(InputError, match=f"return_type '{kind}', but the outputs of GIN are none"):
        evaluate(part, {"gnn": explainer}, gin)


def test_a_mask_that_an_explainer_left_behind_is_refused(
    part: GraphXAIDataset, gin: nn.Module
) -> None:
    graph = part[0]
    set_masks(gin, torch.rand(graph.num_edges), graph.edge_index)
    try:
        with pytest.raises(InputError, match=r"has an edge mask of an earlier .*clear_masks"):
            evaluate(part[:1], ["saliency"], gin)
        with pytest.raises(InputError, match=r"edge mask: expected .*clear_masks"):
            gin(part[1].x, part[1].edge_index[:, :-2])
    finally:
        clear_masks(gin)
    assert len(evaluate(part[:1], ["saliency"], gin)) == 1


def test_graphs_of_a_pre_transform_are_given_as_a_list(dataset: GraphXAIDataset) -> None:
    root = dataset.folder.parent.parent
    changed = GraphXAIDataset(root, "ba2motif", pre_filter=lambda data: data.num_nodes < 30)
    with pytest.raises(InputError, match=r"pre_transform or pre_filter.*list\(dataset\)"):
        evaluate(changed, ["degree"])
    assert len(evaluate(list(changed), ["degree"])) == 1
