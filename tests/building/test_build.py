import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from graphxai_data.building.build import build
from graphxai_data.building.verify import verify
from graphxai_data.errors import CheckFailedError, DamagedError, InputError
from graphxai_data.files.disk import DiskFullError
from graphxai_data.files.shipped import shipped
from graphxai_data.files.toml import read_toml
from graphxai_data.graphs.shards import ShardReader, shard_bytes
from graphxai_data.manifest import Manifest
from graphxai_data.recipe import Recipe
from tests.conftest import needs_proc, run_python

REFERENCE = read_toml(shipped("data") / "digests.toml")


def _digest(root: Path, **options: object) -> str:
    return build("ba2motif", root=root, **options).content_sha256


@pytest.mark.parametrize(
    "options",
    [
        {"engine": "serial", "shard_size": 7},
        {"engine": "serial", "shard_size": 1000},
        {"jobs": 1, "shard_size": 100},
        {"jobs": 2, "shard_size": 100},
        {"jobs": 4, "shard_size": 77},
        {"engine": "dask", "jobs": 2, "shard_size": 100},
    ],
    ids=str,
)
def test_jobs_engine_and_shard_size_change_nothing(tmp_path: Path, options: dict) -> None:
    assert _digest(tmp_path, **options) == REFERENCE["ba2motif"]["content_sha256"]


def test_all_engines_write_the_same_files_byte_for_byte(tmp_path: Path) -> None:
    contents = []
    for engine in ("serial", "processes", "dask"):
        root = tmp_path / engine
        build("ba2motif", root=root, engine=engine, jobs=2, graphs=60, shard_size=20)
        folder = root / "ba2motif" / "seed-0"
        contents.append({path.name: path.read_bytes() for path in folder.iterdir()})
    assert len(contents[0]) == 8
    assert contents[0] == contents[1] == contents[2]


@pytest.mark.parametrize("name", ["dihalo", "dihalo-nonet", "dihalo-decoy"])
def test_sources_reach_every_engine(tmp_path: Path, name: str) -> None:
    digests = set()
    for i, options in enumerate(
        [
            {"engine": "serial", "shard_size": 90},
            {"jobs": 2, "shard_size": 7},
            {"engine": "dask", "jobs": 2, "shard_size": 20},
        ]
    ):
        digests.add(build(name, root=tmp_path / str(i), graphs=90, **options).content_sha256)
    assert len(digests) == 1


POLLUTED_BUILD = """
import random, sys
import numpy as np
from graphxai_data import build
random.seed(int(sys.argv[1])); np.random.seed(int(sys.argv[1]))
print(build("ba2motif", root=sys.argv[2]).content_sha256)
"""


@pytest.mark.parametrize("pollution", [1, 12345])
def test_hash_seed_and_global_random_state_change_nothing(tmp_path: Path, pollution: int) -> None:
    environment = os.environ | {"PYTHONHASHSEED": str(pollution)}
    result = run_python(POLLUTED_BUILD, pollution, tmp_path, env=environment)
    assert result.stdout.strip() == REFERENCE["ba2motif"]["content_sha256"], result.stderr


def test_another_seed_gives_other_graphs_and_splits(tmp_path: Path) -> None:
    digests = {_digest(tmp_path, seed=seed, graphs=50, engine="serial") for seed in (0, 1, 2**62)}
    assert len(digests) == 3
    splits = [ShardReader(path).columns["split"] for path in sorted(tmp_path.rglob("*.h5"))]
    assert not np.array_equal(splits[0], splits[1])


def test_a_smaller_build_keeps_proportions_and_holds_the_same_graphs(
    tmp_path: Path, motif_root: Path
) -> None:
    build("ba2motif", root=tmp_path, graphs=100, engine="serial")
    small = ShardReader(tmp_path / "ba2motif/seed-0/shard-00000.h5")
    large = ShardReader(motif_root / "ba2motif/seed-0/shard-00000.h5")
    for label in (0, 1):
        splits = small.columns["split"][small.columns["y"] == label]
        assert np.bincount(splits).tolist() == [35, 10, 5]
    for i in range(100):
        np.testing.assert_array_equal(small[i].edge_index, large[i].edge_index)


def test_a_single_graph_can_be_built(tmp_path: Path) -> None:
    assert build("ba2motif", root=tmp_path, graphs=1).graphs == 1
    assert verify(tmp_path / "ba2motif/seed-0", full=True) == []


def test_no_progress_may_be_asked_for(tmp_path: Path) -> None:
    assert build("ba2motif", root=tmp_path, graphs=10, engine="serial", progress=None).graphs == 10


def test_progress_runs_from_zero_to_all(tmp_path: Path) -> None:
    seen: list[tuple[int, int, str]] = []
    build(
        "ba2motif", root=tmp_path, graphs=30, shard_size=10, engine="serial",
        progress=lambda *report: seen.append(report),
    )  # fmt: skip
    assert seen == [(done, 30, "building ba2motif") for done in (0, 10, 20, 30)]


SLOW_BUILD = """
import sys, time
from graphxai_data.building.build import build
build("ba2motif", root=sys.argv[1], graphs=400, shard_size=10, engine="serial",
      progress=lambda done, *_: (print(done, flush=True), time.sleep(0.05)))
"""


def test_after_kill_9_a_build_continues_and_ends_with_the_same_digest(tmp_path: Path) -> None:
    whole = build("ba2motif", root=tmp_path / "whole", graphs=400, shard_size=10, engine="serial")
    command = [sys.executable, "-c", SLOW_BUILD, str(tmp_path / "killed")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if int(line) >= 100:
                process.send_signal(signal.SIGKILL)
                break
    (partial,) = (tmp_path / "killed/ba2motif").glob(".seed-0.*.partial")
    kept = {path.name: path.stat().st_mtime_ns for path in partial.glob("*.h5")}
    assert 10 <= len(kept) < 40
    assert not (tmp_path / "killed/ba2motif/seed-0").exists()

    seen: list[int] = []
    resumed = build(
        "ba2motif", root=tmp_path / "killed", graphs=400, shard_size=10, engine="serial",
        progress=lambda done, *_: seen.append(done),
    )  # fmt: skip
    assert seen[0] == 10 * len(kept)
    assert resumed == whole
    folder = tmp_path / "killed/ba2motif/seed-0"
    assert {name: (folder / name).stat().st_mtime_ns for name in kept} == kept
    assert not partial.exists()


def _interrupted(root: Path, graphs: int) -> Path:
    """Start a build, interrupt it after two shards of ten graphs, and return its folder."""

    def stop(done: int, total: int, what: str) -> None:
        if done == 20:
            raise KeyboardInterrupt

    before = set(root.rglob("*.partial"))
    with pytest.raises(KeyboardInterrupt):
        build("ba2motif", root=root, graphs=graphs, shard_size=10, progress=stop, engine="serial")
    (partial,) = set(root.rglob("*.partial")) - before
    return partial


def test_an_unfinished_build_of_something_else_is_left_alone(tmp_path: Path) -> None:
    other = _interrupted(tmp_path, graphs=60)
    build("ba2motif", root=tmp_path, graphs=40, shard_size=10, engine="serial")
    assert len(list(other.glob("shard-*.h5"))) == 2
    assert verify(tmp_path / "ba2motif/seed-0") == []


def test_a_damaged_shard_of_an_unfinished_build_is_made_again_and_the_others_are_kept(
    tmp_path: Path,
) -> None:
    partial = _interrupted(tmp_path, graphs=40)
    (partial / "shard-00000.h5").write_text("damaged")
    kept = (partial / "shard-00001.h5").stat().st_mtime_ns
    build("ba2motif", root=tmp_path, graphs=40, shard_size=10, engine="serial")
    folder = tmp_path / "ba2motif/seed-0"
    assert verify(folder) == []
    assert (folder / "shard-00001.h5").stat().st_mtime_ns == kept


def test_a_shard_without_names_in_an_unfinished_build_is_made_again(tmp_path: Path) -> None:
    partial = _interrupted(tmp_path, graphs=40)
    first = ShardReader(partial / "shard-00000.h5")
    first.path.write_bytes(shard_bytes(first.columns, first.schema, **first.identity))
    build("ba2motif", root=tmp_path, graphs=40, shard_size=10, engine="serial")
    folder = tmp_path / "ba2motif/seed-0"
    assert verify(folder) == []
    assert list(ShardReader(folder / "shard-00000.h5").described["y"]["names"]) == [
        "house", "cycle",
    ]  # fmt: skip


def test_an_identical_build_is_verified_and_kept(small_build: Path) -> None:
    root = small_build.parent.parent
    before = {path.name: path.stat().st_mtime_ns for path in small_build.iterdir()}
    build("ba2motif", root=root, graphs=40, shard_size=10)
    build("ba2motif", root=root, graphs=40, shard_size=20)  # the same graphs
    assert {path.name: path.stat().st_mtime_ns for path in small_build.iterdir()} == before


def test_another_build_in_the_folder_is_left_alone(small_build: Path) -> None:
    root = small_build.parent.parent
    before = (small_build / "manifest.json").read_bytes()
    with pytest.raises(InputError, match="holds another build .graphs 40, asked for 50"):
        build("ba2motif", root=root, graphs=50)
    assert (small_build / "manifest.json").read_bytes() == before


def test_a_damaged_build_in_the_folder_is_reported_not_replaced(small_build: Path) -> None:
    (small_build / "shard-00002.h5").write_bytes(b"")
    with pytest.raises(DamagedError, match="shard-00002.h5"):
        build("ba2motif", root=small_build.parent.parent, graphs=40, shard_size=10)
    assert (small_build / "shard-00002.h5").read_bytes() == b""


def test_a_folder_that_is_not_a_build_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "ba2motif" / "seed-0"
    folder.mkdir(parents=True)
    (folder / "thesis.tex").write_text("do not lose")
    for replace_existing in (False, True):
        with pytest.raises(InputError, match="exists but is not a graphxai-data build"):
            build("ba2motif", root=tmp_path, replace_existing=replace_existing)
    assert (folder / "thesis.tex").read_text() == "do not lose"


def test_a_root_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="choose a --root that you can write to"):
        build("ba2motif", root=tmp_path / "file", graphs=10)


def test_paths_with_spaces_and_other_letters_work(tmp_path: Path) -> None:
    root = tmp_path / "ein schöner Ordner 图"
    build("ba2motif", root=root, graphs=10)
    assert verify(root / "ba2motif/seed-0") == []


def test_a_second_build_at_the_same_time_is_refused(tmp_path: Path) -> None:
    def build_again(done: int, total: int, what: str) -> None:
        build("ba2motif", root=tmp_path, graphs=20, engine="serial")

    with pytest.raises(InputError, match="another process is building here"):
        build("ba2motif", root=tmp_path, graphs=20, engine="serial", progress=build_again)


LIMITED_BUILD = """
import resource, signal, sys
from graphxai_data.building.build import build
from graphxai_data.files.disk import DiskFullError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    build("ba2motif", root=sys.argv[1], graphs=300, shard_size=100, engine="serial")
except DiskFullError as error:
    print(error)
"""


def test_when_a_file_cannot_grow_the_build_stops_with_a_clear_error_and_can_continue(
    tmp_path: Path,
) -> None:
    result = run_python(LIMITED_BUILD, tmp_path)
    assert "make room and run the same command again" in result.stdout, result.stderr
    build("ba2motif", root=tmp_path, graphs=300, shard_size=100, engine="serial")
    assert verify(tmp_path / "ba2motif/seed-0") == []


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Path:
    folder = tmp_path / "tiny"
    folder.mkdir()
    mount = shutil.which("mount")
    options = ["-t", "tmpfs", "-o", "size=96k", "tmpfs", str(folder)]
    if mount is None or subprocess.run([mount, *options], capture_output=True).returncode != 0:
        pytest.skip("mounting a small disk needs root")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_stops_the_build_with_a_clear_error_and_finished_shards_are_kept(
    tiny_disk: Path,
) -> None:
    with pytest.raises(DiskFullError, match="No space left on device; make room and run the same"):
        build("ba2motif", root=tiny_disk, graphs=1000, shard_size=100, engine="serial")
    kept = list(tiny_disk.rglob("shard-*.h5"))
    assert kept
    for path in kept:
        ShardReader(path).check()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": -1}, "seed: expected a whole number from 0 to 9223372036854775807, got -1"),
        ({"seed": 2**63}, "seed: expected a whole number from 0"),
        ({"seed": 1.5}, "seed: expected a whole number from 0"),
        ({"graphs": 0}, "graphs: expected a whole number from 1 to 100000000, got 0"),
        ({"graphs": 10**12}, "graphs: expected a whole number from 1 to 100000000"),
        ({"shard_size": 0}, "shard_size: expected a whole number from 1 to 1000000, got 0"),
        ({"jobs": 0}, "jobs: expected a whole number from 1 to 4096, got 0"),
        ({"engine": "spark"}, "unknown engine 'spark'"),
        ({"sources": {"zinc": "x"}}, "ba2motif: no source named 'zinc'; it takes none"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_written(
    tmp_path: Path, options: dict, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        build("ba2motif", root=tmp_path, **options)
    assert list(tmp_path.iterdir()) == []


def test_replacing_keeps_the_old_build_until_the_new_one_is_complete(
    small_build: Path, recipe_file: Callable[..., Path]
) -> None:
    root = small_build.parent.parent
    before = (small_build / "manifest.json").read_bytes()
    wrong = recipe_file(("value = 23.70", "value = 30.0"))
    with pytest.raises(CheckFailedError):
        build(wrong, root=root, engine="serial", replace_existing=True)
    assert (small_build / "manifest.json").read_bytes() == before
    build("ba2motif", root=root, graphs=50, engine="serial", replace_existing=True)
    assert Manifest.load(small_build).graphs == 50
    assert verify(small_build) == []
    assert not list(small_build.parent.glob(".seed-0.replaced"))


def test_a_replacement_killed_between_its_two_steps_loses_nothing(small_build: Path) -> None:
    root = small_build.parent.parent
    before = (small_build / "manifest.json").read_bytes()
    small_build.rename(small_build.with_name(".seed-0.replaced"))  # the first step
    build("ba2motif", root=root, graphs=40, shard_size=10, engine="serial")
    assert (small_build / "manifest.json").read_bytes() == before
    assert not list(small_build.parent.glob(".seed-0.replaced"))


def test_an_existing_build_is_kept_on_a_read_only_disk(small_build: Path) -> None:
    (small_build.parent / ".seed-0.lock").unlink()
    (small_build.parent / ".seed-0.lock").mkdir()  # as on a disk that cannot be written
    root = small_build.parent.parent
    assert build("ba2motif", root=root, graphs=40, shard_size=10).graphs == 40


WAITING = """
import sys
from graphxai_data.building.build import build
print(build("ba2motif", root=sys.argv[1], graphs=60, engine="serial", wait=True).content_sha256)
"""


def test_many_processes_can_build_the_same_dataset_at_once(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WAITING, str(tmp_path)]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    digests = {process.communicate(timeout=60)[0] for process in running}
    assert len(digests) == 1
    assert all(process.returncode == 0 for process in running)


def test_small_builds_have_every_split(tmp_path: Path) -> None:
    manifest = build("ba2motif", root=tmp_path, graphs=10, engine="serial")
    assert manifest.statistics["splits"] == {"train": 7, "valid": 2, "test": 1}


def test_statistics_outside_the_recipes_tolerance_stop_a_build(
    tmp_path: Path, recipe_file: Callable[..., Path]
) -> None:
    path = recipe_file(("value = 23.70", "value = 30.0"))
    with pytest.raises(CheckFailedError, match=r"nodes_mean is 23\.\d+, the recipe expects 30.0"):
        build(path, root=tmp_path / "root")
    assert not (tmp_path / "root/ba2motif/seed-0").exists()


def test_a_users_own_recipe_is_built_under_its_own_name(
    tmp_path: Path, recipe_file: Callable[..., Path]
) -> None:
    path = recipe_file(('name = "ba2motif"', 'name = "mine"'), ('"cycle"]', '"k23"]'),
                       ("value = 48.40", "value = 49.40"))  # fmt: skip
    manifest = build(path, root=tmp_path, graphs=40, engine="serial")
    assert manifest.dataset == "mine"
    assert verify(tmp_path / "mine/seed-0", full=True) == []
    assert Recipe.from_dict(manifest.recipe) == Recipe.load(path)


def test_the_manifest_says_what_was_built_and_with_what(small_build: Path) -> None:
    manifest = json.loads((small_build / "manifest.json").read_text())
    for key in ("content_sha256", "recipe", "recipe_sha256", "seed", "graphs", "statistics",
                "shards", "sources", "versions"):  # fmt: skip
        assert key in manifest
    assert [s["name"] for s in manifest["shards"]] == [f"shard-0000{i}.h5" for i in range(4)]
    assert sum(s["graphs"] for s in manifest["shards"]) == 40
    assert manifest["versions"]["numpy"] == np.__version__
    assert manifest["statistics"]["splits"] == {"train": 28, "valid": 8, "test": 4}
    assert (small_build / "README.md").read_text().startswith("# ba2motif, seed 0\n")


# Not ru_maxrss: on Linux it starts with the size of the parent process.
RSS = """
import re, sys
from pathlib import Path
from graphxai_data.building.build import build
build("ba2motif", root=sys.argv[1], graphs=int(sys.argv[2]), engine="serial")
print(int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) // 1024)
"""


@needs_proc
def test_memory_does_not_grow_with_the_number_of_graphs(tmp_path: Path) -> None:
    few, many = (
        int(run_python(RSS, tmp_path / str(graphs), graphs).stdout) for graphs in (20_000, 100_000)
    )
    # 80,000 more graphs would take 490 MiB as records and 19 MiB as shards; their plan takes 11.
    # The RINGS check looks at fewer graphs than either build has.
    assert many - few < 20


@needs_proc
@pytest.mark.slow
def test_a_million_graphs_build_in_300_mebibytes(tmp_path: Path) -> None:
    start = time.monotonic()
    result = int(run_python(RSS, tmp_path, 1_000_000, timeout=None, check=True).stdout)
    print(f"{result} MiB, {time.monotonic() - start:.0f} s")
    assert result < 300
