"""From NCI1's text files to graphs: ours against PyG's TUDataset.

Run with `python -m benchmarks.nci1 --raw DIR`. DIR holds the four files of TUDataset.
"""

import argparse
import json
import tempfile
from pathlib import Path

import numpy as np
from torch_geometric.datasets import TUDataset

from benchmarks.timing import best_seconds
from graphxai_data.building.plan import make_plan, read_sources
from graphxai_data.files.raw import read_member
from graphxai_data.generators.nci1 import NCI1Generator
from graphxai_data.generators.tu_files import read_tu
from graphxai_data.graphs.columns import Columns
from graphxai_data.recipe import Recipe
from graphxai_data.sources import find_sources


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--raw", type=Path, required=True, help="folder of the four files")
    raw = parser.parse_args().raw
    recipe = Recipe.load("nci1")
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder) / "NCI1" / "raw"
        files.mkdir(parents=True)
        for name in NCI1Generator.sources["nci1"]:  # plain files for both
            (files / name).write_bytes(read_member(raw, name))
        sources = find_sources(recipe, {"nci1": files})

        def ours() -> Columns:
            read_tu.cache_clear()
            plan = make_plan(recipe, 0, recipe.params.graphs, sources)
            plan, _ = read_sources(plan, recipe, sources, 0)
            return recipe.generator_object.generate(plan, 0)

        def theirs() -> TUDataset:
            return TUDataset(folder, "NCI1", force_reload=True)

        seconds = best_seconds({"PyG": theirs, "ours": ours}, rounds=5)
        dataset, columns = theirs(), ours()
    assert len(dataset) == len(columns["y"])
    assert np.array_equal(dataset._data.y.numpy(), columns["y"])
    assert np.array_equal(dataset._data.edge_index.numpy(), columns["edge_index"])
    assert np.array_equal(dataset._data.x.argmax(dim=1).numpy(), columns["x"])
    print(json.dumps({"times faster than PyG": round(seconds["PyG"] / seconds["ours"], 1)}))


if __name__ == "__main__":
    main()
