import math
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn
from torch.utils.data import Subset
from torch_geometric import EdgeIndex
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.datasets import ExplainerDataset
from torch_geometric.datasets.graph_generator import BAGraph
from torch_geometric.explain import Explanation as PyGExplanation

from graphxai_data import (
    GraphXAIDataset,
    StreamedDataset,
    build,
    evaluate,
    explain,
    jaccard_at_k,
    node_auroc,
    register,
)
from graphxai_data.errors import InputError
from graphxai_data.evaluation.comparison import compare
from graphxai_data.evaluation.other_datasets import OtherGraphs
from graphxai_data.evaluation.truth import Truth
from graphxai_data.explain.files import ScoreFile
from graphxai_data.generators import PLUGINS
from graphxai_data.nn import GIN, GSAT, BcosGIN
from graphxai_data.nn.random import seeded
from tests.generators.toy_rationales import ToyRationales, toy_recipe


@contextmanager
def global_random_state(seed: int) -> Iterator[None]:
    """Seed the global generators, which PyG draws from, and restore them afterwards."""
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    with seeded(seed):
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        yield
    random.setstate(python)
    np.random.set_state(numpy)  # noqa: NPY002


@pytest.fixture(scope="module")
def houses() -> ExplainerDataset:
    with global_random_state(0):
        return ExplainerDataset(BAGraph(20, 1), "house", num_motifs=1, num_graphs=12)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("builds")
    build("ba2motif", root=root, graphs=150, engine="serial", rings=False)
    build("dihalo", root=root, graphs=60, engine="serial", rings=False)
    return root


@pytest.fixture(scope="module")
def dataset(root: Path) -> GraphXAIDataset:
    return GraphXAIDataset(root, "ba2motif")


@pytest.fixture(scope="module")
def test_graphs(root: Path) -> list[Data]:
    return list(GraphXAIDataset(root, "ba2motif", split="test"))


def degrees(data: Data) -> Tensor:
    return torch.bincount(data.edge_index[1], minlength=data.num_nodes).double()


def path_graph(**fields: Any) -> Data:
    """Return the path 0 - 1 - 2 - 3, whose first two nodes are the rationale unless changed."""
    edges = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
    usual = {"x": torch.eye(4), "edge_index": edges, "node_mask": torch.tensor([1, 1, 0, 0])}
    return Data(**{key: value for key, value in (usual | fields).items() if value is not None})


def test_pygs_explainer_dataset_is_evaluated(houses: ExplainerDataset) -> None:
    table = evaluate(houses, {"mine": degrees, "ours": "degree", "oracle": "oracle"}, timing=True)
    pairs = [(degrees(data), data.node_mask) for data in houses]
    assert table.loc["mine", "graphs"] == len(pairs) == 12
    expected = {
        "jaccard": np.mean([jaccard_at_k(s, m) for s, m in pairs]),
        "auroc": np.mean([node_auroc(s, m) for s, m in pairs]),
        "auroc_average": np.mean([roc_auc_score(m, s) for s, m in pairs]),
    }
    for name in ("mine", "ours"):
        assert table.loc[name, list(expected)].tolist() == pytest.approx(list(expected.values()))
        # Classes are those of nodes, so that all graphs are of one class.
        assert table.loc[name, "worst_class_jaccard"] == table.loc[name, "jaccard"]
    assert table.loc["oracle", ["jaccard", "auroc"]].tolist() == [1, 1]
    assert (table.ms_per_graph > 0).all()
    assert set(evaluate(houses, ["all"]).index) == {"random", "degree", "oracle"}


def test_models_explain_and_are_tested_on_graphs_of_others(houses: ExplainerDataset) -> None:
    with seeded(0):
        model = BcosGIN(1, 2, 8).train(mode=False)
        gsat = GSAT(1, 2, 8, 2).train(mode=False)
    table = evaluate(houses, ["all"], model, timing=True, faithfulness=True)
    assert set(table.index) == {
        "bcos", "bcos-contrast", "bcos-input-x-gradient", "random", "degree", "oracle",
    }  # fmt: skip
    assert table.fidelity_plus.between(0, 1).all()
    assert table.loc["bcos", "completeness_gap"] < 1e-4
    assert table.loc["bcos", "ms_forward_batched"] > 0
    graphs = [Data(x=torch.ones(g.num_nodes, 1), edge_index=g.edge_index) for g in houses]
    maps = [explain(model, graph).node_scores for graph in graphs]
    expected = np.mean([jaccard_at_k(s, g.node_mask) for s, g in zip(maps, houses, strict=True)])
    assert table.loc["bcos", "jaccard"] == pytest.approx(expected)
    edges = torch.cat([explain(gsat, g, method="gsat").edge_scores for g in graphs])
    truth = torch.cat([g.edge_mask for g in houses])
    pooled = evaluate(houses, ["gsat-mean"], gsat).loc["gsat-mean", "edge_auroc_pooled"]
    assert pooled == pytest.approx(roc_auc_score(truth, edges), abs=1e-6)


def test_functions_see_the_given_graph_without_its_rationale(houses: ExplainerDataset) -> None:
    with global_random_state(0):
        graphs = [g.clone() for g in houses]
    for graph in graphs:
        graph.pos, graph.name = torch.zeros(graph.num_nodes, 2), "house"
    before = [graph.clone() for graph in graphs]
    seen: list[Data] = []

    def careless(data: Data) -> Tensor:
        seen.append(data.clone())
        data.edge_index.zero_()
        return torch.arange(data.num_nodes)

    evaluate(graphs, {"careless": careless, "degree": "degree"})
    assert set(seen[0].keys()) == {"edge_index", "y", "pos", "name", "num_nodes"}
    assert [data.num_nodes for data in seen] == [25] * 12
    for graph, copy in zip(graphs, before, strict=True):
        assert graph.keys() == copy.keys()
        assert torch.equal(graph.edge_index, copy.edge_index)


@pytest.mark.parametrize("form", ["list", "tuple", "subset", "transform"])
def test_a_list_of_our_graphs_has_the_same_results_as_our_dataset(
    form: str, root: Path, dataset: GraphXAIDataset, test_graphs: list[Data]
) -> None:
    with seeded(0):
        model = GIN(dataset.num_node_features, 2, 8).train(mode=False)
    forms: dict[str, Any] = {
        "list": test_graphs,
        "tuple": tuple(test_graphs),
        "subset": Subset(dataset, dataset.get_idx_split()["test"].tolist()),
        "transform": Subset(
            GraphXAIDataset(root, "ba2motif", split="test", transform=lambda data: data),
            range(len(test_graphs)),
        ),
    }
    ways = {
        "random": "random",
        "degree": "degree",
        "oracle": "oracle",
        "function": degrees,
        "of a model": lambda m, data: explain(m, data, method="saliency"),
        "saliency": "saliency",
        "arrays": [degrees(data) for data in test_graphs],
    }
    expected = evaluate(dataset, ways, model, faithfulness=True)
    pd.testing.assert_frame_equal(evaluate(forms[form], ways, model, faithfulness=True), expected)


def test_one_mask_follows_from_the_other() -> None:
    only_edges = path_graph(node_mask=None, edge_mask=torch.tensor([1, 1, 0, 0, 0, 0]))
    edges_inside = torch.tensor([True, True, False, False, False, False])
    for masks in (
        {"node_mask": torch.tensor([[1.0], [1.0], [0.0], [0.0]])},
        {"node_mask": np.array([True, True, False, False])},
        {"node_mask": torch.tensor([1, 1, 0, 0], dtype=torch.uint8)},
        {"node_mask": None, "edge_mask": edges_inside[:, None]},
    ):
        truth = Truth.of(OtherGraphs([path_graph(**masks), only_edges]))
        assert truth.node_mask.tolist() == [True, True, False, False] * 2
        assert truth.edge_mask.tolist() == edges_inside.tolist() * 2
    # Both are given: neither is changed, although no edge of the rationale is marked.
    both = path_graph(edge_mask=torch.tensor([0, 0, 0, 0, 1, 1]))
    truth = Truth.of(OtherGraphs([both]))
    assert truth.edge_mask.tolist() == [False] * 4 + [True] * 2
    assert truth.node_mask.tolist() == [True, True, False, False]


def test_one_value_of_y_is_the_class_of_a_graph() -> None:
    graphs = [
        path_graph(y=torch.tensor([0])),
        path_graph(y=torch.tensor([[1.0]]), node_mask=torch.tensor([0, 0, 1, 1])),
        path_graph(y=1, node_mask=torch.tensor([0, 0, 1, 1])),
    ]
    first = {"first": lambda data: -torch.arange(4)}
    row = evaluate(graphs, first).loc["first"]
    assert row.jaccard == pytest.approx(1 / 3)
    assert row.worst_class_jaccard == 0
    for y in (torch.tensor([0.5]), torch.tensor([torch.nan]), torch.arange(4), "house", None):
        graphs[0].y = y
        row = evaluate(graphs, first).loc["first"]
        assert row.worst_class_jaccard == row.jaccard


def test_features_may_be_whole_numbers_and_edges_an_edge_index() -> None:
    edge_index = EdgeIndex(path_graph().edge_index, sparse_size=(4, 4))
    graphs = [path_graph(x=torch.eye(4).long(), edge_index=edge_index) for _ in range(3)]
    table = evaluate(graphs, ["random", "degree"])
    assert table.constant.tolist() == [0, 0]
    assert table.loc["degree", "auroc_average"] == 0.5
    assert not evaluate(graphs, ["random"]).equals(evaluate(graphs[:2], ["random"]))


@pytest.mark.parametrize(
    ("graphs", "message"),
    [
        (path_graph(), r"dataset: expected .*, got one Data; write \[graph\]"),
        (Batch.from_data_list([path_graph()]), r"got one DataBatch; write batch.to_data_list\(\)"),
        (42, "dataset: expected a GraphXAIDataset, another PyG dataset, or a list .* got int"),
        ((g for g in [path_graph()]), "got generator; take its graphs into a list first"),
        ([], "dataset: expected at least one graph, got none"),
        ([path_graph(), HeteroData()], "^graph 1: expected a PyG Data, got HeteroData"),
        ([path_graph(node_mask=None)], r"^graph 0: no ground truth; expected a node_mask \[4\]"),
        ([path_graph(node_mask=torch.ones(3))], r"^graph 0: node_mask: expected \[4\], got \[3\]"),
        ([path_graph(node_mask=torch.ones(4, 2))], r"node_mask: expected \[4\], got \[4, 2\]"),
        ([path_graph(edge_mask=torch.ones(4))], r"edge_mask: expected \[6\], got \[4\]"),
        (
            [path_graph(), path_graph(node_mask=torch.rand(4, generator=torch.Generator()))],
            "^graph 1: node_mask: expected true and false, or 1 and 0, got other values",
        ),
        ([path_graph(node_mask=torch.ones(4))], "mask: 4 of the 4 in graph 0; .* nothing to rank"),
        (
            [path_graph(node_mask=torch.zeros(4))],
            "rationales: each of the 1 graphs is null: nothing .* nothing to rank; choose",
        ),
        (
            [path_graph(node_mask=None, node_weight=torch.ones(4))],
            "each of the 1 graphs has no positive weight, or only positive ones",
        ),
        (
            [path_graph(node_mask=None, node_weight=[1.0, 2.0])],
            r"^graph 0: node_weight: expected \[4\], got \[2\]",
        ),
        (
            [path_graph(node_mask=None, node_weight=torch.full((4,), math.nan))],
            "^graph 0: node_weight: expected finite numbers",
        ),
        (
            [path_graph(node_weight=torch.tensor([-1.0, 1.0, 1.0, 1.0]))],
            "^graph 0: node_mask: expected the nodes with a positive node_weight, got other nodes",
        ),
        (
            [path_graph(node_mask=None, node_weight=torch.arange(4.0)), path_graph()],
            "^graph 1: expected a node_weight, as graph 0 has; give weights to all graphs or",
        ),
        (
            [path_graph(node_mask=None, alternatives=torch.ones(2, 3))],
            r"^graph 0: alternatives: expected true or false for each of 4 nodes, .* \[2, 3\]",
        ),
        (
            [path_graph(alternatives=torch.eye(4)[:3].bool())],
            "^graph 0: node_mask: expected the nodes of all alternatives, got other nodes",
        ),
        (
            [path_graph(node_mask=None, alternative_bits=torch.ones(4))],
            r"^graph 0: alternative_bits: expected whole numbers from 0 \[4\], got float",
        ),
        ([path_graph(edge_index=None)], r"edge_index: expected whole numbers \[2, m\], got none"),
        ([path_graph(edge_index=torch.ones(3, 2).long())], r"\[2, m\], got \[3, 2\]"),
        ([path_graph(edge_index=torch.ones(2, 6))], "edge_index: expected whole numbers"),
        (
            [path_graph(edge_index=torch.full((2, 6), 9))],
            "^graph 0: edge_index: expected nodes from 0 to 3, got 9 to 9",
        ),
        (
            [path_graph(x=torch.ones(0, 1), node_mask=torch.ones(0))],
            "^graph 0: has no nodes; leave empty graphs out",
        ),
        ([path_graph(x=torch.eye(3), num_nodes=4)], r"x: expected a tensor \[4, …\], got \[3, 3\]"),
        ([path_graph(edge_attr=torch.ones(4, 2))], r"edge_attr: expected a tensor \[6, …\], got"),
        (
            [path_graph(), path_graph(x=None)],
            r"^graph 1: expected features as in graph 0, x \[…, 4\] of float32, got x \[…, 1\]",
        ),
        (
            [path_graph(), path_graph(edge_attr=torch.ones(6, 2))],
            r"got x \[…, 4\] of float32 and edge_attr \[…, 2\] of float32",
        ),
    ],
)
def test_graphs_that_cannot_be_evaluated_are_refused(graphs: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        evaluate(graphs, ["degree"])


def test_what_needs_a_build_says_so(root: Path, dataset: GraphXAIDataset, tmp_path: Path) -> None:
    graphs = [path_graph() for _ in range(4)]
    with pytest.raises(InputError, match="split: these graphs have none .* got 'test'; select"):
        evaluate(graphs, ["degree"], split="test")
    message = "explainer 'halogen-closeness' is for builds of dihalo and dihalo_pair only"
    for explainers in (["halogen-closeness"], {"mine": "halogen-closeness"}):
        with pytest.raises(InputError, match=message):
            evaluate(graphs, explainers)
    with pytest.raises(InputError, match="explainer 'intensity' is for builds of mnist75sp and"):
        evaluate(graphs, ["intensity"], timing=True)
    ptr = np.array([0, 4])
    file = ScoreFile("ba2motif", "0" * 64, "theirs", np.array([0]), ptr, np.arange(4.0))
    file.save(tmp_path / "theirs.safetensors")
    for given in (file, tmp_path / "theirs.safetensors"):
        with pytest.raises(InputError, match="file is for one build, .* its scores as an array"):
            evaluate(graphs[:1], {"theirs": given})
    with pytest.raises(InputError, match="got StreamedDataset; take its graphs into a list"):
        evaluate(StreamedDataset(root, "ba2motif"), ["degree"])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="dataset: models are trained on a GraphXAIDataset, got"):
        compare(graphs, ("gin",), out=tmp_path)  # type: ignore[arg-type]


def test_a_model_is_given_by_name_if_its_features_fit(test_graphs: list[Data], root: Path) -> None:
    row = evaluate(test_graphs, ["bcos"], "bcos-gin-ba2motif").loc["bcos"]
    assert row.jaccard > 0.9
    message = "bcos-gin-ba2motif: a model for 29 node features and 0 edge features; these"
    with pytest.raises(InputError, match=message):
        evaluate([path_graph()], ["bcos"], "bcos-gin-ba2motif")
    molecules = list(GraphXAIDataset(root, "dihalo", split="test"))
    assert evaluate(molecules, ["bcos"], "bcos-gine-dihalo").loc["bcos", "jaccard"] > 0.5
    for graph in molecules:
        del graph.edge_attr
    with pytest.raises(InputError, match="and 4 edge features; these graphs have .* and 0"):
        evaluate(molecules, ["bcos"], "bcos-gine-dihalo")


class OfNodes(nn.Module):
    """A model with an output per node, which does not say so."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4, 2))

    def forward(self, x: Tensor, *_: Any) -> Tensor:
        return x @ self.weight


def test_faithfulness_is_to_a_model_of_graphs() -> None:
    graphs = [path_graph() for _ in range(3)]
    with pytest.raises(
        InputError, match=r"expected logits \[2, classes\], a row per graph, got \[8, 2"
    ):
        evaluate(graphs, {"mine": degrees}, OfNodes().train(mode=False), faithfulness=True)


def test_results_in_pygs_own_form_are_accepted(houses: ExplainerDataset) -> None:
    ways: dict[str, Callable[[Data], Any]] = {
        "features": lambda d: PyGExplanation(node_mask=degrees(d)[:, None] * torch.ones(2) / 2),
        "nodes": lambda d: PyGExplanation(node_mask=degrees(d)),
        "plain": degrees,
    }
    table = evaluate(houses, ways)
    assert (table.auroc == table.auroc.iloc[0]).all()
    edges = evaluate(
        houses, {"edges": lambda d: PyGExplanation(edge_mask=degrees(d)[d.edge_index[1]])}
    )
    assert list(edges.index) == ["edges-mean", "edges-max", "edges-sum"]
    assert edges.auroc.nunique() == 3


def test_null_graphs_of_others_are_scored_apart() -> None:
    null = path_graph(node_mask=torch.zeros(4))
    scores = [0.0, 0.0, 1.0, 2.0, 0.0, 0.0, 0.0, 1.0]
    table = evaluate([path_graph(), null], {"mine": scores})
    alone = evaluate([path_graph()], {"mine": scores[:4]})
    for column in alone:
        assert table[column].equals(alone[column])
    assert table.loc["mine", ["graphs", "null_graphs", "null_outliers"]].tolist() == [1, 1, 1]


def test_alternatives_of_others_are_given_as_masks() -> None:
    several = path_graph(node_mask=None, alternatives=[[1, 1, 0, 0], [0, 1, 1, 0]])
    null = path_graph(node_mask=None, alternatives=torch.zeros(0, 4))
    scores = {"mine": [0.1, 0.9, 0.8, 0.0] * 2 + [0.0] * 4}
    row = evaluate([several, path_graph(), null], scores).loc["mine"]
    only = evaluate([path_graph()], {"mine": scores["mine"][:4]}).loc["mine"]
    # The second alternative is the top two; the union of both has three nodes, all of them on top.
    assert row.jaccard == (1 + only.jaccard) / 2
    assert row.jaccard_union == (1 + only.jaccard) / 2
    assert (row.graphs, row.null_graphs) == (2, 1)
    assert evaluate([several, null], ["oracle"]).loc["oracle", ["jaccard", "auroc"]].tolist() == [
        1, 1,
    ]  # fmt: skip


def test_weights_of_others_are_signed_truth() -> None:
    weighted = path_graph(node_mask=None, node_weight=torch.tensor([[2.0], [-1.0], [0.0], [0.5]]))
    row = evaluate([weighted], {"mine": [4.0, -2.0, 0.0, 1.0]}).loc["mine"]
    exact = ["jaccard", "spearman", "auroc_positive", "auroc_negative", "top_negative"]
    assert row[[*exact, "sign_accuracy", "rmse_scaled"]].tolist() == [1, 1, 1, 1, 1, 1, 0]


def test_a_list_of_our_graphs_keeps_the_form_of_its_rationales(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PLUGINS, "registered", {})
    register("toy_rationales", ToyRationales)
    for form in ("alternatives", "signed-classes"):
        build(toy_recipe(form), root=tmp_path, engine="serial", rings=False)
        test = GraphXAIDataset(tmp_path, toy_recipe(form), split="test")
        names = ["random", "degree", "oracle"]
        pd.testing.assert_frame_equal(evaluate(list(test), names), evaluate(test, names))
