import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn
from torch_geometric.data import Batch, Data

from graphxai_data import BatchLoader, GraphXAIDataset, evaluate, explain
from graphxai_data.errors import CheckFailedError, InputError
from graphxai_data.explain import METHODS
from graphxai_data.explain.variants import EXPLAINERS, VARIANTS, select_variants, variants_for
from graphxai_data.nn import GIN, BcosGIN
from graphxai_data.nn.random import seeded
from tests.fake_packages import write_package

CODE = '''
import numpy as np
import torch
from torch_geometric.data import Batch
from torch_geometric.explain import Explanation

from graphxai_data import explain

seen = []


def degrees(batch):
    """Count the edges into a node.

    More text.
    """
    seen.append(batch)
    return batch.edge_index[1].bincount(minlength=batch.num_nodes).numpy()


def gradient(model, batch, target=None, power=1):
    seen.append(batch)
    result = explain(model, batch, target, method="saliency")
    return result.node_scores**power


def ours(model, batch):
    return explain(model, batch, method="gnn-explainer", epochs=2)


def of_features(batch):
    return Explanation(node_mask=batch.x, edge_mask=torch.arange(batch.num_edges))


def of_edges(batch):
    return Explanation(edge_mask=torch.ones(batch.num_edges))


def torch_noise(batch):
    return torch.rand(batch.num_nodes)


def own_noise(batch, seed=0):
    return np.random.default_rng(seed).random(batch.num_nodes)


def careless(batch):
    batch.x.zero_()
    batch.edge_index = None
    return torch.arange(batch.num_nodes)


def short(batch):
    return [1.0, 2.0]


def nan(batch):
    return torch.full((batch.num_nodes,), torch.nan)


def texts(batch):
    return ["a"] * batch.num_nodes


def nothing(batch):
    pass


def failing(model, batch):
    raise ZeroDivisionError("division\\nby zero")


def three(model, batch, third):
    return third


number = 3
'''
NAMES = (
    "degrees", "gradient", "ours", "of_features", "of_edges", "torch_noise", "own_noise",
    "careless", "short", "nan", "texts", "nothing", "failing", "three", "number",
)  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    names = {name.replace("_", "-"): name for name in NAMES}
    names |= {"random": "short", "integrated_gradients": "short", "a/b": "short", "gone": "gone"}
    folder = tmp_path_factory.mktemp("site")
    return write_package(folder, "explain_more", CODE, explainers=names)


@pytest.fixture(autouse=True)
def _installed(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(site)


@pytest.fixture(scope="module")
def dataset(small_root: Path) -> GraphXAIDataset:
    return GraphXAIDataset(small_root, "ba2motif")


@pytest.fixture(scope="module")
def batch(dataset: GraphXAIDataset) -> Batch:
    return next(iter(BatchLoader(dataset, 5)))


@pytest.fixture(scope="module")
def model(dataset: GraphXAIDataset) -> nn.Module:
    with seeded(0):
        return GIN(dataset.num_node_features, 2, 8).train(mode=False)


def last_seen() -> Batch:
    return sys.modules["explain_more"].seen[-1]


def test_a_plugin_is_a_method_of_explain(
    dataset: GraphXAIDataset, batch: Batch, model: nn.Module
) -> None:
    plain = explain(None, batch, method="degrees")
    assert torch.equal(plain.node_scores.float(), explain(None, batch, method="degree").node_scores)
    assert plain.target is None
    result = explain(model, batch, method="gradient")
    expected = explain(model, batch, method="saliency")
    assert torch.equal(result.node_scores, expected.node_scores.double())
    assert torch.equal(result.logit, expected.logit)
    assert torch.equal(result.target, expected.target)
    assert result.draw(1)
    ours = explain(model, batch, method="ours")
    expected = explain(model, batch, method="gnn-explainer", epochs=2)
    assert torch.equal(ours.node_scores, expected.node_scores.double())
    assert torch.equal(ours.edge_scores, expected.edge_scores.double())
    features = explain(None, batch, method="of-features")
    assert torch.equal(features.node_scores, batch.x.sum(dim=1).double())
    assert features.edge_scores.tolist() == list(range(batch.num_edges))
    one = explain(None, dataset[0], method="degrees")
    assert len(one.node_scores) == dataset[0].num_nodes
    assert last_seen().num_graphs == 1


def test_a_plugin_sees_a_batch_without_answers(dataset: GraphXAIDataset, batch: Batch) -> None:
    for data in (batch, dataset[3]):
        explain(None, data, method="degrees")
        assert isinstance(last_seen(), Batch)
        assert set(last_seen().keys()) == {"x", "edge_index", "y", "graph_id", "batch", "ptr"}
        assert set(last_seen().to_data_list()[0].keys()) == {"x", "edge_index", "y", "graph_id"}
        assert "node_mask" in data


def test_a_plugin_cannot_change_the_graphs(batch: Batch) -> None:
    before = batch.clone()
    explain(None, batch, method="careless")
    assert torch.equal(batch.x, before.x)
    assert torch.equal(batch.edge_index, before.edge_index)


def test_options_are_arguments_of_the_function(batch: Batch, model: nn.Module) -> None:
    plain = explain(model, batch, method="gradient").node_scores
    squared = explain(model, batch, method="gradient", power=2)
    assert torch.allclose(squared.node_scores, plain**2)
    first = explain(model, batch, 0, method="gradient")
    assert torch.equal(
        first.node_scores, explain(model, batch, 0, method="saliency").node_scores.double()
    )
    assert first.target.tolist() == [0] * 5
    for options, message in (
        ({"powr": 2}, "has no argument 'powr'; did you mean 'power'?"),
        ({"row": "contrast"}, "has no argument 'row'; known: power, target"),
        ({"seed": -1}, "seed: expected a whole number"),
    ):
        with pytest.raises(InputError, match=re.escape(message)):
            explain(model, batch, method="gradient", **options)
    with pytest.raises(InputError, match="'ours' of package explain-more 1.2 has no argument 'ta"):
        explain(model, batch, 0, method="ours")


def test_draws_depend_on_the_seed_alone(batch: Batch) -> None:
    for method in ("torch-noise", "own-noise"):
        first, again, other = (
            explain(None, batch, method=method, seed=seed).node_scores for seed in (0, 0, 1)
        )
        assert torch.equal(first, again)
        assert not torch.equal(first, other)


def test_plugins_are_rows_of_evaluate(dataset: GraphXAIDataset, model: nn.Module) -> None:
    table = evaluate(dataset, ["degrees", "gradient", "degree", "saliency"], model, timing=True)
    columns = ["jaccard", "auroc", "auroc_average", "negative_winners"]
    for plugin, ours in (("degrees", "degree"), ("gradient", "saliency")):
        assert table.loc[plugin, columns].tolist() == table.loc[ours, columns].tolist()
    assert (table[["ms_per_graph", "ms_per_graph_batched"]] > 0).all(axis=None)
    named = evaluate(dataset, {"mine": "degrees", "careless": "careless"}, timing=True)
    assert named.loc["mine", "jaccard"] == table.loc["degree", "jaccard"]
    graphs = [dataset[i] for i in dataset.get_idx_split()["test"]]
    again = evaluate(graphs, {"mine": "degrees", "careless": "careless"})
    pd.testing.assert_frame_equal(again, named[again.columns])
    edges = evaluate(dataset, ["ours"], model)
    assert 0 < edges.loc["ours", "edge_auroc_pooled"] < 1


def test_all_does_not_depend_on_what_is_installed(
    dataset: GraphXAIDataset, model: nn.Module
) -> None:
    assert select_variants("all") == list(VARIANTS)
    usual = set(evaluate(dataset, ["all"]).index)
    assert usual == {"random", "degree", "two-core", "wl-log-odds-ball-2", "oracle"}
    assert set(evaluate(dataset, ["all", "degrees"]).index) == {*usual, "degrees"}


def test_the_row_of_a_plugin_says_what_it_is_for(model: nn.Module) -> None:
    degrees, gradient = select_variants(["degrees", "gradient"])
    assert (degrees.kind, gradient.kind) == ("none", "any")
    assert degrees.what == "Count the edges into a node"
    assert gradient.what == "explainer of explain-more 1.2"
    assert degrees.origin is not None
    assert degrees.origin.words == "explain-more 1.2"
    with seeded(0):
        models = (model, BcosGIN(3, 2, 8))
    for some in models:
        assert variants_for(some, None, (degrees, gradient)) == [gradient]
    assert variants_for(None, None, (degrees, gradient)) == [degrees]


def test_a_plugin_does_not_take_a_shipped_name(batch: Batch) -> None:
    assert not {"random", "integrated_gradients"} & set(EXPLAINERS.names())
    assert len(explain(None, batch, method="random").node_scores) == batch.num_nodes
    for name in (*METHODS, *(v.name for v in VARIANTS), "all"):
        with pytest.raises(InputError, match="comes with graphxai-data"):
            EXPLAINERS.register(name, len)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("short", r"node scores of a batch: expected \[\d+\], those of 5 graphs .*, got \[2\]"),
        ("nan", "node scores of a batch: nan at 0 of graph 0; expected finite numbers"),
        ("texts", "node scores of a batch: expected numbers, got <U1"),
        ("nothing", r"node scores of a batch: expected \[\d+\], .*, got \[\]"),
        ("failing", "ZeroDivisionError: division\nby zero"),
    ],
)
def test_a_plugin_that_fails_is_named(
    name: str, message: str, batch: Batch, model: nn.Module, dataset: GraphXAIDataset
) -> None:
    start = f"^explainer '{name}' of package explain-more 1.2: "
    with pytest.raises(CheckFailedError, match=start + message):
        explain(model, batch, method=name)
    with pytest.raises(CheckFailedError, match=start):
        evaluate(dataset, [name], model)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("of-edges", "1.2: it gave a PyG Explanation without a node_mask; .*nodes_from_edges"),
        ("three", r"1.2: expected fn\(batch\) or fn\(model, batch\), got another"),
        ("number", r"1.2: expected a function fn\(batch\) or fn\(model, batch\), got int"),
        ("gone", "1.2 cannot be imported: .*repair or uninstall explain-more"),
        ("a/b", "1.2: expected a name of letters, digits, '-' and '_'; rename it"),
    ],
)
def test_a_plugin_that_is_no_explainer_is_refused(
    name: str, message: str, batch: Batch, dataset: GraphXAIDataset
) -> None:
    start = f"^explainer '{name}' of package explain-more "
    with pytest.raises(InputError, match=start + message):
        explain(None, batch, method=name)
    with pytest.raises(InputError, match=start + message):
        evaluate(dataset, {"mine": name})


def test_a_plugin_needs_what_its_function_takes(batch: Batch, dataset: GraphXAIDataset) -> None:
    with pytest.raises(InputError, match=r"'gradient' of package .* explains a model, got none"):
        explain(None, batch, method="gradient")
    with pytest.raises(InputError, match="explainer 'gradient' explains a model; give one"):
        evaluate(dataset, ["gradient"])
    for function in (
        lambda: explain(None, batch, method="torch-nose"),
        lambda: evaluate(dataset, ["torch-nose"]),
    ):
        with pytest.raises(InputError, match="unknown .*; did you mean 'torch-noise'"):
            function()
    with pytest.raises(InputError, match="data: expected a PyG Data or Batch with 'x'"):
        explain(None, Data(), method="degrees")


def test_two_packages_cannot_offer_the_same_explainer(
    batch: Batch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = write_package(
        tmp_path, "twin", CODE, "explain-less", "0.3", explainers={"degrees": "degrees"}
    )
    monkeypatch.syspath_prepend(second)
    message = "'degrees' is offered by package explain-less 0.3 and by package explain-more 1.2"
    with pytest.raises(InputError, match=message):
        explain(None, batch, method="degrees")
    assert len(explain(None, batch, method="own-noise").node_scores) == len(batch.x)


def test_a_module_that_fails_on_import_is_named(
    dataset: GraphXAIDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "raise RuntimeError('no licence')"
    monkeypatch.syspath_prepend(
        write_package(tmp_path, "locked", code, "locked", "2", explainers={"locked": "fn"})
    )
    message = r"'locked' of package locked 2 cannot be imported: RuntimeError: no licence"
    with pytest.raises(InputError, match=message):
        evaluate(dataset, ["locked"])
    assert np.isfinite(evaluate(dataset, ["degrees"]).jaccard).all()  # others still work
