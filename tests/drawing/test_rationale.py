"""Pictures of null rationales, alternatives and signed weights."""

from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
import torch
from matplotlib.colors import to_rgba
from rich.text import Text

from graphxai_data import explain
from graphxai_data.datasets.data import GraphXAIData
from graphxai_data.drawing.graphs import drawing
from graphxai_data.drawing.molecules import molecule_gallery
from graphxai_data.drawing.rationale import PALETTE, SHARED, colours_of
from graphxai_data.drawing.terminal import graph_text
from graphxai_data.graphs.record import GraphRecord

# Acetamidoacetic acid, atoms in the order of the text.
SMILES = "CC(=O)NCC(=O)O"
BONDS = [(0, 1), (1, 2), (1, 3), (3, 4), (4, 5), (5, 6), (5, 7)]
WEIGHT = [1.0, -2.0, 0.0, 0.5, 0.0, -1.0, 2.0, 0.0]


def record(smiles: str | None = SMILES, **truth: object) -> GraphRecord:
    meta = {} if smiles is None else {"smiles": smiles}
    label = 1.5 if "node_weight" in truth else 1
    return GraphRecord.from_edges(np.ones((8, 1)), BONDS, label, **truth, **meta)  # type: ignore[arg-type]


def masks(*sets: tuple[int, ...]) -> list[list[bool]]:
    return [[node in nodes for node in range(8)] for nodes in sets]


# Atom 1 is in both alternatives.
FORMS = {
    "null": {"alternatives": []},
    "one": {"alternatives": masks((5, 6, 7))},
    "several": {"alternatives": masks((0, 1), (1, 2))},
    "signed": {"node_weight": WEIGHT},
}


def as_data(graph: GraphRecord) -> GraphXAIData:
    fields = {
        key: torch.from_numpy(value)
        for key in ("x", "edge_index", "node_mask", "edge_mask", "alternative_bits", "node_weight")
        if (value := getattr(graph, key)) is not None
    }
    return GraphXAIData(**fields, **graph.meta, y=torch.tensor([graph.y]))


@pytest.mark.parametrize(
    ("form", "titles"),
    [
        ("null", ["no rationale (null)"]),
        ("one", ["rationale"]),
        ("several", ["2 alternative rationales"]),
        ("signed", ["weights"]),
    ],
)
@pytest.mark.parametrize("smiles", [None, SMILES])
def test_a_figure_says_what_its_rationale_is(
    form: str, titles: list[str], smiles: str | None
) -> None:
    data = as_data(record(smiles, **FORMS[form]))
    assert [axes.get_title() for axes in drawing(data).axes] == titles
    with_scores = drawing(data, np.arange(8.0))
    assert [axes.get_title() for axes in with_scores.axes] == [*titles, "scores"]


def test_weights_and_alternatives_are_two_pictures() -> None:
    data = as_data(record(node_weight=WEIGHT, alternatives=masks((0, 1), (1, 2))))
    titles = [axes.get_title() for axes in drawing(data).axes]
    assert titles == ["2 alternative rationales", "weights"]


def node_colours(form: str) -> list[tuple[float, ...]]:
    (axes,) = drawing(as_data(record(**FORMS[form]))).axes
    return [tuple(colour) for colour in axes.collections[-1].get_facecolor()]  # type: ignore[union-attr]


def test_each_alternative_has_its_own_colour() -> None:
    first, shared, second, *others = node_colours("several")
    assert first == pytest.approx(to_rgba(PALETTE[0]))
    assert second == pytest.approx(to_rgba(PALETTE[1]))
    assert shared == pytest.approx(to_rgba(SHARED))
    assert len(set(others)) == 1
    assert len(set(node_colours("null"))) == 1


def test_positive_weights_are_red_and_negative_ones_blue() -> None:
    for (red, _, blue, _), weight in zip(node_colours("signed"), WEIGHT, strict=True):
        neutral = 0.1  # the middle of the colours is not exactly white
        assert np.sign(red - blue) * (abs(red - blue) > neutral) == np.sign(weight)


def test_more_alternatives_than_colours_start_again() -> None:
    bits = 2 ** np.arange(len(PALETTE) + 1)
    colours = colours_of(bits != 0, bits)
    assert (colours[0] == colours[-1]).all()
    assert len(np.unique(colours, axis=0)) == len(PALETTE)


def test_superpixels_without_a_rationale_are_drawn_without_an_outline() -> None:
    segments = torch.arange(4).reshape(1, 2, 2).repeat_interleave(7, 1).repeat_interleave(7, 2)
    truth = {"node_mask": torch.zeros(4, dtype=torch.bool)}
    data = GraphXAIData(
        x=torch.rand(4, 1, generator=torch.Generator()), segments=segments, **truth,
        edge_index=torch.zeros(2, 0, dtype=torch.int64), edge_mask=torch.zeros(0, dtype=torch.bool),
    )  # fmt: skip
    (axes,) = drawing(data).axes
    assert (axes.get_title(), len(axes.collections)) == ("no rationale (null)", 0)
    data.node_mask = torch.tensor([True, True, False, False])
    data.alternative_bits = torch.tensor([1, 2, 0, 0])
    (axes,) = drawing(data).axes
    colours = [contour.get_edgecolor()[0] for contour in axes.collections]
    assert np.allclose(colours, [mpl.colors.to_rgba(code) for code in PALETTE[:2]])


def highlighted(svg: str) -> set[str]:
    """Fill colours of the ellipses that RDKit draws behind atoms."""
    return {part.split("fill:")[1][:7] for part in svg.split("<ellipse")[1:]}


def test_a_gallery_of_molecules_shows_every_form() -> None:
    names = ["other", "acid"]
    assert len(highlighted(molecule_gallery([record(**FORMS["one"])], names))) == 1
    assert len(highlighted(molecule_gallery([record(**FORMS["several"])], names))) == 3
    null = molecule_gallery([record(**FORMS["null"])], names)
    assert highlighted(null) == set()
    signed = highlighted(molecule_gallery([record(**FORMS["signed"])], ["logP"]))
    assert len(signed) == len({weight for weight in WEIGHT if weight})


def spans(text: Text) -> dict[str, str]:
    """Characters by the style of their spans."""
    shown: dict[str, str] = {}
    for span in text.spans:
        style = str(span.style)
        shown[style] = shown.get(style, "") + text.plain[span.start : span.end]
    return shown


def test_a_terminal_shows_every_form() -> None:
    styles = spans(graph_text(record(**FORMS["several"])))
    assert sorted(styles["bold dark_orange"]) == ["C", "C"]
    assert styles["bold green"] == "O"
    assert "bold dark_orange" not in spans(graph_text(record(**FORMS["null"])))
    signed = spans(graph_text(record(**FORMS["signed"])))
    assert sorted(signed["bold red"]) == ["C", "N", "O"]
    assert sorted(signed["bold blue"]) == ["C", "C"]


def test_without_colours_signs_are_written() -> None:
    molecule = graph_text(record(**FORMS["signed"]), colours=False).plain
    assert sum(molecule.count(sign) for sign in ("C+", "N+", "O+")) == 3
    assert sum(molecule.count(sign) for sign in ("C-", "N-", "O-")) == 2
    graph = graph_text(record(None, **FORMS["signed"]), colours=False).plain
    assert (graph.count("⊕"), graph.count("⊖"), graph.count("○")) == (3, 2, 3)
    null = graph_text(record(None, **FORMS["null"]), colours=False).plain
    assert (null.count("●"), null.count("○")) == (0, 8)


def test_an_explanation_of_a_number_is_for_the_label() -> None:
    explanation = explain(None, as_data(record(**FORMS["signed"])), method="degree")
    of_model = replace(explanation, target=torch.tensor([0]))
    assert [axes.get_title() for axes in of_model.draw().axes] == ["weights", "for the label"]
