"""Which digits stand side by side, and which one takes the place of another in an intervention."""

import numpy as np
import numpy.typing as npt

from graphxai_data.errors import InputError
from graphxai_data.graphs.columns import Ints, pointers
from graphxai_data.graphs.record import SPLIT_NAMES
from graphxai_data.seeds import Draws, below


def partners(kind: Ints, draws: Draws) -> Ints:
    """Return [g] for each image another one of its kind, and each of them once.

    The images of a kind stand in a random circle, and the partner is the next one: so none is its
    own, unless it is the only one.
    """
    order = np.lexsort([draws.permutation(len(kind)), kind])
    ends = pointers(np.unique(kind, return_counts=True)[1])
    following = np.arange(1, len(kind) + 1)
    following[ends[1:] - 1] = ends[:-1]
    partner = np.empty(len(kind), np.int64)
    partner[order] = order[following]
    return partner


def donors(
    split: npt.NDArray[np.uint8], label: Ints, words: npt.NDArray[np.uint64], side: int
) -> Ints:
    """Return [g] a random graph of the same split with another digit on this side."""
    donor = np.empty(len(label), np.int64)
    for part in np.unique(split):
        rows = np.flatnonzero(split == part)
        rows = rows[np.argsort(label[rows], kind="stable")]
        # Graphs of one digit follow each other: a draw skips them.
        first, last = (np.searchsorted(label[rows], label[rows], s) for s in ("left", "right"))
        others = len(rows) - (last - first)
        if not others.all():
            raise InputError(
                f"intervene: no other digit on the {('left', 'right')[side]} of the {len(rows)} "
                f"{SPLIT_NAMES[part]} graphs to take the place of one; give more graphs"
            )
        drawn = below(words[rows], others)
        donor[rows] = rows[np.where(drawn < first, drawn, drawn + last - first)]
    return donor
