"""Every explainer of PyG gives our models what it gives equal ones of PyG's layers."""

import copy
from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.explain import (
    AttentionExplainer,
    CaptumExplainer,
    DummyExplainer,
    Explainer,
    Explanation,
    GNNExplainer,
    GraphMaskExplainer,
    PGExplainer,
)
from torch_geometric.explain.algorithm import ExplainerAlgorithm
from torch_geometric.explain.algorithm.utils import clear_masks
from torch_geometric.explain.metric import unfaithfulness
from torch_geometric.nn import GINConv, GINEConv, MessagePassing, global_add_pool

from graphxai_data.errors import InputError
from graphxai_data.nn import GIN, GINE, GSAT, BcosGIN, BcosGINE, DeepSets
from graphxai_data.nn.gin import GraphModel
from graphxai_data.nn.random import seeded
from graphxai_data.nn.sums import Edges
from tests.nn.test_masks import BONDS, CONFIG, NAMES, SIZE, settled, some_batch, some_graph

# From Captum, and from PyG's PGExplainer.
pytestmark = [
    pytest.mark.filterwarnings(f"ignore:{message}")
    for message in (
        "Input Tensor", "Setting backward hooks", "Setting forward", "Converting a tensor with"
    )
]  # fmt: skip
GRAPH = some_graph(8, 4)


class Twin(nn.Module):
    """A GIN, GINE or B-cos GIN with the message passing of PyG and the same weights."""

    def __init__(self, model: GIN | BcosGIN) -> None:
        super().__init__()
        self.convs = nn.ModuleList()
        for layer, update in enumerate(copy.deepcopy(model.updates)):
            eps = float(torch.as_tensor(model.own_weight(layer)).detach()) - 1
            if isinstance(model, GINE):
                conv: MessagePassing = GINEConv(update, eps, edge_dim=BONDS).double()
                conv.lin = copy.deepcopy(model.edges[layer])
            else:
                conv = GINConv(update, eps).double()
            update.load_state_dict(model.updates[layer].state_dict())  # PyG drew new weights
            # GraphMask asks for them; PyG's layers of this kind have none.
            conv.in_channels = conv.out_channels = model.widths[layer]
            self.convs.append(conv)
        self.readout = copy.deepcopy(model.readout)
        self.scale = float(getattr(model, "logit_scale", 1.0))
        self.bias = float(getattr(model, "logit_bias", 0.0))

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
    ) -> Tensor:
        for conv in self.convs:
            x = conv(x, edge_index) if edge_attr is None else conv(x, edge_index, edge_attr)
        return self.scale * global_add_pool(self.readout(x), batch) + self.bias


def options_for(model: nn.Module, graph: Data) -> dict[str, Tensor]:
    with_bonds = isinstance(model, GINE | BcosGINE) or (
        isinstance(model, GSAT) and model.config.edge_features
    )
    return {"edge_attr": graph.edge_attr} if with_bonds else {}


def explained(
    model: nn.Module,
    algorithm: ExplainerAlgorithm,
    nodes: str | None,
    edges: str | None,
    options: dict[str, Tensor],
    graph: Data = GRAPH,
) -> tuple[Explainer, Explanation]:
    """Return PyG's explainer and its explanation of a graph, with draws from the same seed."""
    pg = isinstance(algorithm, PGExplainer)
    explainer = Explainer(
        model, algorithm, explanation_type="phenomenon" if pg else "model", model_config=CONFIG,
        node_mask_type=nodes, edge_mask_type=edges,
    )  # fmt: skip
    target = torch.tensor([1]) if pg else None
    with seeded(5):
        if pg:
            algorithm.reset_parameters()
            algorithm.double()
            for epoch in range(algorithm.epochs):
                algorithm.train(epoch, model, graph.x, graph.edge_index, target=target, **options)
        return explainer, explainer(graph.x, graph.edge_index, target=target, **options)


def captum(method: str) -> CaptumExplainer:
    options = {"n_samples": 3} if method == "ShapleyValueSampling" else {}
    return CaptumExplainer(method, **options)


Make = Callable[[nn.Module], ExplainerAlgorithm]
CAPTUM: dict[str, tuple[Make, str | None, str | None]] = {
    f"captum {method}, {nodes}, {edges}": (
        lambda _, method=method: captum(method), nodes, edges
    )
    for method in CaptumExplainer.SUPPORTED_METHODS
    for nodes, edges in (("attributes", "object"), (None, "object"))
    if method != "ShapleyValueSampling" or nodes is None
}  # fmt: skip
ALGORITHMS: dict[str, tuple[Make, str | None, str | None]] = {
    "gnn, features and edges": (lambda _: GNNExplainer(epochs=30), "attributes", "object"),
    "gnn, edges": (lambda _: GNNExplainer(epochs=30), None, "object"),
    "gnn, nodes": (lambda _: GNNExplainer(epochs=30), "object", "object"),
    "gnn, common": (lambda _: GNNExplainer(epochs=30), "common_attributes", "object"),
    "pg": (lambda _: PGExplainer(epochs=5), None, "object"),
    "graphmask": (
        lambda model: GraphMaskExplainer(hops(model), epochs=5, log=False), "attributes", "object"
    ),
    "dummy": (lambda _: DummyExplainer(), "attributes", "object"),
    **CAPTUM,
}  # fmt: skip


def hops(model: nn.Module) -> int:
    return ExplainerAlgorithm._num_hops(model)


@pytest.fixture(autouse=True)
def double_draws() -> Iterator[None]:
    """Let PyG's explainers draw their masks and gates in double precision, as the models are."""
    torch.set_default_dtype(torch.double)
    yield
    torch.set_default_dtype(torch.float)


@pytest.mark.parametrize("name", ["gin", "gine", "bcos-gin"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_an_explanation_is_that_of_an_equal_model_of_pygs_layers(name: str, algorithm: str) -> None:
    model = settled(NAMES[name]())
    make, nodes, edges = ALGORITHMS[algorithm]
    options = options_for(model, GRAPH)
    ours, theirs = (
        explained(network, make(network), nodes, edges, options)[1]
        for network in (model, settled_twin(model))
    )
    assert (ours.get("node_mask") is None) == (nodes is None)
    for mask in ("node_mask", "edge_mask"):
        if ours.get(mask) is not None:
            torch.testing.assert_close(ours[mask], theirs[mask], rtol=1e-8, atol=1e-10)
            assert ours[mask].std() > 1e-3


def settled_twin(model: GIN | BcosGIN) -> Twin:
    twin = Twin(model).double().train(mode=False)
    ours = model(GRAPH.x, GRAPH.edge_index, GRAPH.edge_attr)
    theirs = twin(GRAPH.x, GRAPH.edge_index, *options_for(model, GRAPH).values())
    torch.testing.assert_close(ours, theirs)
    return twin


@pytest.mark.parametrize("name", ["additive", "multiplicative", "gsat", "gsat, own encoder"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_explainer_runs_on_models_that_pyg_has_no_layers_for(
    name: str, algorithm: str
) -> None:
    model = settled(NAMES[name]())
    make, nodes, edges = ALGORITHMS[algorithm]
    explainer, explanation = explained(model, make(model), nodes, edges, options_for(model, GRAPH))
    assert explanation.edge_mask.shape == (GRAPH.num_edges,)
    assert explanation.edge_mask.std() > 1e-3
    assert unfaithfulness(explainer, explanation) > 1e-5


@pytest.mark.parametrize("name", ["gsat", "gsat, own encoder"])
def test_the_attention_explainer_of_pyg_gives_the_attention_of_gsat(name: str) -> None:
    model = settled(NAMES[name]())
    _, explanation = explained(
        model, AttentionExplainer(), None, "object", options_for(model, GRAPH)
    )
    edges = Edges(GRAPH.edge_index, len(GRAPH.x), GRAPH.edge_attr)
    attention = model.attend(GRAPH.x, edges).attention
    assert torch.equal(explanation.edge_mask, attention.detach())


@pytest.mark.parametrize("name", ["gin", "additive"])
def test_the_attention_explainer_of_pyg_finds_none_in_models_without(name: str) -> None:
    model = settled(NAMES[name]())
    weight = torch.rand(GRAPH.num_edges)  # no attention, though it multiplies messages
    options = {**options_for(model, GRAPH), "edge_weight": weight}
    with pytest.raises(ValueError, match="Could not collect any attention coefficients"):
        explained(model, AttentionExplainer(), None, "object", options)


@pytest.mark.parametrize("algorithm", [name for name in ALGORITHMS if "dummy" not in name])
def test_edges_of_deepsets_cannot_be_explained(algorithm: str) -> None:
    model = settled(DeepSets(*SIZE))
    make, nodes, edges = ALGORITHMS[algorithm]
    with pytest.raises(InputError, match="edge mask: this model sees no edges"):
        explained(model, make(model), nodes, edges, {})
    if nodes is not None and "graphmask" not in algorithm:
        clear_masks(model)
        _, explanation = explained(model, make(model), nodes, None, {})
        assert explanation.node_mask.any()


def test_an_edges_saliency_is_the_same_alone_and_in_a_batch() -> None:
    model, batch = settled(NAMES["gin"]()), some_batch()
    explainer = Explainer(
        model, CaptumExplainer("Saliency"), "model", CONFIG, edge_mask_type="object"
    )
    # PyG passes what follows to Captum by position.
    options = {"edge_attr": None, "batch": batch.batch}
    together = explainer(batch.x, batch.edge_index, index=1, **options).edge_mask
    first = batch[0].num_edges
    alone = explainer(batch[1].x, batch[1].edge_index).edge_mask
    torch.testing.assert_close(together[first : first + len(alone)], alone)
    assert not together[:first].any()
    with pytest.raises(InputError, match="edge_attr: expected .* third argument, and `batch` the"):
        explainer(batch.x, batch.edge_index, batch=batch.batch)


def test_masks_count_after_graphmask_which_leaves_messages_of_its_own() -> None:
    model: GraphModel = settled(NAMES["gin"]())
    whole = model(GRAPH.x, GRAPH.edge_index)
    algorithm = GraphMaskExplainer(hops(model), epochs=2, log=False)
    explainer, explanation = explained(model, algorithm, "attributes", "object", {})
    expected = model(GRAPH.x, GRAPH.edge_index)
    assert not torch.allclose(expected, whole)  # as in PyG's layers, until masks are cleared
    kept = explanation.edge_mask > 0.5
    masked = explainer.get_masked_prediction(GRAPH.x, GRAPH.edge_index, edge_mask=kept.double())
    torch.testing.assert_close(masked, model(GRAPH.x, GRAPH.edge_index[:, kept]))
    assert torch.equal(model(GRAPH.x, GRAPH.edge_index), whole)


def test_a_node_is_explained_by_the_edges_it_sees() -> None:
    model = settled(GIN(*SIZE, level="node"))
    path = torch.stack([torch.arange(1, 8), torch.arange(7)])
    x = torch.randn(8, SIZE[0])
    config = {**CONFIG, "task_level": "node"}
    explainer = Explainer(model, GNNExplainer(epochs=5), "model", config, "attributes", "object")
    explanation = explainer(x, path, index=0)
    assert explanation.edge_mask.nonzero().flatten().tolist() == [0, 1]
    assert not explanation.node_mask[3:].any()
    assert explanation.node_mask[:3].any(dim=1).all()
