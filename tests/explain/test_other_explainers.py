"""Every other explainer, against an independent implementation or by hand."""

import math

import networkx as nx
import numpy as np
import pytest
import torch
from captum.attr import InputXGradient, IntegratedGradients, Saliency
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.explain import Explainer, GNNExplainer
from torch_geometric.nn import GINConv, global_add_pool
from torch_geometric.utils import to_networkx

from graphxai_data import explain
from graphxai_data.errors import InputError
from graphxai_data.explain import METHODS, Explanation, Inputs, gradients, nodes_from_edges
from graphxai_data.explain.gnn_explainer import Masks, gnn_explainer
from graphxai_data.nn import GIN, GINE, GSAT, BcosGIN, DeepSets
from graphxai_data.nn.sums import Edges

FEATURES, CLASSES = 3, 4


def some_graph(nodes: int, seed: int) -> Data:
    graph = nx.barabasi_albert_graph(nodes, 2, seed=seed)
    one_way = torch.tensor(list(graph.edges)).T
    draws = torch.Generator().manual_seed(seed)
    x = torch.randn(nodes, FEATURES, generator=draws, dtype=torch.double)
    edge_index = torch.cat([one_way, one_way.flip(0)], dim=1)
    mask = torch.arange(nodes) < 3
    return Data(x=x, edge_index=edge_index, graph_id=torch.tensor([100 + seed]), node_mask=mask)


def some_batch() -> Batch:
    return Batch.from_data_list([some_graph(7, 1), some_graph(9, 2), some_graph(5, 3)])


def some_gin() -> GIN:
    return GIN(FEATURES, CLASSES, 8, 2).double().train(mode=False)


class PyGTwin(nn.Module):
    """Our GIN with the message passing of PyG, which PyG's explainers need."""

    def __init__(self, model: GIN) -> None:
        super().__init__()
        self.convs = nn.ModuleList(GINConv(update) for update in model.updates)
        self.readout = model.readout

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        for conv in self.convs:
            x = conv(x, edge_index)
        return global_add_pool(self.readout(x), batch)


class OfFeatures(nn.Module):
    """A model that sums features, and has no layers of PyG."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(FEATURES, CLASSES)

    def forward(self, x: Tensor, batch: Tensor) -> Tensor:
        return global_add_pool(self.linear(x), batch)


@pytest.mark.parametrize("row", ["logit", "contrast"])
def test_gradient_explainers_are_captums(row: str) -> None:
    model, data = some_gin(), some_batch()

    def forward(x: Tensor) -> Tensor:
        # Captum repeats x once per step.
        copies = len(x) // data.num_nodes
        shift = torch.arange(copies).repeat_interleave(data.num_edges) * data.num_nodes
        edges = data.edge_index.repeat(1, copies) + shift
        batch = data.batch.repeat(copies)
        batch = batch + 3 * torch.arange(copies).repeat_interleave(data.num_nodes)
        logits = model(x, edges, None, batch)
        target = model(data.x, data.edge_index, None, data.batch).argmax(1).repeat(copies)
        of_target = logits.gather(1, target[:, None])[:, 0]
        if row == "contrast":
            of_target = of_target - (logits.sum(1) - of_target) / 3
        # One output per node, as Captum's batches need; the last node of a graph has its output.
        last = torch.bincount(batch).cumsum(0) - 1
        return torch.zeros(len(x)).double().index_put((last,), of_target)

    def single(x: Tensor) -> Tensor:
        return forward(x).sum()[None]

    x = data.x.clone().requires_grad_()
    expected = {
        "saliency": Saliency(single).attribute(x),
        "input-x-gradient": InputXGradient(single).attribute(x),
    }
    for method, features in expected.items():
        explanation = explain(model, data, method=method, row=row)
        torch.testing.assert_close(explanation.feature_scores, features.detach())
        torch.testing.assert_close(explanation.node_scores, features.detach().sum(1))
    integrated = IntegratedGradients(forward, multiply_by_inputs=True)
    steps = integrated.attribute(x, n_steps=50, method="gausslegendre")
    explanation = explain(model, data, method="integrated-gradients", row=row)
    torch.testing.assert_close(explanation.feature_scores, steps.detach())
    absolute = explain(model, data, method="integrated-gradients", row=row, absolute=True)
    torch.testing.assert_close(absolute.node_scores, steps.detach().abs().sum(1))


def test_integrated_gradients_of_a_smooth_model_are_complete_for_any_size_of_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = BcosGIN(FEATURES, CLASSES, 8, 2, logit_bias=-3.0).double().train(mode=False)
    data = some_batch()
    explanation = explain(model, data, method="integrated-gradients")
    assert explanation.completeness_gap().max() < 1e-3
    monkeypatch.setattr(gradients, "_NODES_PER_PASS", 50)
    again = explain(model, data, method="integrated_gradients")
    torch.testing.assert_close(again.node_scores, explanation.node_scores)


@pytest.mark.parametrize("node_mask", [True, False])
def test_gnn_explainer_is_pygs(node_mask: bool) -> None:
    model, data = some_gin(), some_graph(9, 4)
    data.x[2, 1] = 0  # a feature without gradient
    explainer = Explainer(
        PyGTwin(model), GNNExplainer(epochs=60), explanation_type="model",
        node_mask_type="attributes" if node_mask else None, edge_mask_type="object",
        model_config={"mode": "multiclass_classification", "task_level": "graph",
                      "return_type": "raw"},
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
    mean = nodes_from_edges(expected.edge_mask, data.edge_index, 9, "mean")
    torch.testing.assert_close(explanation.node_scores, mean, atol=1e-5, rtol=1e-4)
    if node_mask:
        torch.testing.assert_close(
            explanation.feature_scores, expected.node_mask, atol=1e-5, rtol=1e-4
        )
        assert explanation.feature_scores[2, 1] == 0


@pytest.mark.parametrize("model", [some_gin, lambda: BcosGIN(FEATURES, CLASSES, 8, 2).double()])
def test_gnn_explainer_gives_a_batch_the_same_as_its_graphs_one_by_one(model: object) -> None:
    network = model().train(mode=False)  # type: ignore[operator]
    options = {"epochs": 15, "node_mask": True, "node_scores": "features"}
    data = some_batch()
    whole = explain(network, data, method="gnn-explainer", **options)
    graphs = [explain(network, g, method="gnn-explainer", **options) for g in data.to_data_list()]
    for part in ("node_scores", "edge_scores", "feature_scores"):
        alone = torch.cat([getattr(g, part) for g in graphs])
        torch.testing.assert_close(getattr(whole, part), alone)
    other = explain(network, data, method="gnn-explainer", seed=1, **options)
    assert not torch.equal(other.edge_scores, whole.edge_scores)


def test_gnn_explainer_masks_messages_of_models_that_take_no_edge_weight() -> None:
    gin, data = some_gin(), some_batch()
    twin = PyGTwin(gin).train(mode=False)
    options = {"epochs": 30, "node_mask": True}
    expected = explain(gin, data, method="gnn-explainer", **options)
    config = {"mode": "multiclass_classification", "task_level": "graph", "return_type": "raw"}
    pyg = Explainer(twin, GNNExplainer(epochs=2), "model", config, edge_mask_type="object")
    for _ in range(2):  # PyG's class leaves the name of a parameter in the layers
        explanation = explain(twin, data, method="gnn-explainer", **options)
        for part in ("node_scores", "edge_scores", "feature_scores"):
            torch.testing.assert_close(getattr(explanation, part), getattr(expected, part))
        pyg(data.x.double(), data.edge_index, batch=data.batch)
    torch.testing.assert_close(
        twin(data.x, data.edge_index, data.batch), gin(data.x, data.edge_index, None, data.batch)
    )


def test_gnn_explainer_keeps_the_edges_that_decide_the_class() -> None:
    # The logit of class 1 counts edges into node 0; all else is the same for all classes.
    class Counter(nn.Module):
        def forward(
            self, x: Tensor, edge_index: Tensor, edge_attr: None, batch: Tensor,
            *, edge_weight: Tensor | None = None,
        ) -> Tensor:  # fmt: skip
            weight = torch.ones(edge_index.shape[1]) if edge_weight is None else edge_weight
            count = weight[edge_index[1] == 0].sum()
            return torch.stack([0 * count, 3 * count - 3])[None]

    data = Data(x=torch.ones(4, 1), edge_index=torch.tensor([[1, 2, 3, 1], [0, 0, 2, 3]]))
    explanation = explain(Counter().train(mode=False), data, method="gnn-explainer")
    assert explanation.edge_scores[:2].min() > 0.5
    assert explanation.edge_scores[2:].tolist() == [0, 0]  # no gradient: not used by the model


def test_attention_of_gsat_and_the_rules_from_edges_to_nodes() -> None:
    data = some_batch()
    model = GSAT(FEATURES, CLASSES, 8, 2).double().train(mode=False)
    edges = Edges(data.edge_index, len(data.x))
    attention = model.attend(data.x, edges, data.batch).attention.detach()
    graph = to_networkx(data)
    for k, (a, b) in enumerate(data.edge_index.T.tolist()):
        graph.edges[a, b]["attention"] = attention[k].item()
    for rule, reduce in (("mean", np.mean), ("max", np.max), ("sum", np.sum)):
        explanation = explain(model, data, method="gsat", edge_to_node=rule)
        assert torch.equal(explanation.edge_scores, attention)
        expected = [
            reduce([
                d["attention"]
                for _, _, d in (*graph.in_edges(n, data=True), *graph.out_edges(n, data=True))
            ])
            for n in range(data.num_nodes)
        ]  # fmt: skip
        np.testing.assert_allclose(explanation.node_scores, expected)
    with pytest.raises(InputError, match="rule: expected one of mean, max, sum, got 'median'"):
        explain(model, data, method="gsat", edge_to_node="median")


def test_a_node_without_edges_has_score_zero() -> None:
    edges = torch.tensor([[0, 1], [1, 0]])
    for rule in ("mean", "max", "sum"):
        assert nodes_from_edges(torch.tensor([0.5, 0.5]), edges, 3, rule)[2] == 0


def test_scores_that_look_at_no_model() -> None:
    data = some_batch()
    explanation = {m: explain(None, data, method=m) for m in ("random", "degree", "feature-norm",
                                                        "intensity", "oracle")}  # fmt: skip
    graph = to_networkx(data, to_undirected=True)
    assert explanation["degree"].node_scores.tolist() == [graph.degree(n) for n in range(21)]
    expected = np.sqrt((data.x.numpy() ** 2).sum(1))
    np.testing.assert_allclose(explanation["feature-norm"].node_scores, expected)
    assert torch.equal(explanation["intensity"].node_scores, data.x[:, 0])
    assert torch.equal(explanation["oracle"].node_scores.bool(), data.node_mask)
    draws = explanation["random"].node_scores
    assert len(draws.unique()) == 21
    alone = [explain(None, g, method="random").node_scores for g in data.to_data_list()]
    assert torch.equal(torch.cat(alone), draws)
    assert not torch.equal(explain(None, data, method="random", seed=1).node_scores, draws)
    assert explanation["degree"].logit is None
    with pytest.raises(InputError, match="this explanation is of no model"):
        explanation["degree"].completeness_gap()
    of_model = explain(some_gin(), data, method="degree")
    assert of_model.target.shape == (3,)
    del data.node_mask
    with pytest.raises(InputError, match="these graphs have no node_mask"):
        explain(None, data, method="oracle")


def test_closeness_to_a_halogen_is_in_bonds_and_carbon_comes_first() -> None:
    # F - C - C - H, and H on the first carbon; a second molecule without any halogen.
    atoms = ["C", "F", "H"]
    kind = torch.tensor([1, 0, 0, 2, 2, 0, 2])
    pairs = torch.tensor([[0, 1, 2, 1, 5], [1, 2, 3, 4, 6]])
    data = Data(x=torch.eye(3)[kind], edge_index=torch.cat([pairs, pairs.flip(0)], 1))
    scores = explain(None, data, method="halogen-closeness", atoms=atoms).node_scores
    assert scores.tolist() == [0, -0.5, -1.5, -3, -2, -6.5, -7]
    with pytest.raises(InputError, match="needs atoms"):
        explain(None, data, method="halogen-closeness")
    with pytest.raises(InputError, match="atoms: expected 3, one per column, got 1"):
        explain(None, data, method="halogen-closeness", atoms=["C"])


def test_edge_features_reach_every_explainer() -> None:
    graphs = [some_graph(7, 1), some_graph(5, 3)]
    for graph in graphs:
        graph.edge_attr = torch.randn(graph.num_edges, 2, dtype=torch.double)
    data = Batch.from_data_list(graphs)
    model = GINE(FEATURES, 2, CLASSES, 8, 2).double().train(mode=False)
    for method in ("integrated-gradients", "saliency", "input-x-gradient", "gnn-explainer"):
        options = {"epochs": 3} if method == "gnn-explainer" else {}
        whole = explain(model, data, method=method, **options)
        last = explain(model, graphs[1], method=method, **options)
        torch.testing.assert_close(whole.node_scores[-5:], last.node_scores)


def test_impossible_requests_are_refused() -> None:
    data = some_batch()
    gin = some_gin()
    for options, message in (
        ({"method": "gnn-explainer", "epochs": 0}, "epochs: expected a whole number"),
        ({"method": "gnn-explainer", "seed": -1}, "seed: expected a whole number"),
        ({"method": "gnn-explainer", "node_scores": "features"}, "with node_mask=True 'features'"),
        ({"method": "integrated-gradients", "steps": 0}, "steps: expected a whole number"),
        ({"method": "saliency", "steps": 5}, "'saliency' has no option 'steps'"),
        ({"method": "oracle", "seed": 5}, "'oracle' has no option 'seed'"),
    ):
        with pytest.raises(InputError, match=message):
            explain(gin, data, **options)
    with pytest.raises(InputError, match="DeepSets uses no edges"):
        explain(DeepSets(FEATURES, CLASSES).double().train(mode=False), data,
                method="gnn-explainer")  # fmt: skip
    with pytest.raises(InputError, match="MessagePassing; OfFeatures has neither"):
        explain(OfFeatures().double().train(mode=False), data, method="gnn-explainer")


def test_methods_have_one_name_each() -> None:
    assert len(set(METHODS)) == len(METHODS)
    assert {"bcos", "saliency", "random", "two-core", "oracle"} <= set(METHODS)


def test_node_level_gsat_is_explained_for_one_node_at_a_time() -> None:
    model = GSAT(FEATURES, CLASSES, 8, 2, level="node").double().train(mode=False)
    graph = some_graph(7, 1)
    explanation = explain(model, graph, method="gsat", node=3)
    torch.testing.assert_close(explanation.logit[0], model(graph.x, graph.edge_index)[3].max())
    with pytest.raises(InputError, match="give one graph, and a node"):
        explain(model, graph, method="gsat")


def test_the_fewest_nodes_of_a_graph_do_not_depend_on_other_graphs() -> None:
    draws = np.random.default_rng(0)
    for _ in range(200):
        small = torch.from_numpy(draws.integers(-3, 9, 6) / 10)
        large = torch.from_numpy(draws.normal(size=5) * 1000)
        edges = torch.zeros(2, 0).long()
        alone = Explanation(
            small, None, None, None, None, None, torch.zeros(6).long(), edges[0]
        ).smallest_set(0.5)
        batch = torch.tensor([0] * 5 + [1] * 6)
        both = Explanation(
            torch.cat([large, small]), None, None, None, None, None, batch, edges[0]
        ).smallest_set(0.5)
        assert torch.equal(both[5:], alone)
