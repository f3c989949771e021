import json
import logging
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from operator import neg
from pathlib import Path

import pytest
from distributed import Client, LocalCluster

from graphxai_data.building.build import build
from graphxai_data.building.engine import WorkerDiedError, run
from graphxai_data.building.engine import _dask_client as open_client
from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.errors import CheckFailedError, InputError
from graphxai_data.evaluation.comparison import compare
from graphxai_data.evaluation.study import RESULTS
from graphxai_data.files.shipped import shipped
from graphxai_data.files.toml import read_toml
from graphxai_data.training.train import run_folder


def square(number: int) -> int:
    return number * number


def fail(number: int) -> int:
    raise CheckFailedError(f"graph {number} is wrong")


def die(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


@pytest.fixture
def start_cluster(tmp_path: Path) -> Iterator[Callable[[int], str]]:
    """Yield a function that starts a Dask scheduler and workers and returns the address."""
    with ExitStack() as running:

        def start(workers: int) -> str:
            file = tmp_path / "scheduler.json"
            common = ["--scheduler-file", str(file), "--dashboard-address", ":0"]
            commands = [["scheduler", "--host", "127.0.0.1", "--port", "0"]]
            commands += [["worker", "--nthreads", "1"]] * workers
            for command in commands:
                process = subprocess.Popen(
                    [sys.executable, "-m", "dask", *command, *common],
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
                running.callback(process.wait)
                running.callback(process.terminate)
                while not file.exists() or not file.read_text():
                    time.sleep(0.05)
            return str(json.loads(file.read_text())["address"])

        yield start


@pytest.mark.parametrize("engine", ["serial", "processes", "dask"])
def test_every_engine_gives_every_result_once(engine: str) -> None:
    assert sorted(run(square, range(30), engine=engine, jobs=2)) == [i * i for i in range(30)]


def test_a_running_cluster_is_used_by_its_address(
    start_cluster: Callable[[int], str], tmp_path: Path
) -> None:
    address = start_cluster(2)
    with open_client(address, jobs=1) as client:
        client.wait_for_workers(2)
    # These workers cannot import the tests, only `neg` and the package.
    assert sorted(run(neg, range(30), engine=address)) == list(range(-29, 1))
    there = build("ba2motif", root=tmp_path, graphs=60, shard_size=10, engine=address)
    here = build("ba2motif", root=tmp_path / "here", graphs=60, shard_size=10, engine="serial")
    assert there == here


@pytest.mark.parametrize("engine", ["serial", "processes", "dask"])
def test_an_error_in_a_worker_is_raised_unchanged(engine: str) -> None:
    with pytest.raises(CheckFailedError, match="graph 0 is wrong"):
        list(run(fail, [0], engine=engine, jobs=2))


@pytest.mark.parametrize("engine", ["processes", "dask"])
def test_a_worker_that_dies_is_reported_with_the_remedy(engine: str) -> None:
    with pytest.raises(WorkerDiedError, match="run the same command again to go on from the rest"):
        list(run(die, [0, 1], engine=engine, jobs=2, parts="the rest"))


def test_tasks_are_taken_only_as_fast_as_results_are_read() -> None:
    taken = 0

    def tasks() -> Iterator[int]:
        nonlocal taken
        for i in range(1000):
            taken = i
            yield i

    results = run(square, tasks(), engine="processes", jobs=2)
    next(results)
    time.sleep(0.5)
    assert taken < 20
    results.close()


def test_a_scheduler_that_dies_is_reported_with_the_remedy(
    start_cluster: Callable[[int], str],
) -> None:
    address = start_cluster(1)
    with open_client(address, jobs=1) as client:
        client.wait_for_workers(1)
        pid = client.scheduler_info()["id"] and client.run_on_scheduler(os.getpid)
    results = run(time.sleep, [0.0, *[0.3] * 30], engine=address)
    next(results)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(WorkerDiedError, match="the Dask scheduler was lost"):
        list(results)


@pytest.mark.parametrize(
    "engine", ["spark", "", "localhost:8786", "tcp://", "inproc://x", "ucx://h:1"]
)
def test_an_unknown_engine_is_refused(engine: str) -> None:
    with pytest.raises(InputError, match="unknown engine"):
        run(square, [1], engine=engine)


def test_a_scheduler_that_does_not_answer_is_refused() -> None:
    with pytest.raises(InputError, match="no Dask scheduler answers at tcp://127.0.0.1:9"):
        run(square, [1], engine="tcp://127.0.0.1:9")


def test_a_cluster_without_workers_is_refused(start_cluster: Callable[[int], str]) -> None:
    with pytest.raises(InputError, match="has no workers; start some first"):
        list(run(neg, [1], engine=start_cluster(0)))


@pytest.mark.parametrize("jobs", [0, -1, 10**6, True, 1.5])
def test_a_wrong_number_of_jobs_is_refused(jobs: object) -> None:
    with pytest.raises(InputError, match="jobs: expected a whole number from 1 to 4096"):
        run(square, [1], jobs=jobs)


@pytest.fixture(scope="module")
def local_cluster() -> Iterator[LocalCluster]:
    """A scheduler and two workers; a killed worker is restarted."""
    state = random.getstate()
    with LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.CRITICAL
    ) as cluster:
        yield cluster
    random.setstate(state)


@pytest.fixture
def kill_a_worker(local_cluster: LocalCluster) -> Iterator[Callable[[], None]]:
    """Yield a function that kills one worker with SIGKILL the first time it is called."""
    killed: list[int] = []
    state = random.getstate()
    with Client(local_cluster, set_as_default=False) as client:
        client.wait_for_workers(2)

        def kill() -> None:
            if not killed:
                killed.append(min(client.run(os.getpid).values()))
                os.kill(killed[0], signal.SIGKILL)

        yield kill
        client.wait_for_workers(2)
        assert killed
        assert killed[0] not in client.run(os.getpid).values()
    random.setstate(state)


def test_a_worker_killed_in_mid_build_changes_nothing(
    local_cluster: LocalCluster, kill_a_worker: Callable[[], None], tmp_path: Path
) -> None:
    def progress(done: int, total: int, what: str) -> None:
        if done >= 200:
            kill_a_worker()

    address = local_cluster.scheduler_address
    manifest = build(
        "ba2motif", root=tmp_path, shard_size=10, engine=address, rings=False, progress=progress
    )
    digests = read_toml(shipped("data") / "digests.toml")
    assert manifest.content_sha256 == digests["ba2motif"]["content_sha256"]


def _compared(root: Path, out: Path, **options: object) -> tuple[str, dict[str, bytes]]:
    """Return a comparison as JSON, and all files it writes but those with times."""
    comparison = compare(
        GraphXAIDataset(root, "ba2motif"), ("bcos-gin", "gin"), ("bcos", "saliency", "random"),
        (0, 1), out, changes={"epochs": 2, "hidden": 8}, timing=False, save_scores=out / "scores",
        **options,
    )  # fmt: skip
    files = {
        str(path.relative_to(out)): path.read_bytes()
        for path in out.rglob("*")
        if path.is_file() and path.suffix not in (".jsonl", ".lock")
    }
    return comparison.to_json(), files


def test_an_evaluation_on_a_cluster_equals_one_without(
    local_cluster: LocalCluster, kill_a_worker: Callable[[], None], tmp_path: Path
) -> None:
    build("ba2motif", root=tmp_path, graphs=60, engine="serial", rings=False)
    here, files = _compared(tmp_path, tmp_path / "here")
    reports: list[str] = []

    def kill(done: int, total: int, what: str) -> None:
        reports.append(what)
        kill_a_worker()

    address = local_cluster.scheduler_address
    there, theirs = _compared(tmp_path, tmp_path / "there", engine=address, progress=kill)
    assert there == here
    assert len(reports) == 4
    results = run_folder("", "bcos-gin", "ba2motif", 1) / RESULTS
    assert str(results) in files
    assert len(files) > 16  # card, weights, evaluation of each model, and scores
    assert theirs == files
    # Known rows are not computed again; new rows are added to them.
    before = (tmp_path / "there" / results).stat().st_mtime_ns
    more = compare(
        GraphXAIDataset(tmp_path, "ba2motif"), ("bcos-gin",), ("bcos", "bcos-contrast"), (1,),
        tmp_path / "there", changes={"epochs": 2, "hidden": 8}, timing=False, engine=address,
    )  # fmt: skip
    assert [row["explainer"] for row in more.rows] == ["bcos", "bcos-contrast"]
    assert (tmp_path / "there" / results).stat().st_mtime_ns > before
    kept = json.loads((tmp_path / "there" / results).read_text())["splits"]["test"]
    assert set(kept) == {"bcos", "bcos-contrast"}


def test_a_build_that_workers_cannot_see_is_reported_with_the_remedy(
    local_cluster: LocalCluster, tmp_path: Path
) -> None:
    build("ba2motif", root=tmp_path, graphs=60, engine="serial", rings=False)
    dataset = GraphXAIDataset(tmp_path, "ba2motif")
    (tmp_path / "ba2motif").rename(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="a worker cannot read .* that every worker can read"):
        compare(
            dataset, ("gin",), ("saliency",), (0,), tmp_path / "runs",
            changes={"epochs": 1}, timing=False, engine=local_cluster.scheduler_address,
        )  # fmt: skip
