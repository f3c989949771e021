"""Contribution maps: the explicit product of dynamic weights, complete, for every class."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.explain import Explainer

from graphxai_data import explain
from graphxai_data.errors import InputError
from graphxai_data.explain import BcosExplainer, all_contribution_maps
from graphxai_data.metrics import completeness_gap
from graphxai_data.nn import GIN, BcosGIN, BcosGINE
from tests.nn.test_gin import BATCH, BONDS, CLASSES, EDGES, FEATURES, dynamic_matrices, settled

B_VALUES = [1, 1.5, 2, 2.5, 3]
CONFIG = {"mode": "multiclass_classification", "task_level": "graph", "return_type": "raw"}


def some_batch(dtype: torch.dtype = torch.double) -> Batch:
    x = torch.randn(len(BATCH), FEATURES, dtype=dtype)
    x[1] = 0
    data = Data(x=x, edge_index=EDGES, edge_attr=torch.randn(EDGES.shape[1], BONDS, dtype=dtype))
    data.batch = BATCH
    return data


def some_model(edges: str | None, **options: object) -> nn.Module:
    options = {"dropout": 0.5, "logit_bias": -2.0, **options}
    if edges is None:
        return settled(BcosGIN(FEATURES, CLASSES, 6, 2, **options))
    return settled(BcosGINE(FEATURES, BONDS, CLASSES, 6, 2, edges=edges, **options))


@pytest.mark.parametrize("b", B_VALUES)
@pytest.mark.parametrize("max_out", [1, 2])
@pytest.mark.parametrize("edges", [None, "additive", "multiplicative"])
def test_the_map_is_the_product_of_dynamic_weights_and_adds_up(
    b: float, max_out: int, edges: str | None
) -> None:
    model = some_model(edges, b=b, max_out=max_out, norm="rms", eps=float(max_out - 1))
    data = some_batch()
    bonds = data.edge_attr if edges else None
    expected = dynamic_matrices(model, data.x, bonds)
    for target in (None, 2):
        explanation = explain(model, data, target)
        logits = model(data.x, EDGES, bonds, BATCH)
        classes = logits.argmax(1) if target is None else torch.full((2,), 2)
        assert torch.equal(explanation.target, classes)
        torch.testing.assert_close(explanation.logit, logits[[0, 1], classes])
        rows = expected[[0, 1], classes]
        of_nodes = rows[:, : data.x.numel()].reshape(2, *data.x.shape)
        features = sum(of_nodes) * data.x.numpy()
        np.testing.assert_allclose(explanation.feature_scores, features, atol=1e-12)
        np.testing.assert_allclose(explanation.node_scores, features.sum(1), atol=1e-12)
        if edges == "additive":
            edge_scores = rows[:, data.x.numel() :].reshape(2, *data.edge_attr.shape)
            expected_edges = (sum(edge_scores) * data.edge_attr.numpy()).sum(1)
            np.testing.assert_allclose(explanation.edge_scores, expected_edges, atol=1e-12)
        else:
            assert explanation.edge_scores is None
            assert not explanation.edge_share().any()
        assert explanation.bias.tolist() == [-2.0, -2.0]
        assert explanation.completeness_gap().max() < 1e-10
        one = completeness_gap([*explanation.node_scores[BATCH == 0], explanation.edge_sums[0]],
                               float(explanation.logit[0]), -2.0)  # fmt: skip
        assert one < 1e-10
        total = explanation.node_sums + explanation.edge_sums + explanation.bias
        torch.testing.assert_close(total, explanation.logit)


@pytest.mark.parametrize("b", B_VALUES)
@pytest.mark.parametrize("edges", [None, "additive", "multiplicative"])
def test_maps_in_single_precision_add_up_to_four_digits(b: float, edges: str | None) -> None:
    model = some_model(edges, b=b, max_out=2, norm="rms").float()
    explanation = explain(model, some_batch(torch.float))
    # At B = 1 contributions almost cancel, so the gap is relative to their magnitudes, not the sum.
    size = explanation.node_scores.abs().sum() + explanation.edge_sums.abs().sum()
    gap = (
        (explanation.node_sums + explanation.edge_sums + explanation.bias - explanation.logit)
        .abs()
        .max()
    )
    assert gap < 1e-4 * size
    if b > 1:
        assert explanation.completeness_gap().max() < 1e-4


def test_a_plain_gradient_also_adds_up_but_is_another_map() -> None:
    model, data = some_model(None, b=2.5), some_batch()
    plain = explain(model, data, method="input-x-gradient")
    right = explain(model, data)
    assert plain.completeness_gap().max() < 1e-10
    assert not torch.allclose(plain.node_scores, right.node_scores, rtol=0.1)


def test_contrast_is_the_target_minus_the_mean_of_the_others() -> None:
    model, data = some_model("additive"), some_batch()
    every = all_contribution_maps(model, data)
    assert [int(e.target[0]) for e in every] == list(range(CLASSES))
    assert all(e.to_pyg().validate() for e in every)
    explanation = explain(model, data, 1, row="contrast")
    for part in ("node_scores", "feature_scores", "edge_scores", "logit"):
        maps = [getattr(e, part) for e in every]
        others = sum(maps[c] for c in (0, 2, 3)) / 3
        torch.testing.assert_close(getattr(explanation, part), maps[1] - others)
    assert not explanation.bias.any()
    assert explanation.completeness_gap().max() < 1e-10
    torch.testing.assert_close(every[2].node_scores, explain(model, data, 2).node_scores)


def test_a_batch_gets_the_same_map_as_its_graphs_one_by_one() -> None:
    model, data = some_model("additive"), some_batch()
    whole = explain(model, data)
    alone = explain(model, Data(x=data.x[:5], edge_index=EDGES, edge_attr=data.edge_attr))
    torch.testing.assert_close(whole.node_scores[:5], alone.node_scores)
    torch.testing.assert_close(whole.logit[:1], alone.logit)


def test_folding_gives_edge_scores_to_nodes_and_keeps_the_sum() -> None:
    model, data = some_model("additive"), some_batch()
    explanation, folded = explain(model, data), explain(model, data, fold_edges=True)
    expected = explanation.node_scores.clone()
    for score, (source, target) in zip(explanation.edge_scores, EDGES.T.tolist(), strict=True):
        expected[source] += score / 2
        expected[target] += score / 2
    torch.testing.assert_close(folded.node_scores, expected)
    assert folded.edge_scores is None
    assert folded.completeness_gap().max() < 1e-10
    share = explanation.edge_sums / (explanation.edge_sums + explanation.node_sums)
    torch.testing.assert_close(explanation.edge_share(), share)
    assert explanation.edge_share()[0] != 0


def test_subgraphs_are_the_top_nodes_or_the_fewest_that_make_up_a_fraction() -> None:
    explanation = explain(None, some_batch(), method="random")
    scores = torch.tensor([3.0, -1.0, 2.0, 0.5, 0.0, 1.0, -2.0], dtype=torch.double)
    explanation = type(explanation)(
        scores, None, None, None, None, None, explanation.batch, explanation.edge_graph
    )
    assert explanation.top(2).tolist() == [True, False, True, False, False, True, True]
    # The response of the first graph is 4.5; that of the second is −1, so all its nodes are taken.
    for fraction, expected in ((0.5, [0]), (0.7, [0, 2]), (0.95, [0, 2]), (1.0, [0, 2])):
        assert explanation.smallest_set(fraction)[:5].nonzero().flatten().tolist() == expected
        assert explanation.smallest_set(fraction)[5:].all()
    with pytest.raises(InputError, match="fraction: expected a finite number from 0 to 1"):
        explanation.smallest_set(1.5)


@pytest.mark.parametrize("node_mask_type", ["object", "attributes"])
@pytest.mark.parametrize("edges", ["additive", "multiplicative"])
def test_pygs_explainer_gives_the_same(node_mask_type: str, edges: str) -> None:
    model, data = some_model(edges), some_batch()
    explainer = Explainer(
        model,
        BcosExplainer(),
        explanation_type="model",
        node_mask_type=node_mask_type,
        edge_mask_type="object" if edges == "additive" else None,
        model_config=CONFIG,
    )
    pyg = explainer(data.x, EDGES, edge_attr=data.edge_attr, batch=BATCH)
    explanation = explain(model, data)
    expected = (
        explanation.feature_scores
        if node_mask_type == "attributes"
        else explanation.node_scores[:, None]
    )
    torch.testing.assert_close(pyg.node_mask, expected)
    if edges == "additive":
        torch.testing.assert_close(pyg.edge_mask, explanation.edge_scores)
    else:
        assert pyg.available_explanations == ["node_mask"]
    assert torch.equal(pyg.target, explanation.target)


@pytest.mark.parametrize("edges", [None, "multiplicative"])
def test_there_is_no_edge_mask_where_nodes_carry_the_whole_logit(edges: str | None) -> None:
    model, data = some_model(edges), some_batch()
    explainer = Explainer(
        model, BcosExplainer(), "model", CONFIG, node_mask_type="object", edge_mask_type="object"
    )
    message = "edge_mask_type: expected None, got 'object'; in Bcos.* nodes carry the whole logit"
    with pytest.raises(InputError, match=message):
        explainer(data.x, EDGES, edge_attr=data.edge_attr, batch=BATCH)


def test_the_index_of_pyg_selects_graphs_of_a_batch() -> None:
    model, data = some_model("additive"), some_batch()
    explainer = Explainer(
        model, BcosExplainer(), "model", CONFIG, node_mask_type="attributes",
        edge_mask_type="object",
    )  # fmt: skip
    whole = explainer(data.x, EDGES, edge_attr=data.edge_attr, batch=BATCH)
    expected = dynamic_matrices(model, data.x, data.edge_attr)
    logits = model(data.x, EDGES, data.edge_attr, BATCH)
    for index in (0, 1, torch.tensor([1]), torch.tensor([False, True])):
        one = explainer(data.x, EDGES, edge_attr=data.edge_attr, batch=BATCH, index=index)
        graph = 0 if isinstance(index, int) and index == 0 else 1
        inside = (data.batch == graph)[:, None]
        torch.testing.assert_close(one.node_mask, torch.where(inside, whole.node_mask, 0.0))
        row = expected[graph, int(logits[graph].argmax())]
        of_nodes = row[: data.x.numel()].reshape(data.x.shape) * data.x.numpy()
        np.testing.assert_allclose(one.node_mask, of_nodes, atol=1e-12)
    both = explainer(
        data.x, EDGES, edge_attr=data.edge_attr, batch=BATCH, index=torch.tensor([0, 1])
    )
    torch.testing.assert_close(both.node_mask, whole.node_mask)
    torch.testing.assert_close(both.edge_mask, whole.edge_mask)
    with pytest.raises(InputError, match=r"index: expected outputs from 0 to 1, got \[2\]"):
        explainer(data.x, EDGES, edge_attr=data.edge_attr, batch=BATCH, index=2)


def test_the_index_of_pyg_selects_nodes_of_node_level_models() -> None:
    model, data = some_model(None, level="node"), some_batch()
    x = data.x[:5]
    explainer = Explainer(
        model, BcosExplainer(), "model", CONFIG | {"task_level": "node"}, node_mask_type="object"
    )
    graph = Data(x=x, edge_index=EDGES)
    maps = [explain(model, graph, node=node).node_scores for node in range(5)]
    for node in range(5):
        mask = explainer(x, EDGES, index=node).node_mask
        torch.testing.assert_close(mask.squeeze(1), maps[node])
    several = explainer(x, EDGES, index=torch.tensor([0, 3])).node_mask
    torch.testing.assert_close(several.squeeze(1), maps[0] + maps[3])
    torch.testing.assert_close(explainer(x, EDGES).node_mask.squeeze(1), sum(maps))
    wrong = Explainer(model, BcosExplainer(), "model", CONFIG, node_mask_type="object")
    with pytest.raises(InputError, match=r"logits \[1, classes\], a row per graph, got \[5, 4\]"):
        wrong(x, EDGES)


@pytest.mark.parametrize(
    "changes",
    [{"mode": "binary_classification"}, {"task_level": "edge"}, {"return_type": "log_probs"}],
)
def test_the_algorithm_for_pyg_explains_logits_of_classes(changes: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="'BcosExplainer' does not support"):
        Explainer(
            some_model(None), BcosExplainer(), "model", CONFIG | changes, node_mask_type="object"
        )


def test_a_node_level_model_is_explained_for_one_node_at_a_time() -> None:
    model = some_model(None, level="node")
    data = some_batch()
    one = Data(x=data.x[:5], edge_index=EDGES)
    explanation = explain(model, one, node=3)
    assert explanation.completeness_gap().max() < 1e-10
    torch.testing.assert_close(explanation.logit[0], model(one.x, EDGES)[3].max())
    assert explain(model, one, node=3, method="integrated-gradients").completeness_gap() < 0.1
    for message, options in (
        ("give one graph, and a node", {}),
        ("node: expected a whole number from 0 to 4", {"node": 5}),
    ):
        with pytest.raises(InputError, match=message):
            explain(model, one, **options)
    with pytest.raises(InputError, match="give one graph"):
        explain(model, data, node=0)
    with pytest.raises(InputError, match="one output per graph: there is no node to choose"):
        explain(some_model(None), one, node=0)


def test_explaining_leaves_model_and_data_as_they_were() -> None:
    model, data = some_model("additive"), some_batch()
    before = {key: value.clone() for key, value in model.state_dict().items()}
    x = data.x.clone()
    with torch.no_grad():  # explanations compute gradients even here
        explain(model, data)
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    assert torch.equal(data.x, x)
    assert data.x.grad is None
    assert all(p.grad is None for p in model.parameters())
    assert not any(getattr(m, "hold_weights", False) for m in model.modules())


@pytest.mark.parametrize(
    ("message", "arguments"),
    [
        ("target: expected a class from 0 to 3, got 4", {"target": 4}),
        ("target: expected a class from 0 to 3, got -1", {"target": -1}),
        ("target: expected 2 classes, one per graph, got 3", {"target": torch.tensor([0, 1, 2])}),
        ("target: expected a class, or one per graph, got 1.5", {"target": 1.5}),
        ("target: expected a class, or one per graph, got 'a'", {"target": "a"}),
        ("unknown method 'bcoss'; did you mean 'bcos'?", {"method": "bcoss"}),
        ("unknown method 'None'", {"method": None}),
        ("row: expected one of logit, contrast, got 'both'", {"row": "both"}),
        ("'bcos' has no option 'fold'; known: fold_edges", {"fold": True}),
        ("'gsat' shows the attention of a GSAT; BcosGIN has none", {"method": "gsat"}),
    ],
)
def test_impossible_arguments_are_refused(message: str, arguments: dict[str, object]) -> None:
    with pytest.raises(InputError, match=message.replace("?", r"\?")):
        explain(some_model(None), some_batch(), **arguments)


def test_models_that_cannot_be_explained_are_refused() -> None:
    data = some_batch()
    model = some_model(None)
    with pytest.raises(InputError, match="in training mode, where dropout is random"):
        explain(model.train(), data)
    with pytest.raises(InputError, match="'bcos' explains models of B-cos layers; GIN has none"):
        explain(GIN(FEATURES, CLASSES).double().train(mode=False), data)
    with pytest.raises(InputError, match="'bcos' explains a model, got none"):
        explain(None, data)
    with pytest.raises(InputError, match="model: expected a torch module, got str"):
        explain("bcos-gin", data)  # type: ignore[arg-type]


def test_graphs_that_cannot_be_explained_are_refused() -> None:
    model = some_model(None).train(mode=False)
    with pytest.raises(InputError, match="with 'x', got dict"):
        explain(model, {})
    nothing = Data(x=torch.zeros(0, FEATURES).double(), edge_index=torch.zeros(2, 0).long())
    with pytest.raises(InputError, match="expected at least one node, got none"):
        explain(model, nothing)
    data = some_batch()
    data.x[0, 0] = torch.nan
    with pytest.raises(InputError, match="x has a value that is not finite"):
        explain(model, data)
    with pytest.raises(InputError, match="x is torch.float32, the model torch.float64"):
        explain(model, some_batch(torch.float))
    with pytest.raises(InputError, match="x is torch.int64"):
        explain(model, Data(x=torch.ones(2, FEATURES).long(), edge_index=EDGES[:, :1]))
    holes = Batch.from_data_list([Data(x=torch.ones(n, FEATURES).double()) for n in (2, 0)])
    holes.edge_index = torch.zeros(2, 0).long()
    with pytest.raises(InputError, match="graph 1 has no nodes"):
        explain(model, holes)
    data = some_batch()
    data.graph_id = torch.tensor([1])
    with pytest.raises(InputError, match="expected a graph_id from 0 for each of 2 graphs"):
        explain(model, data)
    data = some_batch()
    data.edge_attr[0, 0] = torch.nan
    with pytest.raises(InputError, match="edge_attr has a value that is not finite"):
        explain(model, data)
    data = some_batch()
    data.x = data.x[:, :2]
    with pytest.raises(InputError, match="made for other node features"):
        explain(model, data)


def test_contrast_needs_two_logits() -> None:
    model = settled(BcosGIN(FEATURES, 1, 6, 2))
    with pytest.raises(InputError, match="'contrast' is between the logits of classes, and this"):
        explain(model, some_batch(), row="contrast")


def test_isolated_nodes_and_graphs_without_edges_are_explained() -> None:
    model = some_model("additive")
    lonely = Data(
        x=torch.randn(3, FEATURES).double(),
        edge_index=torch.zeros(2, 0).long(),
        edge_attr=torch.zeros(0, BONDS).double(),
    )
    explanation = explain(model, lonely)
    assert explanation.completeness_gap().max() < 1e-10
    assert isinstance(explanation.edge_scores, Tensor)
    assert len(explanation.edge_scores) == 0
