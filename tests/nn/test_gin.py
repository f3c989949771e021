import inspect
import re
from collections.abc import Callable
from dataclasses import fields

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GINConv, GINEConv

from graphxai_data import explain
from graphxai_data.errors import InputError
from graphxai_data.nn import (
    GIN,
    GINE,
    BcosGIN,
    BcosGINE,
    BcosLinear,
    DeepSets,
    Ensemble,
    explanation_mode,
)
from graphxai_data.nn.bcos import RMSNorm
from graphxai_data.nn.bcos_gin import Gain
from graphxai_data.nn.gin import GraphModel
from graphxai_data.nn.zoo import MODELS

# Two graphs: a directed triangle with a tail and an isolated node; two nodes without an edge.
EDGES = torch.tensor([[0, 1, 2, 2, 3], [1, 2, 0, 3, 2]])
BATCH = torch.tensor([0, 0, 0, 0, 0, 1, 1])
NODES, FEATURES, BONDS, CLASSES = 7, 3, 2, 4


@pytest.fixture
def x() -> Tensor:
    features = torch.randn(NODES, FEATURES, dtype=torch.double)
    features[1] = 0
    return features


@pytest.fixture
def edge_attr() -> Tensor:
    return torch.randn(EDGES.shape[1], BONDS, dtype=torch.double)


def settled(model: nn.Module) -> nn.Module:
    """Return the model in double precision and evaluation mode, with statistics other than 1."""
    model.double().train(mode=False)
    for module in model.modules():
        if isinstance(module, RMSNorm):
            module.mean_square.uniform_(0.5, 2)
        if isinstance(module, Gain):
            module.gain.uniform_(0.5, 2)
    if isinstance(model, BcosGIN):
        model.logit_scale.fill_(3.0)
    return model


def dynamic_matrices(model: BcosGIN, x: Tensor, edge_attr: Tensor | None) -> np.ndarray:
    """Return W* [g, c, n·p + m·q], the explicit product of the dynamic weights of all layers.

    An independent way to the contribution map (paper, appendix "Sum-aggregation GNNs preserve
    dynamic linearity"): every state is carried along with its matrix over all inputs.
    """
    x_values = x.numpy()
    edge_values = np.zeros((EDGES.shape[1], 0)) if edge_attr is None else edge_attr.numpy()
    inputs = np.concatenate([x_values.ravel(), edge_values.ravel()])
    identity = np.eye(len(inputs))
    node_part = identity[: x_values.size].reshape(NODES, FEATURES, -1)
    edge_part = identity[x_values.size :].reshape(EDGES.shape[1], -1, len(inputs))

    def through(layers: nn.Module, matrix: np.ndarray) -> np.ndarray:
        for layer in layers:
            if isinstance(layer, RMSNorm):
                mean_square = layer.mean_square.numpy()
                matrix = matrix / np.sqrt(mean_square + 1e-3 * mean_square.mean())[:, None]
            elif isinstance(layer, Gain):
                matrix = layer.gain.item() * matrix
            else:
                weight = layer.weight.detach().numpy()
                weight = weight / np.linalg.norm(weight, axis=1, keepdims=True)
                state = matrix @ inputs
                length = np.linalg.norm(state)
                cosine = weight @ state / (length if length else 1)
                rows = np.arange(layer.out_features) * layer.max_out
                if layer.max_out > 1:
                    rows = rows + cosine.reshape(-1, layer.max_out).argmax(axis=1)
                matrix = (np.abs(cosine[rows]) ** (layer.b - 1))[:, None] * weight[rows] @ matrix
        return matrix

    states = list(node_part)
    for layer, update in enumerate(model.updates):
        own = [(1 + model.eps) * state for state in states]
        around = [np.zeros_like(state) for state in states]
        for k, (source, target) in enumerate(EDGES.T.tolist()):
            message = states[source]
            if isinstance(model, BcosGINE):
                edges = model.edges[layer]
                if hasattr(edges, "linear"):
                    factor = 1 + edges.linear.weight.detach().numpy() @ edge_values[k]
                    message = factor[:, None] * message
                else:
                    message = message + edges.weight.detach().numpy() @ edge_part[k]
            around[target] = around[target] + message
        if model.config.combine == "cat":
            combined = [np.concatenate(pair) for pair in zip(own, around, strict=True)]
        else:
            combined = [a + b for a, b in zip(own, around, strict=True)]
        states = [through(update, matrix) for matrix in combined]
    evidence = [through(model.readout, matrix) for matrix in states]
    graphs = [sum(evidence[i] for i in np.flatnonzero(g == BATCH)) for g in range(2)]
    return model.logit_scale.item() * np.stack(graphs)


@pytest.mark.parametrize("b", [1, 1.5, 2, 3])
@pytest.mark.parametrize("max_out", [1, 2])
@pytest.mark.parametrize("norm", ["none", "rms", "gains"])
@pytest.mark.parametrize("combine", ["sum", "cat"])
@pytest.mark.parametrize("edges", [None, "additive", "multiplicative"])
def test_input_times_gradient_is_the_product_of_all_dynamic_weights(
    b: float,
    max_out: int,
    norm: str,
    combine: str,
    edges: str | None,
    x: Tensor,
    edge_attr: Tensor,
) -> None:
    options = {"b": b, "max_out": max_out, "dropout": 0.5, "logit_bias": -2.0, "combine": combine}
    options |= {"gains": True} if norm == "gains" else {"norm": norm}
    options["eps"] = 0.0 if norm == "none" else 1.5
    model = (
        BcosGINE(FEATURES, BONDS, CLASSES, 6, 2, edges=edges, update_layers=1, **options)
        if edges
        else BcosGIN(FEATURES, CLASSES, 6, 2, **options)
    )
    settled(model)
    bonds = edge_attr if edges else None
    expected = dynamic_matrices(model, x, bonds)
    inputs = [t.clone().requires_grad_() for t in (x, bonds) if t is not None]
    with explanation_mode(model):
        logits = model(inputs[0], EDGES, inputs[1] if len(inputs) > 1 else None, BATCH)
    plain = model(x, EDGES, bonds, BATCH)
    torch.testing.assert_close(logits, plain)
    for graph in range(2):
        for c in range(CLASSES):
            rows = torch.autograd.grad(
                logits[graph, c], inputs, retain_graph=True, materialize_grads=True
            )
            row = torch.cat([r.flatten() for r in rows]).numpy()
            np.testing.assert_allclose(row, expected[graph, c], atol=1e-12)
            flat = torch.cat([t.flatten() for t in inputs]).detach().numpy()
            assert np.isclose(row @ flat + model.logit_bias, logits[graph, c].item(), atol=1e-11)


def test_with_multiplicative_edges_nodes_alone_carry_the_logit(
    x: Tensor, edge_attr: Tensor
) -> None:
    model = settled(BcosGINE(FEATURES, BONDS, CLASSES, 6, edges="multiplicative"))
    x.requires_grad_()
    with explanation_mode(model):
        logits = model(x, EDGES, edge_attr.requires_grad_(), BATCH)
    gradient, none = torch.autograd.grad(logits[0, 1], (x, edge_attr), allow_unused=True)
    assert none is None
    assert torch.isclose((gradient * x).sum(), logits[0, 1])


def test_the_relu_twin_of_gin_is_pygs_ginconv(x: Tensor) -> None:
    model = settled(GIN(FEATURES, CLASSES, 5, 2, update_layers=2, readout_layers=3))
    model.eps.data = torch.tensor([0.3, -0.2], dtype=torch.double)
    h = x
    for update, eps in zip(model.updates, model.eps, strict=True):
        h = GINConv(update, eps=eps.item()).double()(h, EDGES)
    expected = torch.stack([model.readout(h)[graph == BATCH].sum(dim=0) for graph in range(2)])
    torch.testing.assert_close(model(x, EDGES, None, BATCH), expected)
    node_level = settled(GIN(FEATURES, CLASSES, 5, 2, level="node"))
    node_level.load_state_dict(model.state_dict())
    torch.testing.assert_close(node_level(x, EDGES, None, BATCH), model.readout(h))


def test_the_relu_twin_of_gine_is_pygs_gineconv(x: Tensor, edge_attr: Tensor) -> None:
    model = settled(GINE(FEATURES, BONDS, CLASSES, 5, 2))
    h = x
    for update, encoder in zip(model.updates, model.edges, strict=True):
        conv = GINEConv(update, edge_dim=BONDS).double()
        conv.lin = encoder
        h = conv(h, EDGES, edge_attr)
    expected = model.readout(h)[:5].sum(dim=0)
    torch.testing.assert_close(model(x, EDGES, edge_attr, BATCH)[0], expected)


def test_twins_have_the_same_depth_width_and_readout() -> None:
    relu = GIN(FEATURES, CLASSES, 8, 3, update_layers=2, readout_layers=3)
    bcos = BcosGIN(FEATURES, CLASSES, 8, 3, update_layers=2, readout_layers=3)
    shapes = [
        [tuple(m.weight.shape) for m in model.modules() if isinstance(m, kind)]
        for model, kind in ((relu, nn.Linear), (bcos, BcosLinear))
    ]
    assert shapes[0] == shapes[1]


def test_deepsets_sees_no_edges(x: Tensor) -> None:
    model = settled(DeepSets(FEATURES, CLASSES, 8))
    assert torch.equal(model(x, EDGES, None, BATCH), model(x, EDGES[:, :0], None, BATCH))
    assert not torch.equal(model(x, EDGES, None, BATCH), model(2 * x, EDGES, None, BATCH))


@pytest.mark.parametrize(
    "make",
    [
        lambda: GIN(FEATURES, CLASSES, 8),
        lambda: GINE(FEATURES, BONDS, CLASSES, 8),
        lambda: BcosGIN(FEATURES, CLASSES, 8, norm="rms"),
        lambda: BcosGINE(FEATURES, BONDS, CLASSES, 8, edges="additive"),
        lambda: BcosGINE(FEATURES, BONDS, CLASSES, 8, edges="multiplicative"),
        lambda: BcosGIN(FEATURES, CLASSES, 8, combine="cat", gains=True),
        lambda: BcosGINE(FEATURES, BONDS, CLASSES, 8, edges="additive", combine="cat"),
        lambda: Ensemble([BcosGIN(FEATURES, CLASSES, 8, logit_bias=-1.0) for _ in range(3)]),
    ],
    ids=["gin", "gine", "bcos-gin", "additive", "multiplicative", "cat", "cat, edges", "ensemble"],
)
def test_edge_weights_of_one_change_nothing_and_zeros_remove_edges(
    make: Callable[[], GIN], x: Tensor, edge_attr: Tensor
) -> None:
    model = settled(make())
    whole = model(x, EDGES, edge_attr, BATCH)
    ones = torch.ones(EDGES.shape[1], dtype=torch.double)
    torch.testing.assert_close(model(x, EDGES, edge_attr, BATCH, edge_weight=ones), whole)
    fewer = model(x, EDGES[:, 1:], edge_attr[1:], BATCH)
    ones[0] = 0
    torch.testing.assert_close(model(x, EDGES, edge_attr, BATCH, edge_weight=ones), fewer)
    assert not torch.allclose(fewer, whole)
    alone = model(x, EDGES[:, :0], edge_attr[:0], BATCH)
    assert torch.isfinite(alone).all()
    shuffle = torch.tensor([3, 0, 4, 2, 1])
    torch.testing.assert_close(model(x, EDGES[:, shuffle], edge_attr[shuffle], BATCH), whole)
    empty = model(x[:0], EDGES[:, :0], edge_attr[:0], BATCH[:0], batch_size=2)
    assert empty.tolist() == [[getattr(model, "logit_bias", 0.0)] * CLASSES] * 2


def test_calibration_gives_logits_of_standard_deviation_one(x: Tensor) -> None:
    model = BcosGIN(FEATURES, CLASSES, 8, b=3, logit_bias=-5.0).double()
    assert model(x, EDGES, None, BATCH).std() < 0.1
    model.calibrate(x, EDGES, None, BATCH)
    torch.testing.assert_close(model(x, EDGES, None, BATCH).std().item(), 1.0)
    model.calibrate(x, EDGES, None, BATCH)
    torch.testing.assert_close(model(x, EDGES, None, BATCH).std().item(), 1.0)
    with pytest.raises(InputError, match="initial logits are all alike"):
        model.calibrate(0 * x, EDGES, None, BATCH)
    deep = BcosGIN(FEATURES, CLASSES, b=12)
    with pytest.raises(InputError, match='use norm="rms", gains, a smaller b or fewer layers'):
        deep.calibrate(x.float(), EDGES, None, BATCH)


def test_gains_give_every_layer_outputs_of_root_mean_square_one(x: Tensor) -> None:
    model = BcosGIN(FEATURES, CLASSES, 8, b=6, gains=True, combine="cat").double()
    model.calibrate(x, EDGES, None, BATCH)
    outputs: list[Tensor] = []
    gains = [module for module in model.modules() if isinstance(module, Gain)]
    for gain in gains:
        gain.register_forward_hook(lambda _, __, output: outputs.append(output))
    logits = model(x, EDGES, None, BATCH)
    sizes = torch.stack([output.square().mean().sqrt() for output in outputs])
    torch.testing.assert_close(sizes, torch.ones(3 * 2 + 2, dtype=torch.double))
    torch.testing.assert_close(logits.std().item(), 1.0)
    before = [gain.gain.item() for gain in gains]
    model.calibrate(x, EDGES, None, BATCH)  # a second time changes nothing
    np.testing.assert_allclose([gain.gain.item() for gain in gains], before)


def test_side_by_side_a_degree_changes_the_prediction_of_equal_nodes() -> None:
    # All states are parallel, and layers are homogeneous: the sum sees a degree as a length only.
    ring, clique = (
        [(i, (i + d) % 5) for i in range(5) for d in steps] for steps in ((1, 4), (1, 2, 3, 4))
    )
    directions = {}
    for combine in ("sum", "cat"):
        model = BcosGIN(1, CLASSES, 8, 1, combine=combine).double()
        outputs = [model(torch.ones(5, 1).double(), torch.tensor(e).T) for e in (ring, clique)]
        directions[combine] = torch.cosine_similarity(outputs[0], outputs[1]).item()
    assert np.isclose(directions["sum"], 1)
    assert directions["cat"] < 0.999


def test_features_of_another_width_are_refused(x: Tensor, edge_attr: Tensor) -> None:
    with pytest.raises(InputError, match=r"x: expected \[nodes, 3\], got \[7, 2\]"):
        BcosGIN(FEATURES, CLASSES)(x[:, :2], EDGES)
    gine = BcosGINE(FEATURES, BONDS, CLASSES).double()
    with pytest.raises(InputError, match=r"edge_attr: expected \[5 edges, 2\], got none"):
        gine(x, EDGES)
    # Without a check, a wrong number of rows would be broadcast, or read beyond the end.
    for wrong in (edge_attr[:, :1], edge_attr[:1], edge_attr[:4], torch.cat([edge_attr] * 2)):
        for model in (gine, GINE(FEATURES, BONDS, CLASSES).double()):
            with pytest.raises(InputError, match=r"edge_attr: expected \[5 edges, 2\], got \["):
                model(x, EDGES, wrong)
    with pytest.raises(InputError, match=r"edge_weight: expected \[5\], one per edge, got \[1\]"):
        gine(x, EDGES, edge_attr, edge_weight=torch.ones(1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden": 0}, "hidden: expected"),
        ({"layers": 0}, "layers: expected"),
        ({"dropout": 1.0}, "dropout: expected"),
        ({"dropout": "much"}, "dropout: expected a finite number from 0 to 0.99, got 'much'"),
        ({"logit_bias": float("nan")}, "logit_bias: expected a finite number, got nan"),
        ({"b": 0.5}, "b: expected a finite number of at least 1, got 0.5"),
        ({"level": "edge"}, "level: expected one of 'graph', 'node', got 'edge'"),
        ({"norm": "batch"}, "norm: expected one of 'rms', 'none', got 'batch'"),
        ({"update_layers": 0}, "update_layers: expected"),
        ({"readout_layers": 0}, "readout_layers: expected"),
        ({"combine": "mean"}, "combine: expected one of 'sum', 'cat', got 'mean'"),
        ({"gains": True, "norm": "rms"}, 'gains: expected false with norm="rms"'),
    ],
)
def test_impossible_settings_are_refused(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        BcosGIN(FEATURES, CLASSES, **options)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="edges: expected one of 'additive', 'multiplicative'"):
        BcosGINE(FEATURES, BONDS, CLASSES, edges="no")
    with pytest.raises(InputError, match="norm: expected one of 'batch', 'none', got 'rms'"):
        GIN(FEATURES, CLASSES, norm="rms")
    with pytest.raises(InputError, match="GIN: unknown option 'b'; known: classes, dropout"):
        GIN(FEATURES, CLASSES, b=2)


def test_a_single_node_can_be_trained_on() -> None:
    model = GIN(FEATURES, CLASSES, 8, norm="batch")
    model(torch.ones(1, FEATURES), EDGES[:, :0]).sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)


def test_relu_models_can_be_differentiated_twice(x: Tensor, edge_attr: Tensor) -> None:
    model = settled(GINE(FEATURES, BONDS, CLASSES, 4, 2))
    assert torch.autograd.gradgradcheck(
        lambda t: model(t, EDGES, edge_attr, BATCH), (x.requires_grad_(),)
    )


@pytest.mark.parametrize("model", MODELS.values())
def test_the_signature_of_a_model_has_all_its_options(model: type[GraphModel]) -> None:
    parameters = inspect.signature(model).parameters
    first = ["in_features", "classes", "hidden", "layers"]
    if model in (GINE, BcosGINE):
        first.insert(1, "edge_features")
    assert [n for n, p in parameters.items() if p.kind is p.POSITIONAL_OR_KEYWORD] == first
    options = {n: p.default for n, p in parameters.items() if p.kind is p.KEYWORD_ONLY}
    assert {*first, *options} == {field.name for field in fields(model.Config)}
    sizes = [2] * (len(first) - 2)
    config = model(*sizes).config
    assert config == model(*sizes, **options).config
    defaults = {n: p.default for n, p in parameters.items() if p.default is not p.empty}
    assert defaults == {name: getattr(config, name) for name in defaults}


def test_help_shows_the_options_without_their_bounds() -> None:
    assert str(inspect.signature(BcosGINE)) == (
        "(in_features: int, edge_features: int, classes: int, hidden: int = 64, layers: int = 3, "
        "*, update_layers: int = 2, norm: Literal['rms', 'none'] = 'none', dropout: float = 0.0, "
        "level: Literal['graph', 'node'] = 'graph', readout_layers: int = 3, b: float = 2.0, "
        "max_out: int = 1, eps: float = 0.0, logit_bias: float = 0.0, "
        "combine: Literal['sum', 'cat'] = 'sum', gains: bool = False, "
        "edges: Literal['additive', 'multiplicative'] = 'additive') -> None"
    )


def test_a_users_model_with_its_own_arguments_shows_these() -> None:
    class Narrow(GIN):
        def __init__(self, in_features: int) -> None:
            super().__init__(in_features, 2, hidden=4)

    assert str(inspect.signature(Narrow)) == "(in_features: int) -> None"
    assert Narrow(3).config.hidden == 4


@pytest.mark.parametrize("model", MODELS.values())
def test_an_unknown_option_is_an_error_that_names_the_nearest(model: type[GraphModel]) -> None:
    sizes = (3, 2, 2) if model in (GINE, BcosGINE) else (3, 2)
    message = f"{model.__name__}: unknown option 'hiden'; did you mean 'hidden'?"
    with pytest.raises(InputError, match=re.escape(message)):
        model(*sizes, hiden=8)


def test_a_missing_argument_is_an_error_that_names_the_model() -> None:
    with pytest.raises(TypeError, match="GINE: missing a required argument: 'classes'; expected "):
        GINE(3, 2)
    with pytest.raises(TypeError, match="GIN: too many positional arguments"):
        GIN(3, 2, 8, 2, 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"batch": torch.zeros(3, dtype=torch.int64)}, r"batch: expected \[4\] whole numbers"),
        ({"batch": torch.zeros(5, dtype=torch.int64)}, r"batch: expected \[4\] whole numbers"),
        ({"batch": torch.zeros(4)}, r"batch: expected \[4\] whole numbers.*float32"),
        (
            {"edge_index": torch.zeros(2, 2)},
            "edge_index: expected whole numbers, got torch.float32",
        ),
    ],
)
def test_wrong_graphs_are_refused(changes: dict[str, torch.Tensor], message: str) -> None:
    model = GIN(2, 2, 4, 1).train(mode=False)
    arguments = {"x": torch.ones(4, 2), "edge_index": torch.tensor([[0, 1], [1, 0]])} | changes
    with pytest.raises(InputError, match=message):
        model(**arguments)


@pytest.mark.parametrize("combine", ["sum", "cat"])
def test_renumbering_nodes_renumbers_the_map(combine: str, x: Tensor, edge_attr: Tensor) -> None:
    model = settled(
        BcosGINE(FEATURES, BONDS, CLASSES, 8, b=2.5, edges="multiplicative", combine=combine)
    )
    order = torch.tensor([3, 0, 4, 2, 1])  # new node i was order[i]
    graph = Data(x=x[:5], edge_index=EDGES, edge_attr=edge_attr)
    inverse = torch.argsort(order)
    renumbered = Data(x=x[:5][order], edge_index=inverse[EDGES], edge_attr=edge_attr)
    before, after = explain(model, graph, 1), explain(model, renumbered, 1)
    torch.testing.assert_close(after.node_scores, before.node_scores[order])
    assert not torch.allclose(after.node_scores, before.node_scores)
