"""Models trained and measured on workers: what `compare` does for one model and seed, as a task.

Workers read the build from where it lies, a folder that they can see or a URL, since a dataset may
be larger than what one likes to send. What they find goes back to the process that asked, which
alone writes: so trainings and results end where they would have without workers, no two machines
write one folder, and `--out` needs no shared disk. A task begins with what is known already, as it
stands in the folder of the training, and runs the very code that runs without workers.
"""

import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from graphxai_data.building import engine as engines
from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.errors import GraphXAIDataError, InputError
from graphxai_data.evaluation.study import Row, Study
from graphxai_data.explain.variants import chosen_variants
from graphxai_data.files.disk import explained_disk_errors, folder_lock, write_atomically
from graphxai_data.training.train import device_of, run_folder, train

# The global generator of torch is seeded for a training: one at a time in a process, also where a
# worker of the cluster has several threads.
_ONE_AT_A_TIME = threading.Lock()

Files = dict[str, bytes]


@dataclass(frozen=True)
class ModelTask:
    """What a worker needs to train a model and measure explainers on it.

    Attributes:
        data: folder or URL of the build.
        content_sha256: its digest, so that a worker notices if it sees another build there.
        model: name in the zoo.
        seed: of the training.
        configuration: of the training.
        changes: settings that differ from it.
        variants: names of the rows.
        split: which graphs are explained.
        timing: measure how long an explanation takes.
        faithfulness: measure fidelity and accuracy after retraining.
        save_scores: give an explanation file of each row back, too.
        force: measure anew what is known already.
        device: where to.
        threads: of torch; the result depends on their number.
        torch: version that is expected.
        folder: where all of it will lie; for errors.
        files: what is in that folder already.
    """

    data: str
    content_sha256: str
    model: str
    seed: int
    configuration: str
    changes: dict[str, Any]
    variants: tuple[str, ...]
    split: str
    timing: bool
    faithfulness: bool
    save_scores: bool
    force: bool
    device: str
    threads: int
    torch: str
    folder: str
    files: Files


@dataclass(frozen=True)
class Measured:
    """What a worker found: rows and curves for the table, and the files to write."""

    task: str
    folder: str
    rows: list[Row]
    curves: dict[str, dict[str, list[float]]]
    device: str
    files: Files
    scores: Files


def measure_model(task: ModelTask) -> Measured:
    """Train, or go on training, and measure; runs on any worker."""
    if torch.__version__ != task.torch:
        raise InputError(
            f"a worker has torch {torch.__version__} (here {task.torch}); install the same "
            "versions everywhere"
        )
    with _ONE_AT_A_TIME, _threads(task.threads), tempfile.TemporaryDirectory() as scratch:
        dataset = _dataset(task.data, task.content_sha256)
        folder = run_folder(Path(scratch) / "runs", task.model, dataset.name, task.seed)
        folder.mkdir(parents=True)
        for name, content in task.files.items():
            (folder / name).write_bytes(content)
        scores = Path(scratch) / "scores"
        scores.mkdir()
        study = Study(
            dataset, task.split, timing=task.timing, faithfulness=task.faithfulness,
            save_scores=scores if task.save_scores else None, told=None,
        )  # fmt: skip
        try:
            model, card = train(
                dataset, task.model, task.configuration, task.seed, Path(scratch) / "runs",
                changes=task.changes, device=task.device,
            )  # fmt: skip
            variants = chosen_variants(task.variants)
            rows = list(study.of_model(variants, task.model, model, card, folder, task.force))
        except GraphXAIDataError as error:
            raise type(error)(str(error).replace(str(folder), task.folder)) from None
        return Measured(
            f"{task.model}, seed {task.seed}",
            task.folder,
            rows,
            study.curves,
            device_of(task.device).type,
            files_in(folder),
            files_in(scores),
        )


def measure_models(
    dataset: GraphXAIDataset,
    plan: Mapping[str, Sequence[str]],
    seeds: Sequence[int],
    out: str | Path,
    *,
    engine: str,
    jobs: int | None,
    save_scores: Path | None,
    **options: Any,
) -> Iterator[Measured]:
    """Everything that workers find, as it comes, and as it is written.

    Args:
        dataset: of a build that all workers can read.
        plan: for each model, the rows to measure.
        seeds: of the trainings.
        out: folder of all trainings.
        engine: as for `graphxai_data.building.engine.run`.
        jobs: the same.
        save_scores: folder for an explanation file of each row.
        options: the other attributes of `ModelTask`.
    """
    runs = [(m, s, run_folder(out, m, dataset.name, s)) for m in plan for s in seeds]
    with ExitStack() as stack:
        stack.enter_context(explained_disk_errors(Path(out), "--out", "what is measured already"))
        for _, _, folder in runs:
            stack.enter_context(folder_lock(folder, wait=False, work="training", option="--out"))
        tasks = (
            ModelTask(
                data=dataset.url or str(dataset.folder.resolve()),
                content_sha256=dataset.manifest.content_sha256,
                model=model,
                seed=seed,
                variants=tuple(plan[model]),
                save_scores=save_scores is not None,
                threads=torch.get_num_threads(),
                torch=torch.__version__,
                folder=str(folder),
                files=files_in(folder),
                **options,
            )
            for model, seed, folder in runs
        )
        parts = "the models that are measured already"
        for found in engines.run(measure_model, tasks, engine=engine, jobs=jobs, parts=parts):
            folder = Path(found.folder)
            folder.mkdir(parents=True, exist_ok=True)
            for stale in files_in(folder).keys() - found.files.keys():
                (folder / stale).unlink()
            for name, content in found.files.items():
                write_atomically(folder / name, content)
            for name, content in found.scores.items():
                write_atomically(Path(save_scores or out) / name, content)
            yield found


def files_in(folder: Path) -> Files:
    """The files of a folder, those that are being written left out; none if there is no folder."""
    if not folder.is_dir():
        return {}
    return {
        path.name: path.read_bytes()
        for path in sorted(folder.iterdir())
        if path.is_file() and not path.name.startswith(".")
    }


@lru_cache(maxsize=1)
def _dataset(place: str, content_sha256: str) -> GraphXAIDataset:
    """The build of a task; a worker has many tasks of the same."""
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
