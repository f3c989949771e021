import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import h5py
import numpy as np
import pytest

from graphxai_data.building.build import build
from graphxai_data.building.survey import shard_entry
from graphxai_data.building.verify import verify
from graphxai_data.errors import InputError
from graphxai_data.files.hashing import file_sha256
from graphxai_data.graphs.columns import Columns
from graphxai_data.graphs.shards import ShardReader, shard_bytes
from graphxai_data.manifest import Manifest
from tests.conftest import (
    SharedBuilds,
    copy_build,
    edit_manifest,
    offline_names,
    with_reference_build,
)


@pytest.mark.parametrize("name", offline_names())
def test_a_build_of_500_graphs_is_proven_in_full(name: str, builds: SharedBuilds) -> None:
    assert verify(builds.folder(name, 500), full=True) == []


@pytest.mark.parametrize(
    "name",
    [
        "ba2motif",
        *(with_reference_build(name) for name in ("dihalo", "dihalo-decoy")),
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("ba2motif-balanced", "dihalo-nonet", "dihalo-heavy")
        ),
    ],  # digits, which take minutes: generators/test_mnist75sp.py
)
def test_reference_builds_are_proven_in_full(name: str, builds: SharedBuilds) -> None:
    assert verify(builds.folder(name, rings="dihalo" in name), full=True) == []


def test_a_missing_shard_is_named(small_build: Path) -> None:
    (small_build / "shard-00001.h5").unlink()
    problems = verify(small_build)
    assert (
        problems[0] == f"{small_build / 'shard-00001.h5'}: no such shard; build the dataset again"
    )


@pytest.mark.parametrize("damage", ["missing", "truncated"])
def test_the_only_shard_of_a_build_is_named(tmp_path: Path, damage: str) -> None:
    build("ba2motif", root=tmp_path, engine="serial")
    path = tmp_path / "ba2motif/seed-0/shard-00000.h5"
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:900])
    (problem,) = verify(path.parent)
    assert problem.startswith(f"{path}: ")


def test_only_the_damaged_shard_is_named(small_build: Path) -> None:
    (small_build / "shard-00001.h5").write_text("damaged")
    (problem,) = verify(small_build)
    assert "shard-00001.h5" in problem


def test_a_truncated_shard_is_named(small_build: Path) -> None:
    path = small_build / "shard-00001.h5"
    path.write_bytes(path.read_bytes()[:-100])
    assert str(path) in verify(small_build)[0]


@pytest.mark.parametrize("place", [0.001, 0.02, 0.3, 0.5, 0.7, 0.999])
def test_one_flipped_bit_anywhere_is_named(small_build: Path, place: float) -> None:
    path = small_build / "shard-00001.h5"
    image = bytearray(path.read_bytes())
    image[int(place * len(image))] ^= 1
    path.write_bytes(image)
    assert "not the file that manifest.json lists" in verify(small_build)[0]


def test_swapped_shards_are_named(small_build: Path) -> None:
    one, two = small_build / "shard-00001.h5", small_build / "shard-00002.h5"
    image = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(image)
    problems = verify(small_build)
    assert any(str(one) in p for p in problems)
    assert any(str(two) in p for p in problems)


def test_swapped_shards_are_named_even_if_the_manifest_was_forged(small_build: Path) -> None:
    one, two = small_build / "shard-00001.h5", small_build / "shard-00002.h5"
    image = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(image)
    _forge_manifest(small_build)
    assert "does not hold graphs 10 to 19: a swapped shard?" in verify(small_build)[0]


def test_a_shard_of_another_seed_is_named(small_build: Path, tmp_path: Path) -> None:
    build("ba2motif", seed=1, root=tmp_path, graphs=40, shard_size=10, engine="serial")
    other = tmp_path / "ba2motif/seed-1/shard-00001.h5"
    shutil.copy(other, small_build / "shard-00001.h5")
    _forge_manifest(small_build)
    assert f"{small_build / 'shard-00001.h5'}: seed 1, expected 0" in verify(small_build)


def test_a_file_in_place_of_a_shard_that_is_not_hdf5_is_named(small_build: Path) -> None:
    (small_build / "shard-00003.h5").write_text("hello")
    assert "shard-00003.h5" in verify(small_build)[0]


def test_an_unlisted_shard_is_named(small_build: Path) -> None:
    shutil.copy(small_build / "shard-00003.h5", small_build / "shard-00004.h5")
    problem = f"{small_build / 'shard-00004.h5'}: not listed in manifest.json"
    assert verify(small_build) == [problem]


def test_a_manifest_of_another_seed_is_noticed(small_build: Path) -> None:
    edit_manifest(small_build, seed=1)
    assert verify(small_build) == [f"{small_build}: is named seed-0, but holds seed 1"]
    moved = small_build.rename(small_build.with_name("my-copy"))
    assert any("seed 0, expected 1" in problem for problem in verify(moved))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"schema_version": 7}, "schema version 7, expected 2; build the dataset again"),
        ({"schema_version": True}, "schema version True, expected 2; build the dataset again"),
        (
            {"schema_version": 1},
            "made by an older version of graphxai-data (schema version 1, expected 2): remove",
        ),
        ({"content_sha256": "0" * 64}, "content_sha256 in manifest.json is not that of the shards"),
        ({"statistics": {}}, "missing key 'statistics.nodes_mean'"),
        ({"recipe_sha256": "0"}, "its recipe_sha256 or dataset is not that of its recipe"),
        ({"dataset": "other"}, "its recipe_sha256 or dataset is not that of its recipe"),
        ({"graphs": 41}, "counts 41 graphs, its shards 40"),
        ({"graphs": -1}, "counts -1 graphs, its shards 40"),
        ({"seed": -1}, "seed: expected a whole number from 0 to 9223372036854775807, got -1"),
        ({"graphs": "many"}, "graphs: expected a whole number, got 'many'"),
        ({"shards": []}, "counts 40 graphs, its shards 0"),
        ({"recipe": {}}, "missing key 'name'"),
        ({"surprise": 1}, "unknown key 'surprise'"),
        ({"sources": {"zinc": {"id": "", "file": "", "sha256": "", "rejected": {}}}}, "sources"),
    ],
)
def test_a_wrong_manifest_is_noticed(small_build: Path, change: dict, problem: str) -> None:
    edit_manifest(small_build, **change)
    assert any(problem in line for line in verify(small_build)), verify(small_build)


def test_wrong_statistics_are_noticed(small_build: Path) -> None:
    statistics = json.loads((small_build / "manifest.json").read_text())["statistics"]
    edit_manifest(small_build, statistics=statistics | {"nodes_mean": 23.7})
    problem = f"{small_build}: statistics in manifest.json is not that of the shards"
    assert verify(small_build) == [problem]


@pytest.mark.parametrize("label", ["x", "[/x]", "9" * 5000, "-1"])
def test_classes_that_do_not_exist_are_noticed(small_build: Path, label: str) -> None:
    statistics = json.loads((small_build / "manifest.json").read_text())["statistics"]
    statistics["class_splits"][label] = {"train": 1, "valid": 0, "test": 0}
    edit_manifest(small_build, statistics=statistics)
    assert "counts classes that do not exist" in verify(small_build)[0]


def test_a_source_that_the_recipe_does_not_have_is_refused(small_build: Path) -> None:
    with pytest.raises(InputError, match="no source named 'zinc'; it takes none"):
        verify(small_build, sources={"zinc": "x"})


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "[" * 100_000])
def test_a_manifest_that_is_not_a_json_object_is_noticed(small_build: Path, text: str) -> None:
    (small_build / "manifest.json").write_text(text)
    assert "manifest.json" in verify(small_build)[0]


def test_a_manifest_that_claims_billions_of_graphs_is_refused_at_once(small_build: Path) -> None:
    shards = json.loads((small_build / "manifest.json").read_text())["shards"]
    shards[0]["graphs"] = 4 * 10**9 - 30
    edit_manifest(small_build, shards=shards, graphs=4 * 10**9)
    assert "claims 4000000000 graphs, more than fit" in verify(small_build)[0]


def test_shard_names_cannot_lead_out_of_the_folder(small_build: Path) -> None:
    manifest = json.loads((small_build / "manifest.json").read_text())
    manifest["shards"][0]["name"] = "../../../etc/passwd"
    edit_manifest(small_build, shards=manifest["shards"])
    assert "does not list its shards by number" in verify(small_build)[0]


def test_a_folder_that_is_not_a_build_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a graphxai-data build"):
        verify(tmp_path)
    with pytest.raises(InputError, match="not a graphxai-data build"):
        verify(tmp_path / "nowhere")


def _forge_manifest(folder: Path) -> None:
    """Make the hashes in the manifest agree with the files, as a forger would do."""
    manifest = json.loads((folder / "manifest.json").read_text())
    for entry in manifest["shards"]:
        shard = ShardReader(folder / entry["name"])
        entry |= asdict(shard_entry(shard))
    edit_manifest(folder, shards=manifest["shards"])


def _forge(folder: Path, change: Callable[[Columns], Columns]) -> None:
    path = folder / "shard-00001.h5"
    shard = ShardReader(path)
    meaning = Manifest.load(folder).meaning
    image = shard_bytes(change(shard.columns), shard.schema, meaning, **shard.identity)
    path.write_bytes(image)
    _forge_manifest(folder)


def _as_of_older_versions(folder: Path) -> None:
    """Take names and descriptions out of a build, as if it had been made before there were any."""
    for path in folder.glob("shard-*.h5"):
        shard = ShardReader(path)
        path.write_bytes(shard_bytes(shard.columns, shard.schema, **shard.identity))
    _forge_manifest(folder)
    plain = json.loads((folder / "manifest.json").read_text())
    del plain["meaning"]
    (folder / "manifest.json").write_text(json.dumps(plain))


def test_a_build_without_names_loads_verifies_and_is_kept(small_build: Path) -> None:
    content = Manifest.load(small_build).content_sha256
    _as_of_older_versions(small_build)
    assert verify(small_build, full=True) == []
    kept = build(
        "ba2motif", root=small_build.parent.parent, graphs=40, shard_size=10, engine="serial"
    )
    assert (kept.meaning, kept.content_sha256) == (None, content)
    assert "meaning" not in json.loads(kept.to_json())


@pytest.mark.parametrize("names", [["cycle", "house"], ["house", "cycle", "k23"], None])
def test_names_that_are_not_the_manifests_are_noticed(
    small_build: Path, names: list[str] | None
) -> None:
    with h5py.File(small_build / "shard-00001.h5", "a") as f:
        del f["y"].attrs["names"]
        if names:
            f["y"].attrs["names"] = names
    _forge_manifest(small_build)
    (problem,) = verify(small_build)
    assert "shard-00001.h5: its names of classes, features or fields are not" in problem


def test_names_that_do_not_fit_the_classes_are_noticed(small_build: Path) -> None:
    meaning = json.loads((small_build / "manifest.json").read_text())["meaning"]
    edit_manifest(small_build, meaning=meaning | {"class_names": ["house"]})
    assert "meaning: class_names: expected 2 names, got 1" in verify(small_build)[0]


def _with(name: str, edit: Callable[[np.ndarray], None]) -> Callable[[Columns], Columns]:
    def change(columns: Columns) -> Columns:
        array = columns[name].copy()
        edit(array)
        return columns | {name: array}

    return change


def test_a_consistent_forgery_of_labels_is_noticed(small_build: Path) -> None:
    def flip(y: np.ndarray) -> None:
        y[3] = 1 - y[3]

    _forge(small_build, _with("y", flip))
    assert any("graph 13: its class is not" in p for p in verify(small_build))


def test_a_consistent_forgery_of_splits_is_noticed(small_build: Path) -> None:
    def leak(split: np.ndarray) -> None:
        split[:] = 0

    _forge(small_build, _with("split", leak))
    assert any("its split is not the plan's" in p for p in verify(small_build))


@pytest.mark.parametrize("forged", [7, 255])
def test_splits_that_do_not_exist_are_noticed(small_build: Path, forged: int) -> None:
    def change(split: np.ndarray) -> None:
        split[0] = forged

    _forge(small_build, _with("split", change))
    assert any("its split is not" in p for p in verify(small_build))


@pytest.mark.parametrize(
    ("attribute", "value"),
    [("seed", [1, 2]), ("seed", 0.5), ("seed", None), ("dataset", 3), ("num_classes", 2.0)],
)
def test_wrong_attributes_are_noticed(small_build: Path, attribute: str, value: object) -> None:
    with h5py.File(small_build / "shard-00001.h5", "a") as f:
        del f.attrs[attribute]
        if value is not None:
            f.attrs[attribute] = value
    manifest = json.loads((small_build / "manifest.json").read_text())
    manifest["shards"][1]["file_sha256"] = file_sha256(small_build / "shard-00001.h5")
    edit_manifest(small_build, shards=manifest["shards"])
    (problem,) = verify(small_build)
    assert "shard-00001.h5" in problem


def test_a_width_that_is_not_a_whole_number_is_noticed(small_build: Path) -> None:
    with h5py.File(small_build / "shard-00001.h5", "a") as f:
        f["x"].attrs["width"] = 29.0
    manifest = json.loads((small_build / "manifest.json").read_text())
    manifest["shards"][1]["file_sha256"] = file_sha256(small_build / "shard-00001.h5")
    edit_manifest(small_build, shards=manifest["shards"])
    assert "attribute 'width' is not of type int" in verify(small_build)[0]


@pytest.mark.parametrize("graphs", [-10, 30])
def test_wrong_numbers_of_graphs_per_shard_are_noticed(small_build: Path, graphs: int) -> None:
    manifest = json.loads((small_build / "manifest.json").read_text())
    manifest["shards"][0]["graphs"] = graphs
    manifest["shards"][1]["graphs"] = 20 - graphs
    edit_manifest(small_build, shards=manifest["shards"])
    assert verify(small_build)


def test_a_consistent_forgery_of_masks_is_noticed(small_build: Path) -> None:
    def clear(mask: np.ndarray) -> None:
        mask[:] = False

    _forge(small_build, _with("node_mask", clear))
    assert any("the rationale is empty" in p for p in verify(small_build))


def test_graphs_of_another_seed_are_noticed_by_the_full_check(
    small_build: Path, tmp_path: Path
) -> None:
    build("ba2motif", seed=1, root=tmp_path, graphs=40, shard_size=10, engine="serial")
    other = ShardReader(tmp_path / "ba2motif/seed-1/shard-00001.h5")
    names = ("node_ptr", "edge_ptr", "x", "edge_index", "node_mask", "edge_mask")

    def take_other(columns: Columns) -> Columns:
        return columns | {name: other.columns[name] for name in names}

    _forge(small_build, take_other)
    path = small_build / "shard-00001.h5"
    expected = f"{path}: 'edge_index' is not what recipe and seed give"
    assert any("content_sha256" in p for p in verify(small_build))
    assert expected in verify(small_build, full=True)


def test_a_reference_build_with_other_graphs_is_noticed(
    motif_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copy_build(motif_root / "ba2motif/seed-0", tmp_path)
    module = sys.modules["graphxai_data.building.verify"]
    monkeypatch.setattr(module, "reference_digest", lambda *_: "another")
    assert any("but the reference build has another" in p for p in verify(folder))


def test_verify_changes_no_file(small_build: Path) -> None:
    before = {p.name: (p.stat().st_mtime_ns, p.read_bytes()) for p in small_build.iterdir()}
    verify(small_build, full=True)
    after = {p.name: (p.stat().st_mtime_ns, p.read_bytes()) for p in small_build.iterdir()}
    assert after == before


def test_a_shard_with_an_older_schema_is_named(small_build: Path) -> None:
    with h5py.File(small_build / "shard-00000.h5", "a") as f:
        f.attrs["schema_version"] = 1
    manifest = json.loads((small_build / "manifest.json").read_text())
    for entry in manifest["shards"][:1]:
        entry["file_sha256"] = file_sha256(small_build / entry["name"])
    edit_manifest(small_build, shards=manifest["shards"])
    assert f"(schema version 1, expected 2): remove {small_build} or" in verify(small_build)[0]
