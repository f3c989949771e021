"""A process that has loaded everything and forks children: each runs one call and may be killed.

The children are real processes and get real SIGKILLs, without the seconds that a fresh interpreter
needs. Requests and answers are lines of JSON. A request may hold

    kill_after   SIGKILL from outside, this many seconds after the start
    kill_at      SIGKILL just before the n-th operation that changes the disk
"""

import json
import os
import select
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch

from graphxai_data.building.build import build
from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.evaluation import reproduce as reproduce_module
from graphxai_data.evaluation.comparison import compare
from graphxai_data.evaluation.reproduce import Budget, reproduce
from graphxai_data.training.train import train
from tests.faults.conftest import QUICK, SMALL


def run(call: str, arguments: dict[str, Any]) -> Any:
    """Run a call and return what must be the same whether or not it was killed before."""
    if call == "build":
        return build(**arguments).content_sha256
    if call == "train":
        dataset = GraphXAIDataset(arguments.pop("root"), "ba2motif")
        _, card = train(dataset, **{"changes": QUICK, **arguments})
        return card.weights_sha256
    if call == "compare":
        dataset = GraphXAIDataset(arguments.pop("root"), "ba2motif")
        table = compare(dataset, changes=QUICK, timing=False, **arguments)
        return [(row["explainer"], row["jaccard"]) for row in table.rows]
    reproduce_module.BUDGETS["small"] = Budget({"ba2motif": 60}, (0, 1), ("ba2motif",), QUICK)
    report = reproduce(datasets=["ba2motif"], **arguments)
    return [row["f1"] for row in report.predictions], report.builds, report.missing


def load_everything() -> None:
    """Build, train and compare once: many modules and compiled functions are loaded lazily."""
    with_rings = SMALL | {"graphs": 100, "rings": True}  # too few graphs would not be measured
    with tempfile.TemporaryDirectory() as folder:
        run("build", {"root": folder, **with_rings})
        models = {"models": ["bcos-gin"], "seeds": [0], "explainers": ["bcos", "random"]}
        run("compare", {"root": folder, "out": Path(folder) / "runs", **models})


def kill_at_operation(number: int) -> None:
    """Make this process kill itself just before the n-th operation that changes the disk."""
    count = 0

    def counted(original: Any) -> Any:
        def operation(*args: Any, **options: Any) -> Any:
            nonlocal count
            count += 1
            if count == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*args, **options)

        return operation

    for name in ("replace", "rename", "unlink", "mkdir"):
        setattr(Path, name, counted(getattr(Path, name)))
    os.fsync = counted(os.fsync)
    shutil.rmtree = counted(shutil.rmtree)


def answer_in_child(request: dict[str, Any], pipe: int) -> None:
    """Run the call of a request and write its result, or its error, into a pipe."""
    if request.get("kill_at"):
        kill_at_operation(request["kill_at"])
    try:
        answer: dict[str, Any] = {"result": run(request["call"], request["arguments"])}
    except BaseException as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
    os.write(pipe, json.dumps(answer).encode())


def serve(request: dict[str, Any]) -> dict[str, Any]:
    """Return the answer of a forked child, whether it was killed, and how long it ran."""
    read_end, write_end = os.pipe()
    start = time.monotonic()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        answer_in_child(request, write_end)
        os._exit(0)
    os.close(write_end)
    try:
        seconds = request.get("kill_after")
        ready, _, _ = select.select([read_end], [], [], 120 if seconds is None else seconds)
        if not ready:
            os.kill(child, signal.SIGKILL)
        content = b""
        while ready and (chunk := os.read(read_end, 1 << 16)):
            content += chunk
        _, status = os.waitpid(child, 0)
    finally:
        os.close(read_end)
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    answer = {} if killed else json.loads(content or b'{"error": "no answer"}')
    return {"pid": child, "killed": killed, "seconds": time.monotonic() - start, **answer}


if __name__ == "__main__":
    # What the calls print must not get between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    torch.set_num_threads(1)
    load_everything()
    for line in sys.stdin:
        print(json.dumps(serve(json.loads(line))), file=answers, flush=True)
