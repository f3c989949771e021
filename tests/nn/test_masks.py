"""Edge masks of PyG and DIG reach the messages of all models, or are refused."""

import copy
import io
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.explain import Explainer, Explanation
from torch_geometric.explain.algorithm import ExplainerAlgorithm
from torch_geometric.explain.algorithm.utils import clear_masks, set_masks
from torch_geometric.explain.metric import fidelity, unfaithfulness
from torch_geometric.nn import MessagePassing
from torch_geometric.utils import get_embeddings

from graphxai_data import GraphXAIDataset, load_model
from graphxai_data.errors import InputError
from graphxai_data.explain import Inputs
from graphxai_data.explain.bcos import contribution_map
from graphxai_data.nn import GIN, GINE, GSAT, BcosGIN, BcosGINE, DeepSets
from graphxai_data.nn.gin import GraphModel
from graphxai_data.nn.sums import Edges
from tests.conftest import CHECKOUT, SharedBuilds

FEATURES, BONDS, CLASSES, HIDDEN, LAYERS = 3, 2, 4, 8, 2
SIZE = (FEATURES, CLASSES, HIDDEN, LAYERS)
WITH_BONDS = (FEATURES, BONDS, CLASSES, HIDDEN, LAYERS)
NAMES = {
    "gin": lambda: GIN(*SIZE),
    "gin, node level": lambda: GIN(*SIZE, level="node", norm="batch"),
    "gine": lambda: GINE(*WITH_BONDS),
    "bcos-gin": lambda: BcosGIN(*SIZE, eps=1.5, norm="rms", logit_bias=-1.0),
    "additive": lambda: BcosGINE(*WITH_BONDS, b=1.5, max_out=2, logit_bias=-1.0),
    "multiplicative": lambda: BcosGINE(*WITH_BONDS, edges="multiplicative"),
    "side by side": lambda: BcosGIN(*SIZE, combine="cat", gains=True),
    "side by side, additive": lambda: BcosGINE(*WITH_BONDS, combine="cat"),
    "gsat": lambda: GSAT(*SIZE),
    "gsat, own encoder": lambda: GSAT(*SIZE, edge_features=BONDS, own_encoder=True),
}
CONFIG = {"mode": "multiclass_classification", "task_level": "graph", "return_type": "raw"}


def some_graph(nodes: int, seed: int) -> Data:
    """Return a graph with edges in both directions, in one only, and a self-loop."""
    draws = torch.Generator().manual_seed(seed)
    dense = torch.rand(nodes, nodes, generator=draws) < 0.35
    dense = (dense | dense.T).fill_diagonal_(fill_value=False)
    dense[0, 1:3] = True
    dense[1:3, 0] = False
    dense[3, 3] = True
    edge_index = dense.nonzero().T
    x = torch.randn(nodes, FEATURES, generator=draws, dtype=torch.double)
    bonds = torch.randn(edge_index.shape[1], BONDS, generator=draws, dtype=torch.double)
    return Data(x=x, edge_index=edge_index, edge_attr=bonds)


def some_batch() -> Data:
    return Batch.from_data_list([some_graph(7, 1), some_graph(9, 2), some_graph(5, 3)])


def settled(model: nn.Module) -> Any:
    """Return the model in evaluation, with weights and statistics that make masks count."""
    model.double().train(mode=False)
    for name, value in model.state_dict().items():
        if "mean_square" in name or "running_var" in name:
            value.uniform_(0.5, 2)
        elif value.ndim == 2 and not isinstance(model, BcosGIN):
            value.mul_(1.5)
    return model


@pytest.fixture(params=NAMES)
def model(request: pytest.FixtureRequest) -> GraphModel:
    network: GraphModel = settled(NAMES[request.param]())
    return network


@pytest.fixture(params=["graph", "batch"])
def data(request: pytest.FixtureRequest) -> Data:
    return some_graph(8, 4) if request.param == "graph" else some_batch()


def hard_mask(count: int) -> Tensor:
    mask = (torch.rand(count) < 0.6).double()
    mask[:2] = torch.tensor([0, 1])
    return mask


def logits(model: nn.Module, data: Data, kept: Tensor | None = None, **changes: Any) -> Tensor:
    """Return the logits of a model, after deleting all edges but those kept."""
    kept = torch.ones(data.num_edges).bool() if kept is None else kept.bool()
    edge_attr = changes.get("edge_attr", data.edge_attr)
    out: Tensor = model(
        changes.get("x", data.x), data.edge_index[:, kept], edge_attr[kept], data.batch
    )
    return out


def test_a_mask_of_zeros_and_ones_deletes_edges(model: GraphModel, data: Data) -> None:
    mask = hard_mask(data.num_edges)
    whole = logits(model, data)
    x, bonds = (t.clone().requires_grad_() for t in (data.x, data.edge_attr))
    set_masks(model, mask, data.edge_index, apply_sigmoid=False)
    masked = logits(model, data, x=x, edge_attr=bonds)
    clear_masks(model)
    expected = logits(model, data, mask, x=x, edge_attr=bonds)
    torch.testing.assert_close(masked, expected, rtol=0, atol=1e-12)
    assert not torch.allclose(masked, whole, atol=1e-4)
    assert torch.equal(logits(model, data), whole)
    weights = torch.randn_like(masked)
    leaves = [x, bonds, *model.parameters()]
    gradients, expected_gradients = (
        torch.autograd.grad(
            (out * weights).sum(), leaves, materialize_grads=True, allow_unused=True
        )
        for out in (masked, expected)
    )
    for gradient, of_deletion in zip(gradients, expected_gradients, strict=True):
        torch.testing.assert_close(gradient, of_deletion, rtol=0, atol=1e-11)


def test_a_mask_of_ones_changes_nothing_and_one_of_logits_is_squashed(
    model: GraphModel, data: Data
) -> None:
    raw = torch.randn(data.num_edges, dtype=torch.double)
    outputs = {}
    for name, mask, squash in (
        ("ones", torch.ones_like(raw), False), ("raw", raw, True), ("sigmoid", raw.sigmoid(), False)
    ):  # fmt: skip
        set_masks(model, mask, data.edge_index, apply_sigmoid=squash)
        outputs[name] = logits(model, data)
        clear_masks(model)
    torch.testing.assert_close(outputs["ones"], logits(model, data))
    assert torch.equal(outputs["raw"], outputs["sigmoid"])
    assert not torch.allclose(outputs["raw"], outputs["ones"], atol=1e-4)


def test_the_gradient_of_a_mask_is_that_of_finite_differences(model: GraphModel) -> None:
    graph = some_graph(6, 5)

    def run(mask: Tensor) -> Tensor:
        set_masks(model, mask, graph.edge_index)
        out = logits(model, graph)
        clear_masks(model)
        return out

    mask = torch.randn(graph.num_edges, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(run, (mask,))
    (gradient,) = torch.autograd.grad(run(mask).square().sum(), mask)
    assert (gradient != 0).all() or isinstance(model, GIN)  # a ReLU may be closed


def test_without_a_mask_no_message_is_made(
    model: GraphModel, data: Data, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*arguments: Any, **options: Any) -> None:
        raise AssertionError("a message was made")

    set_masks(model, hard_mask(data.num_edges), data.edge_index)
    clear_masks(model)
    monkeypatch.setattr(MessagePassing, "propagate", never)
    assert torch.isfinite(logits(model, data)).all()


def test_the_state_dict_has_the_weights_alone_whatever_masks_are_set(model: GraphModel) -> None:
    graph = some_graph(6, 5)
    names, count = list(model.state_dict()), len(list(model.parameters()))
    set_masks(model, nn.Parameter(torch.zeros(graph.num_edges)), graph.edge_index)
    assert list(model.state_dict()) == names
    assert len(list(model.parameters())) == count
    assert not any("conv" in name or "mask" in name for name in names)


def test_a_mask_after_a_learned_one_keeps_its_gradient(model: GraphModel) -> None:
    # PyG makes it a parameter, and cuts its gradient, where an earlier mask was one.
    graph = some_graph(6, 5)
    set_masks(model, nn.Parameter(torch.zeros(graph.num_edges)), graph.edge_index)
    clear_masks(model)
    source = torch.zeros(graph.num_edges, requires_grad=True)
    set_masks(model, 2 * source, graph.edge_index)
    logits(model, graph).square().sum().backward()
    assert source.grad is not None
    assert source.grad.any()


@pytest.mark.parametrize("count", [0, 1, -1, 5])
def test_a_mask_of_another_length_is_refused(model: GraphModel, count: int) -> None:
    graph = some_graph(6, 5)
    edges = graph.num_edges
    wrong = torch.ones(edges + count if count != 1 else edges + len(graph.x))
    if count == 0:
        wrong = torch.ones(1)
    set_masks(model, wrong, graph.edge_index, apply_sigmoid=False)
    with pytest.raises(InputError, match=rf"edge mask: expected \[{edges}\], one per edge, got \["):
        logits(model, graph)


@pytest.mark.parametrize("flag", ["_explain", "__explain__"])
def test_masks_by_the_names_of_dig_and_of_older_pyg_count(model: GraphModel, flag: str) -> None:
    # DIG's layers multiply by the mask, those of PyG before 2.1 by its sigmoid.
    graph = some_graph(6, 5)
    mask = hard_mask(graph.num_edges)
    value = mask if flag == "_explain" else 1000 * (mask - 0.5)
    for module in model.modules():
        if isinstance(module, MessagePassing):
            setattr(module, flag, True)
            module.__edge_mask__ = nn.Parameter(value)
    masked = logits(model, graph)
    for module in model.modules():
        if isinstance(module, MessagePassing):
            setattr(module, flag, False)
            module.__edge_mask__ = None
    torch.testing.assert_close(masked, logits(model, graph, mask))
    assert not torch.allclose(masked, logits(model, graph), atol=1e-4)
    set_masks(model, mask, graph.edge_index, apply_sigmoid=False)
    torch.testing.assert_close(logits(model, graph), masked)


def test_a_layer_that_pyg_is_told_to_leave_out_is_not_masked() -> None:
    model, graph = settled(GIN(*SIZE)), some_graph(6, 5)
    for conv in model.convs:
        conv.explain = False
    whole = logits(model, graph)
    set_masks(model, hard_mask(graph.num_edges), graph.edge_index)
    assert torch.equal(logits(model, graph), whole)


def test_an_announced_mask_that_nobody_set_is_an_error(model: GraphModel) -> None:
    for module in model.modules():
        if isinstance(module, MessagePassing):
            module.explain = True
    with pytest.raises(InputError, match=r"edge mask: an explainer announced one but set none"):
        logits(model, some_graph(6, 5))


@pytest.mark.parametrize("name", ["bcos-gin", "additive", "multiplicative"])
def test_contributions_under_a_mask_add_up_to_the_masked_logit(name: str, data: Data) -> None:
    model = settled(NAMES[name]())
    mask = torch.rand(data.num_edges, dtype=torch.double)
    inputs = Inputs.of(data)
    set_masks(model, mask, data.edge_index, apply_sigmoid=False)
    explanation = contribution_map(model, inputs, target=1)
    torch.testing.assert_close(explanation.logit, logits(model, data)[:, 1].detach())
    clear_masks(model)
    assert explanation.completeness_gap().max() < 1e-12
    plain = contribution_map(model, inputs, target=1)
    assert not torch.allclose(explanation.node_scores, plain.node_scores, atol=1e-4)
    assert (explanation.edge_scores is not None) == (name == "additive")
    # An edge that is masked contributes nothing.
    set_masks(model, (mask > 0.5).double(), data.edge_index, apply_sigmoid=False)
    hard = contribution_map(model, inputs, target=1)
    if hard.edge_scores is not None:
        assert not hard.edge_scores[mask <= 0.5].any()
        assert hard.edge_scores[mask > 0.5].any()


@pytest.mark.parametrize("name", NAMES)
def test_pyg_counts_as_many_layers_as_a_node_sees_far(name: str) -> None:
    # On a path, the state of its first node depends on the features of so many nodes after it.
    model, length, seen = settled(NAMES[name]()), 12, 0
    path = torch.stack([torch.arange(1, length), torch.arange(length - 1)])
    edge_index = torch.cat([path, path.flip(0)], dim=1)
    bonds = torch.randn(edge_index.shape[1], BONDS, dtype=torch.double)
    for _ in range(20):  # in a single graph a ReLU may be closed
        x = torch.randn(length, FEATURES, dtype=torch.double, requires_grad=True)
        network, edges = model, Edges(edge_index, length, bonds)
        if isinstance(model, GSAT):
            network, edges = model.backbone, edges.with_weight(model.attend(x, edges).attention)
        h = network.states(x, edges)
        (gradient,) = torch.autograd.grad(h[0].square().sum(), x)
        seen = max(seen, int(gradient.abs().sum(dim=1).nonzero().max()))
    hops = ExplainerAlgorithm._num_hops(model)
    assert hops == seen == (2 * LAYERS if isinstance(model, GSAT) else LAYERS)


def test_copies_and_pickles_of_a_model_take_masks_of_their_own(model: GraphModel) -> None:
    graph = some_graph(6, 5)
    mask = hard_mask(graph.num_edges)
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    whole = logits(model, graph)
    for other in (copy.deepcopy(model), torch.load(file, weights_only=False)):
        set_masks(other, mask, graph.edge_index, apply_sigmoid=False)
        assert torch.equal(logits(model, graph), whole)
        torch.testing.assert_close(logits(other, graph), logits(model, graph, mask))
        # A copy of a masked model is masked as well.
        assert torch.equal(logits(copy.deepcopy(other), graph), logits(other, graph))


def test_a_network_that_replaces_the_sum_but_not_its_messages_is_refused_a_mask() -> None:
    class Doubled(GIN):
        def aggregate(self, layer: int, h: Tensor, edges: Edges) -> Tensor:
            return 2 * super().aggregate(layer, h, edges)

    model, graph = Doubled(*SIZE).double(), some_graph(6, 5)
    whole = logits(model, graph)
    set_masks(model, hard_mask(graph.num_edges), graph.edge_index)
    with pytest.raises(InputError, match="Doubled has an `aggregate` of its own, whose messages"):
        logits(model, graph)
    clear_masks(model)
    assert torch.equal(logits(model, graph), whole)
    last = get_embeddings(model, graph.x, graph.edge_index)[-1]
    torch.testing.assert_close(model.readout(last).sum(dim=0), whole[0])


def test_pyg_finds_the_states_after_every_layer(model: GraphModel) -> None:
    data = some_batch()
    whole = logits(model, data)
    found = get_embeddings(model, data.x, data.edge_index, data.edge_attr, data.batch)
    assert [list(states.shape) for states in found] == [[data.num_nodes, HIDDEN]] * len(found)
    network = model.backbone if isinstance(model, GSAT) else model
    pooled = network.pool(network.readout(found[-1]), data.batch, 3)
    out = model.classifier(pooled) if isinstance(model, GSAT) else pooled
    torch.testing.assert_close(out, whole)


def test_deepsets_refuses_masks_of_edges_which_it_does_not_see() -> None:
    model, graph = settled(DeepSets(*SIZE)), some_graph(6, 5)
    explainer = Explainer(model, FixedMask(), "model", CONFIG, edge_mask_type="object")
    explanation = Explanation(
        edge_mask=torch.rand(graph.num_edges), x=graph.x, edge_index=graph.edge_index,
        prediction=model(graph.x), target=model(graph.x).argmax(dim=1), _model_args=[],
    )  # fmt: skip
    for metric in (unfaithfulness, fidelity):
        with pytest.raises(InputError, match="edge mask: this model sees no edges"):
            metric(explainer, explanation)
    for flag in ("_explain", "__explain__", "_edge_mask", "__edge_mask__"):
        with pytest.raises(InputError, match="explain node features, or another model"):
            setattr(next(m for m in model.modules() if isinstance(m, MessagePassing)), flag, True)
    clear_masks(model)
    assert torch.isfinite(model(graph.x)).all()


class FixedMask(ExplainerAlgorithm):
    """An algorithm that returns the mask it was given, to be scored by PyG's metrics."""

    mask: Tensor

    def forward(self, *arguments: Any, **options: Any) -> Explanation:
        return Explanation(edge_mask=self.mask)

    def supports(self) -> bool:
        return True


def softmax(row: Tensor) -> np.ndarray:
    values = row.detach().double().numpy()
    values = np.exp(values - values.max())
    return values / values.sum()


SHIPPED = {
    "ba2motif": ("bcos-gin-ba2motif", "gin-ba2motif"),
    "dihalo": ("bcos-gine-dihalo", "gine-dihalo"),
    "mnist75sp-r23": ("bcos-gin-mnist75sp-r23", "gin-mnist75sp-r23"),
}


@pytest.fixture(params=[(d, m) for d, models in SHIPPED.items() for m in models], ids="-".join)
def shipped(request: pytest.FixtureRequest, builds: SharedBuilds) -> Any:
    dataset, name = request.param
    return load_model(name).double(), GraphXAIDataset(builds.root(dataset, 100), dataset)


def test_pygs_scores_of_random_masks_are_those_of_deleted_edges(shipped: Any) -> None:
    model, dataset = shipped
    algorithm, changed = FixedMask(), 0
    explainer = Explainer(model, algorithm, "model", CONFIG, edge_mask_type="object")
    assert len(dataset) == 100
    for graph in dataset:
        algorithm.mask = (torch.rand(graph.num_edges) < 0.5).double()
        kept, options = algorithm.mask.bool(), {}
        if getattr(graph, "edge_attr", None) is not None:
            options["edge_attr"] = graph.edge_attr.double()

        def on(edges: Tensor, graph: Data = graph, options: dict = options) -> Tensor:
            rest = {name: value[edges] for name, value in options.items()}
            out: Tensor = model(graph.x.double(), graph.edge_index[:, edges], **rest)
            return out

        whole, subgraph, complement = on(kept | True), on(kept), on(~kept)
        y, y_hat = softmax(whole[0]), softmax(subgraph[0])
        with np.errstate(divide="ignore"):
            divergence = np.where(y_hat > 0, y_hat * (np.log(y_hat) - np.log(y)), 0).sum()
        explanation = explainer(graph.x.double(), graph.edge_index, **options)
        score = unfaithfulness(explainer, explanation)
        assert score == pytest.approx(1 - np.exp(-divergence), abs=1e-6)
        plus, minus = fidelity(explainer, explanation)
        assert plus == float(complement.argmax() != whole.argmax())
        assert minus == float(subgraph.argmax() != whole.argmax())
        changed += score > 1e-3
    assert changed > 50


@pytest.mark.parametrize("name", [name for names in SHIPPED.values() for name in names])
def test_shipped_models_have_the_weights_they_were_saved_with_and_no_others(name: str) -> None:
    with safe_open(CHECKOUT / "models" / name / "weights.safetensors", "pt") as file:
        assert set(load_model(name).state_dict()) == set(file.keys())
