"""Truncated and changed files: every class of bytes of a shard, and whatever else is in a build."""

import random
import shutil
import subprocess
import sys
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
from tests.faults.conftest import SMALL, content_of

QUICK = {"epochs": 3, "batch_size": 16, "hidden": 8}


def classes_of_bytes(path: Path) -> dict[str, list[int]]:
    """Positions by what they are: "header", "data", "attribute" values, and other "structure"."""
    image = path.read_bytes()
    kind = ["structure"] * len(image)
    kind[:48] = ["header"] * 48
    with h5py.File(path) as file:
        for name in file:
            begin = file[name].id.get_offset()
            for at in range(begin, begin + file[name].id.get_storage_size()):
                kind[at] = "data"
        texts = [file.attrs["dataset"], file.attrs["recipe_sha256"], file.attrs["sha256"].decode()]
    for text in texts:
        at = image.find(text.encode())
        assert at >= 0
        kind[at : at + len(text)] = ["attribute"] * len(text)
    found: dict[str, list[int]] = {}
    for at, what in enumerate(kind):
        found.setdefault(what, []).append(at)
    return found


def _flipped(path: Path, at: int, bit: int) -> None:
    image = bytearray(path.read_bytes())
    image[at] ^= 1 << bit
    path.write_bytes(image)


@pytest.mark.parametrize("what", ["header", "data", "attribute", "structure"])
def test_a_flipped_bit_of_every_class_is_named_by_verify_and_refused_by_the_loader(
    golden: tuple[Path, str], tmp_path: Path, what: str
) -> None:
    folder = tmp_path / "ba2motif" / "seed-0"
    shutil.copytree(golden[0], folder)
    path = folder / "shard-00002.h5"
    whole = path.read_bytes()
    draws = random.Random(what)  # noqa: S311
    for at in draws.sample(classes_of_bytes(path)[what], 12):
        bit = draws.randrange(8)
        _flipped(path, at, bit)
        problems = verify(folder)
        assert problems, (at, bit)
        assert all("shard-00002.h5" in problem for problem in problems)
        with pytest.raises(DamagedError, match="shard-00002.h5"):
            GraphXAIDataset.from_folder(folder)
        with pytest.raises(DamagedError, match="shard-00002.h5"):
            build(root=tmp_path, **SMALL)
        path.write_bytes(whole)
    assert verify(folder) == []


def test_every_truncated_length_is_named(golden: tuple[Path, str], tmp_path: Path) -> None:
    folder = tmp_path / "ba2motif" / "seed-0"
    shutil.copytree(golden[0], folder)
    path = folder / "shard-00000.h5"
    whole = path.read_bytes()
    draws = random.Random(0)  # noqa: S311
    for length in [0, 1, 8, 47, 48, len(whole) - 1, *draws.sample(range(len(whole)), 10)]:
        path.write_bytes(whole[:length])
        assert any("shard-00000.h5" in problem for problem in verify(folder)), length
        with pytest.raises(DamagedError):
            GraphXAIDataset.from_folder(folder)


# In a process of its own: HDF5 could loop for ever, or end the process.
LEFT_OVER = """
import random, sys
from pathlib import Path
from graphxai_data.building.staging import Order, is_whole_shard
from graphxai_data.recipe import Recipe
path, begin, step = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
order = Order(Recipe.load("ba2motif"), {}, 0, 40, 10)
whole = path.read_bytes()
assert is_whole_shard(path, order)
draws = random.Random(begin)
done = 0
for at in range(begin, len(whole), step):
    image = bytearray(whole)
    image[at] ^= 1 << draws.randrange(8)
    path.write_bytes(image)
    assert not is_whole_shard(path, order), at
    done += 1
print(done)
"""


@pytest.mark.parametrize("step", [11, pytest.param(1, marks=pytest.mark.slow)])
def test_a_left_over_shard_with_any_wrong_bit_is_not_taken_for_whole(
    golden: tuple[Path, str], tmp_path: Path, step: int
) -> None:
    path = tmp_path / "shard-00001.h5"
    shutil.copy(golden[0] / "shard-00001.h5", path)
    command = [sys.executable, "-c", LEFT_OVER, str(path), "0", str(step)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stderr[-2000:]
    assert int(result.stdout) == -(-path.stat().st_size // step)


@pytest.mark.parametrize("what", ["header", "data", "attribute", "structure"])
def test_a_damaged_left_over_shard_is_whole_shard_again_and_the_others_are_kept(
    golden: tuple[Path, str], tmp_path: Path, what: str
) -> None:
    def stop(done: int, total: int, what: str) -> None:
        if done == 30:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(root=tmp_path, progress=stop, **SMALL)
    (partial,) = tmp_path.rglob("*.partial")
    path = partial / "shard-00001.h5"
    draws = random.Random(what)  # noqa: S311
    _flipped(path, draws.choice(classes_of_bytes(path)[what]), draws.randrange(8))
    others = {
        name: (partial / f"{name}.h5").stat().st_mtime_ns for name in ("shard-00000", "shard-00002")
    }
    assert build(root=tmp_path, **SMALL).content_sha256 == golden[1]
    made = tmp_path / "ba2motif" / "seed-0"
    assert content_of(made) == content_of(golden[0])
    assert {name: (made / f"{name}.h5").stat().st_mtime_ns for name in others} == others


@pytest.mark.parametrize("name", ["manifest.json", "rings.json", "README.md", "croissant.json"])
def test_any_damage_to_what_lies_beside_shards_gives_no_traceback(
    golden: tuple[Path, str], tmp_path: Path, name: str
) -> None:
    folder = tmp_path / "ba2motif" / "seed-0"
    build(root=tmp_path, **SMALL | {"rings": True})
    path = folder / name
    whole = path.read_bytes()
    draws = random.Random(name)  # noqa: S311
    named = 0
    for i in range(40):
        image = bytearray(whole)
        if i % 2:
            image[draws.randrange(len(image))] ^= 1 << draws.randrange(8)
        else:
            image = image[: draws.randrange(len(image))]
        path.write_bytes(image)
        try:
            named += bool(verify(folder))
        except GraphXAIDataError:
            named += 1
    if name == "manifest.json":
        assert named >= 30
    path.write_bytes(whole)
    assert verify(folder) == []


def test_a_flipped_bit_in_a_stopped_training_is_noticed_not_trained_on(
    golden: tuple[Path, str], tmp_path: Path
) -> None:
    class StopError(Exception):
        pass

    def stop(*_: object) -> None:
        raise StopError

    dataset = GraphXAIDataset.from_folder(golden[0])
    with pytest.raises(StopError):
        train(dataset, out=tmp_path, changes=QUICK, progress=stop)
    state = tmp_path / "bcos-gin-ba2motif" / "seed-0" / STATE
    whole = state.read_bytes()
    draws = random.Random(0)  # noqa: S311
    header = 8 + int.from_bytes(whole[:8], "little")
    places = [*draws.sample(range(header), 40), *draws.sample(range(header, len(whole)), 40)]
    for at in places:
        image = bytearray(whole)
        image[at] ^= 1 << draws.randrange(8)
        state.write_bytes(image)
        with pytest.raises(DamagedError, match=f"{STATE}: not the state of a training"):
            train(dataset, out=tmp_path, changes=QUICK)
        assert state.read_bytes() == bytes(image)
    state.write_bytes(whole)
    _, card = train(dataset, out=tmp_path, changes=QUICK)
    _, other = train(dataset, out=tmp_path / "whole", changes=QUICK)
    assert card == other


def test_a_state_without_a_digest_is_refused(golden: tuple[Path, str], tmp_path: Path) -> None:
    dataset = GraphXAIDataset.from_folder(golden[0])
    folder = tmp_path / "bcos-gin-ba2motif" / "seed-0"
    folder.mkdir(parents=True)
    content = safetensors.torch.save({}, {"about": "{}"})
    (folder / STATE).write_bytes(content)
    with pytest.raises(DamagedError, match="not the state of a training"):
        train(dataset, out=tmp_path, changes=QUICK)


def test_a_finished_training_does_not_mind_a_damaged_state_beside_it(
    golden: tuple[Path, str], tmp_path: Path
) -> None:
    dataset = GraphXAIDataset.from_folder(golden[0])
    _, card = train(dataset, out=tmp_path, changes=QUICK)
    state = tmp_path / "bcos-gin-ba2motif" / "seed-0" / STATE
    state.write_bytes(b"left by a kill")
    assert train(dataset, out=tmp_path, changes=QUICK)[1] == card
    assert not state.exists()
