"""Time of mode complementarity for 1,000 graphs: ours against networkx, graph by graph.

Run with `python -m benchmarks.rings`, in one thread. The peer converts each graph to networkx and
computes one distance matrix at a time, as the reference implementation of RINGS does. The values
are compared as well. The quick check is a separate figure, in seconds per thousand graphs, and so
is the time of floors of explanations, as a share of it.
"""

import json
import tempfile
import time
from pathlib import Path

import networkx as nx
import numpy as np
from sklearn.metrics import pairwise_distances
from threadpoolctl import threadpool_limits
from torch_geometric.data import Batch, Data
from torch_geometric.utils import to_networkx

from benchmarks.timing import best_seconds
from graphxai_data import DiHaloBenzene
from graphxai_data.building.build import build
from graphxai_data.manifest import Manifest
from graphxai_data.rings import check, mode_complementarities
from graphxai_data.rings.floors import measure_floors

GRAPHS = 1000


def by_networkx(datas: list[Data], metric: str) -> list[float]:
    scores = []
    for data in datas:
        graph = to_networkx(data, to_undirected=True, node_attrs=["x"])
        x = np.asarray(list(nx.get_node_attributes(graph, "x").values()))
        total = 0.0
        for component in nx.connected_components(graph):
            nodes = sorted(component)
            features = pairwise_distances(x[nodes])
            structure = METRICS[metric](graph.subgraph(nodes), nodes)
            difference = features / (features.max() or 1) - structure / structure.max()
            total += np.abs(difference).sum() / (len(nodes) ** 2 - len(nodes)) * len(nodes)
        scores.append(total / data.num_nodes)
    return scores


def diffusion(graph: nx.Graph, nodes: list[int]) -> np.ndarray:
    values, vectors = np.linalg.eigh(nx.normalized_laplacian_matrix(graph, nodes).toarray())
    return pairwise_distances(vectors * values)


def heat_kernel(graph: nx.Graph, nodes: list[int]) -> np.ndarray:
    values, vectors = np.linalg.eigh(nx.normalized_laplacian_matrix(graph, nodes).toarray())
    return pairwise_distances(vectors * np.exp(-values))


def resistance(graph: nx.Graph, nodes: list[int]) -> np.ndarray:
    distances = nx.resistance_distance(graph)
    return np.array([[distances[a][b] for b in nodes] for a in nodes])


def shortest_path(graph: nx.Graph, nodes: list[int]) -> np.ndarray:
    return np.asarray(nx.floyd_warshall_numpy(graph, nodes))


METRICS = {
    "diffusion_distance": diffusion,
    "heat_kernel_distance": heat_kernel,
    "resistance_distance": resistance,
    "shortest_path_distance": shortest_path,
}


def main() -> None:
    with tempfile.TemporaryDirectory() as root, threadpool_limits(1):
        build("dihalo", root=root, graphs=GRAPHS, rings=False)
        folder = Path(root) / "dihalo" / "seed-0"
        batch = Batch.from_data_list(list(DiHaloBenzene(root)))
        # The peer gets a tenth of the graphs; its time is proportional to their number.
        datas = batch.to_data_list()[: GRAPHS // 10]
        ratios = {}
        for metric in METRICS:
            ours = mode_complementarities(batch.x, batch.edge_index, batch.ptr, metric)
            np.testing.assert_allclose(ours[: len(datas)], by_networkx(datas, metric), atol=1e-6)
            seconds = best_seconds(
                {
                    "networkx": lambda m=metric: by_networkx(datas, m),
                    "ours": lambda m=metric: mode_complementarities(
                        batch.x, batch.edge_index, batch.ptr, m
                    ),
                },
                rounds=3,
            )
            ratios[f"{metric}, times networkx"] = round(
                10 * seconds["networkx"] / seconds["ours"], 1
            )
        start = time.perf_counter()
        check(folder)
        quick = time.perf_counter() - start
        ratios["quick check, seconds per thousand graphs"] = round(quick, 2)
        start = time.perf_counter()
        measure_floors(folder, Manifest.load(folder))
        ratios["floors, share of the quick check"] = round((time.perf_counter() - start) / quick, 2)
    print(json.dumps(ratios, indent=2))


if __name__ == "__main__":
    main()
