"""BA-2Motif graphs per second in one process: ours against PyG's `ExplainerDataset`.

Run with `python -m benchmarks.build`. Ours checks invariants and writes the bytes of a shard; PyG's
stops at the graph.
"""

import json

from torch_geometric.datasets import ExplainerDataset
from torch_geometric.datasets.graph_generator import BAGraph

from benchmarks.timing import best_seconds
from graphxai_data.building.build import ShardTask, make_shard
from graphxai_data.building.plan import make_plan
from graphxai_data.recipe import Recipe

GRAPHS = 1000
# ExplainerDataset has a fixed base size; 19 nodes is closest to our mean of 18.7.
BASE_NODES = 19


def main() -> None:
    recipe = Recipe.load("ba2motif")
    plan = make_plan(recipe, seed=0, graphs=GRAPHS)
    task = ShardTask("shard", recipe, seed=0, plan=plan)
    seconds = best_seconds(
        {
            "ours, to the shard": lambda: make_shard(task),
            "ours, graphs alone": lambda: recipe.generator_object.generate(plan, seed=0),
            "PyG": lambda: ExplainerDataset(
                BAGraph(BASE_NODES, 1), "house", num_motifs=1, num_graphs=GRAPHS
            ),
        },
        rounds=5,
    )
    pyg = seconds.pop("PyG")
    ratios = {f"{name}: times PyG's graphs/s": round(pyg / s, 1) for name, s in seconds.items()}
    print(json.dumps(ratios | {"PyG graphs/s": round(GRAPHS / pyg)}, indent=2))


if __name__ == "__main__":
    main()
