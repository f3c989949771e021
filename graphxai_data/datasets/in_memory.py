"""Datasets for PyTorch Geometric, straight from the shards: no object per graph, no pickle."""

import logging
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.explain import Explanation

from graphxai_data.building.build import build
from graphxai_data.datasets.base import OpenedBuild, checked_split, checked_unsplit
from graphxai_data.errors import InputError
from graphxai_data.files.urls import is_url, local_path
from graphxai_data.graphs.columns import Columns
from graphxai_data.graphs.record import SPLIT_NAMES, Feature
from graphxai_data.graphs.shards import ShardReader
from graphxai_data.manifest import Manifest
from graphxai_data.recipe import Recipe
from graphxai_data.remote import RemoteBuild, opened

if TYPE_CHECKING:
    from matplotlib.figure import Figure

log = logging.getLogger(__name__)

_NODE_LEVEL = ("x", "node_mask", "node_y")
_EDGE_LEVEL = ("edge_index", "edge_attr", "edge_mask")


class GraphXAIData(Data):
    """A PyG `Data` with its ground truth, where one is known: `node_mask` [n], `edge_mask` [m]."""

    def to_explanation(self) -> Explanation:
        """The ground truth as a PyG `Explanation` that passes its own `validate()`."""
        if "node_mask" not in self:
            raise InputError("no rationale is known of this graph: there is nothing to explain by")
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


class GraphXAIDataset(OpenedBuild, InMemoryDataset):
    """A built dataset as a PyG `InMemoryDataset`; what is not built yet is built first.

    Every graph has `x` [n, p], `edge_index` [2, m], `edge_attr` [m, q] (where the dataset has
    edge features), `y` [1], or [n] where nodes have classes, `graph_id` [1], `group` [1] and
    `split` [1] (0 train, 1 valid, 2 test); and where a rationale is known (`has_rationale`),
    `node_mask` [n] bool and `edge_mask` [m] bool.

    Args:
        root: folder of all builds, or its URL, as for `graphxai_data.build`; what lies at a URL is
            fetched into the cache once.
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
        checked_split(split)
        recipe = Recipe.load(name)
        there = RemoteBuild.at(root, recipe.name, seed) if is_url(root) else None
        here = local_path(root) if there is None else there.root
        super().__init__(str(here), transform, pre_transform, pre_filter)
        self.name = recipe.name
        self.seed = seed
        self.split = split
        self.url = there.url if there else None
        with there.named() if there else nullcontext():
            self.folder, self.manifest = open_build(root, recipe, seed, force_reload)
            self._load()

    @classmethod
    def from_folder(cls, folder: str | Path) -> "GraphXAIDataset":
        """The dataset of a build folder, wherever it lies and whatever it is called."""
        with opened(folder, extras=False) as (path, there):
            manifest = Manifest.load(path)
            dataset = GraphXAIDataset.__new__(GraphXAIDataset)
            InMemoryDataset.__init__(dataset, str(path.parent.parent))
            dataset.name, dataset.seed, dataset.split = manifest.dataset, manifest.seed, None
            dataset.folder, dataset.manifest = path, manifest
            dataset.url = there.url if there else None
            dataset._load()
            return dataset

    def get_idx_split(self) -> dict[str, Tensor]:
        """Positions of the graphs of each split, as OGB datasets give them."""
        checked_unsplit(self.split)
        return split_positions(self._data.split, self.indices())

    def to_explanation(self, i: int) -> Explanation:
        """The ground truth of graph i as a PyG `Explanation`."""
        return self[i].to_explanation()

    def draw(self, i: int, scores: Any = None) -> "Figure":
        """A figure of graph i with its rationale, for notebooks and papers.

        Args:
            i: position, as in `dataset[i]`.
            scores: [n] of its nodes, drawn beside: red if positive, blue if negative.
        """
        from graphxai_data.drawing.graphs import drawing

        return drawing(self[i], scores)

    def __repr__(self) -> str:
        split = f", split={self.split!r}" if self.split else ""
        return f"{type(self).__name__}({self.name!r}, {len(self)} graphs, seed={self.seed}{split})"

    def _load(self) -> None:
        """Concatenate the shards and map their pointers onto PyG's `data, slices`."""
        entries = self.manifest.shards
        shards = [ShardReader(self.folder / e.name, file_crc32=e.file_crc32) for e in entries]
        self._schema = shards[0].schema
        self._data, self.slices = self._assemble([shard.columns for shard in shards])
        if self.pre_filter is not None or self.pre_transform is not None:
            self._data, self.slices = self._transformed()

    def _assemble(self, columns: list[Columns]) -> tuple[GraphXAIData, dict[str, Tensor]]:
        node_ptr, edge_ptr = (
            _join_pointers([c[key] for c in columns]) for key in ("node_ptr", "edge_ptr")
        )
        graphs = len(node_ptr) - 1
        pointers = {
            "node": node_ptr, "edge": edge_ptr, "graph": torch.arange(graphs + 1),
        }  # fmt: skip
        level = dict.fromkeys(_NODE_LEVEL, "node") | dict.fromkeys(_EDGE_LEVEL, "edge")
        level |= {extra.name: extra.level for extra in self._schema.extras}
        texts = {
            extra.name: Texts.join([(c[extra.name], c[f"{extra.name}_ptr"]) for c in columns])
            for extra in self._schema.extras
            if extra.level == "text"
        }
        store = {
            key: torch.from_numpy(
                np.concatenate([c[key] for c in columns], axis=1 if key == "edge_index" else 0)
            )
            for key in columns[0]
            if key not in texts and not key.endswith("_ptr")
        }
        if self.split is not None:
            wanted = store["split"] == SPLIT_NAMES.index(self.split)
            rows = {at: wanted.repeat_interleave(ptr.diff()) for at, ptr in pointers.items()}
            for key, tensor in store.items():
                kept = rows[level.get(key, "graph")]
                store[key] = tensor[:, kept] if key == "edge_index" else tensor[kept]
            texts = {key: text.where(wanted) for key, text in texts.items()}
            pointers = {at: _pointers(ptr.diff()[wanted]) for at, ptr in pointers.items()}

        if "node_y" in store:  # as users of PyG know classes of nodes
            store["y"] = store.pop("node_y").to(torch.int64)
            level["y"] = "node"
        slices = {key: pointers[level.get(key, "graph")] for key in store}
        slices |= dict.fromkeys(texts, pointers["graph"])
        store["x"] = _expand(store["x"], self._schema.node_features)
        store["edge_index"] = store["edge_index"].to(torch.int64)
        store["split"] = store["split"].to(torch.int64)
        if self._schema.edge_features is not None:
            store["edge_attr"] = _expand(store["edge_attr"], self._schema.edge_features)
        if len(pointers["graph"]) == 2:  # of a single graph PyG gives the storage itself
            return GraphXAIData.from_dict(store | {k: text[0] for k, text in texts.items()}), slices
        return GraphXAIData.from_dict(store | texts), slices

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


def split_positions(split: Tensor, chosen: Sequence[int]) -> dict[str, Tensor]:
    """Positions among the chosen graphs of those of each split, by the `split` [g] of all."""
    of_graph = split[list(chosen)]
    return {n: (of_graph == i).nonzero().flatten() for i, n in enumerate(SPLIT_NAMES)}


def open_build(
    root: str | Path, recipe: Recipe, seed: int, force_reload: bool = False
) -> tuple[Path, Manifest]:
    """Folder and manifest of a build under `root`; what is not built yet is built first.

    What lies at a URL is fetched into the cache, and the folder is there.
    """
    if is_url(root):
        there = RemoteBuild.at(root, recipe.name, seed)
        with there.named():
            if force_reload or not there.exists():
                build(recipe, seed, root, replace_existing=force_reload, wait=True)
            there.fetch(extras=False)
            return open_build(there.root, recipe, seed)
    root = local_path(root)
    folder = root / recipe.name / f"seed-{seed}"
    if force_reload or not folder.exists():
        return folder, build(recipe, seed, root, replace_existing=force_reload, wait=True)
    manifest = Manifest.load(folder)
    for key, wanted in (("recipe_sha256", recipe.sha256), ("seed", seed)):
        if getattr(manifest, key) != wanted:
            raise InputError(
                f"{folder}: another build of '{recipe.name}' ({key} "
                f"{getattr(manifest, key)}, expected {wanted}); "
                "pass force_reload=True to build it anew, or use another root"
            )
    if manifest.graphs != recipe.params.graphs:
        usual = recipe.params.graphs
        log.warning("%s has %d graphs, its recipe %d", folder, manifest.graphs, usual)
    return folder, manifest


class _NamedDataset(GraphXAIDataset):
    """A dataset whose recipe is known by its class; `variant` is the rest of a recipe's name."""

    _recipe: str

    def __init__(
        self,
        root: str | Path,
        seed: int = 0,
        split: str | None = None,
        transform: Callable[[Any], Any] | None = None,
        pre_transform: Callable[[Any], Any] | None = None,
        pre_filter: Callable[[Any], bool] | None = None,
        force_reload: bool = False,
        *,
        variant: str | None = None,
    ) -> None:
        name = self._recipe + (f"-{variant}" if variant else "")
        super().__init__(
            root, name, seed, split, transform, pre_transform, pre_filter, force_reload
        )


class BA2Motif(_NamedDataset):
    """BA-2Motif: a House or a five-cycle on a Barabási–Albert graph.

    Variant "balanced": without the shortcut that degrees give. Other arguments as for
    `GraphXAIDataset`.
    """

    _recipe = "ba2motif"


class DiHaloBenzene(_NamedDataset):
    """Di-Halo-Benzene: one of nine isomers grafted on a ZINC molecule.

    Every graph has its `smiles`, and `smiles_atom` [n]: which atom of
    `Chem.AddHs(Chem.MolFromSmiles(smiles))` a node is. Variants: "nonet" (all nine isomers on every
    background), "decoy" (halogens elsewhere, too), "heavy" (no hydrogens). Other arguments as for
    `GraphXAIDataset`.
    """

    _recipe = "dihalo"


class MNIST75sp(_NamedDataset):
    """MNIST-75sp: handwritten digits as graphs of superpixels, the ink is the rationale.

    Every graph has `pos` [n, 2], the centres of its superpixels; `segments` [1, 28, 28], the node
    of every pixel (so that `scores[segments.long()]` is a picture); and `image_id` [1], the image's
    place in MNIST, test images from 60,000. Without variant the paper's tau = 0.1 is taken as a
    distance, which leaves most nodes isolated; variants: "r23" (tau as a bound on the edge weight),
    "knn" (8 nearest), "nopos" (intensities only), "gated" (no ink, no features). Other arguments as
    for `GraphXAIDataset`.
    """

    _recipe = "mnist75sp"


class NCI1(_NamedDataset):
    """NCI1: molecules that were or were not active in a screen against lung cancer.

    For predictions only: no rationale is known. Built from TUDataset's files, which are downloaded;
    where there is no network, `graphxai-data build nci1 --source nci1=DIR` takes them from a folder
    or zip archive. Arguments as for `GraphXAIDataset`.
    """

    _recipe = "nci1"


class MolHIV(_NamedDataset):
    """ogbg-molhiv: molecules that do or do not inhibit HIV, with OGB's encodings and split.

    For predictions only: no rationale is known. OGB's nine values of an atom and three of a bond
    are one-hot features side by side, 174 and 13 wide, so that a linear layer of them is what OGB's
    encoders are; some 800 MB in memory. `graphxai-data build molhiv --source molhiv=DIR` builds it
    first. Arguments as for `GraphXAIDataset`.
    """

    _recipe = "molhiv"


class Pattern(_NamedDataset):
    """PATTERN: which nodes of a stochastic block model belong to a planted pattern.

    For predictions only, of nodes: `y` is [n]. Arguments as for `GraphXAIDataset`.
    """

    _recipe = "pattern"


class Texts(Sequence[str]):
    """Many strings as one array of UTF-8 bytes; each is decoded when it is asked for."""

    def __init__(self, content: npt.NDArray[np.uint8], ptr: npt.NDArray[np.int64]) -> None:
        self._content = content
        self._ptr = ptr

    @classmethod
    def join(cls, parts: list[tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]]) -> "Texts":
        """The texts of several shards, one after the other."""
        content = np.concatenate([content for content, _ in parts])
        return cls(content, _join_pointers([ptr for _, ptr in parts]).numpy())

    def where(self, wanted: Tensor) -> "Texts":
        """The texts for which `wanted` [g] is true."""
        chosen = wanted.numpy()
        lengths = np.diff(self._ptr)
        ptr = _pointers(torch.from_numpy(lengths[chosen])).numpy()
        return Texts(self._content[np.repeat(chosen, lengths)], ptr)

    @overload
    def __getitem__(self, i: int) -> str: ...

    @overload
    def __getitem__(self, i: slice) -> list[str]: ...

    def __getitem__(self, i: int | slice) -> str | list[str]:
        if isinstance(i, slice):
            return [self[k] for k in range(*i.indices(len(self)))]
        i = range(len(self))[i]
        return self._content[self._ptr[i] : self._ptr[i + 1]].tobytes().decode()

    def __len__(self) -> int:
        return len(self._ptr) - 1


def _join_pointers(pointers: list[Any]) -> Tensor:
    return _pointers(torch.from_numpy(np.concatenate([np.diff(p) for p in pointers])))


def _pointers(lengths: Tensor) -> Tensor:
    return torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])


def _expand(stored: Tensor, feature: Feature) -> Tensor:
    """[rows, width] float32."""
    if feature.encoding == "dense":
        return stored
    if feature.encoding == "multihot":
        first = torch.tensor([0, *feature.widths[:-1]]).cumsum(0)
        rows = torch.zeros((len(stored), feature.width))
        return rows.scatter_(1, stored.to(torch.int64) + first, 1.0)
    identity = torch.eye(feature.width, dtype=torch.float32, device="cpu")
    return identity.index_select(0, stored.to(torch.int32))
