"""Time to load 9,000 graphs of 52 nodes: ours against PyG's processing and its processed file.

Run with `python -m benchmarks.load`.
"""

import json
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data, InMemoryDataset

from benchmarks.timing import best_seconds
from graphxai_data.building.survey import shard_entry
from graphxai_data.datasets.base import Build
from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.graphs.record import GraphRecord
from graphxai_data.graphs.schema import Feature, Schema
from graphxai_data.graphs.shards import ShardReader, ShardWriter
from graphxai_data.manifest import Manifest

GRAPHS, NODES, UNDIRECTED_EDGES, ATOMS, BONDS, SHARD_SIZE = 9000, 52, 54, 9, 4, 1000
SCHEMA = Schema(Feature(ATOMS, "onehot"), Feature(BONDS, "onehot"), num_classes=9)


def molecule_like(rng: np.random.Generator) -> GraphRecord:
    """Return a random tree with three more edges: the size and sparsity of a molecule."""
    edges = {(int(rng.integers(new)), new) for new in range(1, NODES)}
    while len(edges) < UNDIRECTED_EDGES:
        u, v = sorted(rng.choice(NODES, 2, replace=False).tolist())
        edges.add((u, v))
    bonds = {edge: int(rng.integers(BONDS)) for edge in sorted(edges)}
    columns = np.array(sorted((*ends, b) for e, b in bonds.items() for ends in (e, e[::-1]))).T
    mask = np.zeros(NODES, bool)
    mask[rng.choice(NODES, 8, replace=False)] = True
    return GraphRecord(
        x=np.eye(ATOMS, dtype=np.float32)[rng.integers(ATOMS, size=NODES)],
        edge_index=columns[:2],
        edge_attr=np.eye(BONDS, dtype=np.float32)[columns[2]],
        y=int(rng.integers(9)),
        node_mask=mask,
        edge_mask=mask[columns[:2]].all(axis=0),
        group=0,
    )


def write_shards(records: list[GraphRecord], folder: Path) -> Manifest:
    entries = []
    for first in range(0, len(records), SHARD_SIZE):
        path = folder / f"shard-{first // SHARD_SIZE:05d}.h5"
        with ShardWriter(path, SCHEMA, dataset="benchmark", recipe_sha256="", seed=0) as writer:
            for i, record in enumerate(records[first : first + SHARD_SIZE], start=first):
                writer.add(record, graph_id=i, split=i % 3)
        entries.append(shard_entry(ShardReader(path)))
    count = len(records)
    return Manifest(1, "benchmark", 0, count, SHARD_SIZE, "", "", {}, {}, tuple(entries), {}, {})


def main() -> None:
    rng = np.random.default_rng(0)
    records = [molecule_like(rng) for _ in range(GRAPHS)]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        manifest = write_shards(records, folder)
        processed = folder / "pyg.pt"

        def pyg_process() -> None:
            graphs = [
                Data(
                    x=torch.from_numpy(r.x),
                    edge_index=torch.from_numpy(r.edge_index),
                    edge_attr=torch.from_numpy(r.edge_attr),
                    y=torch.tensor([r.y]),
                    node_mask=torch.from_numpy(r.node_mask),
                    edge_mask=torch.from_numpy(r.edge_mask),
                )
                for r in records
            ]
            InMemoryDataset.save(graphs, processed)

        pyg_process()
        seconds = best_seconds(
            {
                "ours": lambda: GraphXAIDataset(Build(folder, manifest), "benchmark"),
                "torch.load": lambda: InMemoryDataset().load(processed),
            },
            rounds=15,
        ) | best_seconds({"process": pyg_process}, rounds=3)
        ours = GraphXAIDataset(Build(folder, manifest), "benchmark")
        theirs = InMemoryDataset()
        theirs.load(processed)
        for key in ("x", "edge_index", "edge_attr", "y", "node_mask", "edge_mask"):
            assert torch.equal(ours._data[key], theirs._data[key]), key
        disk = sum(path.stat().st_size for path in folder.glob("*.h5"))
        ours_seconds = seconds["ours"]
        result = {
            "times faster than PyG's processing": round(seconds["process"] / ours_seconds, 1),
            "time relative to torch.load": round(ours_seconds / seconds["torch.load"], 2),
            "bytes relative to PyG's file": round(disk / processed.stat().st_size, 3),
        }
        print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
