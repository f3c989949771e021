"""Datasets for PyTorch Geometric, straight from the shards: no object per graph, no pickle."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.explain import Explanation

from graphxai_data.build import build
from graphxai_data.columns import Columns
from graphxai_data.errors import InputError
from graphxai_data.manifest import MANIFEST_NAME, Manifest
from graphxai_data.recipe import Recipe
from graphxai_data.record import SPLIT_NAMES, Feature, Schema
from graphxai_data.shards import ShardReader

_NODE_LEVEL = ("x", "node_mask")
_EDGE_LEVEL = ("edge_index", "edge_attr", "edge_mask")
_GRAPH_LEVEL = ("y", "graph_id", "group", "split")


class GraphXAIData(Data):
    """A PyG `Data` with its ground truth: `node_mask` [n] bool and `edge_mask` [m] bool."""

    def to_explanation(self) -> Explanation:
        """The ground truth as a PyG `Explanation` that passes its own `validate()`."""
        explanation = Explanation(
            x=self.x,
            edge_index=self.edge_index,
            edge_attr=self.edge_attr,
            y=self.y,
            node_mask=self.node_mask.to(torch.float32).unsqueeze(1),
            edge_mask=self.edge_mask.to(torch.float32),
        )
        explanation.validate()
        return explanation


class GraphXAIDataset(InMemoryDataset):
    """A built dataset as a PyG `InMemoryDataset`; what is not built yet is built first.

    Every graph has `x` [n, p], `edge_index` [2, m], `edge_attr` [m, q] (where the dataset has
    edge features), `y` [1], `node_mask` [n] bool, `edge_mask` [m] bool, `graph_id` [1],
    `group` [1] and `split` [1] (0 train, 1 valid, 2 test).

    Args:
        root: folder of all builds, as for `graphxai_data.build`.
        name: a shipped dataset or the path of a recipe file.
        seed: which build.
        split: "train", "valid" or "test" for those graphs only.
        transform: applied to a graph whenever it is taken.
        pre_transform: applied to every graph once, on loading.
        pre_filter: keeps the graphs it is true for, on loading; asked before `pre_transform`.
        force_reload: delete the build and make it again.
    """

    def __init__(
        self,
        root: str | Path,
        name: str | Path,
        seed: int = 0,
        split: str | None = None,
        transform: Callable[[Any], Any] | None = None,
        pre_transform: Callable[[Any], Any] | None = None,
        pre_filter: Callable[[Any], bool] | None = None,
        force_reload: bool = False,
    ) -> None:
        if split is not None and split not in SPLIT_NAMES:
            raise InputError(f"split: expected one of {', '.join(SPLIT_NAMES)}, got {split!r}")
        super().__init__(str(root), transform, pre_transform, pre_filter)
        recipe = Recipe.load(name)
        self.name = recipe.name
        self.seed = seed
        self.split = split
        self.folder = Path(root) / recipe.name / f"seed-{seed}"
        self.manifest = self._open_build(recipe, force_reload)
        self._load()

    @property
    def num_classes(self) -> int:
        """Number of classes of the dataset, whichever split is loaded."""
        return self._schema.num_classes

    def get_idx_split(self) -> dict[str, Tensor]:
        """Positions of the graphs of each split, as OGB datasets give them."""
        if self.split is not None:
            raise InputError(f"only split '{self.split}' is loaded; load the dataset without split")
        of_graph = self._data.split
        return {n: (of_graph == i).nonzero().flatten() for i, n in enumerate(SPLIT_NAMES)}

    def to_explanation(self, i: int) -> Explanation:
        """The ground truth of graph i as a PyG `Explanation`."""
        return self[i].to_explanation()

    def __repr__(self) -> str:
        split = f", split={self.split!r}" if self.split else ""
        return f"{type(self).__name__}({self.name!r}, {len(self)} graphs, seed={self.seed}{split})"

    def _open_build(self, recipe: Recipe, force_reload: bool) -> Manifest:
        if force_reload and (self.folder / MANIFEST_NAME).is_file():
            shutil.rmtree(self.folder)
        if not self.folder.exists():
            return build(recipe, self.seed, self.root)
        manifest = Manifest.load(self.folder)
        if (manifest.recipe_sha256, manifest.seed) != (recipe.sha256, self.seed):
            raise InputError(
                f"{self.folder}: built from another version of recipe '{recipe.name}'; "
                "pass force_reload=True to build it anew, or use another root"
            )
        return manifest

    def _load(self) -> None:
        """Concatenate the shards and map their pointers onto PyG's `data, slices`."""
        entries = self.manifest.shards
        shards = [ShardReader(self.folder / e.name, e.file_sha256) for e in entries]
        self._schema: Schema = shards[0].schema
        self._data, self.slices = self._assemble([shard.columns for shard in shards])
        if self.pre_filter is not None or self.pre_transform is not None:
            self._data, self.slices = self._transformed()

    def _assemble(self, columns: list[Columns]) -> tuple[GraphXAIData, dict[str, Tensor]]:
        store = {
            key: torch.from_numpy(
                np.concatenate([c[key] for c in columns], axis=1 if key == "edge_index" else 0)
            )
            for key in columns[0]
            if key not in ("node_ptr", "edge_ptr")
        }
        pointers = {
            "node": _join_pointers([c["node_ptr"] for c in columns]),
            "edge": _join_pointers([c["edge_ptr"] for c in columns]),
        }
        if self.split is not None:
            wanted = store["split"] == SPLIT_NAMES.index(self.split)
            store, pointers = _select(store, pointers, wanted)
        slices = dict.fromkeys(_NODE_LEVEL, pointers["node"])
        slices |= {key: pointers["edge"] for key in _EDGE_LEVEL if key in store}
        slices |= {key: torch.arange(len(store["y"]) + 1) for key in _GRAPH_LEVEL}
        store["x"] = _expand(store["x"], self._schema.node_features)
        store["edge_index"] = store["edge_index"].to(torch.int64)
        store["split"] = store["split"].to(torch.int64)
        if self._schema.edge_features is not None:
            store["edge_attr"] = _expand(store["edge_attr"], self._schema.edge_features)
        return GraphXAIData.from_dict(store), slices

    def _transformed(self) -> tuple[Any, Any]:
        graphs = [self.get(i) for i in range(self.len())]
        if self.pre_filter is not None:
            graphs = [graph for graph in graphs if self.pre_filter(graph)]
        if self.pre_transform is not None:
            graphs = [self.pre_transform(graph) for graph in graphs]
        if not graphs:
            raise InputError(f"{self.name}: pre_filter keeps none of the graphs")
        self._data_list = None
        data, slices = self.collate(graphs)
        return data, slices


class BA2Motif(GraphXAIDataset):
    """BA-2Motif: House or five-cycle (`variant=None`), or one of its variants ("balanced")."""

    def __init__(self, root: str | Path, variant: str | None = None, **options: Any) -> None:
        super().__init__(root, "ba2motif" + (f"-{variant}" if variant else ""), **options)


def _join_pointers(pointers: list[Any]) -> Tensor:
    lengths = np.concatenate([np.diff(p) for p in pointers])
    return torch.from_numpy(np.concatenate([[0], np.cumsum(lengths)]))


def _select(
    store: dict[str, Tensor], pointers: dict[str, Tensor], wanted: Tensor
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The graphs for which `wanted` [g] is true."""
    rows = {level: wanted.repeat_interleave(ptr.diff()) for level, ptr in pointers.items()}
    kept = {}
    for key, tensor in store.items():
        if key == "edge_index":
            kept[key] = tensor[:, rows["edge"]]
        elif key in _NODE_LEVEL:
            kept[key] = tensor[rows["node"]]
        else:
            kept[key] = tensor[rows["edge"] if key in _EDGE_LEVEL else wanted]
    cut = {
        level: torch.cat([torch.zeros(1, dtype=torch.int64), ptr.diff()[wanted].cumsum(0)])
        for level, ptr in pointers.items()
    }
    return kept, cut


def _expand(stored: Tensor, feature: Feature) -> Tensor:
    """[rows, width] float32."""
    if feature.encoding == "dense":
        return stored
    return torch.eye(feature.width).index_select(0, stored.to(torch.int32))
