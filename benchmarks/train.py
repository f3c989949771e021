"""Time of a training epoch on MNIST-75sp: our models and batches against PyG's of the same size.

It also compares ways to sum over edges. Run with `python -m benchmarks.train [--root data]`.
"""

import argparse
import json
from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GINConv, global_add_pool

from benchmarks.timing import best_seconds
from graphxai_data import BatchLoader, GraphXAIDataset
from graphxai_data.nn.gin import GIN
from graphxai_data.nn.sums import Edges
from graphxai_data.nn.zoo import Settings, make_model
from graphxai_data.training.loss import objective

GRAPHS, BATCH_SIZE, HIDDEN = 4000, 64, 64


class PyGGIN(nn.Module):
    """The ReLU twin of B-cos GIN (paper, table of GIN architectures) as PyG users write it."""

    def __init__(self, in_features: int, classes: int) -> None:
        super().__init__()
        self.convs = nn.ModuleList(
            GINConv(
                nn.Sequential(
                    nn.Linear(width, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU()
                ),
                train_eps=True,
            )
            for width in (in_features, HIDDEN, HIDDEN)
        )
        self.readout = nn.Sequential(
            nn.Linear(HIDDEN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(),
            nn.Linear(HIDDEN, classes),
        )  # fmt: skip

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: None,
        batch: Tensor,
        batch_size: int | None = None,
    ) -> Tensor:
        """Return logits [g, c]."""
        for conv in self.convs:
            x = conv(x, edge_index)
        return global_add_pool(self.readout(x), batch, batch_size)


def epoch(model: nn.Module, loader: Iterable, *, fused: bool) -> None:
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3, fused=fused)
    model.train()
    for batch in loader:
        loss = objective(model(batch.x, batch.edge_index, None, batch.batch), batch.y, "ce")
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()


def epochs_against_pyg(dataset: GraphXAIDataset) -> dict[str, dict[str, float]]:
    """Return how many times as fast as PyG an epoch of each model is.

    PyG caches each graph at first use, so its first epoch is slower than later ones.
    """
    part = dataset[:GRAPHS]
    shape = {"in_features": dataset.num_node_features, "edge_features": 0}
    shape["classes"] = dataset.num_classes
    models = {
        f"{name}, {configuration}": make_model(
            name, Settings.named(name, "mnist75sp", configuration).architecture, **shape
        )
        for name in ("bcos-gin", "gin")
        for configuration in ("paper", "default")
    }
    peer = PyGGIN(shape["in_features"], shape["classes"])
    twin = models["gin, paper"]
    assert isinstance(twin, GIN)
    assert sum(p.numel() for p in peer.parameters()) == sum(p.numel() for p in twin.parameters())
    ours = BatchLoader(part, BATCH_SIZE, shuffle=True, keys=("x", "edge_index", "y"))
    theirs = DataLoader(part, BATCH_SIZE, shuffle=True)

    def first_epoch() -> None:
        part._data_list = None
        later_epoch()

    def later_epoch() -> None:
        epoch(peer, theirs, fused=False)  # as PyG users write it

    contestants = {
        name: lambda model=model: epoch(model, ours, fused=True)  # as in `train`
        for name, model in models.items()
    }
    peers = {"first": first_epoch, "later": later_epoch}
    seconds = best_seconds(peers | contestants, rounds=4)
    return {
        f"times faster than PyG's {which} epoch": {
            name: round(seconds[which] / seconds[name], 2) for name in models
        }
        for which in peers
    }


def sums(dataset: GraphXAIDataset) -> dict[str, float]:
    """Return times of forward and backward passes of neighbour sums, relative to our product."""
    batch = next(iter(BatchLoader(dataset, BATCH_SIZE)))
    source, target = batch.edge_index
    h = torch.randn(batch.num_nodes, HIDDEN, requires_grad=True)
    order = torch.argsort(target, stable=True)
    lengths = torch.bincount(target, minlength=len(h))

    edges = Edges(batch.edge_index, len(h))  # sorted once for all layers of a model
    weight = torch.randn_like(h)

    def product() -> Tensor:
        return edges.sum_with_neighbours(h)

    def index_add() -> Tensor:
        return h + torch.zeros_like(h).index_add_(0, target, h.index_select(0, source))

    def segment_reduce() -> Tensor:
        rows = h.index_select(0, source[order])
        return h + torch.segment_reduce(rows, "sum", lengths=lengths, axis=0)

    ways = {"product": product, "index_add_": index_add, "segment_reduce": segment_reduce}
    for way in ways.values():
        torch.testing.assert_close(way(), product(), rtol=1e-4, atol=1e-4)
    seconds = best_seconds(
        {name: lambda way=way: way().backward(weight) for name, way in ways.items()}, rounds=40
    )
    return {f"{name}, times": round(s / seconds["product"], 1) for name, s in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default="data", help="folder of builds")
    root = parser.parse_args().root
    torch.set_num_threads(1)
    result = {}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        for name in ("mnist75sp", "mnist75sp-r23"):
            dataset = GraphXAIDataset(root, name)
            result[name] = {
                **epochs_against_pyg(dataset),
                "sum over neighbours": sums(dataset),
            }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
