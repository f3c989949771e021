import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from operator import neg
from pathlib import Path

import pytest

from graphxai_data.build import build
from graphxai_data.engine import WorkerDiedError, run
from graphxai_data.engine import _dask_client as open_client
from graphxai_data.errors import CheckFailedError, InputError


def square(number: int) -> int:
    return number * number


def fail(number: int) -> int:
    raise CheckFailedError(f"graph {number} is wrong")


def die(number: int) -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return number


@pytest.fixture
def start_cluster(tmp_path: Path) -> Iterator[Callable[[int], str]]:
    """Start a Dask scheduler and workers as processes of their own; gives the address."""
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
    # These workers do not know the tests: `neg` and the package is all they can import.
    assert sorted(run(neg, range(30), engine=address)) == list(range(-29, 1))
    made = build("ba2motif", root=tmp_path, graphs=60, shard_size=10, engine=address)
    here = build("ba2motif", root=tmp_path / "here", graphs=60, shard_size=10, engine="serial")
    assert made == here


@pytest.mark.parametrize("engine", ["serial", "processes", "dask"])
def test_an_error_in_a_worker_arrives_as_itself(engine: str) -> None:
    with pytest.raises(CheckFailedError, match="graph 0 is wrong"):
        list(run(fail, [0], engine=engine, jobs=2))


@pytest.mark.parametrize("engine", ["processes", "dask"])
def test_a_worker_that_dies_is_reported_with_the_remedy(engine: str) -> None:
    with pytest.raises(WorkerDiedError, match="run the same command again"):
        list(run(die, [0, 1], engine=engine, jobs=2))


def test_tasks_are_taken_only_as_fast_as_they_are_done() -> None:
    taken = 0

    def tasks() -> Iterator[int]:
        nonlocal taken
        for i in range(1000):
            taken = i
            yield i

    results = run(square, tasks(), engine="processes", jobs=2)
    next(results)
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
def test_a_senseless_number_of_jobs_is_refused(jobs: object) -> None:
    with pytest.raises(InputError, match="jobs: expected a whole number from 1 to 4096"):
        run(square, [1], jobs=jobs)
