"""Time of a training step by `torch.compile`, relative to the same model without: ours and PyG's.

Graphs have the size of MNIST-75sp: 64 of them, with 75 nodes and 8 edges into each. Run with
`python -m benchmarks.compile`; a compilation takes up to a minute and needs a C++ compiler.
"""

import json
from collections.abc import Callable

import torch
from torch import Tensor, nn

from benchmarks.timing import best_seconds
from benchmarks.train import PyGGIN
from graphxai_data.nn import GIN, BcosGIN

GRAPHS, NODES, DEGREE, FEATURES, CLASSES = 64, 75, 8, 5, 10


def some_batch() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return features, edges, the graph of every node and labels."""
    first = NODES * torch.arange(GRAPHS).unsqueeze(1)
    source = torch.randint(NODES, (GRAPHS, NODES * DEGREE)) + first
    target = torch.arange(NODES).repeat_interleave(DEGREE) + first
    edge_index = torch.stack([source.flatten(), target.flatten()])
    batch = torch.arange(GRAPHS).repeat_interleave(NODES)
    return (
        torch.randn(GRAPHS * NODES, FEATURES), edge_index, batch, torch.randint(CLASSES, (GRAPHS,))
    )  # fmt: skip


def step(model: nn.Module) -> Callable[[], None]:
    """Return a forward and backward pass, after a first one that compiles the model."""
    x, edge_index, batch, label = some_batch()

    def run() -> None:
        # With the number of graphs, nothing depends on values, and the whole graph is compiled.
        logits = model(x, edge_index, None, batch, batch_size=GRAPHS)
        nn.functional.cross_entropy(logits, label).backward()

    run()
    return run


def main() -> None:
    torch.set_num_threads(1)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        models: dict[str, nn.Module] = {
            "gin": GIN(FEATURES, CLASSES),
            "bcos-gin": BcosGIN(FEATURES, CLASSES, norm="rms"),
            "PyG's gin": PyGGIN(FEATURES, CLASSES),
        }
        contestants = {}
        for name, model in models.items():
            contestants[name] = step(model)
            contestants[f"{name}, compiled"] = step(torch.compile(model, fullgraph=True))
        seconds = best_seconds(contestants, rounds=30)
    result = {name: {"ms": round(1000 * s, 1)} for name, s in seconds.items()}
    for name in models:
        result[f"{name}, compiled"]["times faster"] = round(
            seconds[name] / seconds[f"{name}, compiled"], 2
        )
    for name in ("gin", "bcos-gin"):
        result[f"{name}, compiled"]["times faster than PyG's, compiled"] = round(
            seconds["PyG's gin, compiled"] / seconds[f"{name}, compiled"], 2
        )
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
