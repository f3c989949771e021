"""Pages about null rationales, alternatives, weights and labels that are numbers."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from markupsafe import escape

from graphxai_data import GraphXAIDataset
from graphxai_data.datasets.records import Graphs
from graphxai_data.manifest import Manifest
from graphxai_data.progress import no_progress
from graphxai_data.recipe import Recipe
from graphxai_data.report import page as page_module
from graphxai_data.report.explained import Explained, _Page
from graphxai_data.report.packed import sample_graphs
from graphxai_data.report.page import write_report
from tests.conftest import SharedBuilds
from tests.generators.toy_forms import built
from tests.report.reading import Page


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, tuple[Graphs, Page]]]:
    """Graphs and pages of both builds, without explainers."""
    with built(tmp_path_factory.mktemp("forms")) as folders, pytest.MonkeyPatch.context() as patch:
        patch.setattr(page_module, "explained", lambda *_: Explained())
        yield {
            name: (Graphs(folder, Manifest.load(folder)), Page(write_report(folder)))
            for name, folder in zip(("pairs", "sums"), folders, strict=True)
        }


def nodes_of(page: Page, place: int) -> slice:
    return slice(*page.piece(0)["node_ptr"][place : place + 2].tolist())


def test_alternatives_are_in_a_page_bit_by_bit(forms: dict[str, tuple[Graphs, Page]]) -> None:
    graphs, page = forms["pairs"]
    piece = page.piece(0)
    counts = set()
    for place, i in enumerate(page.index["graph_id"].tolist()):
        record, nodes = graphs[i], nodes_of(page, place)
        bits = piece["bits_low"][nodes].astype(np.int64)
        bits |= piece["bits_high"][nodes].astype(np.int64) << 32
        assert bits.tolist() == record.alternative_bits.tolist()
        assert piece["mask"][nodes].tolist() == record.rationale.tolist()
        counts.add(len(record.alternatives))
    assert counts >= {0, 1, 2}
    assert "Further alternatives have other colours" in page.text
    assert "A null rationale is empty" in page.text


def test_numbers_and_weights_are_in_a_page(forms: dict[str, tuple[Graphs, Page]]) -> None:
    graphs, page = forms["sums"]
    assert page.meta["numbers"] is True
    for place, i in enumerate(page.index["graph_id"].tolist()):
        assert page.index["y"][place] == np.float32(graphs[i].y)
        weights = page.piece(0)["weight"][nodes_of(page, place)]
        assert weights.tolist() == graphs[i].node_weight.tolist()
    assert "The label is a number: sum of the weights." in page.text
    assert "Histogram of the labels in each split" in page.text
    assert "Positive weights are red" in page.text
    assert '<select id="class">' not in page.text
    assert '<select id="class">' in forms["pairs"][1].text


def test_weights_of_two_classes_say_which_one_they_speak_for(
    builds: SharedBuilds, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_module, "explained", lambda *_: Explained())
    folder = builds.folder("crippen-binary", 500)
    name = Recipe.load("crippen-binary").class_names[1]
    page = Page(write_report(folder, out=tmp_path / "page.html"))
    expected = f"negative ones blue: they speak for class 1 ({escape(name)}), or against it."
    assert expected in page.text
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert f"positive for nodes that speak for class 1 ({name}), negative for those" in card


def test_a_sample_of_numbers_has_low_and_high_ones_of_every_split(
    forms: dict[str, tuple[Graphs, Page]],
) -> None:
    overview = forms["sums"][0].overview()
    assert overview.label.dtype == np.float64
    # One graph of each of the cells comes before the second of any.
    order = np.argsort(overview.label, kind="stable")
    fifth = np.empty(40, int)
    fifth[order] = np.arange(40) // 8
    cells = {(fifth[i], overview.split[i]) for i in range(40)}
    first = sample_graphs(overview)[: len(cells)]
    assert {(fifth[i], overview.split[i]) for i in first} == cells


def test_each_graph_with_a_rationale_is_compared_with_its_best_alternative(
    tmp_path: Path,
) -> None:
    with built(tmp_path) as (folder, _):
        dataset = GraphXAIDataset.from_folder(folder)
        page = _Page(dataset, [], [], no_progress)
        alternatives = [graph.alternatives.numpy() for graph in dataset]
        # Scores that are right about the last alternative only.
        scores = {i: masks[-1].astype(float) for i, masks in enumerate(alternatives) if len(masks)}
        null = {
            i: np.ones(masks.shape[1]) for i, masks in enumerate(alternatives) if not len(masks)
        }
        page._show("mine", "what", None, "", scores | null)
    (shown,) = page.result.shown
    assert shown.jaccard == dict.fromkeys(scores, 1.0)
    assert null
