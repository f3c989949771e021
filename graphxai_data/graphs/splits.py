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


def assign_splits(
    label: Ints, group: Ints, fractions: Sequence[float], draws: Draws
) -> npt.NDArray[np.uint8]:
    """Return [g] the split of each graph, a position in `fractions`, from its class and group [g].

    The draws decide which groups go where; the size of a split does not depend on them.
    """
    groups, group = np.unique(group, return_inverse=True)
    classes, label = np.unique(label, return_inverse=True)
    content = np.zeros((len(groups), len(classes)), np.int64)
    np.add.at(content, (group, label), 1)
    kinds, kind_of_group = np.unique(content, axis=0, return_inverse=True)
    shares = np.asarray(fractions, float)

    split_of_group = np.empty(len(content), np.uint8)
    behind = np.zeros((len(shares), len(classes)))
    left_over: list[int] = []
    by_kind = np.argsort(kind_of_group, kind="stable")
    for kind, members in enumerate(np.split(by_kind, np.cumsum(np.bincount(kind_of_group))[:-1])):
        members = members[draws.permutation(len(members))]
        whole = np.floor(shares * len(members) + 1e-9).astype(np.int64)
        assigned = int(whole.sum())
        split_of_group[members[:assigned]] = np.repeat(np.arange(len(shares)), whole)
        behind += np.outer(shares * len(members) - whole, kinds[kind])
        left_over += members[assigned:].tolist()

    # Large groups first: small ones can still restore the balance afterwards.
    for member in sorted(left_over, key=lambda member: -int(content[member].sum())):
        # If two splits lack the classes equally, the one that lacks more graphs.
        needs = behind @ content[member] + 1e-3 * behind.sum(axis=1)
        needs[shares == 0] = -np.inf
        split_of_group[member] = split = int(np.argmax(needs))
        behind[split] -= content[member]
    return split_of_group[group]


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
