"""Pools of molecules: reading SMILES files in common formats, and selecting backgrounds."""

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

# Most atoms of a grafted molecule, hydrogens included, so that their numbers fit into a byte. A
# background may have a quarter as many heavy atoms.
MAX_ATOMS = 256
_MAX_LETTERS = 4000  # of a SMILES; longer ones are rejected unparsed
_UNUSUAL = re.compile(r"\[\d|[~$*<>]")


class Background(NamedTuple):
    """A molecule that something can be grafted onto.

    Attributes:
        smiles: as written in the pool.
        hydrogens: for each atom, the number of hydrogens that a graft may replace: those on
            carbons that are written without brackets.
    """

    smiles: str
    hydrogens: tuple[int, ...]


def read_molecules(path: Path) -> list[str]:
    """Return the SMILES of a file: one per line, or CSV with a column SMILES.

    Other columns may follow the SMILES. Either may be gzipped. Empty lines and lines that begin
    with # are ignored.
    """
    text = _read_text(path)
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    if not lines:
        raise InputError(f"{path}: no molecules in it; expected SMILES, one per line, or CSV")
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
            # Keep line ends: a quoted cell may contain one.
            text_lines = (f"{line}\n" for line in lines[1:])
            rows = list(csv.reader(text_lines, delimiter=separator, strict=True))
        except csv.Error as error:
            raise InputError(f"{path}: not valid CSV ({error}); mend the file") from None
    # A name may follow the SMILES in its cell.
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
    """Return the first `count` usable, distinct molecules of a pool in random order.

    Args:
        path: the pool.
        count: how many are needed.
        draws: decides the order.
        reason_against: returns why a molecule cannot be used, or None.

    Returns:
        The backgrounds, and how many molecules were rejected, by reason.
    """
    pool = read_molecules(path)
    backgrounds: list[Background] = []
    seen: set[str] = set()
    rejected: Counter[str] = Counter()
    with rdBase.BlockLogs():
        for i in draws.permutation(len(pool)).tolist():
            if len(backgrounds) == count:
                break
            if len(pool[i]) > _MAX_LETTERS:
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
            # Graphs have no stereochemistry: enantiomers would put one background in two groups.
            canonical = Chem.MolToSmiles(molecule, isomericSmiles=False)
            if reason is None and canonical in seen:
                reason = "the same molecule as another"
            if reason is not None:
                rejected[reason] += 1
                continue
            seen.add(canonical)
            backgrounds.append(candidate)
    if (usable := len(backgrounds)) < count:
        why = ", ".join(f"{number} {reason}" for reason, number in rejected.most_common())
        raise InputError(
            f"{path}: {usable} usable backgrounds, {count} needed: {count - usable} more"
            + (f" (rejected: {why})" if why else "")
        )
    return backgrounds, dict(sorted(rejected.items()))


def _unusable(molecule: Chem.Mol, smiles: str, atoms: list[str]) -> str | None:
    """Return why nothing can be grafted on this SMILES, whatever the recipe, or None."""
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
