"""Pools of molecules: reading SMILES files in common formats, and selecting backgrounds."""

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

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
    """A molecule that something can be grafted onto."""

    smiles: str  # as written in the pool
    # How many of each atom a graft may replace: those on carbons written without brackets.
    hydrogens: tuple[int, ...]
    # Where a recipe with more demands may graft, as its demand says.
    places: Any = None


def read_molecules(path: Path) -> list[str]:
    """Return the SMILES of a file: one per line, or CSV with a column SMILES.

    Other columns may follow the SMILES. Either may be gzipped. Empty lines and lines that begin
    with # are ignored.
    """
    raw = read_bytes(path)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise InputError(f"{path}: line {line} is not UTF-8 text; save the file as UTF-8") from None
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


def usable_molecules(
    pool: Sequence[str],
    draws: Draws,
    reason_against: Callable[[Chem.Mol, Background], str | None],
    rejected: list[str],
) -> Iterator[tuple[Chem.Mol, Background]]:
    """Yield the usable, distinct molecules of a pool in random order.

    `reason_against` returns why a molecule cannot be used, or None. The reasons against those that
    are passed over are appended to `rejected`.
    """
    # By SMILES without stereochemistry, which graphs do not have: enantiomers would put one
    # background in two groups.
    known: set[str] = set()
    for i in draws.permutation(len(pool)).tolist():
        with rdBase.BlockLogs():
            candidate = _candidate(pool[i], reason_against)
        if isinstance(candidate, str):
            rejected.append(candidate)
        elif candidate[0] in known:
            rejected.append("the same molecule as another")
        else:
            known.add(candidate[0])
            yield candidate[1:]


def select_backgrounds(
    path: Path,
    count: int,
    draws: Draws,
    reason_against: Callable[[Chem.Mol, Background], str | None],
) -> tuple[list[Background], dict[str, int]]:
    """Return the first `count` usable, distinct molecules of a pool in random order.

    `reason_against` returns why a molecule cannot be used, or None. The second result says how many
    molecules were rejected, by reason.
    """
    rejected: list[str] = []
    molecules = usable_molecules(read_molecules(path), draws, reason_against, rejected)
    backgrounds = [background for _, background in islice(molecules, count)]
    if len(backgrounds) < count:
        raise too_few_backgrounds(path, len(backgrounds), count, rejected)
    return backgrounds, dict(sorted(Counter(rejected).items()))


def too_few_backgrounds(path: Path, usable: int, count: int, rejected: list[str]) -> InputError:
    """Return the error of a pool that has not enough usable molecules."""
    why = ", ".join(f"{number} {reason}" for reason, number in Counter(rejected).most_common())
    return InputError(
        f"{path}: {usable} usable backgrounds, {count} needed: {count - usable} more"
        + (f" (rejected: {why})" if why else "")
    )


def parse_simple(smiles: str) -> tuple[Chem.Mol, list[str]] | str:
    """Return a molecule and its atoms as they are written, or why graphs cannot show it."""
    if len(smiles) > _MAX_LETTERS:
        return "too large"
    molecule: Chem.Mol | None = Chem.MolFromSmiles(smiles)
    if molecule is None or molecule.GetNumAtoms() == 0:
        return "SMILES does not parse"
    if "." in smiles:
        return "more than one fragment"
    atoms = atoms_of(smiles)
    if len(atoms) != molecule.GetNumAtoms():
        return "has atoms that are not simple elements, or hydrogens written as atoms"
    if _UNUSUAL.search(smiles):
        return "has isotopes, or bonds that are not single, double, triple or aromatic"
    return molecule, atoms


def _candidate(
    smiles: str, reason_against: Callable[[Chem.Mol, Background], str | None]
) -> tuple[str, Chem.Mol, Background] | str:
    """Return a molecule with its canonical SMILES and its background, or why it is rejected."""
    parsed = parse_simple(smiles)
    if isinstance(parsed, str):
        return parsed
    molecule, atoms = parsed
    if not free_ring_closure(smiles):
        return "has no ring-closure number left"
    if len(atoms) > MAX_ATOMS // 4:
        return "too large"
    # By number: RDKit's iterator over atoms takes twice as long.
    hydrogens = tuple(
        molecule.GetAtomWithIdx(i).GetTotalNumHs() if text in ("C", "c") else 0
        for i, text in enumerate(atoms)
    )
    background = Background(smiles, hydrogens)
    reason = reason_against(molecule, background)
    return reason or (Chem.MolToSmiles(molecule, isomericSmiles=False), molecule, background)
