"""Explainers of PyG and Captum by name, against independent computations."""

import copy
import math
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.explain import (
    CaptumExplainer,
    Explainer,
    Explanation,
    GraphMaskExplainer,
    PGExplainer,
)

from graphxai_data import evaluate
from graphxai_data.errors import InputError
from graphxai_data.explain import third_party
from graphxai_data.explain.third_party import THIRD_PARTY, third_party_function
from graphxai_data.nn import GIN, GINE, BcosGIN, DeepSets
from graphxai_data.nn.random import seeded, torch_seed

FEATURES, BONDS, CLASSES = 3, 2, 4
SIZE = (FEATURES, CLASSES, 8, 2)
CONFIG = {"mode": "multiclass_classification", "task_level": "graph", "return_type": "raw"}
OF_EDGES = ("pg-explainer", "graph-mask")
SEED = 3


class Ensemble(nn.Module):
    """The mean of two models, with the arguments of both."""

    def __init__(self) -> None:
        super().__init__()
        self.members = nn.ModuleList([GIN(*SIZE), GIN(*SIZE)])

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Tensor:
        logits = [member(x, edge_index, edge_attr, batch) for member in self.members]
        return torch.stack(logits).mean(0)


MODELS = {
    "gin": lambda: GIN(*SIZE),
    "gine": lambda: GINE(FEATURES, BONDS, CLASSES, 8, 2),
    "ensemble": Ensemble,
}


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest) -> nn.Module:
    return settled(MODELS[request.param]())


@pytest.fixture(autouse=True)
def brief_training(monkeypatch: pytest.MonkeyPatch) -> None:
    row = replace(THIRD_PARTY["pg-explainer"], settings={"training_graphs": 3, "epochs": 2})
    monkeypatch.setitem(THIRD_PARTY, "pg-explainer", row)


def settled(model: nn.Module) -> nn.Module:
    """Return a model in evaluation, with larger weights than usual: edges and nodes count."""
    for weight in model.parameters():
        weight.data.mul_(1.7)
    return model.train(mode=False)


def some_graph(nodes: int, seed: int) -> Data:
    draws = torch.Generator().manual_seed(seed)
    dense = torch.rand(nodes, nodes, generator=draws).triu(1) > 0.5
    dense[range(nodes - 1), range(1, nodes)] = True  # connected
    edge_index = (dense | dense.T).nonzero().T
    return Data(
        x=torch.randn(nodes, FEATURES, generator=draws),
        edge_index=edge_index,
        edge_attr=torch.randn(edge_index.shape[1], BONDS, generator=draws),
        graph_id=torch.tensor([seed]),
        y=torch.tensor([0]),
    )


GRAPH = some_graph(7, 1)
TRAINING = [some_graph(5, seed) for seed in range(10, 13)]


def logits(model: nn.Module, graph: Data, x: Tensor | None = None) -> Tensor:
    out: Tensor = model(graph.x if x is None else x, graph.edge_index, graph.edge_attr)
    return out[0].detach()


def explained(
    name: str, model: nn.Module, graph: Data = GRAPH, seed: int = SEED, **options: Any
) -> Explanation:
    return third_party_function(name, model, TRAINING, seed, **options)(graph)


def scores(explanation: Explanation) -> Tensor:
    """Return the only mask of an explanation."""
    (mask,) = (explanation[key] for key in explanation.available_explanations)
    return torch.as_tensor(mask)


# Against independent computations.


@pytest.mark.parametrize("nodes_per_pass", [1, 20, 2048])
def test_ablation_is_what_the_predicted_logit_loses_without_a_nodes_features(
    model: nn.Module, nodes_per_pass: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(third_party, "_NODES_PER_PASS", nodes_per_pass)
    whole = logits(model, GRAPH)
    predicted = int(whole.argmax())
    graph = GRAPH.clone()
    graph.y = torch.tensor([(predicted + 1) % CLASSES])  # the label plays no role
    mask = explained("feature-ablation", model, graph).node_mask
    expected = []
    for node in range(graph.num_nodes):
        x = graph.x.clone()
        x[node] = 0
        expected.append(whole[predicted] - logits(model, graph, x)[predicted])
    torch.testing.assert_close(mask, torch.stack(expected)[:, None], rtol=1e-4, atol=1e-4)
    assert mask.std() > 0.01


def test_sampled_shapley_values_are_near_the_exact_ones(
    model: nn.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = some_graph(3, 5)
    predicted = int(logits(model, graph).argmax())

    def value(kept: tuple[int, ...]) -> float:
        x = torch.zeros_like(graph.x)
        x[list(kept)] = graph.x[list(kept)]
        return float(logits(model, graph, x)[predicted])

    exact = []
    for node in range(3):
        others = [other for other in range(3) if other != node]
        exact.append(
            sum(
                math.factorial(size) * math.factorial(2 - size) / math.factorial(3)
                * (value((*kept, node)) - value(kept))
                for size in range(3) for kept in combinations(others, size)
            )
        )  # fmt: skip
    few = explained("shapley-sampling", model, graph).node_mask.flatten()
    row = replace(THIRD_PARTY["shapley-sampling"], settings={"n_samples": 800})
    monkeypatch.setitem(THIRD_PARTY, "shapley-sampling", row)
    many = explained("shapley-sampling", model, graph).node_mask.flatten()
    spread = max(exact) - min(exact)
    torch.testing.assert_close(many, torch.tensor(exact), rtol=0, atol=0.05 * spread)
    assert (few - torch.tensor(exact)).abs().max() < 0.5 * spread
    for sampled in (few, many):  # whatever the draws are
        assert float(sampled.sum()) == pytest.approx(value((0, 1, 2)) - value(()), rel=1e-3)


def test_shapley_values_are_those_of_pygs_explainer_with_a_group_of_features_per_node() -> None:
    model = settled(GIN(*SIZE))
    groups = torch.arange(GRAPH.num_nodes).view(1, -1, 1)
    one_by_one = Explainer(
        model, CaptumExplainer("ShapleyValueSampling", feature_mask=groups, n_samples=25),
        "model", CONFIG, "attributes",
    )  # fmt: skip
    with seeded(torch_seed(SEED, "explain/shapley-sampling", int(GRAPH.graph_id))):
        theirs = one_by_one(GRAPH.x, GRAPH.edge_index).node_mask
    ours = explained("shapley-sampling", model).node_mask
    # Each column has the value of the node: their sum would count it once per feature.
    torch.testing.assert_close(ours.expand_as(theirs), theirs, rtol=1e-4, atol=1e-4)
    assert ours.abs().min() > 0


class Guided(torch.autograd.Function):
    """ReLU whose gradient passes where input and gradient are positive."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return torch.where((x > 0) & (grad > 0), grad, 0.0)


def relu_by_hand(x: Tensor, guided: bool) -> Tensor:
    apply: Any = Guided.apply
    result: Tensor = apply(x) if guided else torch.relu(x)
    return result


def gradient_by_hand(model: Any, graph: Data, guided: bool, guided_messages: bool) -> Tensor:
    """Return the gradient of the predicted logit by the features, from matrices alone."""
    x = graph.x.clone().requires_grad_()
    source, target = torch.eye(graph.num_nodes)[graph.edge_index]
    h = x
    for layer, update in enumerate(model.updates):
        messages = source @ h
        if isinstance(model, GINE):
            linear = model.edges[layer]
            messages = messages + graph.edge_attr @ linear.weight.T + linear.bias
            messages = relu_by_hand(messages, guided_messages)
        h = (1 + model.eps[layer]) * h + target.T @ messages
        for linear in (m for m in update if isinstance(m, nn.Linear)):
            h = relu_by_hand(h @ linear.weight.T + linear.bias, guided)
    *inner, last = (m for m in model.readout if isinstance(m, nn.Linear))
    for linear in inner:
        h = relu_by_hand(h @ linear.weight.T + linear.bias, guided)
    out = (h @ last.weight.T + last.bias).sum(0)
    torch.testing.assert_close(out.detach(), logits(model, graph), rtol=1e-4, atol=1e-4)
    gradient: Tensor = torch.autograd.grad(out.max(), x)[0]
    return gradient


@pytest.mark.parametrize("name", ["gin", "gine"])
def test_guided_backpropagation_is_that_by_hand_but_for_the_messages_of_gine(name: str) -> None:
    model = settled(MODELS[name]())
    mask = explained("guided-backprop", model).node_mask
    expected = gradient_by_hand(model, GRAPH, guided=True, guided_messages=False)
    torch.testing.assert_close(mask, expected, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(mask, gradient_by_hand(model, GRAPH, False, False), rtol=0.1)
    everywhere = gradient_by_hand(model, GRAPH, guided=True, guided_messages=True)
    assert torch.allclose(mask, everywhere, rtol=1e-4, atol=1e-5) == (name == "gin")


def pyg_explainer(model: nn.Module, algorithm: Any) -> Explainer:
    return Explainer(model, algorithm, "phenomenon", CONFIG, edge_mask_type="object")


@pytest.mark.filterwarnings("ignore:Converting a tensor with")  # from PyG
def test_pg_explainer_is_trained_to_keep_predicted_classes_of_the_first_graphs() -> None:
    model: Any = settled(GINE(FEATURES, BONDS, CLASSES, 8, 2))
    model.readout[-1].bias.data[2] += 10
    assert [int(logits(model, data).argmax()) for data in TRAINING] == [2, 2, 2]  # labels are 0

    def graphs() -> Iterator[Data]:
        yield from TRAINING
        pytest.fail("a fourth training graph was taken")

    ours = third_party_function("pg-explainer", model, graphs(), SEED)(GRAPH)
    twin = copy.deepcopy(model)
    with seeded(torch_seed(SEED, "explain/pg-explainer/training")):
        algorithm = PGExplainer(epochs=2)
        explainer = pyg_explainer(twin, algorithm)
        for epoch in range(2):
            for data in TRAINING:
                algorithm.train(
                    epoch, twin, data.x, data.edge_index, target=torch.tensor([2]),
                    edge_attr=data.edge_attr,
                )  # fmt: skip
    theirs = explainer(
        GRAPH.x, GRAPH.edge_index, target=torch.tensor([0]), edge_attr=GRAPH.edge_attr
    )
    torch.testing.assert_close(ours.edge_mask, theirs.edge_mask)
    assert ours.edge_mask.std() > 1e-4
    assert ours.target == 2


def graph_mask_of_pyg(epochs: int) -> Explanation:
    model = settled_twin()
    explainer = pyg_explainer(model, GraphMaskExplainer(2, epochs=epochs, log=False))
    target = logits(model, GRAPH).argmax().view(1)
    with seeded(torch_seed(SEED, "explain/graph-mask", int(GRAPH.graph_id))):
        return explainer(GRAPH.x, GRAPH.edge_index, target=target)


def settled_twin() -> nn.Module:
    with seeded(5):
        return settled(GIN(*SIZE))


def test_graph_mask_gives_pygs_edges_without_its_features_which_are_never_trained() -> None:
    ours = explained("graph-mask", settled_twin())
    assert ours.available_explanations == ["edge_mask"]
    theirs = graph_mask_of_pyg(epochs=5)
    assert torch.equal(ours.edge_mask, theirs.edge_mask)
    assert len(ours.edge_mask.unique()) > 1
    assert torch.equal(theirs.node_mask, graph_mask_of_pyg(epochs=1).node_mask)


# Draws, and what is left behind.


@pytest.mark.parametrize("name", THIRD_PARTY)
def test_draws_depend_on_seed_and_graph_alone(name: str) -> None:
    model = settled(GIN(*SIZE))
    function = third_party_function(name, model, TRAINING, SEED)
    first = scores(function(GRAPH))
    function(some_graph(6, 2))
    torch.rand(1)
    assert torch.equal(scores(function(GRAPH)), first)
    assert torch.equal(scores(explained(name, model)), first)
    other = scores(explained(name, model, seed=SEED + 1))
    is_random = name in (*OF_EDGES, "shapley-sampling")
    assert torch.equal(other, first) != is_random
    renumbered = GRAPH.clone()
    renumbered.graph_id = torch.tensor([77])
    draws_per_graph = name in ("graph-mask", "shapley-sampling")
    assert torch.equal(scores(function(renumbered)), first) != draws_per_graph


def traces(model: nn.Module) -> list[Any]:
    """Return all that explainers may change in a model, but values of tensors."""
    return [
        [
            sorted(vars(module)), sorted(module._parameters), module.training,
            len(module._forward_hooks), len(module._forward_pre_hooks), len(module._backward_hooks),
            getattr(module, "explain", None), [w.requires_grad for w in module.parameters()],
        ]
        for module in model.modules()
    ]  # fmt: skip


@pytest.mark.parametrize("name", THIRD_PARTY)
def test_model_graph_and_generator_are_left_as_they_were(name: str, model: nn.Module) -> None:
    weights = list(model.parameters())
    weights[0].requires_grad_(False)
    gradient = torch.rand_like(weights[1])
    weights[1].grad = gradient.clone()
    state, before = copy.deepcopy(model.state_dict()), traces(model)
    graph, whole, generator = GRAPH.clone(), logits(model, GRAPH), torch.get_rng_state()
    function = third_party_function(name, model, TRAINING, SEED)
    function(graph)
    assert torch.equal(torch.get_rng_state(), generator)
    assert traces(model) == before
    assert list(model.state_dict()) == list(state)
    assert all(torch.equal(value, state[key]) for key, value in model.state_dict().items())
    assert torch.equal(torch.as_tensor(weights[1].grad), gradient)
    assert all(weight.grad is None for weight in (weights[0], *weights[2:]))
    assert sorted(graph.keys()) == sorted(GRAPH.keys())
    assert all(torch.equal(graph[key], GRAPH[key]) for key in GRAPH.keys())  # noqa: SIM118
    assert torch.equal(logits(copy.deepcopy(model), GRAPH), whole)


def test_a_model_is_restored_if_an_explainer_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    model = settled(GIN(*SIZE))
    before, whole = traces(model), logits(model, GRAPH)

    def fail(*args: Any) -> None:
        raise RuntimeError("no loss")

    monkeypatch.setattr(PGExplainer, "_loss", fail)
    monkeypatch.setattr(GraphMaskExplainer, "_loss", fail)
    for name in OF_EDGES:
        with pytest.raises(RuntimeError, match="no loss"):
            explained(name, model)
        assert traces(model) == before
        assert torch.equal(logits(model, GRAPH), whole)


# As rows, and for other inputs.


def test_they_are_rows_of_evaluate() -> None:
    model = settled(GIN(*SIZE))
    graphs = [some_graph(7, seed) for seed in range(1, 4)]
    for graph in graphs:
        graph.node_mask = torch.arange(7) < 2
    rows = {name: third_party_function(name, model, graphs, 0) for name in THIRD_PARTY}
    table = evaluate(graphs, rows, model)
    nodes = ["shapley-sampling", "guided-backprop", "feature-ablation"]
    edges = [f"{name}-{rule}" for name in OF_EDGES for rule in ("mean", "max", "sum")]
    assert list(table.index) == [*edges, *nodes]
    assert table.auroc.between(0, 1).all()
    assert not table.constant[nodes].any()


@pytest.mark.parametrize("name", THIRD_PARTY)
def test_a_predicted_number_is_explained(name: str) -> None:
    model = settled(GIN(FEATURES, 1, 8, 2))
    mask = scores(explained(name, model, label="number"))
    assert len(mask) == (GRAPH.num_edges if name in OF_EDGES else GRAPH.num_nodes)
    assert mask.std() > 1e-4
    if name == "feature-ablation":
        x = GRAPH.x.clone()
        x[2] = 0
        expected = float(logits(model, GRAPH) - logits(model, GRAPH, x))
        assert float(mask[2]) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("name", THIRD_PARTY)
def test_a_graph_without_edges_has_scores_of_nodes_alone(name: str) -> None:
    model = settled(GIN(*SIZE))
    lonely = Data(x=GRAPH.x[:2], edge_index=torch.zeros(2, 0).long())
    mask = scores(third_party_function(name, model, [lonely, *TRAINING], SEED)(lonely))
    assert len(mask) == (0 if name in OF_EDGES else 2)
    assert torch.isfinite(mask).all()


def test_every_row_says_what_it_is() -> None:
    of_nodes = ["shapley-sampling", "guided-backprop", "feature-ablation"]
    assert list(THIRD_PARTY) == [*OF_EDGES, *of_nodes]
    for name, row in THIRD_PARTY.items():
        assert row.name == name
        assert row.needs_training == (name == "pg-explainer")
    for name, row in {row.name: row for row in third_party._ROWS}.items():
        assert all(str(number) in row.what for number in row.settings.values()), name


# Errors.


@pytest.mark.parametrize("name", OF_EDGES)
def test_edges_of_a_model_that_sees_none_cannot_be_scored(name: str) -> None:
    with pytest.raises(InputError, match="DeepSets has no MessagePassing .* use shapley-sampling"):
        third_party_function(name, settled(DeepSets(*SIZE)), TRAINING, 0)
    assert scores(explained("feature-ablation", settled(DeepSets(*SIZE)))).std() > 0.01


def test_guided_backpropagation_needs_relus() -> None:
    with pytest.raises(InputError, match="nn.ReLU, and BcosGIN has none; use 'saliency'"):
        third_party_function("guided-backprop", settled(BcosGIN(*SIZE)), (), 0)


@pytest.mark.parametrize("name", [name for name in THIRD_PARTY if name not in OF_EDGES])
def test_a_missing_captum_is_named_with_the_command(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("captum", "captum.attr"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=f"'{name}' needs Captum; run: pip install captum"):
        third_party_function(name, settled(GIN(*SIZE)), (), 0)
    assert scores(explained("pg-explainer", settled(GIN(*SIZE)))).std() > 0


def test_wrong_arguments_are_refused() -> None:
    model = settled(GIN(*SIZE))
    with pytest.raises(InputError, match="unknown explainer 'graphmask'; did you mean 'graph-mask"):
        third_party_function("graphmask", model, TRAINING, 0)
    with pytest.raises(InputError, match="seed: expected a whole number"):
        third_party_function("feature-ablation", model, (), -1)
    with pytest.raises(InputError, match="in training mode"):
        third_party_function("feature-ablation", GIN(*SIZE), (), 0)
    lonely = Data(x=GRAPH.x[:2], edge_index=torch.zeros(2, 0).long())
    for graphs in ([], [lonely]):
        with pytest.raises(InputError, match="expected training graphs with edges, got none"):
            third_party_function("pg-explainer", model, graphs, 0)
    function = third_party_function("feature-ablation", model, (), 0)
    with pytest.raises(InputError, match="expected one graph, got a batch of 3"):
        function(Batch.from_data_list(TRAINING))
    with pytest.raises(InputError, match="an output for each node"):
        explained("feature-ablation", settled(GIN(*SIZE, level="node")))
