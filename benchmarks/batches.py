"""Time of one shuffled epoch of batches of 64 graphs: our loader against PyG's.

Both give the same order and fields. Run with `python -m benchmarks.batches`; it builds what is
missing under `--root`. PyG caches each graph at first use, so we compare with its first epoch and
with its best later one.
"""

import argparse
import json
import time
from collections.abc import Iterable
from typing import Any

import torch
from torch_geometric.data import Batch
from torch_geometric.loader import DataLoader

from benchmarks.timing import best_seconds
from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.datasets.loader import BatchLoader
from graphxai_data.seeds import rng_for

NAMES = ("dihalo", "mnist75sp-r23")
MODEL_FIELDS = ("x", "edge_index", "edge_attr", "y")
SIZE = 64


def consume(batches: Iterable[Batch]) -> None:
    for _ in batches:
        pass


def assert_same(ours: Batch, theirs: Batch) -> None:
    assert type(ours) is type(theirs)
    assert list(ours.to_dict()) == list(theirs.to_dict())
    for key, value in theirs.to_dict().items():
        if isinstance(value, torch.Tensor):
            assert ours[key].dtype == value.dtype, key
            assert torch.equal(ours[key], value), key
        else:
            assert ours[key] == value, key


def measure(root: str, name: str, keys: tuple[str, ...] | None, rounds: int) -> dict[str, Any]:
    dataset = GraphXAIDataset(root, name)
    known = set(dataset._data.keys())
    kept = known if keys is None else known.intersection(keys)
    ours = BatchLoader(dataset, SIZE, shuffle=True, keys=kept)
    consume(ours)  # compiles the loops
    ours.epoch = 0
    # The order of BatchLoader, so both loaders put the same graphs into a batch.
    order = rng_for(0, "batches/order", 0).permutation(len(dataset)).tolist()
    theirs = DataLoader(dataset, SIZE, sampler=order, exclude_keys=known - kept)
    start = time.perf_counter()
    consume(theirs)
    first = time.perf_counter() - start
    for a, b in zip(ours, theirs, strict=True):
        assert_same(a, b)
    seconds = best_seconds({"ours": lambda: consume(ours), "PyG": lambda: consume(theirs)}, rounds)
    return {
        "times faster than PyG's loader": round(seconds["PyG"] / seconds["ours"], 1),
        "times faster than PyG's first epoch": round(first / seconds["ours"], 1),
        "microseconds per batch": round(seconds["ours"] / len(ours) * 1e6),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default="data", help="folder of all builds")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    result = {
        f"{name}, {label}": measure(options.root, name, keys, options.rounds)
        for name in NAMES
        for label, keys in (("all fields", None), ("fields of models", MODEL_FIELDS))
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
