"""One graph for PyTorch Geometric: its fields, and the columns they come from."""

from collections.abc import Sequence
from typing import Any, Self, overload

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.explain import Explanation

from graphxai_data.datasets.masks import (
    MASKS,
    TRUTH,
    fitting_mask,
    inherit,
    is_collated,
    lacks_alternatives,
    note_given,
    why_lost,
)
from graphxai_data.errors import InputError
from graphxai_data.graphs.columns import Ints, expand
from graphxai_data.graphs.rationale import alternatives_of
from graphxai_data.graphs.schema import Column, Schema

# Stored as small integers; users of PyG index with them.
_INT64 = ("edge_index", "node_y", "split")


class GraphXAIData(Data):  # type: ignore[misc]
    """A PyG `Data` with its ground truth, if it is known: `node_mask` [n], `edge_mask` [m].

    Datasets whose graphs may have several rationales also have `alternative_bits` [n], with bit j
    for the nodes of alternative j; `alternatives` returns them as masks. Datasets with signed
    ground truth have `node_weight` [n]. docs/rationales.md has an example of each form.

    The ground truth has the size of the graph. If a transform has changed the edges, `edge_mask` is
    the new edges with both ends in `node_mask`, or in one alternative, self-loops included. If it
    has added or removed nodes, asking for a mask raises an `InputError`. If it puts nodes in
    another order, it has to do so with `node_mask`, `alternative_bits` and `node_weight` too:
    datasets notice a missing one in most cases, a single graph cannot.

    An `edge_mask` that you assign holds as long as the edges are the same, for this object. Graphs
    that are taken out of a batch or a dataset recompute it.
    """

    @property
    def node_mask(self) -> Tensor:
        """[n] bool: which nodes make the label; all false for a null rationale.

        Where nodes have only weights, these are the nodes with a positive one: they make a number
        higher, or with two classes speak for class 1, whatever the label of the graph is.
        """
        return fitting_mask(self, "node_mask")

    @property
    def edge_mask(self) -> Tensor:
        """[m] bool: the edges with both ends in `node_mask`, or in one alternative."""
        return fitting_mask(self, "edge_mask")

    @property
    def alternative_bits(self) -> Tensor:
        """[n] int64: bit j is set for the nodes of alternative j."""
        return fitting_mask(self, "alternative_bits")

    @property
    def node_weight(self) -> Tensor:
        """[n] float32: signed contributions to the label; with two classes, to class 1."""
        return fitting_mask(self, "node_weight")

    @property
    def alternatives(self) -> Tensor | list[Tensor]:
        """[a, n] bool: the rationales, each of which explains the label; a list for a batch.

        There is none for a null rationale, and one in datasets without alternatives.
        """
        unknown = is_collated(self) or lacks_alternatives(self._store)
        if "node_mask" in self._store and unknown:
            raise InputError(
                "alternatives: alternative_bits was left out, or these are the tensors of a whole "
                "dataset; take a graph from the dataset, or a batch with all fields"
            )
        has_bits = "alternative_bits" in self._store
        bits = self.alternative_bits if has_bits else self.node_mask.to(torch.int64)
        if not isinstance(self, Batch):
            return _masks_of(bits)
        sizes = torch.bincount(self.batch, minlength=self.num_graphs).tolist()
        return [_masks_of(part) for part in torch.split(bits, sizes)]

    @property
    def canonical_smiles(self) -> str | list[str]:
        """RDKit's canonical SMILES of a molecule; a list of them for a batch.

        The stored `smiles` gives away what was grafted, because it was written into the text of
        another molecule, with a ring-closure number of its own. This one was written at once.
        """
        if "smiles" not in self:
            raise InputError("canonical_smiles: this graph has no smiles; only molecules have")
        from rdkit import Chem  # only here, because not every graph is a molecule

        def canonical(smiles: str) -> str:
            molecule: Chem.Mol | None = Chem.MolFromSmiles(smiles)
            if molecule is None:
                raise InputError(f"canonical_smiles: RDKit does not accept {smiles!r}")
            return str(Chem.MolToSmiles(molecule))

        if isinstance(self.smiles, str):
            return canonical(self.smiles)
        return [canonical(smiles) for smiles in self.smiles]

    def __getitem__(self, key: str) -> Any:
        if key in TRUTH and key in self._store:
            return fitting_mask(self, key)
        return super().__getitem__(key)

    def __setattr__(self, key: str, value: Any) -> None:
        if key == "edge_mask":
            note_given(self)
        super().__setattr__(key, value)

    def __setitem__(self, key: str, value: Any) -> None:
        if key == "edge_mask":
            note_given(self)
        super().__setitem__(key, value)

    def stores_as(self, data: Data) -> Self:
        """Prepare this empty object for graphs like `data`; PyG calls it."""
        inherit(self, data)
        return self

    def to_explanation(self) -> "TrueExplanation":
        """Return the ground truth as a PyG `Explanation` that passes its own `validate()`.

        Its masks are 0 and 1, also where the truth is signed, as PyG's metrics expect: then nodes
        with positive weights have 1, which with two classes speak for class 1. A null rationale has
        masks of zeros. `alternatives` and `node_weight` are there as in this graph.

        Raises:
            InputError: no rationale is known, or a transform has changed the nodes.
        """
        if why_lost(self) is None and not all(key in self for key in MASKS):
            raise InputError("no rationale is known for this graph, so there is no explanation")
        explanation = TrueExplanation(
            x=self.x,
            edge_index=self.edge_index,
            edge_attr=self.edge_attr,
            y=self.y,
            node_mask=self.node_mask.to(torch.float32).unsqueeze(1),
            edge_mask=self.edge_mask.to(torch.float32),
            **{key: self[key] for key in TRUTH if key in self and key not in MASKS},
        )
        explanation.validate()
        return explanation


class TrueExplanation(Explanation):  # type: ignore[misc]
    """Ground truth as a PyG `Explanation`; `to_data` gives the graph with its rationale again."""

    @property
    def alternatives(self) -> Tensor:
        """[a, n] bool: the rationales, each of which explains the label; none if it is null."""
        bits = self._store.get("alternative_bits")
        return _masks_of(self.node_mask.reshape(-1).to(torch.int64) if bits is None else bits)

    def to_data(self) -> GraphXAIData:
        """Return the graph with its features, label and rationale, as the dataset has them."""
        fields = {key: value for key, value in self._store.items() if key not in MASKS}
        masks = {key: self[key].reshape(-1).bool() for key in MASKS}
        return GraphXAIData(**fields, **masks)


def _masks_of(bits: Tensor) -> Tensor:
    """Return [a, n] the alternatives of one graph from their bits [n].

    Alternatives of which a transform has removed all nodes are gone.
    """
    masks = alternatives_of(bits.cpu().numpy())
    return torch.from_numpy(masks[masks.any(axis=1)]).to(bits.device)


def pyg_fields(schema: Schema) -> dict[str, Column]:
    """Return the fields of a graph, in their order, each with the column it comes from."""
    columns = sorted(schema.columns(), key=lambda column: (column.level == "text", column.name))
    fields = {column.name: column for column in columns}
    if "node_y" in fields:  # PyG calls the classes of nodes y as well
        fields["y"] = fields.pop("node_y")
    return fields


def as_tensor(stored: npt.NDArray[Any], column: Column) -> Tensor:
    """Return rows expanded, in the types of models; IndexError if a class id is too large."""
    if column.feature is not None and column.feature.encoding != "dense":
        stored = expand(stored, column.feature)
    elif column.name in _INT64:
        stored = stored.astype(np.int64, copy=False)
    return torch.from_numpy(stored)


class Texts(Sequence[str]):
    """Many strings as UTF-8 bytes with pointers, each decoded on demand."""

    def __init__(self, content: bytes, ptr: Ints) -> None:
        self._content, self._ptr = content, ptr

    @overload
    def __getitem__(self, i: int) -> str: ...

    @overload
    def __getitem__(self, i: slice) -> list[str]: ...

    def __getitem__(self, i: int | slice) -> str | list[str]:
        if isinstance(i, slice):
            return [self[k] for k in range(*i.indices(len(self)))]
        i = range(len(self))[i]
        return self._content[self._ptr[i] : self._ptr[i + 1]].decode()

    def take(self, positions: Ints) -> list[str]:
        """Return the strings at these positions, without the checks that a user's index needs."""
        spans = zip(self._ptr[positions].tolist(), self._ptr[positions + 1].tolist(), strict=True)
        return [self._content[first:last].decode() for first, last in spans]

    def __len__(self) -> int:
        return len(self._ptr) - 1
