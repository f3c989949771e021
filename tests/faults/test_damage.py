"""Truncated and changed files: every kind of byte of a shard, and every other file of a build."""

import random
import shutil
from pathlib import Path

import h5py
import pytest
import safetensors.torch

from graphxai_data.building.build import build
from graphxai_data.building.verify import verify
from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.errors import DamagedError, GraphXAIDataError
from graphxai_data.training.state import STATE
from graphxai_data.training.train import train
from tests.conftest import SharedBuilds, copy_build, run_python
from tests.faults.conftest import SMALL, IntactBuild, file_contents

QUICK = {"epochs": 3, "batch_size": 16, "hidden": 8}


def positions_by_kind(path: Path) -> dict[str, list[int]]:
    """Return the positions of "header", "data", "attribute" and other "structure" bytes."""
    image = path.read_bytes()
    kinds = ["structure"] * len(image)
    kinds[:48] = ["header"] * 48
    with h5py.File(path) as file:
        for name in file:
            start, size = file[name].id.get_offset(), file[name].id.get_storage_size()
            kinds[start : start + size] = ["data"] * size
        texts = [file.attrs["dataset"], file.attrs["recipe_sha256"], file.attrs["sha256"].decode()]
    for text in texts:
        start = image.find(text.encode())
        assert start >= 0
        kinds[start : start + len(text)] = ["attribute"] * len(text)
    positions: dict[str, list[int]] = {}
    for position, kind in enumerate(kinds):
        positions.setdefault(kind, []).append(position)
    return positions


def _flip_bit(path: Path, position: int, bit: int) -> None:
    image = bytearray(path.read_bytes())
    image[position] ^= 1 << bit
    path.write_bytes(image)


@pytest.mark.parametrize("kind", ["header", "data", "attribute", "structure"])
def test_verify_reports_and_the_loader_refuses_a_shard_with_a_flipped_bit_of_any_kind(
    intact: IntactBuild, tmp_path: Path, kind: str
) -> None:
    folder = copy_build(intact.folder, tmp_path)
    path = folder / "shard-00002.h5"
    whole = path.read_bytes()
    draws = random.Random(kind)  # noqa: S311
    for position in draws.sample(positions_by_kind(path)[kind], 12):
        bit = draws.randrange(8)
        _flip_bit(path, position, bit)
        problems = verify(folder)
        assert problems, (position, bit)
        assert all("shard-00002.h5" in problem for problem in problems)
        with pytest.raises(DamagedError, match="shard-00002.h5"):
            GraphXAIDataset.from_folder(folder)
        with pytest.raises(DamagedError, match="shard-00002.h5"):
            build(root=tmp_path, **SMALL)
        path.write_bytes(whole)
    assert verify(folder) == []


def test_verify_reports_a_shard_truncated_to_any_length(
    intact: IntactBuild, tmp_path: Path
) -> None:
    folder = copy_build(intact.folder, tmp_path)
    path = folder / "shard-00000.h5"
    whole = path.read_bytes()
    draws = random.Random(0)  # noqa: S311
    for length in [0, 1, 8, 47, 48, len(whole) - 1, *draws.sample(range(len(whole)), 10)]:
        path.write_bytes(whole[:length])
        assert any("shard-00000.h5" in problem for problem in verify(folder)), length
        with pytest.raises(DamagedError):
            GraphXAIDataset.from_folder(folder)


# In a process of its own: HDF5 could loop forever, or end the process.
FLIP_BITS = """
import random, sys
from pathlib import Path
from graphxai_data.building.staging import Order, is_whole_shard
from graphxai_data.recipe import Recipe
path, step = Path(sys.argv[1]), int(sys.argv[2])
order = Order(Recipe.load("ba2motif"), {}, 0, 40, 10)
whole = path.read_bytes()
assert is_whole_shard(path, order)
draws = random.Random(0)
count = 0
for position in range(0, len(whole), step):
    image = bytearray(whole)
    image[position] ^= 1 << draws.randrange(8)
    path.write_bytes(image)
    assert not is_whole_shard(path, order), position
    count += 1
print(count)
"""


@pytest.mark.parametrize("step", [11, pytest.param(1, marks=pytest.mark.slow)])
def test_a_shard_of_a_stopped_build_with_any_flipped_bit_is_not_kept(
    intact: IntactBuild, tmp_path: Path, step: int
) -> None:
    path = tmp_path / "shard-00001.h5"
    shutil.copy(intact.folder / "shard-00001.h5", path)
    result = run_python(FLIP_BITS, path, step, timeout=600)
    assert result.returncode == 0, result.stderr[-2000:]
    assert int(result.stdout) == -(-path.stat().st_size // step)


@pytest.mark.parametrize("kind", ["header", "data", "attribute", "structure"])
def test_a_stopped_build_replaces_its_damaged_shard_and_keeps_the_others(
    intact: IntactBuild, tmp_path: Path, kind: str
) -> None:
    def stop(done: int, total: int, what: str) -> None:
        if done == 30:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(root=tmp_path, progress=stop, **SMALL)
    (partial,) = tmp_path.rglob("*.partial")
    path = partial / "shard-00001.h5"
    draws = random.Random(kind)  # noqa: S311
    _flip_bit(path, draws.choice(positions_by_kind(path)[kind]), draws.randrange(8))
    others = {
        name: (partial / f"{name}.h5").stat().st_mtime_ns for name in ("shard-00000", "shard-00002")
    }
    assert build(root=tmp_path, **SMALL).content_sha256 == intact.digest
    folder = tmp_path / "ba2motif" / "seed-0"
    assert file_contents(folder) == file_contents(intact.folder)
    assert {name: (folder / f"{name}.h5").stat().st_mtime_ns for name in others} == others


@pytest.mark.parametrize("name", ["manifest.json", "rings.json", "README.md", "croissant.json"])
def test_damage_to_a_file_next_to_the_shards_gives_no_traceback(
    builds: SharedBuilds, tmp_path: Path, name: str
) -> None:
    folder = copy_build(builds.folder("ba2motif", SMALL["graphs"], rings=True), tmp_path)
    path = folder / name
    whole = path.read_bytes()
    draws = random.Random(name)  # noqa: S311
    reported = 0
    for i in range(40):
        image = bytearray(whole)
        if i % 2:
            image[draws.randrange(len(image))] ^= 1 << draws.randrange(8)
        else:
            image = image[: draws.randrange(len(image))]
        path.write_bytes(image)
        try:
            reported += bool(verify(folder))
        except GraphXAIDataError:
            reported += 1
    if name == "manifest.json":
        assert reported >= 30
    path.write_bytes(whole)
    assert verify(folder) == []


def test_a_flipped_bit_in_the_state_of_a_stopped_training_is_refused(
    intact: IntactBuild, tmp_path: Path
) -> None:
    class StopError(Exception):
        pass

    def stop(*_: object) -> None:
        raise StopError

    dataset = GraphXAIDataset.from_folder(intact.folder)
    with pytest.raises(StopError):
        train(dataset, out=tmp_path, changes=QUICK, progress=stop)
    state = tmp_path / "bcos-gin-ba2motif" / "seed-0" / STATE
    whole = state.read_bytes()
    draws = random.Random(0)  # noqa: S311
    header = 8 + int.from_bytes(whole[:8], "little")
    positions = [*draws.sample(range(header), 40), *draws.sample(range(header, len(whole)), 40)]
    for position in positions:
        image = bytearray(whole)
        image[position] ^= 1 << draws.randrange(8)
        state.write_bytes(image)
        with pytest.raises(DamagedError, match=f"{STATE}: not the state of a training"):
            train(dataset, out=tmp_path, changes=QUICK)
        assert state.read_bytes() == bytes(image)
    state.write_bytes(whole)
    _, card = train(dataset, out=tmp_path, changes=QUICK)
    _, undisturbed = train(dataset, out=tmp_path / "undisturbed", changes=QUICK)
    assert card == undisturbed


def test_a_state_without_a_digest_is_refused(intact: IntactBuild, tmp_path: Path) -> None:
    dataset = GraphXAIDataset.from_folder(intact.folder)
    folder = tmp_path / "bcos-gin-ba2motif" / "seed-0"
    folder.mkdir(parents=True)
    content = safetensors.torch.save({}, {"about": "{}"})
    (folder / STATE).write_bytes(content)
    with pytest.raises(DamagedError, match="not the state of a training"):
        train(dataset, out=tmp_path, changes=QUICK)


def test_a_finished_training_deletes_a_damaged_state(intact: IntactBuild, tmp_path: Path) -> None:
    dataset = GraphXAIDataset.from_folder(intact.folder)
    _, card = train(dataset, out=tmp_path, changes=QUICK)
    state = tmp_path / "bcos-gin-ba2motif" / "seed-0" / STATE
    state.write_bytes(b"left by a kill")
    assert train(dataset, out=tmp_path, changes=QUICK)[1] == card
    assert not state.exists()
