"""One division of molecules for all recipes of Di-Halo-Benzene: a background has one split.

`dihalo` uses the first molecules of its random order, one per graph. Recipes with more demands use
the same order. A background's group is its rank in it, and its split the one that `dihalo` gives to
that rank; from the number of graphs on, where `dihalo` uses no more, splits repeat.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import count
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from rdkit import Chem

from graphxai_data.files.raw import Source
from graphxai_data.generators.base import Values
from graphxai_data.generators.dihalo_molecules import DiHaloParams, reason_against
from graphxai_data.generators.molecule_pool import (
    Background,
    read_molecules,
    too_few_backgrounds,
    usable_molecules,
)
from graphxai_data.graphs.columns import Ints
from graphxai_data.graphs.splits import assign_splits
from graphxai_data.seeds import Draws, rng_for

# Streams that all recipes of the family share.
BACKGROUNDS = "dihalo/backgrounds"
# Returns why a recipe cannot use a molecule that `dihalo` can use, as text, or else where it can.
Demand = Callable[[Chem.Mol, Background], Any]


class _Ranked(NamedTuple):
    rank: int
    background: Background
    rejected_before: int


class RankedPool:
    """The molecules of a pool that meet a demand, with their ranks; parsed as far as needed."""

    def __init__(self, source: Source, params: DiHaloParams, demand: Demand, seed: int) -> None:
        self.path = source.path
        self._rejected: list[str] = []
        self._demand = demand
        draws = rng_for(seed, BACKGROUNDS)
        usable = partial(reason_against, params)
        molecules = usable_molecules(read_molecules(source.path), draws, usable, self._rejected)
        self._ranks = enumerate(molecules)
        self._known: list[_Ranked] = []
        self._lock = Lock()

    def __iter__(self) -> Iterator[_Ranked]:
        for i in count():
            with self._lock:
                if i == len(self._known) and not self._parse_next():
                    return
            yield self._known[i]

    def _parse_next(self) -> bool:
        """Add the next molecule that meets the demand; return whether there is one."""
        for rank, (molecule, background) in self._ranks:
            places = self._demand(molecule, background)
            if isinstance(places, str):
                self._rejected.append(places)
                continue
            usable = background._replace(places=places)
            self._known.append(_Ranked(rank, usable, len(self._rejected)))
            return True
        return False

    def take(self, split: Values, split_of_rank: Values) -> Ints:
        """Return [g] the rank of each graph's background: the next free one of the same split."""
        waiting = [deque(np.flatnonzero(split == s).tolist()) for s in range(3)]
        ranks = np.full(len(split), -1, np.int64)
        spare = 0
        for entry in self:
            if queue := waiting[split_of_rank[entry.rank % len(split_of_rank)]]:
                ranks[queue.popleft()] = entry.rank
            else:
                spare += 1
            if not any(waiting):
                return ranks
        reasons = [*self._rejected, *["is in another split of the family"] * spare]
        raise too_few_backgrounds(self.path, int((ranks >= 0).sum()), len(split), reasons)

    def backgrounds(self, ranks: Ints) -> tuple[list[Background], dict[str, int]]:
        """Return the backgrounds with these ranks, and why molecules before them were rejected."""
        wanted, last = set(ranks.tolist()), int(ranks.max())
        known: dict[int, Background] = {}
        for entry in self:
            if entry.rank in wanted:
                known[entry.rank] = entry.background
            if entry.rank >= last:
                rejected = Counter(self._rejected[: entry.rejected_before])
                break
        return [known[rank] for rank in ranks.tolist()], dict(sorted(rejected.items()))


@lru_cache(maxsize=2)  # a plan and the reading that follows it parse the pool once
def ranked_pool(source: Source, params: DiHaloParams, demand: Demand, seed: int) -> RankedPool:
    """Return the pool of a source; the same object for the same arguments."""
    return RankedPool(source, params, demand, seed)


def family_splits(
    params: DiHaloParams, fractions: Sequence[float], graphs: int, draws: Draws
) -> Values:
    """Return [g] the split that `dihalo` gives to the background of each rank."""
    index = np.arange(graphs, dtype=np.int64)
    return assign_splits(index % len(params.classes), index, fractions, draws)
