"""From ogbg-molhiv's files to graphs: ours against OGB's own reader.

Run with `python -m benchmarks.molhiv --raw DIR`. DIR holds the files that OGB publishes, or a table
of SMILES and the splits. OGB's files are then written from its graphs first.
"""

import argparse
import contextlib
import gzip
import io
import json
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
from ogb.io.read_graph_pyg import read_graph_pyg
from torch_geometric.data import Data, InMemoryDataset

from benchmarks.timing import best_seconds
from graphxai_data.building.plan import make_plan, read_sources
from graphxai_data.files.raw import Source, read_member
from graphxai_data.generators import molhiv, ogb_files
from graphxai_data.graphs.columns import Columns
from graphxai_data.recipe import Recipe
from graphxai_data.sources import find_sources


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--raw", type=Path, required=True, help="folder of the files")
    raw = parser.parse_args().raw
    recipe = Recipe.load("molhiv")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_published(recipe, raw, folder)

        def theirs() -> Data:
            quiet = io.StringIO()
            with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
                graphs = read_graph_pyg(str(folder / "raw"), add_inverse_edge=True)
            label = pd.read_csv(folder / "raw" / "graph-label.csv.gz", header=None).values
            for graph, y in zip(graphs, label, strict=True):
                graph.y = int(y[0])
            return InMemoryDataset.collate(graphs)[0]

        sources = find_sources(recipe, {"molhiv": folder})  # files are hashed before they are read

        def ours() -> Columns:
            return _columns(recipe, sources)

        seconds = best_seconds({"OGB": theirs, "ours": ours}, rounds=3)
        data, columns = theirs(), ours()
    assert np.array_equal(data.x.numpy(), columns["x"])
    assert data.num_edges == columns["edge_index"].shape[1]
    assert np.array_equal(data.y.numpy(), columns["y"])
    print(json.dumps({"times faster than OGB": round(seconds["OGB"] / seconds["ours"], 1)}))


def _columns(recipe: Recipe, sources: dict[str, Source]) -> Columns:
    """Return all molecules as a build generates them before it writes shards."""
    molhiv.read_molecules.cache_clear()
    plan = make_plan(recipe, 0, recipe.params.graphs, sources)
    plan, _ = read_sources(plan, recipe, sources, 0)
    return recipe.generator_object.generate(plan, 0)


def _write_published(recipe: Recipe, raw: Path, folder: Path) -> None:
    """Write the graphs of the raw files in the format that OGB publishes, gzipped."""
    sources = find_sources(recipe, {"molhiv": raw})
    columns = _columns(recipe, sources)
    molecules = molhiv.read_molecules(sources["molhiv"])
    once = columns["edge_index"][0] < columns["edge_index"][1]
    tables: dict[str, Iterable[Iterable[object]]] = {
        ogb_files.ATOMS: columns["x"].tolist(),
        ogb_files.ENDS: columns["edge_index"][:, once].T.tolist(),
        ogb_files.BONDS: columns["edge_attr"][once].tolist(),
        ogb_files.ATOM_COUNTS: np.diff(columns["node_ptr"])[:, None].tolist(),
        ogb_files.BOND_COUNTS: (np.diff(columns["edge_ptr"]) // 2)[:, None].tolist(),
        ogb_files.LABELS: columns["y"][:, None].tolist(),
        ogb_files.MAPPING: [
            ("HIV_active", "smiles"),
            *zip(columns["y"].tolist(), molecules.smiles, strict=True),
        ],
    }
    texts = {name: "".join(",".join(map(str, r)) + "\n" for r in t) for name, t in tables.items()}
    texts |= {name: read_member(raw, name).decode() for name in molhiv.SPLIT_FILES}
    for name, text in texts.items():
        path = folder / f"{name}.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.encode()))


if __name__ == "__main__":
    main()
