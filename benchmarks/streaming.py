"""Graphs per second and memory of the datasets on disk, compared with the dataset in memory.

Run with `python -m benchmarks.streaming`; it builds what is missing under `--root`. All datasets
give the same graphs. The dataset in memory caches the object of each graph at first use, so we
compare with its first epoch by `dataset[i]` and with its best later one. Memory is the peak growth
of a fresh process over one epoch, starting before it opens the dataset.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import psutil
import torch

from benchmarks.timing import best_seconds
from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.datasets.on_disk import ShardedDataset
from graphxai_data.datasets.stream import StreamedDataset
from graphxai_data.manifest import Manifest
from graphxai_data.seeds import rng_for

NAMES = ("dihalo", "pattern")
KINDS = {
    "in memory": GraphXAIDataset,
    "random access": ShardedDataset,
    "streaming": lambda root, name: StreamedDataset(root, name, shuffle=True),
}


def consume(graphs: Iterable[Any]) -> None:
    for _ in graphs:
        pass


def assert_same(ours: Iterable[Any], theirs: Iterable[Any]) -> None:
    for a, b in zip(ours, theirs, strict=True):
        assert list(a.to_dict()) == list(b.to_dict())
        for key, value in b.to_dict().items():
            same = a[key] == value if isinstance(value, str) else torch.equal(a[key], value)
            assert same, key


def speeds(root: str, name: str, rounds: int) -> dict[str, float]:
    memory, sharded = GraphXAIDataset(root, name), ShardedDataset(root, name)
    streamed = StreamedDataset(root, name, shuffle=True)
    assert_same(StreamedDataset(root, name), memory)
    assert_same(sharded, memory)
    order = rng_for(0, "benchmarks/streaming").permutation(len(memory)).tolist()

    def by_index(dataset: Sequence[Any], forget: bool = False) -> None:
        if forget:
            memory._data_list = None
        consume(dataset[i] for i in order)

    seconds = best_seconds(
        {
            "first": lambda: by_index(memory, forget=True),
            "later": lambda: by_index(memory),
            "random access": lambda: by_index(sharded),
            "streaming": lambda: consume(streamed),
        },
        rounds,
    )
    return {
        f"{kind}, times the graphs/s of memory's {epoch} epoch": round(
            seconds[epoch] / seconds[kind], 2
        )
        for kind in ("random access", "streaming")
        for epoch in ("first", "later")
    }


def growth(root: str, name: str, kind: str) -> int:
    Manifest.load(Path(root) / name / "seed-0")  # imports what the generator needs, such as RDKit
    process = psutil.Process()
    before = peak = process.memory_info().rss
    for i, _ in enumerate(KINDS[kind](root, name)):
        if i % 100 == 0:
            peak = max(peak, process.memory_info().rss)
    return max(peak, process.memory_info().rss) - before


def memories(root: str, name: str) -> dict[str, int]:
    command = [sys.executable, "-m", "benchmarks.streaming", "--root", root, "--grow", name]
    return {
        f"{kind}, bytes": int(subprocess.run([*command, kind], check=True, stdout=-1).stdout)
        for kind in KINDS
    }


def measure(root: str, name: str, rounds: int) -> dict[str, float]:
    result = speeds(root, name, rounds)
    memory = memories(root, name)
    for kind in ("random access", "streaming"):
        ratio = memory[f"{kind}, bytes"] / memory["in memory, bytes"]
        result[f"{kind}, times the bytes in memory"] = round(ratio, 3)
    return result | memory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default="data", help="folder of all builds")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--grow", nargs=2, metavar=("NAME", "KIND"), help="print one growth only")
    options = parser.parse_args()
    if options.grow:
        print(growth(options.root, *options.grow))
        return
    result = {name: measure(options.root, name, options.rounds) for name in NAMES}
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
