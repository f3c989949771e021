"""Rationales of every form, from the record to the explanation and back."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from torch_geometric.data import Batch
from torch_geometric.explain import Explanation
from torch_geometric.loader import DataLoader
from torch_geometric.transforms import (
    AddSelfLoops,
    BaseTransform,
    Compose,
    LargestConnectedComponents,
)

from graphxai_data import BatchLoader, GraphRecord, GraphXAIDataset, Schema
from graphxai_data.building.survey import shard_entry
from graphxai_data.datasets.base import Build
from graphxai_data.datasets.data import GraphXAIData
from graphxai_data.datasets.on_disk import ShardedDataset
from graphxai_data.datasets.stream import StreamedDataset
from graphxai_data.errors import InputError
from graphxai_data.explain.functions import without_answers
from graphxai_data.graphs.schema import Feature
from graphxai_data.graphs.shards import ShardReader, ShardWriter
from graphxai_data.manifest import Manifest
from tests.strategies import datasets

TRUTH = ("node_mask", "edge_mask", "alternative_bits", "node_weight")
Data = tuple[Schema, list[GraphRecord]]


@contextmanager
def stored(schema: Schema, records: list[GraphRecord]) -> Iterator[Build]:
    """Write records into two shards, the first with half of them, and yield them as a build."""
    with tempfile.TemporaryDirectory() as temporary:
        folder, half = Path(temporary), max(len(records) // 2, 1)
        entries = []
        for number, first in enumerate(range(0, len(records), half)):
            path = folder / f"shard-{number:05d}.h5"
            with ShardWriter(path, schema, dataset="any", recipe_sha256="", seed=0) as writer:
                for i in range(first, min(first + half, len(records))):
                    writer.add(records[i], graph_id=i, split=i % 3)
            entries.append(shard_entry(ShardReader(path)))
        yield Build(
            folder,
            Manifest(2, "any", 0, len(records), half, "any", "", {}, {}, tuple(entries), {}, {}),
        )


def pyg_loader(dataset: Any, **options: Any) -> DataLoader:
    """Return PyG's loader, which draws a seed for its workers: not from the global generator."""
    return DataLoader(dataset, 3, generator=torch.Generator(), **options)


def same_bits(tensor: Any, array: np.ndarray) -> bool:
    ours = tensor.numpy()
    return (
        ours.dtype == array.dtype
        and ours.shape == array.shape
        and ours.tobytes() == array.tobytes()
    )


def assert_rationale(graph: Any, record: GraphRecord) -> None:
    for key in TRUTH:
        expected = getattr(record, key)
        assert (key in graph) == (expected is not None), key
        if expected is not None:
            assert same_bits(graph[key], expected), key
    if record.node_mask is not None:
        assert same_bits(graph.alternatives, record.alternatives)


def assert_all(graphs: Any, records: list[GraphRecord]) -> None:
    for graph, record in zip(graphs, records, strict=True):
        assert_rationale(graph, record)


@settings(deadline=None, max_examples=60)
@given(datasets())
def test_any_mixture_goes_through_datasets_batches_slices_and_explanations(data: Data) -> None:
    schema, records = data
    with stored(schema, records) as place:
        memory = GraphXAIDataset(place, "any")
        disk, stream = ShardedDataset(place, "any"), StreamedDataset(place, "any")
        forms = (memory.has_rationale, memory.has_null, memory.has_alternatives, memory.has_weights)
        assert forms == (
            schema.has_rationale, schema.has_null, schema.has_alternatives, schema.has_weights,
        )  # fmt: skip
        for dataset in (memory, disk, stream, memory.copy(), memory.index_select([0]).copy()):
            assert_all(dataset, records[: len(dataset)])
        order = np.arange(len(records))[::-1].tolist()
        mixed = [records[i] for i in order]
        assert_all(memory[order], mixed)
        assert_all(memory[1:], records[1:])
        loaders = BatchLoader(memory, 3), pyg_loader(memory), pyg_loader(disk[order])
        for loader, expected in zip(loaders, (records, records, mixed), strict=True):
            graphs = [graph for batch in loader for graph in batch.to_data_list()]
            assert_all(graphs, expected)
            assert_all((batch[i] for batch in loader for i in range(len(batch))), expected)
            if schema.has_rationale:
                lists = [masks for batch in loader for masks in batch.alternatives]
                assert all(map(same_bits, lists, [record.alternatives for record in expected]))
        for graph, record in zip(memory, records, strict=True):
            if schema.label == "number":
                assert same_bits(graph.y, np.array([record.y], np.float32))
            if not schema.has_rationale:
                with pytest.raises(InputError, match="no rationale is known"):
                    graph.to_explanation()
                continue
            explanation = graph.to_explanation()
            assert isinstance(explanation, Explanation)
            assert explanation.validate()
            assert explanation.node_mask.flatten().tolist() == record.rationale.tolist()
            assert same_bits(explanation.alternatives, record.alternatives)
            back = explanation.to_data()
            assert_rationale(back, record)
            assert torch.equal(back.x, graph.x)
            assert torch.equal(back.y, graph.y)


# Nodes 0 and 1 are one alternative, 2 and 3 another one: the edge between 1 and 2 is in neither.
EDGES = [(0, 1), (1, 2), (2, 3), (3, 4)]
SCHEMA = Schema(
    Feature(1, "dense"), None, 1, has_null=True, has_alternatives=True, has_weights=True,
    label="number",
)  # fmt: skip


def mixture() -> list[GraphRecord]:
    """Null, one, and two alternatives, each with weights."""
    x = np.arange(5.0)[:, None]
    several = [[], [[1, 1, 0, 0, 0]], [[1, 1, 0, 0, 0], [0, 0, 1, 1, 0]]]
    weight = [0.5, -1.0, 0.25, 0.0, 3.0]
    return [
        GraphRecord.from_edges(x, EDGES, 0.5 * i, alternatives=sets, node_weight=weight)
        for i, sets in enumerate(several)
    ]


@pytest.fixture
def place() -> Iterator[Build]:
    with stored(SCHEMA, mixture()) as build:
        yield build


def test_an_edge_between_two_alternatives_is_in_no_rationale(place: Build) -> None:
    dataset = GraphXAIDataset(place, "any", transform=AddSelfLoops())
    graph = dataset[2]
    inside = graph.edge_index[:, graph.edge_mask].T.tolist()
    expected = [[0, 1], [1, 0], [2, 3], [3, 2], [0, 0], [1, 1], [2, 2], [3, 3]]
    assert sorted(inside) == sorted(expected)
    batch = Batch.from_data_list([dataset.get(2), dataset.get(2)])
    assert batch.edge_mask.sum() == 8
    assert [len(masks) for masks in batch.alternatives] == [2, 2]


class Reverse(BaseTransform):
    """Put the nodes in reverse order, with all of `keys`."""

    def __init__(self, *keys: str) -> None:
        self.keys = ("x", *keys)

    def forward(self, data: GraphXAIData) -> GraphXAIData:
        for key in self.keys:
            data[key] = data._store[key].flip(0)
        data.edge_index = 4 - data.edge_index
        return data


NODE_TRUTH = ("node_mask", "alternative_bits", "node_weight")


@pytest.mark.parametrize("forgotten", NODE_TRUTH)
@pytest.mark.parametrize("when", ["transform", "pre_transform"])
def test_nodes_in_another_order_than_their_rationale_are_noticed(
    place: Build, forgotten: str, when: str
) -> None:
    keys = [key for key in NODE_TRUTH if key != forgotten]
    dataset = GraphXAIDataset(place, "any", **{when: Reverse(*keys)})
    assert all(key not in dataset[2] for key in TRUTH)
    for key in (*TRUTH, "alternatives"):
        with pytest.raises(InputError, match=f"Reverse.*{forgotten}"):
            getattr(dataset[2], key)


@pytest.mark.parametrize("when", ["transform", "pre_transform"])
def test_a_rationale_that_follows_its_nodes_is_kept(place: Build, when: str) -> None:
    for _ in range(2):  # the second time from the file that pre_transform left
        dataset = GraphXAIDataset(place, "any", **{when: Reverse(*NODE_TRUTH)})
        for i, record in enumerate(mixture()):
            assert torch.equal(
                dataset[i].alternatives, torch.from_numpy(record.alternatives).flip(1)
            )
            assert dataset[i].node_weight.tolist() == record.node_weight[::-1].tolist()
            assert dataset[i].y.tolist() == [record.y]


def test_a_transform_that_drops_alternatives_alone_loses_the_rationale(place: Build) -> None:
    def drop(data: GraphXAIData) -> GraphXAIData:
        del data.alternative_bits
        return data

    dataset = GraphXAIDataset(place, "any", transform=drop)
    with pytest.raises(InputError, match="alternative_bits is not"):
        _ = dataset[2].node_mask


def test_nodes_that_are_removed_with_all_their_rows_leave_a_rationale_that_fits(
    place: Build,
) -> None:
    def cut(data: GraphXAIData) -> GraphXAIData:
        data.edge_index = data.edge_index[:, (data.edge_index < 4).all(dim=0)]
        return data

    dataset = GraphXAIDataset(place, "any", transform=Compose([cut, LargestConnectedComponents()]))
    assert dataset[2].alternatives.tolist() == [
        [True, True, False, False],
        [False, False, True, True],
    ]
    assert dataset[0].alternatives.shape == (0, 4)


def test_an_alternative_without_nodes_is_gone(place: Build) -> None:
    part = GraphXAIDataset(place, "any")[2].subgraph(torch.tensor([2, 3, 4]))
    assert part.alternatives.tolist() == [[True, True, False]]
    assert part.to_explanation().alternatives.tolist() == [[True, True, False]]


def _without_the_first_two_nodes(data: GraphXAIData) -> GraphXAIData:
    return data.subgraph(torch.tensor([2, 3, 4]))


def test_a_rationale_without_nodes_is_unknown_instead_of_null(place: Build) -> None:
    dataset = GraphXAIDataset(place, "any", transform=_without_the_first_two_nodes)
    assert dataset[0].alternatives.shape == (0, 3)  # it was null before
    assert dataset[2].alternatives.tolist() == [[True, True, False]]
    for key in (*TRUTH, "alternatives"):
        with pytest.raises(InputError, match="none any more: .*no node of its rationale is left"):
            getattr(dataset[1], key)


def test_weights_without_a_cause_left_are_unknown_too() -> None:
    schema = Schema(Feature(1, "dense"), None, 1, has_weights=True, label="number")
    x = np.arange(5.0)[:, None]
    weights = ([1.0, 0, 0, 0, 0], [1.0, 0, -0.5, 0, 0])
    records = [GraphRecord.from_edges(x, EDGES, 1.0, node_weight=w) for w in weights]
    with stored(schema, records) as place:
        lost, kept = GraphXAIDataset(place, "any", transform=_without_the_first_two_nodes)
        assert kept.node_weight.tolist() == [-0.5, 0, 0]
        assert kept.y.tolist() == [1.0]  # labels stay as they are, so weights miss a part of it
        with pytest.raises(InputError, match="no node of its rationale is left"):
            _ = lost.node_weight


@pytest.mark.parametrize("i", range(3))
def test_a_part_of_an_explanation_keeps_its_rationale(place: Build, i: int) -> None:
    truth = GraphXAIDataset(place, "any")[i]
    part = truth.to_explanation().get_explanation_subgraph()
    inside = truth.node_mask
    assert torch.equal(part.alternatives, truth.alternatives[:, inside])
    assert torch.equal(part.node_weight, truth.node_weight[inside])


def test_a_mask_that_contradicts_the_alternatives_is_refused(place: Build) -> None:
    graph = GraphXAIDataset(place, "any")[2]
    graph.node_mask = torch.tensor([True, False, False, False, False])
    with pytest.raises(InputError, match="not the union of the alternatives"):
        _ = graph.edge_mask


@pytest.mark.parametrize(
    "load",
    [
        lambda d: next(iter(pyg_loader(d, exclude_keys=["alternative_bits"]))),
        lambda d: next(iter(BatchLoader(d, 3, keys=["x", "edge_index", "node_mask", "edge_mask"]))),
    ],
)
def test_a_batch_without_the_alternatives_keeps_its_edge_mask(
    place: Build, load: Callable[[Any], Any]
) -> None:
    dataset = GraphXAIDataset(place, "any")
    batch = load(dataset)
    expected = np.concatenate([record.edge_mask for record in mixture()])
    assert batch.edge_mask.tolist() == expected.tolist()
    with pytest.raises(InputError, match="alternative_bits was left out"):
        _ = batch.alternatives


def test_explainers_see_no_form_of_the_rationale(place: Build) -> None:
    dataset = GraphXAIDataset(place, "any")
    for data in (dataset[2], Batch.from_data_list(list(dataset))):
        seen = without_answers(data)
        assert not {*TRUTH, "alternatives", "split", "group"} & set(seen.keys())
        for key in (*TRUTH, "alternatives"):
            assert getattr(seen, key, None) is None
        assert data.alternatives is not None


def test_labels_that_are_numbers_stay_numbers(place: Build) -> None:
    dataset = GraphXAIDataset(place, "any")
    assert (dataset.label, dataset.num_classes, dataset.task) == ("number", 1, "graph")
    assert dataset.y.dtype == torch.float32
    assert dataset.y.tolist() == [0.0, 0.5, 1.0]
    batch = next(iter(BatchLoader(dataset, 3)))
    assert batch.y.dtype == torch.float32
    assert batch.y.tolist() == [0.0, 0.5, 1.0]
