"""Datasets for PyTorch Geometric, straight from the shards: no object per graph, no pickle."""

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import InMemoryDataset
from torch_geometric.explain import Explanation

from graphxai_data.datasets.base import Build
from graphxai_data.datasets.data import GraphXAIData, Texts, as_tensor, pyg_fields
from graphxai_data.datasets.masks import lose_masks, mark_collated, why_lost
from graphxai_data.datasets.pyg_methods import PyGMethods
from graphxai_data.datasets.records import read_shard
from graphxai_data.datasets.transformed import Graphs, kept
from graphxai_data.datasets.watched import transformed
from graphxai_data.errors import InputError
from graphxai_data.graphs.columns import Columns, Ints, pointers
from graphxai_data.graphs.record import SPLIT_NAMES
from graphxai_data.graphs.schema import Schema
from graphxai_data.progress import Progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class GraphXAIDataset(PyGMethods, InMemoryDataset):
    """A build as a PyG `InMemoryDataset`; a missing build is built first.

    Every graph has `x` [n, p], `edge_index` [2, m], `edge_attr` [m, q] (where the dataset has
    edge features), `y` [1], or [n] where nodes have classes, `graph_id` [1], `group` [1] and
    `split` [1] (0 train, 1 valid, 2 test). `y` is a class, or a float32 where `label` is "number".
    Where a rationale is known (`has_rationale`), it has `node_mask` [n] bool, `edge_mask` [m] bool
    and `alternatives` [a, n] bool: none if the rationale is null (`has_null`), several if any of
    them explains the label (`has_alternatives`). Where `has_weights`, it has `node_weight` [n].

    Args:
        root: folder of all builds, or its URL, as for `graphxai_data.build`; a build at a URL is
            fetched into the cache once.
        name: a shipped dataset or the path of a recipe file.
        seed: which build.
        split: "train", "valid" or "test" for those graphs only.
        transform: applied to a graph whenever it is taken.
        pre_transform: applied to every graph once. The result is kept in the folder of the build
            and loaded from there until the graphs, the callables or their code change.
        pre_filter: keeps the graphs for which it is true, before `pre_transform`; kept as well.
        force_reload: delete the build and build it again.
        graphs: build this many graphs instead of the recipe's number, as `--graphs` does; an
            existing build of another size is refused.
        progress: called with (graphs done, graphs in all, what is being done) while building, such
            as `print`; None is silent.
    """

    def __init__(
        self,
        root: str | Path | Build,
        name: str | Path,
        seed: int = 0,
        split: str | None = None,
        transform: Callable[[Any], Any] | None = None,
        pre_transform: Callable[[Any], Any] | None = None,
        pre_filter: Callable[[Any], bool] | None = None,
        force_reload: bool = False,
        *,
        graphs: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        with self._opened(root, name, seed, split, force_reload, graphs, progress):
            super().__init__(str(self.folder.parent.parent), transform, pre_transform, pre_filter)
            if pre_filter is None and pre_transform is None:
                self._data, self.slices = self._read()
                return
            place = Build(self.folder, self.manifest, self.url)
            found, self._kept_file = kept(place, self._choices(), self._processed)
            self._data, self.slices = found
            self._data_list = None

    def _choices(self) -> dict[str, object]:
        """Return what decides the graphs of this dataset, besides the build."""
        callables = {"pre_filter": self.pre_filter, "pre_transform": self.pre_transform}
        return {"split": self.split, **callables}

    def _read(self) -> Graphs:
        """Return the graphs of the shards."""
        shards = [read_shard(self.folder, entry) for entry in self.manifest.shards]
        columns = [shard.columns for shard in shards]
        self._schema = shards[0].schema
        return assemble(columns, self._schema, self.split)

    def _processed(self) -> Graphs:
        """Return the graphs of the shards after `pre_filter` and `pre_transform`."""
        self._data, self.slices = self._read()
        graphs = [self.get(i) for i in range(self.len())]
        if self.pre_filter is not None:
            graphs = [graph for graph in graphs if self.pre_filter(graph)]
        if self.pre_transform is not None:
            graphs = [transformed(graph, self.pre_transform, once=True) for graph in graphs]
        if not graphs:
            raise InputError(f"{self.name}: pre_filter keeps none of the graphs")
        # All graphs of a dataset have the same fields.
        if reason := next(filter(None, map(_why_lost, graphs)), None):
            for graph in graphs:
                lose_masks(graph, reason)
        return Graphs(*self.collate(graphs))

    @cached_property
    def _schema(self) -> Schema:
        """Return the schema in a shard, for results of `pre_transform` that were read instead."""
        return read_shard(self.folder, self.manifest.shards[0], check=False, mapped=True).schema

    def get_idx_split(self) -> dict[str, Tensor]:
        """Return the positions of the graphs of each split, as OGB datasets do."""
        return self._positions_by_split(self._data.split.cpu().numpy(), self.indices())

    def to_explanation(self, i: int) -> Explanation:
        """Return the ground truth of graph i as a PyG `Explanation`."""
        return self[i].to_explanation()

    def draw(self, i: int, scores: Any = None) -> "Figure":
        """Draw graph i with its rationale, for notebooks and papers.

        Args:
            i: position, as in `dataset[i]`.
            scores: [n] of its nodes, drawn next to it: red if positive, blue if negative.
        """
        from graphxai_data.drawing.graphs import drawing

        return drawing(self[i], scores)

    def __repr__(self) -> str:
        return self._shown(len(self))


def assemble(shards: list[Columns], schema: Schema, split: str | None) -> Graphs:
    """Concatenate the shards and map their pointers onto PyG's `data, slices`."""
    fields = pyg_fields(schema)
    split_ids = np.concatenate([shard["split"] for shard in shards])
    # By pointer (None: one row per graph): the number of rows of each graph.
    lengths: dict[str | None, Ints] = {None: np.ones(len(split_ids), np.int64)}
    for ptr in {column.pointer for column in fields.values() if column.pointer}:
        lengths[ptr] = np.concatenate([np.diff(shard[ptr]) for shard in shards])
    if split is not None:
        selected = split_ids == SPLIT_NAMES.index(split)
        rows = {ptr: np.repeat(selected, count) for ptr, count in lengths.items()}
        lengths = {ptr: count[selected] for ptr, count in lengths.items()}
    slices_of = {ptr: torch.from_numpy(pointers(count)) for ptr, count in lengths.items()}

    values: dict[str, Any] = {}
    slices: dict[str, Tensor] = {}
    for key, column in fields.items():
        stored = np.concatenate([shard[column.name] for shard in shards], axis=column.axis)
        if split is not None:
            stored = np.compress(rows[column.pointer], stored, axis=column.axis)
        if column.level == "text":
            texts = Texts(stored.tobytes(), slices_of[column.pointer].numpy())
            # PyG returns the storage itself where there is a single graph.
            values[key] = texts[0] if len(texts) == 1 else texts
            slices[key] = slices_of[None]
        else:
            values[key] = as_tensor(stored, column)
            slices[key] = slices_of[column.pointer]
    data = GraphXAIData()
    data._store._mapping.update(values)
    if len(slices_of[None]) > 2:
        mark_collated(data)
    return Graphs(data, slices)


def _why_lost(graph: object) -> str | None:
    return why_lost(graph) if isinstance(graph, GraphXAIData) else None


class _NamedDataset(GraphXAIDataset):
    """A dataset whose class names its recipe, up to a `variant`."""

    _recipe: str
    # A folder may hold a build of any recipe.
    from_folder = GraphXAIDataset.from_folder

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
        graphs: int | None = None,
        progress: Progress | None = None,
    ) -> None:
        name = self._recipe + (f"-{variant}" if variant else "")
        super().__init__(
            root, name, seed, split, transform, pre_transform, pre_filter, force_reload,
            graphs=graphs, progress=progress,
        )  # fmt: skip


class BA2Motif(_NamedDataset):
    """BA-2Motif: a House or a five-cycle on a Barabási–Albert graph.

    Variants: "balanced" (three coloured motifs, of which one counts; degrees are no shortcut),
    "pair-a", "pair-b" and "pair-both" (a red and a blue motif, of which one or both count). Graphs
    of the pair have `cause` [n], 1 for the red and 2 for the blue motif, and `cause_y` [1, 2], the
    classes of both. Other arguments as for `GraphXAIDataset`.
    """

    _recipe = "ba2motif"


class DiHaloBenzene(_NamedDataset):
    """Di-Halo-Benzene: one of nine isomers grafted on a ZINC molecule.

    Every graph has its `smiles`, and `smiles_atom` [n]: which atom of
    `Chem.AddHs(Chem.MolFromSmiles(smiles))` a node is. Variants: "nonet" (all nine isomers on every
    background), "decoy" (halogens on three rings), "heavy" (no hydrogens), "pair-a", "pair-b" and
    "pair-both" (two rings, one of which makes the class). Other arguments as for `GraphXAIDataset`.
    """

    _recipe = "dihalo"


class MNIST75sp(_NamedDataset):
    """MNIST-75sp: handwritten digits as graphs of superpixels; the ink is the rationale.

    Every graph has `pos` [n, 2], the centres of its superpixels; `segments` [1, 28, 28], the node
    of every pixel (so that `scores[segments.long()]` is a picture); and `image_id` [1], the image's
    position in MNIST, where test images start at 60,000. Without variant, the paper's tau = 0.1 is
    a distance, which leaves most nodes isolated. Variants: "r23" (tau as a bound on the edge
    weight), "knn" (8 nearest), "nopos" (intensities only), "gated" (no ink, no features). Other
    arguments as for `GraphXAIDataset`.
    """

    _recipe = "mnist75sp"


class NCI1(_NamedDataset):
    """NCI1: molecules that were or were not active in a screen against lung cancer.

    For prediction only: no rationale is known. TUDataset's files are downloaded; without network,
    `graphxai-data build nci1 --source nci1=DIR` takes them from a folder or zip archive. Arguments
    as for `GraphXAIDataset`.
    """

    _recipe = "nci1"


class MolHIV(_NamedDataset):
    """ogbg-molhiv: molecules that do or do not inhibit HIV, with OGB's encodings and split.

    For prediction only: no rationale is known. OGB's nine values per atom and three per bond are
    one-hot features next to each other, 174 and 13 wide, so a linear layer on them is equivalent to
    OGB's encoders; some 800 MB in memory. Run `graphxai-data build molhiv --source molhiv=DIR`
    first.

    Args:
        ogb_labels: `y` of a batch is [g, 1], as OGB's loop and `Evaluator` expect, instead of [g],
            as our own training expects.

    Other arguments as for `GraphXAIDataset`.
    """

    _recipe = "molhiv"
    num_tasks = 1
    task_type, eval_metric = "binary classification", "rocauc"

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
        graphs: int | None = None,
        progress: Progress | None = None,
        ogb_labels: bool = False,
    ) -> None:
        self.ogb_labels = ogb_labels
        super().__init__(
            root, seed, split, transform, pre_transform, pre_filter, force_reload,
            variant=variant, graphs=graphs, progress=progress,
        )  # fmt: skip

    def _choices(self) -> dict[str, object]:
        return super()._choices() | {"ogb_labels": self.ogb_labels}

    def _read(self) -> Graphs:
        graphs = super()._read()
        if self.ogb_labels:
            graphs.data.y = graphs.data.y.unsqueeze(1)
        return graphs


class Pattern(_NamedDataset):
    """PATTERN: which nodes of a stochastic block model belong to a planted pattern.

    For prediction only, per node: `y` is [n]. Arguments as for `GraphXAIDataset`.
    """

    _recipe = "pattern"
