from pathlib import Path

import numpy as np
import pytest

from graphxai_data.building.build import build
from graphxai_data.graphs.union import Graphs
from graphxai_data.manifest import Manifest
from graphxai_data.rings import sample as module
from graphxai_data.rings.sample import sample_build, sample_dataset
from tests.rings.planted import planted


def test_a_dataset_sorted_by_class_is_sampled_evenly() -> None:
    graphs = sorted(planted("both", 300), key=lambda graph: int(graph.y))
    sample = sample_dataset(graphs, most=100)
    assert np.bincount(sample.label).tolist() == [50, 50]


def test_a_large_build_is_sampled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build("ba2motif", root=tmp_path, graphs=300, rings=False, shard_size=50)
    folder = tmp_path / "ba2motif" / "seed-0"
    few = sample_build(folder, Manifest.load(folder), most=120)
    assert len(few) == 120
    assert len(np.unique(few.group)) == 120
    monkeypatch.setattr(module, "MAX_PARTS", 5_000)
    fewer = sample_build(folder, Manifest.load(folder))
    assert 50 < len(fewer) < 80
    assert len(fewer.graphs.x) + fewer.graphs.edges.shape[1] < 6_000


def test_taking_graphs_keeps_each_as_it_is() -> None:
    sample = sample_dataset(planted("both", 30))
    selected = np.array([7, 3, 29])
    taken = sample.graphs.take(selected)
    for place, i in enumerate(selected):
        one, other = taken.take(np.array([place])), sample.graphs.take(np.array([i]))
        for name in Graphs.__slots__:
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
