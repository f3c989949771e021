"""Rules that tell which atoms raise logP without a model: by element, hydrogens and neighbours."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from graphxai_data.generators.base import Rule
from graphxai_data.graphs.union import Graphs

Scores = npt.NDArray[np.float64]

# Water attracts atoms of these elements.
HYDROPHILIC = ("N", "O")


def crippen_rules(atoms: Sequence[str]) -> tuple[Rule, ...]:
    """Return the rules; `atoms` are the elements that the first value of a node stands for."""
    rules: dict[str, tuple[str, Callable[..., Scores]]] = {
        "lipophilic-elements": ("1 for all elements but nitrogen and oxygen", lipophilic),
        "lipophilic-surroundings": (
            "the same, and nodes without nitrogen or oxygen next to them first",
            lipophilic_surroundings,
        ),
        "hydrogens-on-carbon": (
            "number of hydrogens of a carbon; other elements last",
            hydrogens_on_carbon,
        ),
    }
    return tuple(
        Rule(name, what, partial(score, atoms=tuple(atoms)))
        for name, (what, score) in rules.items()
    )


def lipophilic(graphs: Graphs, atoms: Sequence[str]) -> Scores:
    """Return [N] 1 for nodes that are neither nitrogen nor oxygen, else 0."""
    return (~np.isin(_elements(graphs, atoms), HYDROPHILIC)).astype(np.float64)


def lipophilic_surroundings(graphs: Graphs, atoms: Sequence[str]) -> Scores:
    """Return [N] the same, minus the share of nitrogen and oxygen among the neighbours."""
    own = lipophilic(graphs, atoms)
    source, target = graphs.edges
    neighbours = np.bincount(source, minlength=len(own))
    hydrophilic = np.bincount(source, weights=1 - own[target], minlength=len(own))
    return own - 0.5 * hydrophilic / np.maximum(neighbours, 1)


def hydrogens_on_carbon(graphs: Graphs, atoms: Sequence[str]) -> Scores:
    """Return [N] the number of hydrogens of carbons, -1 for other elements."""
    carbon = _elements(graphs, atoms) == "C"
    return np.where(carbon, graphs.x[:, 1].astype(np.float64), -1.0)


def _elements(graphs: Graphs, atoms: Sequence[str]) -> npt.NDArray[np.str_]:
    """Return [N] the element of each node."""
    return np.array(atoms)[graphs.x[:, 0].astype(np.int64)]
