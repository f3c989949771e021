"""Somebody with h5py alone can tell what the numbers in a shard stand for."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from rdkit import Chem

from graphxai_data import Column, Feature, GraphRecord, Recipe, Schema, ShardReader, ShardWriter
from graphxai_data.graphs.columns import pack
from graphxai_data.graphs.meaning import Meaning, Value
from graphxai_data.graphs.shards import shard_bytes
from graphxai_data.recipe import shipped_names
from tests.conftest import SharedBuilds

IDENTITY = {"dataset": "d", "recipe_sha256": "r", "seed": 3}
SCHEMA = Schema(
    Feature.multihot([2, 3]),
    Feature(2, "onehot"),
    num_classes=2,
    extras=(Column("pos", "node", "<f4", (2,)),),
)
KIND, PLACE = Value("kind", ("a", "b")), Value("place", ("x", "y", "ü"))
MEANING = Meaning(("no", "yes"), (KIND, PLACE), (Value("bond", ("one", "two")),), {"pos": "centre"})


def _graph() -> GraphRecord:
    x, bonds = np.array([[1, 0, 0, 0, 1], [0, 1, 1, 0, 0]]), [[0, 1]]
    return GraphRecord.from_edges(x, [(0, 1)], 1, [True, False], bonds, pos=np.zeros((2, 2)))


def test_attributes_of_a_shard_are_plain_texts(tmp_path: Path) -> None:
    path = tmp_path / "s.h5"
    with ShardWriter(path, SCHEMA, **IDENTITY, meaning=MEANING) as writer:
        writer.add(_graph(), graph_id=0, split=2)
    with h5py.File(path) as file:
        assert list(file["x"].attrs["names"]) == ["a", "b", "x", "y", "ü"]
        assert list(file["x"].attrs["values"]) == ["kind", "place"]
        assert list(file["edge_attr"].attrs["names"]) == ["one", "two"]
        assert list(file["edge_attr"].attrs["values"]) == ["bond"]
        assert list(file["y"].attrs["names"]) == ["no", "yes"]
        assert list(file["split"].attrs["names"]) == ["train", "valid", "test"]
        assert file["pos"].attrs["description"] == "centre"
        kind = h5py.check_string_dtype(file["x"].attrs.get_id("names").dtype)
        assert kind.encoding == "utf-8"
    assert ShardReader(path).described == MEANING.attributes(SCHEMA)


def test_names_change_neither_arrays_nor_digest(tmp_path: Path) -> None:
    columns = pack([_graph()], SCHEMA, [0], [2])
    shards = []
    for name, meaning in (("with", MEANING), ("without", None)):
        path = tmp_path / name
        path.write_bytes(shard_bytes(columns, SCHEMA, meaning, **IDENTITY))
        shards.append(ShardReader(path))
        shards[-1].check()
        shards[-1].check_bytes(SCHEMA, meaning, **IDENTITY)
    assert shards[0].sha256 == shards[1].sha256
    assert shards[0].schema == shards[1].schema == SCHEMA
    assert shards[1].described == {}
    # Without names, the bytes are those of versions that knew none.
    assert b"names" not in (tmp_path / "without").read_bytes()
    again = shard_bytes(columns, SCHEMA, MEANING, **IDENTITY)
    assert again == (tmp_path / "with").read_bytes()


def test_dense_features_have_a_name_per_column_and_node_classes_their_own() -> None:
    schema = Schema(Feature(2, "dense"), None, 2, has_rationale=False, task="node")
    meaning = Meaning(("out", "in"), (Value("s", None), Value("1-s", None)))
    assert meaning.problem(schema) is None
    assert meaning.attributes(schema) == {
        "split": {"names": ["train", "valid", "test"]},
        "node_y": {"names": ["out", "in"]},
        "x": {"names": ["s", "1-s"]},
    }


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"class_names": ("no",)}, "class_names: expected 2 names, got 1"),
        ({"class_names": ("no", "")}, "expected one line of text each, got ''"),
        ({"class_names": ("no", 1)}, "expected one line of text each, got 1"),
        ({"node_values": (KIND,)}, "node_values: expected 2 names, each with its options, got 1"),
        ({"node_values": (PLACE, KIND)}, "node_values: place: expected 2 options, got 3"),
        ({"node_values": (KIND, Value("z", None))}, "node_values: z: expected 3 options, got none"),
        ({"edge_values": (KIND, PLACE)}, "edge_values: expected 1 names"),
        ({"field_descriptions": {"po": "centre"}}, "'po' is no field; did you mean 'pos'?"),
        ({"field_descriptions": {"pos": "two\nlines"}}, "expected one line of text each"),
    ],
)
def test_names_that_do_not_fit_the_schema_are_refused(change: Any, sentence: str) -> None:
    assert MEANING.problem(SCHEMA) is None
    assert sentence in str(replace(MEANING, **change).problem(SCHEMA))


def test_values_of_edges_without_features_and_options_of_numbers_are_refused() -> None:
    schema = Schema(Feature(1, "dense"), None, 2)
    with_bonds = Meaning(("no", "yes"), (Value("s", None),), (KIND,))
    assert with_bonds.problem(schema) == "edge_values: the schema has no such features"
    with_options = Meaning(("no", "yes"), (KIND,))
    assert "expected 1 names of numbers" in str(with_options.problem(schema))


@pytest.mark.parametrize("name", shipped_names())
def test_every_shipped_dataset_names_and_describes_all_it_stores(name: str) -> None:
    recipe = Recipe.load(name)
    schema, meaning = recipe.schema, recipe.meaning
    assert {extra.name for extra in schema.extras} <= set(meaning.field_descriptions)
    values = [*meaning.node_values, *meaning.edge_values]
    names = [*meaning.class_names, *(value.name for value in values)]
    assert not [n for n in names if n.startswith(("class ", "feature "))]  # the defaults
    assert bool(meaning.edge_values) == (schema.edge_features is not None)


def _read(folder: Path) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return the arrays of the first shard and their attributes, with h5py alone."""
    with h5py.File(folder / "shard-00000.h5") as file:
        return {n: file[n][()] for n in file}, {n: dict(file[n].attrs) for n in file}


def test_the_names_in_molecules_are_those_that_rdkit_gives_their_smiles(
    builds: SharedBuilds,
) -> None:
    arrays, attributes = _read(builds.folder("dihalo", 500))
    assert attributes["x"]["values"] == ["element"]
    assert attributes["edge_attr"]["values"] == ["bond"]
    for i in range(0, 500, 50):
        text, nodes, edges = (
            slice(*arrays[f"{key}_ptr"][i : i + 2]) for key in ("smiles", "node", "edge")
        )
        molecule = Chem.AddHs(Chem.MolFromSmiles(arrays["smiles"][text].tobytes().decode()))
        atom = arrays["smiles_atom"][nodes].tolist()
        elements = attributes["x"]["names"][arrays["x"][nodes]]
        assert [molecule.GetAtomWithIdx(a).GetSymbol() for a in atom] == elements.tolist()
        bonds = attributes["edge_attr"]["names"][arrays["edge_attr"][edges]]
        for (u, v), bond in zip(arrays["edge_index"][:, edges].T.tolist(), bonds, strict=True):
            kind = molecule.GetBondBetweenAtoms(atom[u], atom[v]).GetBondType()
            assert kind.name.lower() == bond
        halogen, _ = attributes["y"]["names"][arrays["y"][i]].split()
        assert (elements[arrays["node_mask"][nodes]] == halogen).sum() == 2


def test_the_description_of_pos_is_how_it_is_computed(builds: SharedBuilds) -> None:
    folder = builds.folder("mnist75sp", 500)
    arrays, attributes = _read(folder)
    text = attributes["pos"]["description"]
    assert all(part in text for part in ("mean column (x) and row (y)", "divided by 28"))
    assert "half a pixel is not added" in text
    assert "[row, column]" in attributes["segments"]["description"]
    for i in range(0, 500, 100):
        nodes = slice(*arrays["node_ptr"][i : i + 2])
        for node, (x, y) in enumerate(arrays["pos"][nodes]):
            row, column = np.nonzero(arrays["segments"][i] == node)
            np.testing.assert_allclose([x, y], [column.mean() / 28, row.mean() / 28], rtol=1e-6)
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["meaning"]["field_descriptions"]["pos"] == text
    assert manifest["meaning"]["node_values"][0] == {"name": "s", "options": None}
