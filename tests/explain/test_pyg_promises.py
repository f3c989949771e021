"""What PyG's own tests promise of explainers and explanations holds for our models and graphs."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch_geometric.explain import DummyExplainer, Explainer, GNNExplainer

from graphxai_data import GraphXAIDataset
from graphxai_data.nn import GIN, GINE, GSAT, BcosGIN, BcosGINE
from graphxai_data.nn.random import seeded
from tests.conftest import SharedBuilds

CONFIG = {"mode": "multiclass_classification", "task_level": "graph", "return_type": "raw"}
NODE_MASKS = ("object", "common_attributes", "attributes")
# PyG asks for a mask of some kind.
MASKS = [(None, "object"), *((kind, edges) for kind in NODE_MASKS for edges in (None, "object"))]


@pytest.fixture(scope="module")
def graph(builds: SharedBuilds) -> Any:
    return GraphXAIDataset.from_folder(builds.folder("dihalo", 90))[0]


@pytest.fixture(scope="module", params=[GIN, GINE, BcosGIN, BcosGINE, GSAT])
def model(request: pytest.FixtureRequest, graph: Any) -> nn.Module:
    edges = 0 if request.param in (GIN, BcosGIN) else graph.num_edge_features
    options = {"edge_features": edges} if edges else {}
    with seeded(0):
        sizes = {"in_features": graph.num_node_features, "classes": 9, "hidden": 8, "layers": 2}
        return request.param(**sizes, **options).train(mode=False)


@pytest.fixture(autouse=True)
def pyg_draws_at_random() -> Iterator[None]:
    with seeded(1):
        yield


def explained(model: nn.Module, graph: Any, algorithm: Any = None, **options: Any) -> Any:
    options = {"explanation_type": "model", "model_config": CONFIG} | options
    explainer = Explainer(model, algorithm or GNNExplainer(epochs=3), **options)
    target = graph.y if options["explanation_type"] == "phenomenon" else None
    return explainer(graph.x, graph.edge_index, edge_attr=graph.edge_attr, target=target)


@pytest.mark.parametrize("kind", ["model", "phenomenon"])
@pytest.mark.parametrize(("node_mask", "edge_mask"), MASKS)
def test_masks_have_the_shapes_that_were_asked_for(
    model: nn.Module, graph: Any, node_mask: str | None, edge_mask: str | None, kind: str
) -> None:
    options = {"node_mask_type": node_mask, "edge_mask_type": edge_mask, "explanation_type": kind}
    explanation = explained(model, graph, **options)
    nodes, width = graph.x.shape
    shapes = {"object": (nodes, 1), "common_attributes": (1, width), "attributes": (nodes, width)}
    assert explanation.validate()
    if node_mask is not None:
        assert explanation.node_mask.shape == shapes[node_mask]
        assert 0 <= explanation.node_mask.min() <= explanation.node_mask.max() <= 1
    if edge_mask is not None:
        assert explanation.edge_mask.shape == (graph.num_edges,)
        assert 0 <= explanation.edge_mask.min() < explanation.edge_mask.max() <= 1


def test_a_prediction_leaves_the_mode_of_the_model(model: nn.Module, graph: Any) -> None:
    explainer = Explainer(
        model.train(), DummyExplainer(), "model", CONFIG, node_mask_type="object"
    )  # fmt: skip
    try:
        prediction = explainer.get_prediction(graph.x, graph.edge_index, edge_attr=graph.edge_attr)
        assert model.training
    finally:
        model.train(mode=False)
    assert prediction.shape == (1, 9)


@pytest.mark.parametrize("kind", ["hard", "topk", "topk_hard"])
def test_thresholds_keep_what_they_promise(model: nn.Module, graph: Any, kind: str) -> None:
    value = 0.5 if kind == "hard" else 7
    explanation = explained(
        model, graph, node_mask_type="object", edge_mask_type="object",
        threshold_config=(kind, value),
    )  # fmt: skip
    for mask in (explanation.node_mask, explanation.edge_mask):
        if kind != "topk":
            assert set(mask.unique().tolist()) <= {0.0, 1.0}
        if kind != "hard":
            assert int((mask > 0).sum()) == 7


def test_a_subgraph_and_its_complement_have_all_edges(model: nn.Module, graph: Any) -> None:
    options = {"edge_mask_type": "object", "threshold_config": ("topk", 10)}
    explanation = explained(model, graph, **options)
    inside = explanation.get_explanation_subgraph()
    outside = explanation.get_complement_subgraph()
    assert inside.num_edges == 10
    assert inside.num_edges + outside.num_edges == graph.num_edges


def test_feature_importance_is_drawn(model: nn.Module, graph: Any, tmp_path: Path) -> None:
    explanation = explained(model, graph, node_mask_type="attributes")
    labels = [f"f{i}" for i in range(graph.num_node_features)]
    path = tmp_path / "features.svg"
    explanation.visualize_feature_importance(str(path), feat_labels=labels, top_k=3)
    assert "<svg" in path.read_text()


def test_the_same_seed_gives_the_same_masks(model: nn.Module, graph: Any) -> None:
    masks = []
    for seed in (3, 3, 4):
        with seeded(seed):
            masks.append(explained(model, graph, edge_mask_type="object").edge_mask)
    assert torch.equal(masks[0], masks[1])
    assert not torch.equal(masks[0], masks[2])
