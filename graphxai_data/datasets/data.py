"""One graph for PyTorch Geometric: its fields, and the columns they come from."""

from collections.abc import Sequence
from typing import Any, Self, overload

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.explain import Explanation

from graphxai_data.datasets.masks import MASKS, fitting_mask, inherit, note_given, why_lost
from graphxai_data.errors import InputError
from graphxai_data.graphs.columns import Ints, expand
from graphxai_data.graphs.schema import Column, Schema

# Stored as small integers; users of PyG index with them.
_INT64 = ("edge_index", "node_y", "split")


class GraphXAIData(Data):  # type: ignore[misc]
    """A PyG `Data` with its ground truth, if it is known: `node_mask` [n], `edge_mask` [m].

    The masks have the size of the graph. If a transform has changed the edges, `edge_mask` is the
    new edges with both ends in `node_mask`, self-loops included. If it has added or removed nodes,
    asking for a mask raises an `InputError`. If it puts nodes in another order, it has to do so
    with `node_mask` too: datasets notice a missing one in most cases, a single graph cannot.

    An `edge_mask` that you assign holds as long as the edges are the same, for this object. Graphs
    that are taken out of a batch or a dataset recompute it.
    """

    @property
    def node_mask(self) -> Tensor:
        """[n] bool: which nodes make the class."""
        return fitting_mask(self, "node_mask")

    @property
    def edge_mask(self) -> Tensor:
        """[m] bool: the edges with both ends in `node_mask`."""
        return fitting_mask(self, "edge_mask")

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
        if key in MASKS and key in self._store:
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

    def to_explanation(self) -> Explanation:
        """Return the ground truth as a PyG `Explanation` that passes its own `validate()`.

        Raises:
            InputError: no rationale is known, or a transform has changed the nodes.
        """
        if why_lost(self) is None and not all(key in self for key in MASKS):
            raise InputError("no rationale is known for this graph, so there is no explanation")
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
