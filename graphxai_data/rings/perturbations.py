"""The modes of RINGS as PyG transforms, for single graphs and for whole batches."""

import hashlib
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.transforms import BaseTransform

from graphxai_data.errors import InputError, nearest
from graphxai_data.rings.modes import MODES, Graphs, in_mode, tidy_edges
from graphxai_data.seeds import rng_for


class Perturbation(BaseTransform):
    """A graph, or a batch, in another mode; `graphxai_data.rings.modes` says what each mode keeps.

    What is random depends on the seed and on the graph (or batch) itself: the same comes out
    whenever it is asked for, in any order, and global random generators are left alone.

    Args:
        mode: one of `graphxai_data.rings.modes.MODES`.
        seed: of what is random.
        max_nodes: for complete_features, the width of node numbers; give it where all graphs of a
            dataset must have the same width.
    """

    def __init__(self, mode: str, seed: int = 0, max_nodes: int | None = None) -> None:
        if mode not in MODES:
            raise InputError(f"unknown mode '{mode}'; {nearest(mode, MODES)}")
        self.mode, self.seed, self.max_nodes = mode, seed, max_nodes

    def forward(self, data: Any) -> Any:
        """The perturbed copy of a `Data` or `Batch`; what is neither x nor an edge is kept."""
        if self.mode == "original":
            return data
        graphs = _graphs_of(data)
        stream = f"rings/{self.mode}/{_fingerprint(graphs)}"
        changed = in_mode(graphs, self.mode, rng_for(self.seed, stream), self.max_nodes)
        result = data.clone()
        result.x = torch.from_numpy(np.ascontiguousarray(changed.x)).to(data.x.device)
        if changed.edges is not graphs.edges:
            # Other values of edges (weights, masks) are about edges that are gone.
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
    """A PyG `Data` or `Batch` in another mode; arguments as for `Perturbation`."""
    return Perturbation(mode, seed, max_nodes)(data)


def _mend_slices(batch: Batch, graphs: Graphs) -> None:
    """Tell a batch where the edges of each of its graphs are now, so that it can be taken apart."""
    edge_ptr = torch.from_numpy(np.searchsorted(graphs.edges[0], graphs.node_ptr))
    for book in (batch._slice_dict, batch._inc_dict):
        for key in [key for key in book if key not in batch]:
            del book[key]
    for key in ("edge_index", "edge_attr"):
        if key in batch._slice_dict:
            batch._slice_dict[key] = edge_ptr


def _graphs_of(data: Data) -> Graphs:
    if data.x is None or data.edge_index is None:
        raise InputError("a graph needs x and edge_index to be perturbed")
    x = data.x.detach().cpu().numpy()
    x = x[:, None] if x.ndim == 1 else x
    ptr = data.ptr.cpu().numpy() if "ptr" in data else np.array([0, len(x)])
    attributes = data.edge_attr.detach().cpu().numpy() if data.edge_attr is not None else None
    edges, attributes = tidy_edges(data.edge_index.cpu().numpy(), attributes, len(x))
    return Graphs(x, edges, attributes, ptr.astype(np.int64))


def _fingerprint(graphs: Graphs) -> str:
    digest = hashlib.sha256()
    for array in (graphs.x, graphs.edges, graphs.node_ptr):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
