"""Rules that count Weisfeiler–Leman colours in training graphs, with or without their labels.

Rarity: how few training graphs have a node of this colour. Log odds: how much more often training
graphs of the explained class have one than the others; with the ball, the positive part is summed
over all nodes so near that the colour depends on them. No model and no rationale is used, but log
odds know the labels of training graphs, and the class of the graph that is explained.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from graphxai_data.errors import InputError
from graphxai_data.graphs.colours import (
    Words,
    bounds_of,
    edge_begins,
    first_colours,
    hashed,
    refined,
)
from graphxai_data.graphs.columns import Ints
from graphxai_data.graphs.union import Graphs
from graphxai_data.metrics import Floats
from graphxai_data.rings.rules import MAX_NODES, within

ROUNDS = 4


class ColourRow(NamedTuple):
    """A rule: what it counts after how many rounds, and whether it sums over the ball."""

    counts: str
    rounds: int
    ball: bool = False

    @property
    def name(self) -> str:
        """The name of its row, such as "wl-log-odds-ball-2"."""
        return f"wl-{self.counts}{'-ball' if self.ball else ''}-{self.rounds}"

    @property
    def what(self) -> str:
        """One line that says what it does."""
        rounds = f"Weisfeiler–Leman colour after {self.rounds} round{'s' * (self.rounds != 1)}"
        if self.counts == "rarity":
            return f"how few training graphs have the {rounds}"
        ball = ", the positive part summed over the ball" if self.ball else ""
        return f"log odds of the class in training graphs that have the {rounds}{ball}"

    @property
    def knows_labels(self) -> bool:
        """Whether it knows labels of training graphs."""
        return self.counts == "log-odds"


ROWS = (
    *(ColourRow("rarity", k) for k in range(ROUNDS + 1)),
    *(ColourRow("log-odds", k) for k in range(ROUNDS + 1)),
    *(ColourRow("log-odds", k, ball=True) for k in range(1, ROUNDS + 1)),
)


class Training(NamedTuple):
    """In how many training graphs of each class every colour occurs, after every round.

    `colours` are sorted [u], `counts` [u, c] belong to them; `sizes` [c] are graphs per class.
    """

    colours: list[Words]
    counts: list[Ints]
    sizes: Ints
    bounds: tuple[Floats, Floats]

    @classmethod
    def of(cls, graphs: Graphs, label: Ints, classes: int) -> "Training":
        """Count the colours of training graphs with these classes [g]."""
        if len(label) < classes:
            raise InputError(
                f"{len(label)} training graphs, fewer than {classes} classes: their colours say "
                "nothing about classes; build more graphs"
            )
        if not 0 <= label.min() <= label.max() < classes:
            raise InputError(
                f"labels from {label.min()} to {label.max()}, expected classes 0 to {classes - 1}: "
                "colours of numbers are not counted"
            )
        bounds = bounds_of(graphs.x), bounds_of(graphs.edge_attr)
        all_colours, all_counts = [], []
        for colour in colourings(graphs, bounds):
            colours, kind = np.unique(colour, return_inverse=True)
            occurs = np.unique(graphs.owner * len(colours) + kind.ravel())
            owner, kind = np.divmod(occurs, len(colours))
            cells = np.bincount(kind * classes + label[owner], minlength=len(colours) * classes)
            all_colours.append(colours)
            all_counts.append(cells.reshape(-1, classes))
        return cls(all_colours, all_counts, np.bincount(label, minlength=classes), bounds)

    def scores(
        self, graphs: Graphs, label: Ints, rows: tuple[ColourRow, ...] = ROWS
    ) -> Iterator[tuple[ColourRow, Floats | None]]:
        """Yield each rule with its scores [N] of graphs that have these classes [g].

        Balls have none where a graph has more than `MAX_NODES` nodes.
        """
        target = label[graphs.owner]
        for k, colour in enumerate(colourings(graphs, self.bounds)):
            counts = self._counts_of(colour, k)
            everywhere = counts.sum(axis=1)
            for row in (r for r in rows if r.rounds == k):
                if row.counts == "rarity":
                    yield row, -np.log((everywhere + 0.5) / (self.sizes.sum() + 1))
                    continue
                odds = self._log_odds(counts, everywhere, target)
                if not row.ball:
                    yield row, odds
                elif graphs.sizes.max(initial=0) > MAX_NODES:
                    yield row, None
                else:
                    yield row, within(graphs, np.maximum(odds, 0), k)

    def _counts_of(self, colour: Words, k: int) -> Ints:
        """Return [N, c] in how many training graphs of each class the colours occur."""
        place = np.searchsorted(self.colours[k], colour).clip(max=len(self.colours[k]) - 1)
        is_known = self.colours[k][place] == colour
        return np.where(is_known[:, None], self.counts[k][place], 0)

    def _log_odds(self, counts: Ints, everywhere: Ints, target: Ints) -> Floats:
        """Return the log odds ratio [N] of having the colour, for the class against the others.

        One graph that has every colour is added, divided as the classes are: a colour that never
        occurred says almost nothing.
        """
        total, inside = self.sizes.sum(), self.sizes[target]
        here = counts[np.arange(len(target)), target]
        p = (here + inside / total) / (inside + 1)
        q = (everywhere - here + 1 - inside / total) / (total - inside + 1)
        p, q = (np.clip(share, 1e-9, 1 - 1e-9) for share in (p, q))
        return np.asarray(np.log(p / (1 - p)) - np.log(q / (1 - q)), np.float64)


def colourings(graphs: Graphs, bounds: tuple[Floats, Floats]) -> Iterator[Words]:
    """Yield the colours [N] of nodes after 0 to `ROUNDS` rounds."""
    colour = hashed(first_colours(graphs.x, len(graphs.x), bounds[0]))
    bonds = first_colours(graphs.edge_attr, graphs.edges.shape[1], bounds[1])
    begins = edge_begins(graphs)
    yield colour
    for _ in range(ROUNDS):
        colour = refined(graphs, colour, bonds, begins)
        yield colour
