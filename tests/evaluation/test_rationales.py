"""Evaluations and comparisons on rationales of every form, with a toy generator."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from torch import Tensor, nn
from torch_geometric.nn import global_add_pool

from graphxai_data import GraphXAIDataset, build, evaluate, jaccard_at_k, register
from graphxai_data.cli import main
from graphxai_data.errors import InputError
from graphxai_data.evaluation import tables
from graphxai_data.evaluation.comparison import Comparison, compare
from graphxai_data.explain.files import ScoreFile
from graphxai_data.generators import PLUGINS
from graphxai_data.rings.rationale_metrics import best_jaccard_at_k
from tests.generators.toy_rationales import (
    WEIGHTS,
    ToyRationales,
    toy_recipe,
    toy_recipe_text,
)

FORMS = ("single", "alternatives", "signed", "signed-classes")
SMALL = {"epochs": 2, "hidden": 8}
EXACT = ("jaccard", "auroc", "auroc_average", "precision", "auroc_pooled", "auroc_pooled_average")
SIGNED = (
    "spearman", "auroc_positive", "auroc_negative", "top_positive", "top_negative", "sign_accuracy",
)  # fmt: skip


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Any:
    root = tmp_path_factory.mktemp("rationales")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PLUGINS, "registered", {})
        register("toy_rationales", ToyRationales)
        for form in FORMS:
            build(toy_recipe(form), root=root, engine="serial", rings=False)
        yield root


def toy(root: Path, form: str, split: str | None = "test") -> GraphXAIDataset:
    return GraphXAIDataset(root, toy_recipe(form), split=split)


@pytest.mark.parametrize("form", FORMS)
def test_the_oracle_is_the_ceiling_of_every_column(root: Path, form: str) -> None:
    row = evaluate(toy(root, form), ["oracle"]).loc["oracle"]
    assert row[list(EXACT)].tolist() == [1] * len(EXACT)
    assert row.constant == 0
    if form == "alternatives":
        assert row[["jaccard_union", "auroc_union"]].tolist() == [1, 1]
    if form.startswith("signed"):
        assert row[list(SIGNED)].tolist() == [1] * len(SIGNED)
        assert row.rmse_scaled == pytest.approx(0)
    else:
        assert row.null_outliers == 0


@pytest.mark.parametrize("form", FORMS)
def test_a_row_has_the_columns_of_its_form(root: Path, form: str) -> None:
    columns = set(evaluate(toy(root, form), ["random"]).columns)
    assert ("jaccard_union" in columns) == (form == "alternatives")
    assert ("null_outliers" in columns) == ("null_graphs" in columns) == ("sign" not in form)
    assert ("spearman" in columns) == ("rmse_scaled" in columns) == ("sign" in form)
    assert ("worst_class_jaccard" in columns) == (form != "signed")


def test_values_are_those_of_a_loop_over_graphs(root: Path) -> None:
    test = toy(root, "alternatives")
    rng = np.random.default_rng(0)
    scores = [rng.integers(0, 4, graph.num_nodes).astype(float) for graph in test]
    row = evaluate(test, {"mine": scores}).loc["mine"]
    best, union, outliers = [], [], []
    for graph, values in zip(test, scores, strict=True):
        bits = graph.alternative_bits.numpy()
        if graph.y == 0:
            assert not bits.any()
            q1, q3 = np.quantile(values, [0.25, 0.75])
            outliers.append(values.max() > q3 + 1.5 * (q3 - q1))
            continue
        masks = [bits >> j & 1 for j in range(63) if (bits >> j & 1).any()]
        best.append(best_jaccard_at_k(values, masks))
        union.append(jaccard_at_k(values, graph.node_mask))
    assert any((graph.alternative_bits > 1).any() for graph in test)
    assert row.jaccard == pytest.approx(np.mean(best))
    assert row.jaccard_union == pytest.approx(np.mean(union))
    assert row.null_outliers == pytest.approx(np.mean(outliers))
    assert (row.graphs, row.null_graphs) == (len(best), len(outliers))
    assert row.worst_class_jaccard == row.jaccard  # only class 1 has rationales


def test_scores_of_edges_are_pooled_over_graphs_with_a_rationale(root: Path) -> None:
    test = toy(root, "single")

    def edges_inside(data: Any) -> Any:
        from torch_geometric.explain import Explanation

        red = data.x[:, 2] == 1
        wrong_in_null_graphs = (red[data.edge_index].all(dim=0)).float() + (data.y == 0)
        return Explanation(edge_mask=wrong_in_null_graphs, node_mask=red.float())

    row = evaluate(test, {"mine": edges_inside}).loc["mine"]
    assert row.edge_auroc_pooled == 1


def test_constant_scores_of_null_graphs_are_no_fault(root: Path) -> None:
    test = toy(root, "single")
    constant = evaluate(test, {"mine": lambda data: data.x[:, 2] * data.y}).loc["mine"]
    assert (constant.constant, constant.null_outliers) == (0, 0)
    with pytest.raises(InputError, match="the same for all nodes of every graph"):
        evaluate(test, {"mine": lambda data: data.x[:, 2] * (1 - data.y)})


def test_metrics_of_ones_own_see_graphs_with_a_rationale(root: Path) -> None:
    test = toy(root, "single")

    def size(scores: Any, mask: Any) -> float:
        assert mask.any()
        return 1 / mask.sum()

    assert evaluate(test, ["random"], metrics={"size": size}).loc["random", "size"] == 0.5


def test_a_part_without_any_rationale_is_refused(root: Path) -> None:
    whole = toy(root, "single", None)
    null = whole[whole._data.y == 0]
    with pytest.raises(InputError, match=r"each of the \d+ graphs is null: nothing in these"):
        evaluate(null, ["random"], split="test")


def test_a_comparison_shows_the_columns_of_its_dataset(root: Path, tmp_path: Path) -> None:
    dataset = toy(root, "alternatives", None)
    rows = ("bcos", "random", "oracle", "wl-log-odds-1")
    comparison = compare(dataset, ["bcos-gin"], rows, (0, 1), tmp_path, changes=SMALL, timing=False)
    headers = tables.headers(comparison)
    # No paper has figures of a toy, and nothing was timed.
    assert headers[:5] == ("explainer", "model", "Jaccard@k", "AUROC", "worst class J")
    assert headers[5:] == ("J (union)", "AUROC (union)", "null outliers", "accuracy", "F1")
    (oracle,) = [row for row in tables.table_rows(comparison) if row[0] == "oracle"]
    cells = dict(zip(headers, oracle, strict=True))
    assert cells["J (union)"] == "1.000 ± 0.000"
    assert cells["null outliers"] == "0.000 ± 0.000"
    assert "Spearman" not in headers
    summary = {row["explainer"]: row for row in comparison.summary()}
    assert "null_graphs_std" not in summary["bcos"]
    assert tables.floor_lines(comparison, ())[0].startswith("best floor: wl-log-odds-1, Jaccard@k")
    expected = evaluate(dataset, ["random"], split="test").loc["random"]
    (random,) = [r for r in comparison.rows if r["explainer"] == "random" and r["seed"] == 0]
    for key in ("jaccard", "jaccard_union", "auroc_union", "null_outliers", "null_graphs"):
        assert random[key] == expected[key]


def test_a_comparison_of_numbers_has_their_scores_and_no_classes(root: Path) -> None:
    dataset = toy(root, "signed", None)
    floors = compare(dataset, [], ("random", "degree", "oracle", "wl-log-odds-0"), (0,))
    scores = {"mae": 0.5, "rmse": 0.75, "r2": 0.25}
    faithfulness = {"fidelity_plus": 1.5, "fidelity_minus": 0.5, "retrained_r2": 0.125}
    rows = [row | scores | faithfulness for row in floors.rows]
    comparison = Comparison("toy-signed", "", "test", {}, rows, {})
    headers = tables.headers(comparison)
    assert headers[4:9] == ("Spearman", "AUROC +", "AUROC -", "signs", "RMSE scaled")
    assert headers[9:] == ("ms/graph", "batched", "MAE", "RMSE", "R²")
    cells = {row[0]: dict(zip(headers, row, strict=True)) for row in tables.table_rows(comparison)}
    assert cells["oracle"]["Spearman"] == "1.000"
    assert cells["degree"]["R²"] == "0.250"
    faithful = tables.faithfulness_headers(comparison)
    assert faithful == ("explainer", "model", "fidelity+", "fidelity-", "R² retrained")
    assert tables.faithfulness_rows(comparison)[0][2:] == ["1.500", "0.500", "0.125"]
    # Colours are the weights here, and the label rises with them.
    assert tables.floor_lines(comparison, ())[0] == "best floor: wl-log-odds-0, Spearman 1.000"


def test_the_command_prints_the_columns_of_a_file(root: Path, tmp_path: Path) -> None:
    test = toy(root, "signed")
    sizes = [graph.num_nodes for graph in test]
    file = ScoreFile(
        dataset=test.name,
        content_sha256=test.manifest.content_sha256,
        explainer="mine",
        graph_id=np.array([int(graph.graph_id) for graph in test]),
        node_ptr=np.cumsum([0, *sizes]),
        node_scores=np.concatenate([-graph.node_weight.numpy() for graph in test]),
    )
    file.save(tmp_path / "mine.safetensors")
    recipe = tmp_path / "toy-signed.toml"
    recipe.write_text(toy_recipe_text("signed"), encoding="utf-8")
    result = CliRunner().invoke(
        main,
        [
            "evaluate",
            str(recipe),
            "--root",
            str(root),
            "--scores",
            str(tmp_path / "mine.safetensors"),
        ],
    )
    assert result.exit_code == 0, result.output
    header, line = (
        next(text.split() for text in result.output.splitlines() if text.split()[:1] == [first])
        for first in ("explainer", "mine")
    )
    cells = dict(zip(header, line, strict=True))
    assert (cells["spearman"], cells["sign_accuracy"]) == ("-1.000", "0.000")
    assert "worst_class_jaccard" not in cells
    assert math.isfinite(float(cells["rmse_scaled"]))


class SumOfColours(nn.Module):
    """The sum of the weights of nodes as the logit of class 1, and its opposite as that of 0."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(WEIGHTS))

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        total = global_add_pool(x @ self.weight, batch)
        return torch.stack([-total, total], dim=1)


def test_explainers_explain_class_1_where_weights_speak_for_it(root: Path) -> None:
    test = toy(root, "signed-classes")
    assert set(test._data.y.tolist()) == {0, 1}
    model = SumOfColours().eval()
    table = evaluate(test, ["input-x-gradient", "oracle", "wl-log-odds-0"], model)
    for name in ("input-x-gradient", "oracle"):
        assert table.loc[name, list(EXACT + SIGNED)].tolist() == [1] * len(EXACT + SIGNED)
    # Colours of class 1 are those with a positive weight.
    assert table.loc["wl-log-odds-0", "spearman"] > 0.9
    assert "negative_winners" not in table or table["negative_winners"].isna().all()
