"""Engines: apply a function to many tasks in this process, in others, or on a Dask cluster.

All engines call the same function and return its results to this process, which alone writes
files: no shared disk is needed, and no engine can change a byte.
"""

import logging
import os
import random
import re
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from typing import Any, TypeVar

import loky
from loky.process_executor import BrokenProcessPool, PicklingError

from graphxai_data import __version__
from graphxai_data.errors import GraphXAIDataError, InputError, whole_number
from graphxai_data.files.plugins import Origin, described
from graphxai_data.generators import PLUGINS
from graphxai_data.manifest import software_versions

Task = TypeVar("Task")
Result = TypeVar("Result")

_DIED = (
    "a worker process died (killed, or out of memory); run the same command again to go on from "
    "{parts}, with fewer --jobs if memory is short"
)
_NOT_IMPORTABLE = (
    "{worker} cannot import the module that defines a registered generator; define it in the "
    "script itself, install it as a package on every worker, or use --engine serial"
)
_ADDRESS = re.compile(r"(?:tcp|tls)://(\[[^\]]+\]|[^:/\[\]]+):(\d{1,5})")


class WorkerDiedError(GraphXAIDataError):
    """A worker process was killed; finished results are kept."""


def run(
    function: Callable[[Task], Result],
    tasks: Iterable[Task],
    *,
    engine: str = "processes",
    jobs: int | None = None,
    parts: str = "the finished shards",
    plugin: Origin | None = None,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Result]:
    """Yield the results of `function` for all tasks, in the order they finish.

    The function must be importable on every worker. Tasks are read lazily, a few more than there
    are workers. `jobs` worker processes are started, by default one per core; a running cluster,
    whose address is the engine, has its own. Errors name `parts`: what a second run continues from.
    If tasks need a `plugin`, workers learn it from this process if it is registered here; the
    version of a package has to be the same everywhere. `environment` is added to that of worker
    processes.
    """
    jobs = check_jobs(jobs)
    check_engine(engine)
    if engine == "serial" or (engine == "processes" and jobs == 1):
        return map(function, tasks)
    if plugin and plugin.name in PLUGINS.registered:
        registered = {plugin.name: PLUGINS.registered[plugin.name]}
        function = partial(_with_registered, registered, function)
    if engine == "processes":
        return _run_processes(function, tasks, jobs, parts, environment)
    return _run_dask(function, tasks, engine, jobs, parts, plugin)


def _with_registered(
    registered: dict[str, Any], function: Callable[[Task], Result], task: Task
) -> Result:
    """Call a function on a worker, where a generator registered in this process becomes known."""
    PLUGINS.adopt(registered)
    return function(task)


def check_engine(engine: str) -> None:
    """Raise `InputError` if an engine does not exist or does not answer."""
    if engine in ("serial", "processes", "dask"):
        return
    if not (address := _ADDRESS.fullmatch(engine)):
        raise InputError(
            f"unknown engine '{engine}'; expected serial, processes, dask, "
            "or the address of a running Dask scheduler such as tcp://host:8786"
        )
    # A Dask client without a scheduler keeps writing to stderr; a plain socket does not.
    try:
        socket.create_connection((address[1].strip("[]"), int(address[2])), timeout=10).close()
    except (OSError, OverflowError, UnicodeError) as error:
        raise _no_answer(engine, error) from None


def check_jobs(jobs: int | None) -> int:
    """Return the number of worker processes to use."""
    return loky.cpu_count() if jobs is None else whole_number("jobs", jobs, 1, 4096)


def _run_processes(
    function: Callable[[Task], Result],
    tasks: Iterable[Task],
    jobs: int,
    parts: str,
    environment: Mapping[str, str] | None,
) -> Iterator[Result]:
    # loky starts fresh interpreters, yet a script needs no `if __name__ == "__main__"`. Not
    # joblib: it starts the next task whether or not the last result was read, so with a slow
    # disk finished shards would pile up in memory.
    with loky.ProcessPoolExecutor(
        max_workers=jobs,
        initializer=_prepare_worker,
        initargs=(os.getpid(),),
        env=dict(environment or {}),
    ) as pool:
        try:
            yield from _windowed(lambda task: pool.submit(function, task), tasks, 2 * jobs)
        except PicklingError as error:
            raise InputError(f"a task cannot be sent to a worker: {described(error)}") from error
        except (BrokenProcessPool, MemoryError) as error:
            if "un-serialize" in str(error):
                raise InputError(_NOT_IMPORTABLE.format(worker="a worker process")) from error
            raise WorkerDiedError(_DIED.format(parts=parts)) from None
        finally:
            pool.shutdown(wait=True, kill_workers=True)


def _prepare_worker(parent: int) -> None:
    """Send what plug-ins print to stderr, and exit when the parent process is gone.

    A loky worker would wait for its parent forever.
    """
    sys.stdout = sys.stderr

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _windowed(
    submit: Callable[[Task], "Future[Result]"], tasks: Iterable[Task], window: int
) -> Iterator[Result]:
    """Yield results with at most `window` tasks submitted, so that memory stays bounded."""
    remaining = iter(tasks)
    running = {submit(task) for task in islice(remaining, window)}
    while running:
        done, running = wait(running, return_when=FIRST_COMPLETED)
        running |= {submit(task) for task in islice(remaining, len(done))}
        for future in done:
            yield future.result()


def _run_dask(
    function: Callable[[Task], Result],
    tasks: Iterable[Task],
    engine: str,
    jobs: int,
    parts: str,
    plugin: Origin | None,
) -> Iterator[Result]:
    try:
        from distributed import as_completed
        from distributed.comm.core import CommClosedError
        from distributed.scheduler import KilledWorker
    except ImportError:
        raise InputError(
            "the Dask engine needs an extra: pip install 'graphxai-data[dask]'"
        ) from None

    with _dask_client(engine, jobs) as client:
        window = 2 * _checked_threads(client, engine, plugin)
        remaining = iter(tasks)
        running = as_completed(
            [client.submit(function, task, pure=False) for task in islice(remaining, window)],
            loop=client.loop,
        )
        try:
            for future in running:
                result = future.result()
                future.release()
                for task in islice(remaining, 1):
                    running.add(client.submit(function, task, pure=False))
                yield result
        except KilledWorker:
            raise WorkerDiedError(_DIED.format(parts=parts)) from None
        except ModuleNotFoundError as error:
            raise InputError(_NOT_IMPORTABLE.format(worker="a Dask worker")) from error
        except (CancelledError, CommClosedError) as error:
            raise WorkerDiedError(
                f"the Dask scheduler was lost ({error}); run the same command again to go on from "
                f"{parts}"
            ) from None


@contextmanager
def _dask_client(engine: str, jobs: int) -> Iterator[Any]:
    from distributed import Client, LocalCluster

    with ExitStack() as stack:
        # Dask draws from the global generator of `random`; the caller's state must not change.
        stack.callback(random.setstate, random.getstate())
        address: Any = engine
        if engine == "dask":
            address = stack.enter_context(
                LocalCluster(
                    n_workers=jobs,
                    threads_per_worker=1,
                    dashboard_address=":0",
                    silence_logs=logging.CRITICAL,
                )
            )
        try:
            client = stack.enter_context(Client(address, timeout="10s", set_as_default=False))
        except Exception as error:  # Dask and its transports raise anything here
            raise _no_answer(engine, error) from None
        yield client


def _no_answer(engine: str, error: Exception) -> InputError:
    return InputError(
        f"no Dask scheduler answers at {engine} ({error}); check the address, "
        "or use --engine dask for a local cluster"
    )


def _checked_threads(client: Any, engine: str, plugin: Origin | None) -> int:
    """Return the number of threads, after checking that all workers have the same versions."""
    workers = client.scheduler_info(n_workers=-1)["workers"]
    if not workers:
        raise InputError(f"the Dask scheduler at {engine} has no workers; start some first")
    try:
        versions_by_worker = client.run(_versions_here, plugin)
    except Exception as error:
        raise InputError(
            f"a worker of {engine} cannot run graphxai-data ({error}); "
            f"install graphxai-data=={__version__} on every worker"
        ) from None
    own = software_versions(plugin)
    for worker, versions in versions_by_worker.items():
        if versions != own:
            other = ", ".join(
                f"{k} {versions.get(k)} (here {v})" for k, v in own.items() if versions.get(k) != v
            )
            raise InputError(f"worker {worker} has {other}; install the same versions everywhere")
    return sum(worker["nthreads"] for worker in workers.values())


def _versions_here(plugin: Origin | None) -> dict[str, str]:
    """Return the versions on a worker, that of the plug-in's package as it is installed there."""
    versions = software_versions()
    if plugin and plugin.package:
        try:
            versions[plugin.package] = version(plugin.package)
        except PackageNotFoundError:
            versions[plugin.package] = "not installed"
    return versions
