"""Which molecules of a pool become graphs: distinct, classes equally frequent in every size.

The pool is walked in random order. A molecule waits until every class has one with its number of
heavy atoms; then one of each class, those that wait longest, become graphs. So a build of fewer
graphs has the first graphs of a larger one, and the number of atoms says nothing about the class.
A class may have strata, such as kinds of negatives, which take turns.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rdkit import Chem, rdBase

from graphxai_data.errors import InputError
from graphxai_data.generators.smiles_text import atoms_of
from graphxai_data.graphs.columns import Ints
from graphxai_data.seeds import Draws

# Why molecules that were looked at did not become graphs.
REPEATED = "the same molecule as another"
UNPAIRED = "read but not used, for lack of a molecule of its size in another class"
# How reasons of size end.
HEAVY_ATOMS = "heavy atoms"
# Share of a pool from which a reason is worth a hint.
_NEARLY_ALL = 0.9


class Judgement(NamedTuple):
    """What a dataset says about a molecule."""

    label: int  # class; 0 where labels are numbers
    truth: Any  # its ground truth, as the dataset's workers want it
    stratum: int = 0  # number of the stratum within the class


class Selection(NamedTuple):
    """The molecules of a build: graph i has class i modulo the number of classes."""

    molecules: list[tuple[str, Any]]  # [g] SMILES as the pool has it, and truth
    label: Ints  # [g]
    atoms: Ints  # [g] heavy atoms
    scaffold: Ints  # [g] numbered in the order of first occurrence
    rejected: dict[str, int]  # molecules that were looked at and left out, by reason


class Selected(NamedTuple):
    """A molecule that becomes a graph."""

    smiles: str
    truth: Any
    flat: str  # canonical SMILES without stereochemistry
    scaffold: str


def select_molecules(
    path: Path,
    pool: Sequence[str],
    draws: Draws,
    graphs: int,
    strata: Sequence[Sequence[str]],
    usable: Callable[[str], Chem.Mol | str],
    judge: Callable[[Chem.Mol], Judgement | str],
    class_keys: str = "params",
) -> Selection:
    """Return the first molecules of a pool, in random order, that fill all classes equally.

    Args:
        path: of the pool, for errors.
        pool: its SMILES.
        draws: decide on the order.
        graphs: how many molecules; if they are no multiple of the classes, the last classes have
            one less.
        strata: the names of each class's strata, for errors; one class where labels are numbers.
        usable: returns the molecule of a SMILES, or why it cannot be used.
        judge: returns class and truth of a molecule, or why it cannot be used.
        class_keys: keys of the recipe that decide on classes, for errors.
    """
    walk = _Walk(pool, draws, [len(names) for names in strata], usable, judge)
    selected: list[Selected] = []
    while len(selected) < graphs:
        one_of_each = next(walk, None)
        if one_of_each is None:
            raise _too_few(path, graphs, len(selected), strata, walk, class_keys)
        selected += one_of_each
    del selected[graphs:]
    number: dict[str, int] = {}
    return Selection(
        [(entry.smiles, entry.truth) for entry in selected],
        np.arange(graphs, dtype=np.int64) % len(strata),
        np.array([len(atoms_of(entry.smiles)) for entry in selected], np.int64),
        np.array([number.setdefault(entry.scaffold, len(number)) for entry in selected], np.int64),
        walk.rejected(),
    )


# Molecules that wait, as SMILES and truth.
_Queue = deque[tuple[str, Any]]


class _Walk(Iterator[list[Selected]]):
    """Yields one molecule of each class, all of one size."""

    def __init__(
        self,
        pool: Sequence[str],
        draws: Draws,
        strata: Sequence[int],
        usable: Callable[[str], Chem.Mol | str],
        judge: Callable[[Chem.Mol], Judgement | str],
    ) -> None:
        self._pool, self._strata = pool, strata
        self.pool_size = len(pool)
        self._order = iter(draws.permutation(len(pool)).tolist())
        self._usable, self._judge = usable, judge
        # By number of atoms, class and stratum.
        self._waiting: dict[int, list[list[_Queue]]] = defaultdict(
            lambda: [[deque() for _ in range(count)] for count in strata]
        )
        self._rounds = 0
        self._latest: tuple[str, Chem.Mol] = ("", Chem.Mol())
        self._known: set[str] = set()  # without stereochemistry, which graphs do not have
        self._reasons: Counter[str] = Counter()
        self.of_stratum: Counter[tuple[int, int]] = Counter()

    def __next__(self) -> list[Selected]:
        # With strata in turn, molecules that already wait may now be wanted.
        sizes = sorted(self._waiting) if max(self._strata) > 1 else []
        for atoms in sizes:
            if selected := self._one_of_each(self._waiting[atoms]):
                return selected
        with rdBase.BlockLogs():
            for i in self._order:
                smiles = self._pool[i]
                molecule = self._usable(smiles)
                verdict = molecule if isinstance(molecule, str) else self._judge(molecule)
                if isinstance(verdict, str) or isinstance(molecule, str):
                    self._reasons[str(verdict)] += 1
                    continue
                label, truth, stratum = verdict
                self.of_stratum[label, stratum] += 1
                self._latest = smiles, molecule
                queues = self._waiting[molecule.GetNumAtoms()]
                queues[label][stratum].append((smiles, truth))
                if selected := self._one_of_each(queues):
                    return selected
        raise StopIteration

    def _one_of_each(self, queues: list[list[_Queue]]) -> list[Selected] | None:
        """Return one molecule of each class, of the strata whose turn it is; None if one lacks."""
        in_turn = [of_class[self._rounds % len(of_class)] for of_class in queues]
        if not all(in_turn):
            return None
        selected = [entry for queue in in_turn if (entry := self._first_new(queue))]
        if len(selected) < len(in_turn):
            return None
        for queue, entry in zip(in_turn, selected, strict=True):
            queue.popleft()
            self._known.add(entry.flat)
        self._rounds += 1
        return selected

    def _first_new(self, queue: _Queue) -> Selected | None:
        """Return the first waiting molecule that is no graph yet; those before it are dropped."""
        while queue:
            smiles, truth = queue[0]
            molecule = self._latest[1]
            if smiles != self._latest[0]:
                # Parsed again: keeping all that wait would take a gigabyte for a large pool.
                molecule = Chem.MolFromSmiles(smiles)
            flat = str(Chem.MolToSmiles(molecule, isomericSmiles=False))
            if flat not in self._known:
                return Selected(smiles, truth, flat, scaffold_of(molecule))
            queue.popleft()
            self._reasons[REPEATED] += 1
        return None

    def rejected(self) -> dict[str, int]:
        """Return how many molecules were looked at and left out, by reason."""
        queues = [queue for by_class in self._waiting.values() for of in by_class for queue in of]
        reasons = self._reasons + Counter({UNPAIRED: sum(map(len, queues))})
        return dict(sorted(reasons.items()))


def scaffold_of(molecule: Chem.Mol) -> str:
    """Return the Murcko scaffold as SMILES without stereochemistry.

    Molecules without rings have none in common but the empty one, "". They count as one scaffold,
    as in OGB's splits, so that no scaffold is in two splits, whoever computes it.
    """
    return str(Chem.MolToSmiles(Chem.MurckoDecompose(molecule), isomericSmiles=False))


def _too_few(
    path: Path,
    graphs: int,
    possible: int,
    strata: Sequence[Sequence[str]],
    walk: _Walk,
    class_keys: str,
) -> InputError:
    """Return the error of a pool that cannot fill all classes."""
    counts = {
        f"'{name}'": walk.of_stratum[label, i]
        for label, names in enumerate(strata)
        for i, name in enumerate(names)
    }
    have = ", ".join(f"{count} {name}" for name, count in counts.items())
    rejected = {reason: n for reason, n in walk.rejected().items() if reason != UNPAIRED}
    why = ", ".join(f"{reason} ({number})" for reason, number in rejected.items())
    why = f" (rejected: {why})" if why else ""
    steps = [f"build with --graphs {possible} or fewer"] if possible else []
    of_size = sum(number for text, number in rejected.items() if text.endswith(HEAVY_ATOMS))
    if of_size >= _NEARLY_ALL * walk.pool_size:
        steps.append("change params.min_heavy_atoms or params.max_heavy_atoms")
    empty = [name for name, count in counts.items() if not count]
    kind = "combinations" if max(map(len, strata)) > 1 else "classes"
    if not any(counts.values()):
        problem = f"none of {walk.pool_size} molecules is usable{why}"
    elif len(counts) == 1:
        molecules = "molecule" if possible == 1 else "molecules"
        problem = f"{graphs} graphs needed, the pool has {possible} usable {molecules}{why}"
    elif empty:
        problem = f"no usable molecule is {' or '.join(empty)}; the pool has {have}{why}"
        steps.append(f"correct {class_keys}")
    else:
        problem = (
            f"{graphs} graphs needed, {possible} possible with all {kind} equally frequent in "
            f"every size; the pool has {have}{why}"
        )
    steps.append("give another pool with --source molecules=FILE")
    return InputError(f"{path}: {problem}; {', or '.join(steps)}")
