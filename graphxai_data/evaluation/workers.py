"""Run the tasks of a comparison in this process, or on workers.

Workers read the build from a folder that they can see, or from a URL. A worker starts from the
files that the training's folder has already, runs the same `Study` as this process would, and sends
all files back. Only this process writes to `--out`, so `--out` needs no shared disk.
"""

import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import torch

from graphxai_data.building import engine as engines
from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.errors import GraphXAIDataError, InputError
from graphxai_data.evaluation.own_metrics import METRICS
from graphxai_data.evaluation.study import Measurement, ModelTask, Options, Study
from graphxai_data.explain.variants import EXPLAINERS
from graphxai_data.files.disk import explained_disk_errors, folder_lock, write_atomically
from graphxai_data.files.plugins import Origin
from graphxai_data.progress import Progress

# Training seeds torch's global generator, so a worker with several threads trains one at a time.
_ONE_AT_A_TIME = threading.Lock()

Files = dict[str, bytes]


class WorkerResult(NamedTuple):
    """What a worker sends back: the measurement, and the files to write."""

    task: ModelTask
    measurement: Measurement
    files: Files
    scores: Files


def run_tasks(
    study: Study, tasks: Sequence[ModelTask], progress: Progress
) -> Iterator[Measurement]:
    """Yield the result of every task, in this process or from workers, as they are finished."""
    done, total = 0, sum(task.steps for task in tasks)
    if study.options.engine != "serial":
        for result in _run_on_workers(study, tasks):
            done += result.task.steps
            progress(done, total, str(result.task))
            yield result.measurement
        return
    for task in tasks:
        before = done
        yield study.run(task, lambda step, _, what: progress(before + step, total, what))  # noqa: B023
        done += task.steps


def _run_on_workers(study: Study, tasks: Sequence[ModelTask]) -> Iterator[WorkerResult]:
    dataset, options = study.dataset, study.options
    out = tasks[0].out
    with explained_disk_errors(out, "--out", "what is measured already"), ExitStack() as stack:
        for task in tasks:
            folder = task.folder(dataset)
            stack.enter_context(folder_lock(folder, wait=False, work="training", option="--out"))
        run = partial(
            run_on_worker,
            options=options,
            data=dataset.url or str(dataset.folder.resolve()),
            content_sha256=dataset.manifest.content_sha256,
            threads=torch.get_num_threads(),
            torch_version=torch.__version__,
            plugins=_plugins(study, tasks),
        )
        sent = ((task, files_in(task.folder(dataset))) for task in tasks)
        parts = "the models that are measured already"
        plugin = dataset.manifest.load_recipe().plugin
        for result in engines.run(
            run, sent, engine=options.engine, jobs=options.jobs, parts=parts, plugin=plugin
        ):
            folder = result.task.folder(dataset)
            folder.mkdir(parents=True, exist_ok=True)
            for stale in files_in(folder).keys() - result.files.keys():
                (folder / stale).unlink()
            for name, content in result.files.items():
                write_atomically(folder / name, content)
            for name, content in result.scores.items():
                write_atomically((options.save_scores or folder) / name, content)
            yield result


def run_on_worker(
    sent: tuple[ModelTask, Files],
    options: Options,
    data: str,
    content_sha256: str,
    threads: int,
    torch_version: str,
    plugins: Sequence[Origin] = (),
) -> WorkerResult:
    """Run a task in a temporary folder that begins with the files `sent` along with it.

    `data` is the folder or URL of the build. Results depend on the number of `threads`, and on the
    versions of all `plugins`.
    """
    if torch.__version__ != torch_version:
        raise InputError(
            f"a worker has torch {torch.__version__} (here {torch_version}); install the same "
            "versions everywhere"
        )
    for origin in plugins:
        _check_plugin(origin)
    original, files = sent
    with _ONE_AT_A_TIME, _threads(threads), tempfile.TemporaryDirectory() as scratch:
        dataset, scores = _dataset(data, content_sha256), Path(scratch) / "scores"
        task = replace(original, out=Path(scratch) / "runs")
        folder = task.folder(dataset)
        for path in (folder, scores):
            path.mkdir(parents=True)
        for name, content in files.items():
            (folder / name).write_bytes(content)
        if options.save_scores:
            options = replace(options, save_scores=scores)
        try:
            measurement = Study(dataset, options).run(task)
        except GraphXAIDataError as error:
            message = str(error).replace(str(task.out), str(original.out))
            raise type(error)(message) from None
        return WorkerResult(original, measurement, files_in(folder), files_in(scores))


def _plugins(study: Study, tasks: Sequence[ModelTask]) -> list[Origin]:
    """Return where the explainers and metrics of other packages come from, each once."""
    origins = [variant.origin for task in tasks for variant in task.variants]
    origins += [metric.origin for metric in study.metrics]
    return list(dict.fromkeys(origin for origin in origins if origin is not None))


def _check_plugin(expected: Origin) -> None:
    """Raise an `InputError` unless this worker has a plug-in in the same version."""
    group = METRICS if expected.what == "metric" else EXPLAINERS
    on_worker = group.origin(expected.name).words if expected.name in group.names() else "nothing"
    if on_worker != expected.words:
        raise InputError(
            f"{expected}: a worker has {on_worker} instead; install the same packages everywhere"
        )


def files_in(folder: Path) -> Files:
    """Return the files of a folder, without those being written; none if there is no folder."""
    if not folder.is_dir():
        return {}
    return {
        path.name: path.read_bytes()
        for path in sorted(folder.iterdir())
        if path.is_file() and not path.name.startswith(".")
    }


@lru_cache(maxsize=1)
def _dataset(place: str, content_sha256: str) -> GraphXAIDataset:
    """Return the build of a task; cached, since a worker's tasks have the same build."""
    try:
        dataset = GraphXAIDataset.from_folder(place)
    except GraphXAIDataError as error:
        raise InputError(
            f"a worker cannot read {place} ({error}); use a --root that every worker can read: a "
            "shared folder, or a URL"
        ) from None
    if dataset.manifest.content_sha256 != content_sha256:
        raise InputError(
            f"{place}: a worker finds another build there (content "
            f"{dataset.manifest.content_sha256[:12]}…, expected {content_sha256[:12]}…); use a "
            "--root that is the same for every worker"
        )
    return dataset


@contextmanager
def _threads(number: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)
