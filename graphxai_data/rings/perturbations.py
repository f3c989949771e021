"""The modes of RINGS as PyG transforms, for single graphs and for whole batches."""

from typing import Any

import numpy as np
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.transforms import BaseTransform

from graphxai_data.errors import InputError, known_name
from graphxai_data.graphs.union import Graphs
from graphxai_data.rings.modes import MODES, as_rows, digest, in_mode, tidy_edges
from graphxai_data.seeds import rng_for


class Perturbation(BaseTransform):
    """Transforms a graph, or a batch, into a mode of `graphxai_data.rings.modes`.

    Random numbers depend on the seed and on the graph (or batch) alone: the result is always the
    same, in any order, and global random generators are not used.

    Args:
        mode: one of `graphxai_data.rings.modes.MODES`.
        seed: seed of random modes.
        max_nodes: for complete_features, the width of the one-hot node index; give it where all
            graphs of a dataset must have the same width.
    """

    def __init__(self, mode: str, seed: int = 0, max_nodes: int | None = None) -> None:
        self.mode = known_name("mode", mode, MODES)
        self.seed, self.max_nodes = seed, max_nodes

    def forward(self, data: Any) -> Any:
        """Return a perturbed copy of a `Data` or `Batch`; other graph and node values stay."""
        if self.mode == "original":
            return data
        graphs = _graphs_of(data)
        stream = f"rings/{self.mode}/{digest(graphs.x, graphs.edges, graphs.node_ptr)}"
        changed = in_mode(graphs, self.mode, rng_for(self.seed, stream), self.max_nodes)
        result = data.clone()
        result.x = torch.from_numpy(np.ascontiguousarray(changed.x)).to(data.x.device)
        if changed.edges is not graphs.edges:
            # Other edge values (weights, masks) belong to edges that are gone.
            for key in set(data.edge_attrs()) - {"edge_index", "edge_attr"}:
                del result[key]
            result.edge_index = torch.from_numpy(changed.edges).to(data.edge_index.device)
            if changed.edge_attr is not None:
                attributes = torch.from_numpy(np.ascontiguousarray(changed.edge_attr))
                result.edge_attr = attributes.to(data.edge_attr.device)
            if isinstance(data, Batch):
                _mend_slices(result, changed)
        return result

    def __repr__(self) -> str:
        return f"{type(self).__name__}('{self.mode}', seed={self.seed})"


def perturb(data: Any, mode: str, seed: int = 0, max_nodes: int | None = None) -> Any:
    """Return a PyG `Data` or `Batch` in another mode; arguments as for `Perturbation`."""
    return Perturbation(mode, seed, max_nodes)(data)


def _mend_slices(batch: Batch, graphs: Graphs) -> None:
    """Update where the edges of each graph are, so that a batch can be split into graphs again."""
    edge_ptr = torch.from_numpy(np.searchsorted(graphs.edges[0], graphs.node_ptr))
    for book in (batch._slice_dict, batch._inc_dict):
        for key in [key for key in book if key not in batch]:
            del book[key]
    for key in ("edge_index", "edge_attr"):
        if key in batch._slice_dict:
            batch._slice_dict[key] = edge_ptr


def _graphs_of(data: Data) -> Graphs:
    if data.x is None or data.edge_index is None:
        raise InputError("data: expected a graph with x and edge_index")
    x = as_rows(data.x.detach().cpu())
    ptr = data.ptr.cpu().numpy() if "ptr" in data else np.array([0, len(x)])
    attributes = data.edge_attr.detach().cpu().numpy() if data.edge_attr is not None else None
    edges, attributes = tidy_edges(data.edge_index.cpu().numpy(), attributes, len(x))
    return Graphs(x, edges, attributes, ptr.astype(np.int64))
