"""Pools of molecules: reading SMILES files of any common form, and screening for backgrounds."""

import csv
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from rdkit import Chem, rdBase

from graphxai_data.errors import InputError
from graphxai_data.files.raw import read_bytes
from graphxai_data.generators.smiles_text import atoms_of, free_ring_closure
from graphxai_data.seeds import Draws

# Atoms of a grafted molecule, hydrogens included: their numbers fit a byte. A background may have a
# quarter as many heavy atoms.
MAX_ATOMS = 256
_MOST_LETTERS = 4000  # of a SMILES; RDKit is not even asked about longer ones
_UNUSUAL = re.compile(r"\[\d|[~$*<>]")


class Background(NamedTuple):
    """A molecule that something can be grafted onto.

    Attributes:
        smiles: as it stands in the pool.
        hydrogens: for each atom, the hydrogens that a graft may replace: those on carbons that
            are written without brackets.
    """

    smiles: str
    hydrogens: tuple[int, ...]


def read_molecules(path: Path) -> list[str]:
    """SMILES of a file: one a line (more columns after white space), or CSV with a column SMILES.

    Either may be gzipped. Empty lines and lines that begin with # do not count.
    """
    text = _read_text(path)
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if not lines:
        raise InputError(f"{path}: no molecules in it; expected SMILES, one a line, or CSV")
    separator = next((s for s in (",", "\t", ";") if s in lines[0]), None)
    header = [cell.strip().strip('"').lower() for cell in lines[0].split(separator)]
    if "smiles" not in header:
        if separator == ",":
            raise InputError(f"{path}: a CSV file without a column SMILES ({lines[0][:80]})")
        return [line.split()[0] for line in lines]
    column = header.index("smiles")
    if separator is None:
        rows = [line.split() for line in lines[1:]]
    else:
        try:
            # Line ends are kept: a quoted cell may have one.
            text_lines = (f"{line}\n" for line in lines[1:])
            rows = list(csv.reader(text_lines, delimiter=separator, strict=True))
        except csv.Error as error:
            raise InputError(f"{path}: not valid CSV ({error}); mend the file") from None
    # Behind the SMILES a cell may hold a name.
    return [(row[column].split() or [""])[0] if len(row) > column else "" for row in rows]


def _read_text(path: Path) -> str:
    raw = read_bytes(path)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise InputError(f"{path}: line {line} is not UTF-8 text; save the file as UTF-8") from None


def select_backgrounds(
    path: Path,
    count: int,
    draws: Draws,
    reason_against: Callable[[Chem.Mol, Background], str | None],
) -> tuple[list[Background], dict[str, int]]:
    """The first `count` usable, distinct molecules of a pool, in random order.

    Args:
        path: the pool.
        count: how many are needed.
        draws: the order in which they are tried.
        reason_against: why a molecule cannot be used, or None.

    Returns:
        The backgrounds, and how many molecules were passed over for which reason.
    """
    pool = read_molecules(path)
    chosen: list[Background] = []
    seen: set[str] = set()
    rejected: Counter[str] = Counter()
    with rdBase.BlockLogs():
        for i in draws.permutation(len(pool)).tolist():
            if len(chosen) == count:
                break
            if len(pool[i]) > _MOST_LETTERS:
                rejected["too large"] += 1
                continue
            molecule: Chem.Mol | None = Chem.MolFromSmiles(pool[i])
            if molecule is None or molecule.GetNumAtoms() == 0:
                rejected["SMILES does not parse"] += 1
                continue
            atoms = atoms_of(pool[i])
            reason = _unusable(molecule, pool[i], atoms)
            if reason is None:
                candidate = Background(pool[i], _replaceable_hydrogens(molecule, atoms))
                reason = reason_against(molecule, candidate)
            # Graphs have no stereochemistry: enantiomers would be one background in two groups.
            canonical = Chem.MolToSmiles(molecule, isomericSmiles=False)
            if reason is None and canonical in seen:
                reason = "the same molecule as another"
            if reason is not None:
                rejected[reason] += 1
                continue
            seen.add(canonical)
            chosen.append(candidate)
    if len(chosen) < count:
        why = ", ".join(f"{number} {reason}" for reason, number in rejected.most_common())
        raise InputError(
            f"{path}: {len(chosen)} usable backgrounds, {count} needed: {count - len(chosen)} more"
            + (f" (rejected: {why})" if why else "")
        )
    return chosen, dict(sorted(rejected.items()))


def _unusable(molecule: Chem.Mol, smiles: str, atoms: list[str]) -> str | None:
    """Why nothing can be grafted on the text of this molecule, whatever the recipe."""
    if "." in smiles:
        return "more than one fragment"
    if len(atoms) != molecule.GetNumAtoms():
        return "has atoms that are not simple elements, or hydrogens written as atoms"
    if _UNUSUAL.search(smiles):
        return "has isotopes, or bonds that are not single, double, triple or aromatic"
    if not free_ring_closure(smiles):
        return "has no ring-closure number left"
    return "too large" if len(atoms) > MAX_ATOMS // 4 else None


def _replaceable_hydrogens(molecule: Chem.Mol, atoms: list[str]) -> tuple[int, ...]:
    return tuple(
        molecule.GetAtomWithIdx(i).GetTotalNumHs() if text in ("C", "c") else 0
        for i, text in enumerate(atoms)
    )
