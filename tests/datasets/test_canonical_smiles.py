"""data.canonical_smiles: the same molecule, written without a trace of what was grafted."""

import re
from pathlib import Path

import pytest
from rdkit import Chem

from graphxai_data import BA2Motif, BatchLoader, DiHaloBenzene
from graphxai_data.errors import InputError


def _highest_closure(smiles: str) -> int:
    """Return the atom, as RDKit numbers them, that opens the highest ring-closure number."""
    atoms = re.findall(r"(?:\[[^\]]*\]|Br|Cl|[A-Za-z])((?:%\d\d|\d)*)", smiles)
    numbers = [[int(n.strip("%")) for n in re.findall(r"%\d\d|\d", digits)] for digits in atoms]
    return max(range(len(numbers)), key=lambda atom: max(numbers[atom], default=0))


def test_it_is_canonical_and_the_same_molecule(small_root: Path) -> None:
    for graph in DiHaloBenzene(small_root):
        stored, canonical = (Chem.MolFromSmiles(s) for s in (graph.smiles, graph.canonical_smiles))
        assert Chem.MolToSmiles(stored) == graph.canonical_smiles == Chem.MolToSmiles(canonical)
        assert stored.HasSubstructMatch(canonical)
        assert canonical.HasSubstructMatch(stored)


def test_it_has_no_ring_closure_that_only_the_graft_uses(small_root: Path) -> None:
    stored_hits = canonical_hits = 0
    dataset = DiHaloBenzene(small_root)
    for graph in dataset:
        rationale = set(graph.smiles_atom[graph.node_mask].tolist())
        stored = Chem.MolFromSmiles(graph.smiles)
        order = stored.GetSubstructMatch(Chem.MolFromSmiles(graph.canonical_smiles))
        stored_hits += _highest_closure(graph.smiles) in rationale
        canonical_hits += order[_highest_closure(graph.canonical_smiles)] in rationale
    assert stored_hits == len(dataset)
    assert canonical_hits < 0.6 * len(dataset)


def test_a_batch_has_a_list_of_them(small_root: Path) -> None:
    dataset = DiHaloBenzene(small_root)
    batch = next(iter(BatchLoader(dataset, batch_size=4)))
    assert batch.canonical_smiles == [dataset[i].canonical_smiles for i in range(4)]


def test_graphs_that_are_no_molecules_say_so(small_root: Path) -> None:
    graph = BA2Motif(small_root)[0]
    with pytest.raises(InputError, match="canonical_smiles: this graph has no smiles"):
        graph.canonical_smiles  # noqa: B018
    graph.smiles = "C1CC"
    with pytest.raises(InputError, match="RDKit does not accept 'C1CC'"):
        graph.canonical_smiles  # noqa: B018
