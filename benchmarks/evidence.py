"""Three measurements that explain why some figures of the paper are not reached.

1. Where can a label be read? A ReLU network is trained from scratch on whole graphs, on their
   rationales alone, and on everything except their rationales. If the rest is enough, a model may
   use it, and a faithful explanation then marks it.

2. What can a B-cos network with B = 1 see of Di-Halo-Benzene? It is linear, so its logits are
   weighted sums over walks, which differ only in their first element and their bonds. Here:
   logistic regression on walk counts, up to the depth of the network, ignoring bonds.

3. Which share of the rationale of MNIST-75sp has hardly any ink? How good is a map that ranks all
   other ink first and the rest at random? How good is the number of nonzero features, which is what
   feature masks amount to?

Run with `python -m benchmarks.evidence [--root data] [--seeds 1]`.
"""

import argparse
from collections.abc import Callable

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from torch_geometric.data import Data

from graphxai_data import BatchLoader, GraphXAIDataset, evaluate
from graphxai_data.evaluation.comparison import usual_models
from graphxai_data.evaluation.faithfulness import retrained_accuracy
from graphxai_data.evaluation.reproduce import EXPLAINED
from graphxai_data.evaluation.truth import Truth
from graphxai_data.metrics import Bools, Floats
from graphxai_data.nn.random import seeded, torch_seed
from graphxai_data.nn.sums import Edges, sum_per_graph
from graphxai_data.nn.zoo import Settings, make_model
from graphxai_data.training.checkpoint import Shape

PARTS: dict[str, Callable[[Bools], Bools]] = {
    "whole graph": np.ones_like,
    "rationale alone": np.copy,
    "all but the rationale": np.invert,
}
EPOCHS = 10
FAINT = 0.05
# Number of updates of the B-cos GINE, and so the length of the longest walk that it sees.
DEPTH = 4


def accuracy_on_part(dataset: GraphXAIDataset, part: Callable[[Bools], Bools], seed: int) -> float:
    """Return the test accuracy of the dataset's ReLU network, trained on a part of every graph."""
    name = usual_models(dataset)[1]
    settings = Settings.named(name, dataset.manifest.load_recipe().generator, "default")
    with seeded(torch_seed(seed, "evidence")):
        model = make_model(name, settings.architecture, **vars(Shape.of(dataset)))
    splits = dataset.get_idx_split()
    training, test = dataset[splits["train"]], dataset[splits["test"]]
    keep = part(Truth.of(training).node_mask), part(Truth.of(test).node_mask)
    return retrained_accuracy(
        model, training, test, keep, settings.training.loss, epochs=EPOCHS, seed=seed
    )


def linear_accuracy(dataset: GraphXAIDataset) -> tuple[float, float]:
    """Return training and test accuracy of logistic regression on walk counts."""
    counts, label = walk_counts(dataset), dataset._data.y.numpy()
    splits = dataset.get_idx_split()
    train, test = splits["train"].numpy(), splits["test"].numpy()
    scale = StandardScaler().fit(counts[train])
    counts = scale.transform(counts)
    fitted = LogisticRegression(C=1e4, max_iter=5000).fit(counts[train], label[train])
    return fitted.score(counts[train], label[train]), fitted.score(counts[test], label[test])


def walk_counts(dataset: GraphXAIDataset) -> Floats:
    """Return the number of walks per graph, length and start feature [g, (DEPTH + 1) · p]."""
    whole = next(iter(BatchLoader(dataset, len(dataset), keys=["x", "edge_index"])))
    edges = Edges(whole.edge_index, whole.num_nodes)
    walks, counts = torch.ones(whole.num_nodes, 1, dtype=torch.float64), []
    for _ in range(DEPTH + 1):
        counts.append(sum_per_graph(whole.x.double() * walks, whole.batch, len(dataset)))
        walks = edges.sum_with_neighbours(walks, 0.0)
    result: Floats = torch.cat(counts, dim=1).numpy()
    return result


def faint_share(dataset: GraphXAIDataset) -> float:
    """Return the share of rationale superpixels with a mean intensity below `FAINT`."""
    intensity = dataset._data.x[dataset._data.node_mask, 0]
    return float((intensity < FAINT).double().mean())


def simple_maps(dataset: GraphXAIDataset) -> tuple[float, float]:
    """Return Jaccard@k of two model-free maps.

    The first sorts by intensity, with everything below `FAINT` at random. The second sorts by the
    number of nonzero features.
    """
    draws = np.random.default_rng(0)

    def strong(data: Data) -> Floats:
        intensity = data.x[:, 0].double().numpy()
        return np.where(intensity < FAINT, -draws.uniform(size=len(intensity)), intensity)

    def counted(data: Data) -> Floats:
        return np.count_nonzero(data.x.numpy(), axis=1).astype(np.float64)

    jaccard = evaluate(dataset, {"strong": strong, "counted": counted})["jaccard"]
    return float(jaccard["strong"]), float(jaccard["counted"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default="data", help="folder of builds")
    parser.add_argument("--seeds", type=int, default=1, help="trainings per part")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print("| dataset | " + " | ".join(PARTS) + " |\n|" + " --- |" * (len(PARTS) + 1), flush=True)
    for name in EXPLAINED:
        dataset = GraphXAIDataset(arguments.root, name)
        accuracies = [
            np.mean([accuracy_on_part(dataset, part, seed) for seed in range(arguments.seeds)])
            for part in PARTS.values()
        ]
        cells = " | ".join(f"{value:.3f}" for value in accuracies)
        print(f"| `{name}` | {cells} |", flush=True)
    print("\n| linear on walk counts | training | test |\n| --- | --- | --- |", flush=True)
    for name in ("dihalo", "dihalo-heavy"):
        train, test = linear_accuracy(GraphXAIDataset(arguments.root, name))
        print(f"| `{name}` | {train:.3f} | {test:.3f} |", flush=True)
    digits = GraphXAIDataset(arguments.root, "mnist75sp-r23")
    strong, counted = simple_maps(digits)
    print(
        f"\nmnist75sp-r23: {faint_share(digits):.3f} of the rationale is fainter than {FAINT}; "
        f"Jaccard@k is {strong:.3f} with all other ink first and the rest at random, and "
        f"{counted:.3f} by the number of nonzero features"
    )


if __name__ == "__main__":
    main()
