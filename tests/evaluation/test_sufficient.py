"""Scores against the part of a rationale that decides the label."""

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch_geometric.data import Data

from graphxai_data import GraphXAIDataset, build, evaluate, register
from graphxai_data.errors import CheckFailedError, InputError
from graphxai_data.evaluation.comparison import compare
from graphxai_data.evaluation.pairs import PairTruth
from graphxai_data.evaluation.study import RESULTS
from graphxai_data.evaluation.truth import Truth
from graphxai_data.generators import PLUGINS
from graphxai_data.graphs.columns import Ints
from graphxai_data.graphs.rationale import alternatives_of
from graphxai_data.graphs.union import Graphs
from graphxai_data.rings.rationale_metrics import best_jaccard_at_k
from graphxai_data.rings.scoring import Rationales
from graphxai_data.training.train import run_folder
from tests.conftest import SharedBuilds
from tests.generators.toy_rationales import ToyRationales, toy_recipe

NAMES = ["dihalo", "dihalo-decoy", "dihalo-pair-a"]


def _part(builds: SharedBuilds, name: str) -> GraphXAIDataset:
    return GraphXAIDataset.from_folder(builds.folder(name, 500), split="test")


def _known(truth: Truth) -> tuple[Rationales, Ints]:
    assert truth.sufficient is not None
    assert truth.sufficient.bits is not None
    return truth.sufficient, truth.sufficient.bits


@pytest.mark.parametrize("name", NAMES)
def test_the_column_is_the_mean_of_the_best_part_of_each_graph(
    name: str, builds: SharedBuilds
) -> None:
    part = _part(builds, name)
    truth = Truth.of(part)
    sufficient, bits = _known(truth)
    scores = np.random.default_rng(0).permutation(len(bits)).astype(float)
    expected = [
        best_jaccard_at_k(scores[first:last], alternatives_of(bits[first:last]))
        for first, last in zip(truth.node_ptr, truth.node_ptr[1:], strict=False)
    ]
    np.testing.assert_allclose(sufficient.jaccard(scores), expected)
    row = evaluate(part, {"mine": scores}).loc["mine"]
    assert row.jaccard_sufficient == pytest.approx(np.mean(expected))


@pytest.mark.parametrize("name", NAMES)
def test_a_map_of_one_part_is_right_and_one_of_the_rest_is_wrong(
    name: str, builds: SharedBuilds
) -> None:
    part = _part(builds, name)
    _, bits = _known(Truth.of(part))
    table = evaluate(part, {
        "first": (bits & 1).astype(float),
        "last": 2.0 * (bits >> int(bits.max()).bit_length() - 1) + (bits & 1),
        "rest": -(bits > 0).astype(float),
        "oracle": "oracle",
    })  # fmt: skip
    assert bits.max() == 3
    assert table.jaccard_sufficient["first"] == table.jaccard_sufficient["last"] == 1
    assert table.jaccard_sufficient["rest"] == 0
    assert table.jaccard["first"] < table.jaccard["oracle"] == 1
    assert table.jaccard_sufficient["oracle"] < 1


def test_an_ortho_map_may_leave_out_the_far_carbons(builds: SharedBuilds) -> None:
    part = _part(builds, "dihalo")
    ortho = part[torch.tensor([int(data.y) % 3 == 0 for data in part])]
    truth = Truth.of(ortho)
    _, bits = _known(truth)
    # Halogen, carbon, carbon, halogen; then other atoms; the far carbons last.
    scores = np.where(bits > 0, 2.0, np.where(truth.node_mask, 0.0, 1.0))
    row = evaluate(ortho, {"mine": scores}).loc["mine"]
    assert row.jaccard_sufficient == 1
    assert row.jaccard == pytest.approx(4 / (8 + 8 - 4))


def test_parts_of_both_causes_and_of_one(builds: SharedBuilds) -> None:
    known = PairTruth.of(GraphXAIDataset.from_folder(builds.folder("dihalo-pair-both", 500)))
    _, bits = _known(known.truth)
    for half in ("a", "b"):
        own = known.truth.sufficient_in(known.mask(half))
        assert own is not None
        np.testing.assert_array_equal(own.mask, known.mask(half) & (bits > 0))


def test_the_column_is_only_where_parts_are_known(builds: SharedBuilds) -> None:
    part = _part(builds, "ba2motif")
    assert Truth.of(part).sufficient is None
    assert "jaccard_sufficient" not in evaluate(part, ["degree"])
    graphs = [Data(torch.eye(3), torch.tensor([[0], [1]]), node_mask=torch.tensor([1, 0, 0]))]
    assert "jaccard_sufficient" not in evaluate(graphs, ["oracle"])
    with pytest.raises(InputError, match="a column of this name exists already"):
        evaluate(part, ["degree"], metrics={"jaccard_sufficient": lambda scores, mask: 0.0})


def test_a_comparison_measures_again_what_was_saved_without_the_column(tmp_path: Path) -> None:
    build("dihalo", root=tmp_path, graphs=90, engine="serial", rings=False)
    dataset = GraphXAIDataset(tmp_path, "dihalo")
    small: dict[str, Any] = {"epochs": 1, "hidden": 8}

    def compared() -> float:
        result = compare(
            dataset, ["gin"], ["saliency"], [0], tmp_path / "runs", changes=small, timing=False
        )
        return float(result.rows[0]["jaccard_sufficient"])

    first = compared()
    path = run_folder(tmp_path / "runs", "gin", "dihalo", 0) / RESULTS
    text = path.read_text(encoding="utf-8")
    assert '"jaccard_sufficient"' in text
    path.write_text(text.replace('"jaccard_sufficient"', '"other"'), encoding="utf-8")
    assert compared() == first


class Parts(ToyRationales):
    """Knows parts, which a test sets."""

    parts: Any = None

    def sufficient(self, graphs: Graphs, mask: npt.NDArray[np.bool_]) -> Ints | None:
        """Return what the test has set."""
        return None if Parts.parts is None else Parts.parts(mask)


def test_parts_of_plugins_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PLUGINS, "registered", {})
    register("toy_rationales", Parts)
    build(toy_recipe("single"), root=tmp_path, engine="serial", rings=False)
    part = GraphXAIDataset(tmp_path, toy_recipe("single"), split="test")
    assert "jaccard_sufficient" not in evaluate(part, ["degree"])
    for parts, message in {
        lambda mask: mask[1:].astype(int): "expected whole numbers",
        lambda mask: mask.astype(float): "expected whole numbers",
        lambda mask: -mask.astype(int): "expected whole numbers",
        lambda mask: (~mask).astype(int): "a node outside its rationale",
        lambda mask: 0 * mask.astype(int): "a graph with a rationale has no part",
    }.items():
        monkeypatch.setattr(Parts, "parts", parts)
        with pytest.raises(CheckFailedError, match=message):
            evaluate(part, ["degree"])
    # Null graphs have no part, so the column is over ranked graphs too.
    monkeypatch.setattr(Parts, "parts", lambda mask: mask.astype(int))
    table = evaluate(part, ["degree"])
    assert table.jaccard_sufficient.equals(table.jaccard.rename("jaccard_sufficient"))
