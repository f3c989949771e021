"""Models of one's own: arguments by name, edge masks in PyG's way, and outputs that are checked."""

import re
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GCNConv, global_add_pool, models

from graphxai_data import explain
from graphxai_data.errors import InputError
from graphxai_data.explain.models import (
    arguments_in_order,
    call_model,
    device_of_model,
    further_arguments,
    takes_edge_masks,
)
from graphxai_data.nn import GIN, DeepSets

EDGES = torch.tensor([[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]])
X = torch.arange(10.0).view(5, 2)
ATTR = torch.arange(12.0).view(6, 2)
BATCH = torch.tensor([0, 0, 0, 1, 1])
GIVEN = {"x": X, "edge_index": EDGES, "edge_attr": ATTR, "batch": BATCH}


class Recorder(nn.Module):
    """A model that remembers its arguments."""

    seen: dict[str, Any]

    def record(self, **arguments: Any) -> Tensor:
        self.seen = arguments
        return torch.zeros(2, 2)


class Short(Recorder):
    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return self.record(x=x, edge_index=edge_index, batch=batch)


class Swapped(Recorder):
    def forward(
        self, batch: Tensor, edge_attr: Tensor, *, x: Tensor, edge_index: Tensor, scale: float = 2
    ) -> Tensor:
        return self.record(
            x=x, edge_index=edge_index, edge_attr=edge_attr, batch=batch, scale=scale
        )


class Weighted(Recorder):
    def forward(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None, batch_size: int = 7
    ) -> Tensor:
        return self.record(
            x=x, edge_index=edge_index, edge_weight=edge_weight, batch_size=batch_size
        )


class Named(Recorder):
    def forward(self, x: Tensor, **options: Any) -> Tensor:
        return self.record(x=x, **options)


class Positional(Recorder):
    def forward(self, x: Tensor, *others: Any) -> Tensor:
        keys = ("x", "edge_index", "edge_attr", "batch")
        return self.record(**dict(zip(keys, (x, *others), strict=True)))


class Needy(Recorder):
    def forward(self, x: Tensor, pos: Tensor, colour: Tensor, size: int = 1) -> Tensor:
        return self.record(x=x)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (Short(), {"x": X, "edge_index": EDGES, "batch": BATCH}),
        (Swapped(), {**GIVEN, "scale": 2}),
        (Weighted(), {"x": X, "edge_index": EDGES, "edge_weight": None, "batch_size": 2}),
        (Named(), GIVEN),
        (Positional(), GIVEN),
        (nn.DataParallel(Short()), {"x": X, "edge_index": EDGES, "batch": BATCH}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_arguments_are_given_by_name(model: nn.Module, expected: dict[str, Any]) -> None:
    call_model(model, **GIVEN, batch_size=2)
    seen = getattr(model, "module", model).seen
    assert seen.keys() == expected.keys()
    assert all(seen[key] is value or seen[key] == value for key, value in expected.items())


def test_what_is_missing_and_optional_keeps_its_default() -> None:
    call_model(model := Weighted(), X, EDGES)
    assert model.seen["batch_size"] == 7
    call_model(model := Swapped(), X, EDGES)
    assert model.seen["batch"] is None  # required
    weight = torch.rand(6)
    call_model(model := Weighted(), X, EDGES, edge_weight=weight)
    assert model.seen["edge_weight"] is weight


def test_unknown_parameters_that_are_required_are_named() -> None:
    message = re.escape("model: Needy.forward needs pos, colour; models are given x, edge_index")
    with pytest.raises(InputError, match=message):
        call_model(Needy(), X, EDGES)

    class Reversed(nn.Module):
        def forward(self, edge_index: Tensor, *others: Any) -> Tensor:
            return edge_index

    with pytest.raises(InputError, match=r"has edge_index before \*args; expected x, edge_index"):
        call_model(Reversed(), X, EDGES)


def test_a_compiled_model_is_called_as_the_model_in_it() -> None:
    compiled = torch.compile(Short(), backend="eager")
    call_model(compiled, X, EDGES, ATTR, BATCH)
    assert further_arguments(compiled) == ("batch",)


def test_explainers_of_pyg_pass_arguments_on_by_position() -> None:
    values = {**GIVEN, "edge_weight": None, "batch_size": None}
    gin = models.GIN(2, 4, 1)
    assert list(arguments_in_order(gin, values)) == ["edge_weight", "edge_attr", "batch"]
    assert arguments_in_order(gin, values)["edge_weight"] is None
    for model in (GIN(2, 2), DeepSets(2, 2), Positional()):
        arguments = arguments_in_order(model, values | {"edge_attr": None})
        assert list(arguments.items()) == [("edge_attr", None), ("batch", BATCH)]
    assert arguments_in_order(Short(), values) == {"batch": BATCH}
    with pytest.raises(InputError, match="begins with batch, edge_attr; change the order"):
        arguments_in_order(Swapped(), values)


class OfGCN(nn.Module):
    """GCN, whose layers add self-loops; it takes no edge_weight."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = GCNConv(2, 4), GCNConv(4, 3)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        return global_add_pool(self.second(self.first(x, edge_index).relu(), edge_index), batch)


def test_edge_weights_reach_the_messages_of_pygs_layers() -> None:
    model = OfGCN().train(mode=False)
    assert takes_edge_masks(model)
    ones, weight = torch.ones(6), torch.rand(6, requires_grad=True)
    whole = model(X, EDGES, BATCH)
    torch.testing.assert_close(call_model(model, X, EDGES, None, BATCH, edge_weight=ones), whole)
    masked = call_model(model, X, EDGES, None, BATCH, edge_weight=weight)
    # The same by hand: GCN normalises by degrees with self-loops, then sums weighted messages.
    loops = torch.arange(5).repeat(2, 1)
    edge_index, factors = torch.cat([EDGES, loops], 1), torch.cat([weight, torch.ones(5)])
    degree = torch.bincount(edge_index[1]).float()
    norm = (degree[edge_index[0]] * degree[edge_index[1]]).rsqrt() * factors
    adjacency = torch.zeros(5, 5).index_put((edge_index[1], edge_index[0]), norm)
    hidden = (adjacency @ model.first.lin(X) + model.first.bias).relu()
    rows = adjacency @ model.second.lin(hidden) + model.second.bias
    expected = torch.stack([rows[:3].sum(0), rows[3:].sum(0)])
    torch.testing.assert_close(masked, expected)
    (gradient,) = torch.autograd.grad(masked[0].sum(), weight)
    assert (gradient[:4] != 0).all()
    assert not gradient[4:].any()  # edges of the other graph
    torch.testing.assert_close(model(X, EDGES, BATCH), whole)  # no mask is left


def test_a_model_without_edges_to_mask_says_so() -> None:
    assert not takes_edge_masks(Short())
    with pytest.raises(InputError, match="edges of Short cannot be masked; expected a forward"):
        call_model(Short(), X, EDGES, None, BATCH, edge_weight=torch.ones(6))


class OfNodes(nn.Module):
    """A model with an output per node, which has no attribute that says so."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = GCNConv(2, 3)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.layer(x, edge_index)


@pytest.mark.parametrize("method", ["saliency", "integrated-gradients", "gnn-explainer"])
def test_models_of_ones_own_are_explained(method: str) -> None:
    graphs = Batch.from_data_list(
        [Data(x=X[:3], edge_index=EDGES[:, :4]), Data(x=X[3:], edge_index=EDGES[:, 4:] - 3)]
    )
    model = OfGCN().train(mode=False)
    explanation = explain(model, graphs, method=method)
    logits = model(X, EDGES, BATCH)
    torch.testing.assert_close(explanation.logit, logits.amax(dim=1).detach())
    graph = Data(x=X[:3], edge_index=EDGES[:, :4])
    one = explain(OfNodes().train(mode=False), graph, node=0, method="saliency")
    assert one.node == 0
    assert one.node_scores[:2].min() > 0
    assert one.node_scores[2] == 0  # two edges away


def test_outputs_that_are_no_logits_of_graphs_are_refused() -> None:
    graph = Data(x=X[:3], edge_index=EDGES[:, :4])
    message = r"expected logits \[1, classes\], a row per graph, got \[3, 3\], a row per node; pool"
    with pytest.raises(InputError, match=message):
        explain(OfNodes().train(mode=False), graph, method="saliency")
    message = r"expected logits \[3, classes\], a row per node, got \[1, 3\]; return a row"
    with pytest.raises(InputError, match=message):
        explain(OfGCN().train(mode=False), graph, method="saliency", node=1)

    class Pair(OfGCN):
        def forward(self, *arguments: Any) -> tuple[Tensor, Tensor]:  # type: ignore[override]
            return X, X

    with pytest.raises(InputError, match="a row per graph, got tuple; return logits only"):
        explain(Pair().train(mode=False), graph, method="saliency")


def test_a_model_and_its_data_are_on_one_device() -> None:
    graph = Data(x=X[:3], edge_index=EDGES[:, :4])
    away = OfGCN().train(mode=False).to("meta")
    assert device_of_model(away) == torch.device("meta")
    with pytest.raises(InputError, match="data: on cpu, the model on meta; move one of them"):
        explain(away, graph, method="saliency")
    away.first.to_empty(device="cpu")
    with pytest.raises(InputError, match="model: on several devices, cpu and meta"):
        explain(away, graph, method="saliency")
