"""Decoys of Di-Halo-Benzene: unlike pairs of halogens on two benzene rings of the background."""

from itertools import combinations
from typing import NamedTuple

from rdkit import Chem

from graphxai_data.generators.molecule_pool import Background
from graphxai_data.seeds import Words

# Random words that the decoys of a molecule take.
DECOY_WORDS = 7


class DecoySites(NamedTuple):
    """Two benzene rings for decoys, and where the di-halo ring may be attached next to them."""

    rings: tuple[tuple[int, ...], tuple[int, ...]]  # their atoms, in the order of the bonds
    attachments: tuple[int, ...]


def aromatic_places(molecule: Chem.Mol, background: Background) -> tuple[int, ...]:
    """Return the aromatic carbons with a hydrogen: a graft there makes no new sp3 carbon."""
    return tuple(
        atom.GetIdx()
        for atom in molecule.GetAtoms()
        if background.hydrogens[atom.GetIdx()] and atom.GetIsAromatic()
    )


def may_gain_stereo(molecule: Chem.Mol, background: Background) -> bool:
    """Return whether grafts on aromatic carbons could make a stereo centre or double bond.

    They do if they tell apart two branches that were the same, as on the carbon of a benzhydryl.
    With an isotope of its own on every such carbon, RDKit tells apart whatever a graft could.
    """
    marked = Chem.Mol(molecule)
    for atom in aromatic_places(molecule, background):
        marked.GetAtomWithIdx(atom).SetIsotope(atom + 1)
    before, after = (len(list(Chem.FindPotentialStereo(m))) for m in (molecule, marked))
    return bool(before != after)


def decoy_sites(molecule: Chem.Mol, background: Background) -> list[DecoySites]:
    """Return every choice of two benzene rings that leaves two free carbons on each of them."""
    free = aromatic_places(molecule, background)
    sites = []
    for pair in combinations(_benzene_rings(molecule), 2):
        places = [sum(atom in free for atom in ring) for ring in pair]
        if min(places) < 2:
            continue
        # Rings do not share a carbon with a hydrogen, also if they are fused.
        full = {a for ring, count in zip(pair, places, strict=True) if count == 2 for a in ring}
        if attachments := tuple(atom for atom in free if atom not in full):
            sites.append(DecoySites(pair, attachments))
    return sites


def draw_decoys(
    background: Background, halogens: tuple[str, str], attachment: int, words: Words
) -> tuple[int, dict[int, str]]:
    """Return where the di-halo ring is attached, and the decoys by the carbon that carries them.

    Two rings get one of each of the two `halogens`. As for the labelled pair, ortho, meta and para
    are equally likely, as far as the free carbons of a ring allow. The random words `attachment`
    and `words` [DECOY_WORDS] decide.
    """
    molecule = Chem.MolFromSmiles(background.smiles)
    options = decoy_sites(molecule, background)
    sites = options[int(words[0]) % len(options)]
    attached_to = sites.attachments[attachment % len(sites.attachments)]
    free = set(aromatic_places(molecule, background)) - {attached_to}
    decoys: dict[int, str] = {}
    for ring, (position, place, turn) in zip(sites.rings, words[1:].reshape(2, 3), strict=True):
        pairs: dict[int, list[tuple[int, int]]] = {}
        for i, j in combinations([i for i, atom in enumerate(ring) if atom in free], 2):
            pairs.setdefault(min(j - i, 6 - (j - i)), []).append((ring[i], ring[j]))
        at_position = pairs[sorted(pairs)[int(position) % len(pairs)]]
        carbons = at_position[int(place) % len(at_position)]
        decoys |= dict(zip(carbons, halogens[:: 1 if int(turn) % 2 else -1], strict=True))
    return attached_to, decoys


def _benzene_rings(molecule: Chem.Mol) -> list[tuple[int, ...]]:
    """Return the rings of six aromatic carbons, fused ones too.

    Each begins with its first atom and goes on with the lower neighbour, and they are sorted, so
    that nothing depends on the order in which RDKit finds them.
    """
    rings = []
    for ring in molecule.GetRingInfo().AtomRings():
        atoms = [molecule.GetAtomWithIdx(atom) for atom in ring]
        if len(ring) != 6 or not all(a.GetIsAromatic() and a.GetSymbol() == "C" for a in atoms):
            continue
        first = ring.index(min(ring))
        turned = ring[first:] + ring[:first]
        rings.append(turned if turned[1] < turned[-1] else turned[:1] + turned[:0:-1])
    return sorted(rings)
