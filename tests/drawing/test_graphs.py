from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from graphxai_data import BatchLoader, GraphXAIDataset, explain, load_model
from graphxai_data.building.build import build
from graphxai_data.errors import InputError
from tests.conftest import SharedBuilds


@pytest.fixture(scope="module", params=["ba2motif", "dihalo", "mnist75sp-r23"])
def dataset(request: pytest.FixtureRequest, builds: SharedBuilds) -> GraphXAIDataset:
    return GraphXAIDataset.from_folder(builds.folder(request.param, 500))


def model_for(dataset: GraphXAIDataset) -> torch.nn.Module:
    kind = "bcos-gine" if dataset.name == "dihalo" else "bcos-gin"
    return load_model(f"{kind}-{dataset.name}", dataset, force=True)


def test_a_graph_is_drawn_with_its_rationale(dataset: GraphXAIDataset) -> None:
    figure = dataset.draw(0)
    assert isinstance(figure, Figure)
    assert [axes.get_title() for axes in figure.axes] == ["rationale"]
    assert figure._repr_svg_().startswith("<?xml")  # type: ignore[attr-defined]


def test_an_explanation_is_drawn_next_to_the_rationale(dataset: GraphXAIDataset) -> None:
    explanation = explain(model_for(dataset), dataset[3])
    assert explanation.target is not None
    titles = [axes.get_title() for axes in explanation.draw().axes]
    assert titles == ["rationale", f"for class {int(explanation.target[0])}"]


def test_one_graph_of_a_batch_is_drawn(dataset: GraphXAIDataset) -> None:
    batch = next(iter(BatchLoader(dataset, 4)))
    model = model_for(dataset)
    one, of_batch = explain(model, dataset[2]).draw(), explain(model, batch).draw(2)
    assert drawn_values(one) == pytest.approx(drawn_values(of_batch), rel=1e-3, abs=1e-4)


def drawn_values(figure: Figure) -> list[float]:
    """Colours of the last panel, as numbers."""
    axes = figure.axes[-1]
    if axes.images:
        return np.asarray(axes.images[0].get_array()).ravel().tolist()
    return axes.collections[-1].get_facecolor().ravel().tolist()  # type: ignore[union-attr]


def test_what_cannot_be_drawn_is_refused(dataset: GraphXAIDataset) -> None:
    with pytest.raises(InputError, match="i: expected a whole number from 0 to 0, got 1"):
        explain(None, dataset[0], method="degree").draw(1)
    with pytest.raises(InputError, match="scores"):
        dataset.draw(0, [1.0])


def test_drawing_does_not_touch_the_style_of_matplotlib(dataset: GraphXAIDataset) -> None:
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    dataset.draw(1, torch.zeros(dataset[1].num_nodes))
    assert dict(mpl.rcParams) == before


def test_a_graph_without_rationale_is_drawn(dataset: GraphXAIDataset) -> None:
    graph = dataset[0].clone()
    del graph["node_mask"]
    titles = [axes.get_title() for axes in explain(model_for(dataset), graph).draw().axes]
    assert len(titles) == 1
    assert titles[0].startswith("for class")


def test_classes_of_nodes_are_drawn(tmp_path: Path) -> None:
    build("pattern", root=tmp_path, graphs=7, rings=False)
    figure = GraphXAIDataset(tmp_path, "pattern").draw(0)
    assert figure.axes[0].get_title() == "nodes of class 1 and above"
