"""Layout of a graph: where its nodes are, what is written on them, and its bonds.

Molecules are laid out by RDKit, other graphs so that distances on paper approximate those in the
graph. Nothing is random: a graph always looks the same.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

Points = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

# Side of the square that a graph is drawn in.
SIDE = 300
_MARGIN = 14.0
_STEPS = 60
# Readable on white and on black.
_COLOURS = {
    1: (0.55, 0.55, 0.55), 7: (0.25, 0.45, 0.95), 8: (0.88, 0.25, 0.2), 9: (0.15, 0.62, 0.3),
    15: (0.85, 0.5, 0.1), 16: (0.7, 0.58, 0.05), 17: (0.15, 0.62, 0.3), 35: (0.68, 0.35, 0.15),
    53: (0.55, 0.25, 0.7),
}  # fmt: skip


@dataclass(frozen=True)
class Sketch:
    """The layout of a graph."""

    places: Points  # [n, 2] distance from the left and from the top, in a square of `SIDE`
    labels: list[str]  # what is written on each node; empty for a dot
    edges: Ints  # [k, 2] every edge once
    orders: npt.NDArray[np.uint8]  # [k] number of lines of an edge: 2 for a double bond
    svg: str = ""  # RDKit's own drawing, without frame, if requested
    is_molecule: bool = False  # then a node without a label is a carbon


def sketch(
    edge_index: npt.NDArray[Any],
    nodes: int,
    smiles: str | None = None,
    smiles_atom: npt.NDArray[Any] | None = None,
    with_svg: bool = False,
) -> Sketch:
    """Return the layout of a graph with `edge_index` [2, m], one direction of every edge or both.

    A molecule has a SMILES; `smiles_atom` [n] says which of its atoms each node is, hydrogens last,
    and None that they are in order. A graph that is not the molecule of its SMILES is drawn as any
    other graph. `with_svg` has RDKit draw the molecule as well.
    """
    ends = np.sort(np.asarray(edge_index, np.int64), axis=0)
    edges = np.unique(ends[:, ends[0] < ends[1]].T.reshape(-1, 2), axis=0)
    if smiles is not None:
        atoms = np.arange(nodes) if smiles_atom is None else np.asarray(smiles_atom, np.int64)
        layout = _molecule(smiles, atoms, edges, with_svg)
        if layout is not None:
            return layout
    places = _fitted(stress_layout(edges, nodes))
    return Sketch(places, [""] * nodes, edges, np.ones(len(edges), np.uint8))


def stress_layout(edges: Ints, nodes: int) -> Points:
    """Return places [n, 2] whose distances approximate those in the graph of `edges` [k, 2].

    Minimises Kamada and Kawai's energy by majorisation, starting from classical scaling.
    """
    if nodes < 2:
        return np.zeros((nodes, 2))
    graph = coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), (nodes, nodes)).tocsr()
    target = shortest_path(graph, directed=False, unweighted=True)
    reached = np.isfinite(target)
    # Components are drawn a little apart.
    target[~reached] = target[reached].max(initial=1.0) + 1.0
    squared = target**2
    centred = squared - squared.mean(axis=0) - squared.mean(axis=1)[:, None] + squared.mean()
    values, vectors = np.linalg.eigh(-0.5 * centred)
    places: Points = vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 1e-9))
    # The sign of an eigenvector is arbitrary: make its largest entry positive.
    largest = np.abs(places).argmax(axis=0)
    places *= np.where(places[largest, [0, 1]] < 0, -1.0, 1.0)
    # Points on a spiral by the golden angle separate nodes that would be in one place.
    turn = np.arange(nodes) * 2.399963
    spiral = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    places += 0.01 * spiral * (1 + np.arange(nodes)[:, None])
    weight = np.where(np.eye(nodes, dtype=bool), 0.0, 1.0 / np.maximum(squared, 1.0))
    inverse = np.linalg.pinv(np.diag(weight.sum(axis=1)) - weight)  # of the Laplacian
    for _ in range(_STEPS):
        apart = places[:, None, :] - places[None, :, :]
        distance = np.maximum(np.sqrt((apart**2).sum(axis=2)), 1e-9)
        pull = -weight * target / distance
        np.fill_diagonal(pull, 0.0)
        np.fill_diagonal(pull, -pull.sum(axis=1))
        places = inverse @ (pull @ places)
    return places


def summed_in_groups(counts: Ints, most: int) -> tuple[Ints, int]:
    """Return sums over neighbouring counts, at most `most` of them, and the size of a group."""
    size = max(1, -(-len(counts) // most))
    return np.pad(counts, (0, -len(counts) % size)).reshape(-1, size).sum(axis=1), size


def _fitted(places: Points) -> Points:
    """Return the places scaled to fill the square."""
    low, high = places.min(axis=0), places.max(axis=0)
    scale = (SIDE - 2 * _MARGIN) / max(float((high - low).max()), 1e-9)
    return np.asarray((places - (low + high) / 2) * scale + SIDE / 2)


def _molecule(smiles: str, atoms: Ints, edges: Ints, with_svg: bool) -> Sketch | None:
    """Return the layout of a molecule by RDKit; None if it is refused, or has other bonds."""
    from rdkit import Chem, rdBase
    from rdkit.Chem import rdDepictor

    with rdBase.BlockLogs():  # a refused molecule is drawn as a plain graph
        molecule: Any = Chem.MolFromSmiles(smiles)
    if molecule is None:
        return None
    Chem.Kekulize(molecule, clearAromaticFlags=True)
    rdDepictor.Compute2DCoords(molecule)
    if atoms.max(initial=-1) >= molecule.GetNumAtoms():
        # Hydrogens are added after the layout, which would take ten times as long with them.
        molecule = Chem.AddHs(molecule, addCoords=True)
    if len(atoms) > molecule.GetNumAtoms() or len(edges) != molecule.GetNumBonds():
        return None
    bonds = [molecule.GetBondBetweenAtoms(a, b) for a, b in atoms[edges].tolist()]
    if None in bonds:
        return None
    conformer = molecule.GetConformer().GetPositions()[atoms, :2]
    places = _fitted(conformer * [1.0, -1.0])
    symbols = [molecule.GetAtomWithIdx(int(atom)).GetSymbol() for atom in atoms]
    orders = [max(1, min(3, int(bond.GetBondTypeAsDouble()))) for bond in bonds]
    svg = ""
    if with_svg:
        svg, places = _drawing(molecule, atoms)
    labels = ["" if symbol == "C" else symbol for symbol in symbols]
    return Sketch(places, labels, edges, np.array(orders, np.uint8), svg, is_molecule=True)


def _drawing(molecule: Any, atoms: Ints) -> tuple[str, Points]:
    """Return RDKit's drawing without its frame, and the places of the atoms in it."""
    from rdkit.Chem.Draw import rdMolDraw2D

    drawer = rdMolDraw2D.MolDraw2DSVG(SIDE, SIDE, -1, -1, True)  # letters as text, not as paths
    options: Any = drawer.drawOptions()
    options.clearBackground = False
    options.padding = _MARGIN / SIDE
    options.updateAtomPalette(_COLOURS)
    options.prepareMolsBeforeDrawing = False
    drawer.DrawMolecule(molecule)
    drawer.FinishDrawing()
    places = [(p.x, p.y) for p in (drawer.GetDrawCoords(int(atom)) for atom in atoms)]
    inside = drawer.GetDrawingText().split("<!-- END OF HEADER -->")[1].rsplit("</svg>", 1)[0]
    # Black atoms must follow the text colour of light and dark pages.
    return inside.replace("#000000", "currentColor").strip(), np.array(places)
