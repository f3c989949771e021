"""What a B-cos network with B = 1, which is linear, can see: docs/paper-tables.md relies on it."""

import networkx as nx
import numpy as np
import pytest
import torch
from rdkit import Chem
from torch import Tensor

from benchmarks.evidence import walk_counts
from graphxai_data import BA2Motif
from graphxai_data.nn import BcosGINE

ELEMENTS = ("C", "N", "O", "Cl", "H")
BONDS = (1.0, 2.0, 3.0, 1.5)
# The ring is attached at its carbon 1; chlorine sits on carbons 2 and 3, or 2 and 5.
ORTHO = "CC(=O)NCc1c(Cl)c(Cl)ccc1"
PARA = "CC(=O)NCc1c(Cl)ccc(Cl)c1"


def graph(smiles: str, hydrogens: bool) -> tuple[Tensor, Tensor, Tensor]:
    molecule = Chem.MolFromSmiles(smiles)
    molecule = Chem.AddHs(molecule) if hydrogens else molecule
    x = torch.eye(len(ELEMENTS))[[ELEMENTS.index(a.GetSymbol()) for a in molecule.GetAtoms()]]
    bonds = [
        (b.GetBeginAtomIdx(), b.GetEndAtomIdx(), BONDS.index(b.GetBondTypeAsDouble()))
        for b in molecule.GetBonds()
    ]
    one_way = torch.tensor(bonds).T
    edge_index = torch.cat([one_way[:2], one_way[:2].flip(0)], dim=1)
    return x, edge_index, torch.eye(len(BONDS))[one_way[2].repeat(2)]


def gap(b: float, edges: str, hydrogens: bool, seed: int) -> float:
    """Return the difference of the logits of the two isomers, relative to their size."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = BcosGINE(len(ELEMENTS), len(BONDS), 9, 16, 4, b=b, edges=edges).double()
    model.requires_grad_(requires_grad=False)
    logits = [
        model(
            *(part.double() if part.is_floating_point() else part for part in graph(s, hydrogens))
        )
        for s in (ORTHO, PARA)
    ]
    return ((logits[0] - logits[1]).norm() / logits[0].norm()).item()


@pytest.mark.parametrize("edges", ["additive", "multiplicative"])
@pytest.mark.parametrize("seed", range(3))
def test_with_hydrogens_a_linear_network_cannot_tell_ortho_from_para(edges: str, seed: int) -> None:
    """Chlorine and hydrogen are both leaves, so a chlorine's part depends on its position only."""
    assert gap(1, edges, hydrogens=True, seed=seed) < 1e-12
    assert gap(2, edges, hydrogens=True, seed=seed) > 1e-6
    assert gap(1, edges, hydrogens=False, seed=seed) > 1e-6


def test_walks_are_counted_as_networkx_counts_them(motif_root: object) -> None:
    dataset = BA2Motif(str(motif_root))
    counts = walk_counts(dataset)
    for i in (0, 17):
        data = dataset[i]
        whole = nx.DiGraph(data.edge_index.T.tolist())
        adjacency = nx.to_numpy_array(whole, nodelist=range(data.num_nodes))
        expected = [
            data.x.numpy().T @ np.linalg.matrix_power(adjacency, k).sum(axis=1) for k in range(5)
        ]
        assert counts[i] == pytest.approx(np.concatenate(expected))
