"""Which molecules of a pool become graphs: distinct, classes equally frequent in every size.

The pool is walked in random order. A molecule waits until every class has one with its number of
heavy atoms; then one of each class, those that wait longest, become graphs. So a build of fewer
graphs has the first graphs of a larger one, and the number of atoms says nothing about the class.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rdkit import Chem, rdBase

from graphxai_data.errors import InputError
from graphxai_data.generators.molecule_pool import read_molecules
from graphxai_data.generators.smiles_text import atoms_of
from graphxai_data.graphs.columns import Ints
from graphxai_data.seeds import Draws

# Why molecules that were looked at did not become graphs.
REPEATED = "the same molecule as another"
UNPAIRED = "no molecule of its size is left in another class"


class Judgement(NamedTuple):
    """What a dataset says about a molecule."""

    label: int  # class; 0 where labels are numbers
    truth: Any  # its ground truth, as the dataset's workers want it


class Selection(NamedTuple):
    """The molecules of a build: graph i has class i modulo the number of classes."""

    molecules: list[tuple[str, Any]]  # [g] SMILES as the pool has it, and truth
    label: Ints  # [g]
    atoms: Ints  # [g] heavy atoms
    scaffold: Ints  # [g] numbered in the order of first occurrence
    rejected: dict[str, int]  # molecules that were looked at and left out, by reason


def select_molecules(
    path: Path,
    draws: Draws,
    graphs: int,
    class_names: Sequence[str],
    usable: Callable[[str], Chem.Mol | str],
    judge: Callable[[Chem.Mol], Judgement | str],
) -> Selection:
    """Return the first molecules of a pool, in random order, that fill all classes equally.

    Args:
        path: of the pool.
        draws: decide on the order.
        graphs: how many molecules; if they are no multiple of the classes, the last classes have
            one less.
        class_names: of all classes, for errors; where labels are numbers there is one.
        usable: returns the molecule of a SMILES, or why it cannot be used.
        judge: returns class and truth of a molecule, or why it cannot be used.
    """
    pool = read_molecules(path)
    walk = _Walk(pool, draws, len(class_names), usable, judge)
    molecules: list[tuple[str, Any]] = []
    atoms: list[int] = []
    scaffolds: list[str] = []
    while len(molecules) < graphs:
        selected = next(walk, None)
        if selected is None:
            raise _too_few(path, graphs, len(molecules), class_names, walk)
        for smiles, truth, scaffold in selected:
            molecules.append((smiles, truth))
            atoms.append(len(atoms_of(smiles)))
            scaffolds.append(scaffold)
    number: dict[str, int] = {}
    group = [number.setdefault(scaffold, len(number)) for scaffold in scaffolds[:graphs]]
    return Selection(
        molecules[:graphs],
        np.arange(graphs, dtype=np.int64) % len(class_names),
        np.array(atoms[:graphs], np.int64),
        np.array(group, np.int64),
        walk.rejected(),
    )


class _Walk(Iterator[list[tuple[str, Any, str]]]):
    """Yields one molecule of each class, all of one size: SMILES, truth and scaffold."""

    def __init__(
        self,
        pool: Sequence[str],
        draws: Draws,
        classes: int,
        usable: Callable[[str], Chem.Mol | str],
        judge: Callable[[Chem.Mol], Judgement | str],
    ) -> None:
        self._pool, self._classes = pool, classes
        self._order = iter(draws.permutation(len(pool)).tolist())
        self._usable, self._judge = usable, judge
        self._waiting: dict[int, list[deque[tuple[str, Any]]]] = defaultdict(
            lambda: [deque() for _ in range(classes)]
        )
        # By SMILES without stereochemistry, which graphs do not have.
        self._known: set[str] = set()
        self._reasons: Counter[str] = Counter()
        self.of_class: Counter[int] = Counter()

    def __next__(self) -> list[tuple[str, Any, str]]:
        for i in self._order:
            smiles = self._pool[i]
            with rdBase.BlockLogs():
                molecule = self._usable(smiles)
                verdict = molecule if isinstance(molecule, str) else self._judge(molecule)
            if isinstance(verdict, str) or isinstance(molecule, str):
                self._reasons[str(verdict)] += 1
                continue
            self.of_class[verdict.label] += 1
            queues = self._waiting[molecule.GetNumAtoms()]
            queues[verdict.label].append((smiles, verdict.truth))
            if selected := self._one_of_each(queues):
                return selected
        raise StopIteration

    def _one_of_each(
        self, queues: list[deque[tuple[str, Any]]]
    ) -> list[tuple[str, Any, str]] | None:
        """Return one molecule of each class, or None if one has to wait."""
        if not all(queues):
            return None
        selected = []
        for queue in queues:
            entry = self._first_new(queue)
            if entry is None:
                break
            selected.append(entry)
        if len(selected) == self._classes:
            for queue, (_, _, flat, _) in zip(queues, selected, strict=True):
                queue.popleft()
                self._known.add(flat)
            return [(smiles, truth, scaffold) for smiles, truth, _, scaffold in selected]
        return None

    def _first_new(self, queue: deque[tuple[str, Any]]) -> tuple[str, Any, str, str] | None:
        """Return the first waiting molecule that is no graph yet; those before it are dropped."""
        while queue:
            smiles, truth = queue[0]
            # Parsed again: keeping all that wait would take a gigabyte for a large pool.
            molecule = Chem.MolFromSmiles(smiles)
            flat = Chem.MolToSmiles(molecule, isomericSmiles=False)
            if flat not in self._known:
                return smiles, truth, flat, scaffold_of(molecule)
            queue.popleft()
            self._reasons[REPEATED] += 1
        return None

    def rejected(self) -> dict[str, int]:
        """Return how many molecules were looked at and left out, by reason."""
        waiting = sum(len(queue) for queues in self._waiting.values() for queue in queues)
        reasons = self._reasons + Counter({UNPAIRED: waiting})
        return dict(sorted(reasons.items()))


def scaffold_of(molecule: Chem.Mol) -> str:
    """Return the Murcko scaffold as SMILES without stereochemistry.

    Molecules without rings have none in common but the empty one, "". They count as one scaffold,
    as in OGB's splits, so that no scaffold is in two splits, whoever computes it.
    """
    return str(Chem.MolToSmiles(Chem.MurckoDecompose(molecule), isomericSmiles=False))


def _too_few(
    path: Path, graphs: int, selected: int, class_names: Sequence[str], walk: _Walk
) -> InputError:
    """Return the error of a pool that cannot fill all classes."""
    have = ", ".join(f"{walk.of_class[i]} '{name}'" for i, name in enumerate(class_names))
    others = {reason: n for reason, n in walk.rejected().items() if reason != UNPAIRED}
    why = ", ".join(f"{number} {reason}" for reason, number in others.items())
    smaller = f"build with --graphs {selected} or fewer, or " if selected else ""
    return InputError(
        f"{path}: {graphs} graphs needed, {selected} possible with classes equally frequent in "
        f"every size; it has {have}"
        + (f" (rejected: {why})" if why else "")
        + f"; {smaller}give a larger pool with --source molecules=FILE"
    )
