"""A process that has imported everything, and forks others that run a call and are killed.

Real processes and real SIGKILLs, without the seconds that every fresh interpreter needs. Requests
and answers are lines of JSON.

    kill_after   SIGKILL from outside, so many seconds after the start
    kill_at      SIGKILL just before the n-th operation that changes the disk
"""

import json
import os
import select
import shutil
import signal
import sys
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

QUICK = {"epochs": 2, "batch_size": 16, "hidden": 8}


def run(call: str, arguments: dict[str, Any]) -> Any:
    """What can be asked for; the answer is what has to be the same in the end."""
    if call == "build":
        return build(**arguments).content_sha256
    if call == "train":
        dataset = GraphXAIDataset(arguments.pop("root"), "ba2motif")
        _, card = train(dataset, **{"changes": QUICK, **arguments})
        return card.weights_sha256
    if call == "compare":
        dataset = GraphXAIDataset(arguments.pop("root"), "ba2motif")
        found = compare(dataset, changes=QUICK, timing=False, **arguments)
        return [(row["explainer"], row["jaccard"]) for row in found.rows]
    reproduce_module.BUDGETS["small"] = Budget({"ba2motif": 60}, (0, 1), ("ba2motif",), QUICK)
    found = reproduce(datasets=["ba2motif"], **arguments)
    return [row["f1"] for row in found.predictions], found.builds, found.missing


def die_at(count: int) -> None:
    """From now on, the n-th operation that changes the disk is the end."""
    done = 0

    def deadly(original: Any) -> Any:
        def operation(*args: Any, **options: Any) -> Any:
            nonlocal done
            done += 1
            if done == count:
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*args, **options)

        return operation

    for name in ("replace", "rename", "unlink", "mkdir"):
        setattr(Path, name, deadly(getattr(Path, name)))
    os.fsync = deadly(os.fsync)
    shutil.rmtree = deadly(shutil.rmtree)


def in_child(request: dict[str, Any], answer: int) -> None:
    if request.get("kill_at"):
        die_at(request["kill_at"])
    try:
        found: dict[str, Any] = {"result": run(request["call"], request["arguments"])}
    except BaseException as error:
        found = {"error": f"{type(error).__name__}: {error}"}
    os.write(answer, json.dumps(found).encode())


def serve(request: dict[str, Any]) -> dict[str, Any]:
    reading, writing = os.pipe()
    begin = time.monotonic()
    child = os.fork()
    if child == 0:
        os.close(reading)
        os.dup2(2, 1)
        in_child(request, writing)
        os._exit(0)
    os.close(writing)
    try:
        after = request.get("kill_after")
        ready, _, _ = select.select([reading], [], [], 120 if after is None else after)
        if not ready:
            os.kill(child, signal.SIGKILL)
        content = b""
        while ready and (piece := os.read(reading, 1 << 16)):
            content += piece
        _, status = os.waitpid(child, 0)
    finally:
        os.close(reading)
    killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    found = {} if killed else json.loads(content or b'{"error": "no answer"}')
    return {"pid": child, "killed": killed, "seconds": time.monotonic() - begin, **found}


if __name__ == "__main__":
    torch.set_num_threads(1)
    for line in sys.stdin:
        print(json.dumps(serve(json.loads(line))), flush=True)
