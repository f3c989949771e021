import hashlib
import re
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphxai_data.errors import CheckFailedError, DamagedError
from graphxai_data.graphs.columns import pack
from graphxai_data.graphs.digest import ArrayDigest, shard_digest, widened
from graphxai_data.graphs.meaning import Meaning, Value
from graphxai_data.graphs.record import GraphRecord
from graphxai_data.graphs.schema import Column, Feature, Schema
from graphxai_data.graphs.shards import ShardReader, ShardWriter, shard_bytes
from tests.strategies import datasets

IDENTITY = {"dataset": "d", "recipe_sha256": "r", "seed": 3}


def _columns(schema: Schema, records: list[GraphRecord], first: int = 0) -> dict:
    ids = np.arange(first, first + len(records))
    return pack(records, schema, ids, (ids % 3).astype(np.uint8))


def _write(path: Path, schema: Schema, records: list[GraphRecord]) -> None:
    with ShardWriter(path, schema, **IDENTITY) as writer:
        for i, record in enumerate(records):
            writer.add(record, graph_id=i, split=i % 3)


# Columns of a record that are arrays.
ARRAYS = (
    "x", "edge_index", "edge_attr", "node_mask", "edge_mask", "alternative_bits", "node_weight",
    "node_y",
)  # fmt: skip


@given(datasets())
def test_records_are_read_as_they_were_written(data: tuple[Schema, list[GraphRecord]]) -> None:
    schema, records = data
    with TemporaryDirectory() as folder:
        path = Path(folder) / "shard.h5"
        _write(path, schema, records)
        shard = ShardReader(path)
        shard.check()
        assert shard.schema == schema
        assert shard.identity == IDENTITY
        assert len(shard) == len(records)
        for written, read in zip(records, shard, strict=True):
            for name in ARRAYS:
                one, other = getattr(written, name), getattr(read, name)
                assert (one is None) == (other is None)
                if one is not None:
                    np.testing.assert_array_equal(one, other)
                    assert one.dtype == other.dtype
            assert (written.y, written.group) == (read.y, read.group)
            for extra in schema.extras:
                np.testing.assert_array_equal(written.meta[extra.name], read.meta[extra.name])


@given(datasets(), st.data())
def test_the_content_digest_does_not_depend_on_the_shard_size(
    data: tuple[Schema, list[GraphRecord]], more: st.DataObject
) -> None:
    schema, records = data
    whole = ArrayDigest().update(_columns(schema, records)).hexdigest()
    cut = more.draw(st.integers(0, len(records)))
    parts = ArrayDigest()
    for first, last in ((0, cut), (cut, len(records))):
        if last > first:
            parts.update(_columns(schema, records[first:last], first))
    assert parts.hexdigest() == whole


@given(datasets(most=4))
def test_the_digest_is_sha256_over_name_type_shape_and_bytes(
    data: tuple[Schema, list[GraphRecord]],
) -> None:
    schema, records = data
    columns = _columns(schema, records)
    arrays = {name: array for name, array in columns.items() if name != "edge_index"}
    arrays["edge_index/0"], arrays["edge_index/1"] = columns["edge_index"]
    expected = hashlib.sha256()
    for name in sorted(arrays):
        array = arrays[name]
        inner = hashlib.sha256(array.tobytes()).hexdigest()
        expected.update(f"{name} {array.dtype.str} {list(array.shape)} {inner}\n".encode())
    assert shard_digest(columns) == expected.hexdigest()


@given(datasets(most=4))
def test_every_changed_value_changes_the_digest(data: tuple[Schema, list[GraphRecord]]) -> None:
    schema, records = data
    columns = _columns(schema, records)
    digest = shard_digest(columns)
    for name, array in columns.items():
        if array.size:
            changed = array.copy()
            flat = changed.reshape(-1)
            flat[-1] = not flat[-1] if changed.dtype == bool else flat[-1] != 1
            assert shard_digest(columns | {name: changed}) != digest


@given(datasets(most=4))
def test_equal_graphs_give_equal_files(data: tuple[Schema, list[GraphRecord]]) -> None:
    schema, records = data
    one = shard_bytes(_columns(schema, records), schema, **IDENTITY)
    other = shard_bytes(_columns(schema, records), schema, **IDENTITY)
    assert one == other


def _path_graph(nodes: int) -> GraphRecord:
    one_way = np.stack([np.arange(nodes - 1), np.arange(1, nodes)])
    edge_index = np.concatenate([one_way, one_way[::-1]], axis=1)
    edge_index = edge_index[:, np.lexsort(edge_index[::-1])]
    mask = np.arange(nodes) < 2
    return GraphRecord(
        x=np.ones((nodes, 1), np.float32),
        edge_index=edge_index,
        y=0,
        node_mask=mask,
        edge_mask=mask[edge_index].all(axis=0),
        group=0,
    )


SIMPLE = Schema(Feature(1, "onehot"), None, 1)


@pytest.mark.parametrize(
    ("nodes", "dtype"), [(256, np.uint8), (257, np.uint16), (65537, np.uint32)]
)
def test_node_ids_take_the_smallest_type_and_do_not_change_the_content(
    tmp_path: Path, nodes: int, dtype: type
) -> None:
    _write(tmp_path / "s.h5", SIMPLE, [_path_graph(nodes)])
    shard = ShardReader(tmp_path / "s.h5")
    assert shard.columns["edge_index"].dtype == dtype
    in_memory = _columns(SIMPLE, [_path_graph(nodes)])
    assert shard_digest(widened(shard.columns)) == shard_digest(in_memory)


def test_any_hdf5_reader_sees_plain_arrays_and_attributes(tmp_path: Path) -> None:
    _write(tmp_path / "s.h5", SIMPLE, [_path_graph(3), _path_graph(4)])
    with h5py.File(tmp_path / "s.h5") as f:
        assert sorted(f) == [
            "edge_index", "edge_mask", "edge_ptr", "graph_id", "group",
            "node_mask", "node_ptr", "split", "x", "y",
        ]  # fmt: skip
        assert f["node_ptr"][:].tolist() == [0, 3, 7]
        assert f["x"].attrs["width"] == 1
        assert f["node_mask"].dtype == bool
        assert dict(f.attrs) == {
            "schema_version": 2, "num_classes": 1, "sha256": f.attrs["sha256"], **IDENTITY,
        }  # fmt: skip


def test_after_an_error_nothing_is_published(tmp_path: Path) -> None:
    with (
        pytest.raises(KeyboardInterrupt),
        ShardWriter(tmp_path / "s.h5", SIMPLE, **IDENTITY) as writer,
    ):
        writer.add(_path_graph(3), graph_id=0, split=0)
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("bad", [0.5, 2.0, -1.0, np.nan])
def test_a_feature_that_is_not_one_hot_is_refused(bad: float) -> None:
    graph = _path_graph(3)
    graph.x[1, 0] = bad
    with pytest.raises(
        CheckFailedError, match="x is declared onehot, but row 1 of its shard is not"
    ):
        _columns(SIMPLE, [graph])


def test_two_ones_in_a_one_hot_row_are_refused() -> None:
    graph = _path_graph(3)
    two = GraphRecord(
        x=np.ones((3, 2), np.float32), edge_index=graph.edge_index, y=0,
        node_mask=graph.node_mask, edge_mask=graph.edge_mask, group=0,
    )  # fmt: skip
    with pytest.raises(
        CheckFailedError, match="x is declared onehot, but row 0 of its shard is not"
    ):
        _columns(Schema(Feature(2, "onehot"), None, 1), [two])


def _expect_damaged(path: Path, reason: str) -> None:
    with pytest.raises(DamagedError, match=reason) as caught:
        ShardReader(path).check()
    assert str(path) in str(caught.value)


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    _expect_damaged(tmp_path / "none.h5", "no such shard")


def test_a_file_that_is_not_hdf5_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s.h5"
    path.write_text("hello")
    _expect_damaged(path, "not a readable shard")


def test_an_hdf5_file_that_is_no_shard_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s.h5"
    with h5py.File(path, "w") as f:
        f["x"] = [1, 2, 3]
    _expect_damaged(path, "not a readable shard")


def test_a_shard_of_another_schema_version_is_named(tmp_path: Path) -> None:
    path = tmp_path / "s.h5"
    _write(path, SIMPLE, [_path_graph(3)])
    with h5py.File(path, "a") as f:
        f.attrs["schema_version"] = 3
    _expect_damaged(path, "s.h5: schema version 3, expected 2; build the dataset again")
    with h5py.File(path, "a") as f:
        f.attrs["schema_version"] = 1
    _expect_damaged(
        path,
        r"made by an older version of graphxai-data \(schema version 1, expected 2\): "
        f"remove {re.escape(str(path.parent))} or choose another --root",
    )


@given(st.data())
def test_every_truncation_is_noticed(data: st.DataObject) -> None:
    image = shard_bytes(_columns(SIMPLE, [_path_graph(5)] * 3), SIMPLE, **IDENTITY)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "s.h5"
        path.write_bytes(image[: data.draw(st.integers(0, len(image) - 1))])
        with pytest.raises(DamagedError):
            ShardReader(path).check()


@given(st.data())
def test_a_flipped_bit_is_noticed_or_harmless(data: st.DataObject) -> None:
    columns = _columns(SIMPLE, [_path_graph(5)] * 3)
    meaning = Meaning(("only",), (Value("kind", ("a",)),))
    image = bytearray(shard_bytes(columns, SIMPLE, meaning, **IDENTITY))
    image[data.draw(st.integers(0, len(image) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with TemporaryDirectory() as folder:
        path = Path(folder) / "s.h5"
        path.write_bytes(image)
        try:
            shard = ShardReader(path)
            shard.check()
        except DamagedError:
            return
        # The bit lay in unused space or in an attribute that the manifest is compared with.
        for name, array in columns.items():
            np.testing.assert_array_equal(shard.columns[name], array)


def test_arrays_outside_the_file_or_compressed_are_refused(tmp_path: Path) -> None:
    def damaged(change: object) -> Path:
        path = tmp_path / "s.h5"
        _write(path, SIMPLE, [_path_graph(3)])
        with h5py.File(path, "a") as f:
            change(f)
        return path

    def external_link(f: h5py.File) -> None:
        del f["x"]
        f["x"] = h5py.ExternalLink("other.h5", "x")

    def external_storage(f: h5py.File) -> None:
        del f["x"]
        f.create_dataset("x", (3,), "u1", external=[("/etc/passwd", 0, 3)])

    def compressed(f: h5py.File) -> None:
        del f["x"]
        f.create_dataset("x", (10**9,), "u1", compression="gzip")

    def objects(f: h5py.File) -> None:
        del f["x"]
        f["x"] = ["a", "b", "c"]

    def a_group(f: h5py.File) -> None:
        f.create_group("more")

    for change in (external_link, external_storage, compressed, objects, a_group):
        _expect_damaged(damaged(change), "not a readable shard")


def test_missing_and_extra_arrays_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.h5"
    _write(path, SIMPLE, [_path_graph(3)])
    with h5py.File(path, "a") as f:
        f["extra"] = [1]
    _expect_damaged(path, "not a readable shard")
    with h5py.File(path, "a") as f:
        del f["extra"], f["group"]
    _expect_damaged(path, "not a readable shard")


@pytest.mark.parametrize("content", [b"\xff\xfe", "é".encode()])
def test_text_that_is_not_utf8_or_cut_in_a_character_is_refused(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "s.h5"
    schema = replace(SIMPLE, extras=(Column("name", "text"),))
    graphs = [replace(_path_graph(3), meta={"name": text}) for text in ("a", "b")]
    _write(path, schema, graphs)
    with h5py.File(path, "a") as f:
        f["name"][:] = list(content)
    _expect_damaged(path, "array 'name' is not UTF-8 text")


def test_wrong_pointers_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.h5"
    for wrong in ([0, 5], [1, 3], [0, -3]):
        _write(path, SIMPLE, [_path_graph(3)])
        with h5py.File(path, "a") as f:
            f["node_ptr"][:] = wrong
        _expect_damaged(path, "not a readable shard")
