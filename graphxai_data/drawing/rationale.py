"""Colours and words for the rationale of one graph: null, one, alternatives, or signed weights."""

from typing import Any

import numpy as np
import numpy.typing as npt

from graphxai_data.graphs.rationale import alternatives_of

Colours = npt.NDArray[np.float64]

NULL = "no rationale (null)"
# One per alternative, then from the start again. None is red or blue: those are for and against.
PALETTE = ("#e08214", "#1b9e77", "#8e6bbf", "#d96bb0", "#9c6b1e", "#6b8e23")
# The colour of nodes that belong to several alternatives.
SHARED = "#5b4a3a"
_FOR, _AGAINST, _NEITHER = (np.array(c) / 255 for c in ((178, 24, 43), (33, 102, 172), (247,) * 3))


def title(mask: Any, bits: Any = None) -> str:
    """Return what a picture of a rationale shows, from its mask [n] and bits of alternatives [n].

    >>> title([False, False]), title([True, False]), title([True, True], [1, 2])
    ('no rationale (null)', 'rationale', '2 alternative rationales')
    """
    if not np.any(mask):
        return NULL
    several = 0 if bits is None else int(alternatives_of(bits).any(axis=1).sum())
    return f"{several} alternative rationales" if several > 1 else "rationale"


def colours_of(mask: Any, bits: Any = None, otherwise: str = "#d9d9d9") -> Colours:
    """Return [n, 3] a colour per node: that of its alternative, or dark if it is in several.

    Nodes outside the rationale have the colour `otherwise`.
    """
    masks = alternatives_of(np.asarray(mask, np.int64) if bits is None else bits)
    colours = np.tile(rgb(otherwise), (len(mask), 1))
    for number, alternative in enumerate(masks):
        colours[alternative] = rgb(PALETTE[number % len(PALETTE)])
    colours[masks.sum(axis=0) > 1] = rgb(SHARED)
    return colours


def colours_of_weights(weight: Any) -> Colours:
    """Return [n, 3] red for positive weights [n], blue for negative ones, paler for smaller ones.

    >>> colours_of_weights([2.0, 0.0, -1.0]).round(2).tolist()
    [[0.7, 0.09, 0.17], [0.97, 0.97, 0.97], [0.55, 0.68, 0.82]]
    """
    values = np.asarray(weight, np.float64)
    share = values / (np.abs(values).max(initial=0.0) or 1.0)
    full = np.where(share[:, None] < 0, _AGAINST, _FOR)
    return np.asarray(_NEITHER + np.abs(share)[:, None] * (full - _NEITHER))


def rgb(code: str) -> Colours:
    """Return a colour such as "#e08214" as three numbers from 0 to 1."""
    return np.array([int(code[i : i + 2], 16) / 255 for i in (1, 3, 5)])
