"""Splits: every graph in one split, groups never divided, classes in proportion.

Groups with the same number of graphs of each class are of one kind. Every split gets its share of
each kind, rounded down, at random. Each group left over by the rounding goes to the split that
lacks its classes most.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from graphxai_data.graphs.columns import Ints
from graphxai_data.seeds import Draws

# Breaks ties: of two splits that lack the classes equally, the one that lacks more graphs.
_TOTAL_WEIGHT = 1e-3


def assign_splits(
    label: Ints, group: Ints, fractions: Sequence[float], draws: Draws
) -> npt.NDArray[np.uint8]:
    """Return the split id of every graph.

    Args:
        label: [g] class of each graph.
        group: [g] group of each graph, any integers.
        fractions: share of each split; they sum to 1.
        draws: decide which groups go where; the shares do not depend on them.

    Returns:
        [g] position in `fractions`.
    """
    _, group = np.unique(group, return_inverse=True)
    _, label = np.unique(label, return_inverse=True)
    content = _class_counts(label, group)
    kinds, kind_of_group = np.unique(content, axis=0, return_inverse=True)
    shares = np.asarray(fractions, float)

    split_of_group = np.empty(len(content), np.uint8)
    behind = np.zeros((len(shares), content.shape[1]))
    left_over: list[tuple[int, int]] = []
    by_kind = np.argsort(kind_of_group, kind="stable")
    for kind, members in enumerate(np.split(by_kind, np.cumsum(np.bincount(kind_of_group))[:-1])):
        members = members[draws.permutation(len(members))]
        whole = np.floor(shares * len(members) + 1e-9).astype(np.int64)
        assigned = int(whole.sum())
        split_of_group[members[:assigned]] = np.repeat(np.arange(len(shares)), whole)
        behind += np.outer(shares * len(members) - whole, kinds[kind])
        left_over += [(kind, int(member)) for member in members[assigned:]]

    # Large groups first: small ones can still restore the balance afterwards.
    left_over.sort(key=lambda item: -int(kinds[item[0]].sum()))
    for kind, member in left_over:
        needs = behind @ kinds[kind] + _TOTAL_WEIGHT * behind.sum(axis=1)
        needs[shares == 0] = -np.inf
        split = int(np.argmax(needs))
        split_of_group[member] = split
        behind[split] -= kinds[kind]
    return split_of_group[group]


def _class_counts(label: Ints, group: Ints) -> Ints:
    """Return [groups, classes] how many graphs of each class a group has."""
    shape = int(group.max()) + 1, int(label.max()) + 1
    flat = np.bincount(group * shape[1] + label, minlength=shape[0] * shape[1])
    return flat.reshape(shape).astype(np.int64)


def stratified_order(label: Ints, draws: Draws) -> Ints:
    """Return a random order in which every prefix has the classes in proportion."""
    place = np.empty(len(label))
    for kind in np.unique(label):
        members = np.flatnonzero(label == kind)
        shuffled = members[draws.permutation(len(members))]
        place[shuffled] = (2 * np.arange(len(members)) + 1) / (2 * len(members))
    return np.lexsort([label, place]).astype(np.int64)


def split_sizes(graphs: int, fractions: Sequence[float]) -> list[int]:
    """Return whole numbers in these proportions that sum to `graphs`; large remainders first."""
    exact = np.asarray(fractions, float) * graphs
    sizes = np.floor(exact + 1e-9).astype(np.int64)
    behind = np.argsort(-(exact - sizes), kind="stable")
    sizes[behind[: graphs - int(sizes.sum())]] += 1
    return [int(size) for size in sizes]
