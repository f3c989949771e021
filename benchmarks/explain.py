"""Time of B-cos contribution maps against the model's forward pass and PyG's explainers.

GNNExplainer (200 epochs) and Captum's integrated gradients (50 steps) run as PyG users run them: on
a model of the same size with PyG's layers, one graph at a time. Run with
`python -m benchmarks.explain [--root data]`. The extra `test` installs Captum.
"""

import argparse
import json
import time
from collections.abc import Callable
from itertools import islice
from statistics import median

import torch
from torch_geometric.explain import CaptumExplainer, Explainer, GNNExplainer

from benchmarks.train import PyGGIN
from graphxai_data import BatchLoader, GraphXAIDataset, explain
from graphxai_data.nn.zoo import Settings, make_model

BATCHES, SLOW_GRAPHS = 8, 6
CONFIG = {"mode": "multiclass_classification", "task_level": "graph", "return_type": "raw"}


class Peer(PyGGIN):
    """`PyGGIN` with the signature that PyG's explainers call."""

    def forward(self, x, edge_index, batch=None):  # type: ignore[no-untyped-def,override]
        """Return logits [g, c]."""
        return super().forward(x, edge_index, None, batch)


def milliseconds(run: Callable[[], object], rounds: int) -> float:
    run()
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return median(taken) * 1000


def ratios(dataset: GraphXAIDataset) -> dict[str, float]:
    """Return times per graph relative to a batched contribution map."""
    name = "bcos-gine" if dataset.num_edge_features else "bcos-gin"
    settings = Settings.named(name, dataset.manifest.load_recipe().generator, "paper")
    model = make_model(
        name,
        settings.architecture,
        in_features=dataset.num_node_features,
        edge_features=dataset.num_edge_features,
        classes=dataset.num_classes,
    ).train(mode=False)
    # The peer has no edge features and half the width of B-cos GINE: the easier task.
    peer = Peer(dataset.num_node_features, dataset.num_classes).train(mode=False)
    batches = list(islice(BatchLoader(dataset, 64), BATCHES))

    def forward() -> None:
        with torch.no_grad():
            for b in batches:
                model(b.x, b.edge_index, b.edge_attr, b.batch)

    def maps() -> None:
        for b in batches:
            explain(model, b)

    graphs = sum(b.num_graphs for b in batches)
    times = {"forward": [], "map": []}
    for _ in range(7):  # in turns, so a slow moment hits both
        times["forward"].append(milliseconds(forward, 3) / graphs)
        times["map"].append(milliseconds(maps, 3) / graphs)
    map_time = median(times["map"])
    result = {
        "map, times the forward pass": map_time / median(times["forward"]),
        "input x gradient, times": milliseconds(
            lambda: [explain(model, b, method="input-x-gradient") for b in batches], 5
        ) / graphs / map_time,
        "our GNNExplainer, batched, times": milliseconds(
            lambda: explain(model, batches[0], method="gnn-explainer"), 2
        ) / 64 / map_time,
        "our integrated gradients, batched, times": milliseconds(
            lambda: explain(model, batches[0], method="integrated-gradients"), 3
        ) / 64 / map_time,
    }  # fmt: skip
    peers = {
        "PyG's GNNExplainer, 200 epochs, times": GNNExplainer(epochs=200),
        "Captum's integrated gradients, 50 steps, times": CaptumExplainer(
            "IntegratedGradients", n_steps=50
        ),
    }
    for name, algorithm in peers.items():
        captum = isinstance(algorithm, CaptumExplainer)
        explainer = Explainer(
            peer, algorithm, explanation_type="model", model_config=CONFIG,
            node_mask_type="attributes" if captum else None,
            edge_mask_type=None if captum else "object",
        )  # fmt: skip
        taken = [
            milliseconds(lambda i=i, e=explainer: e(dataset[i].x, dataset[i].edge_index), 1)
            for i in range(SLOW_GRAPHS)
        ]
        result[name] = median(taken) / map_time
    return {name: round(value, 1) for name, value in result.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default="data", help="folder of builds")
    root = parser.parse_args().root
    torch.set_num_threads(1)
    result = {}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        for name in ("ba2motif", "dihalo", "mnist75sp-r23"):
            result[name] = ratios(GraphXAIDataset(root, name, split="test"))
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
