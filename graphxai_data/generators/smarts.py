"""Molecules of a pool that have substructures, or not, as a rule says.

A recipe names substructures (SMARTS) and a rule of and, or and not over them. The class is the
truth of the rule. The rationale is the atoms that make it true, or false: every minimal way to
settle it is an alternative. It is null where nothing has to be seen, as without any benzene.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from rdkit import Chem, rdBase

from graphxai_data.errors import InputError
from graphxai_data.generators.base import Prover, Rule, Sources
from graphxai_data.generators.pool_molecules import PoolMoleculeGenerator, PoolParams
from graphxai_data.generators.pool_selection import Judgement
from graphxai_data.generators.smarts_pattern import Pattern, parse_smarts
from graphxai_data.generators.smarts_rule import (
    Expression,
    TooManyWaysError,
    check_decisive,
    check_name,
    combinations,
    parse_rule,
)
from graphxai_data.generators.smarts_rules import smarts_rules
from graphxai_data.graphs.rationale import MAX_ALTERNATIVES
from graphxai_data.graphs.schema import Schema

# Each combination of substructures is a case of its own.
_MAX_SUBSTRUCTURES = 8
_MAX_MATCHES = 100_000
TOO_MANY = f"more than {MAX_ALTERNATIVES} ways to explain its class"
WHOLE = "its rationale is the whole molecule"


@dataclass(frozen=True)
class SmartsParams(PoolParams):
    """The recipe's substructures and rule."""

    substructures: dict[str, str] = field(hash=False)  # SMARTS by name
    rule: str  # such as "fluoride and not (carbonyl or ether)"
    # What is equally frequent besides the two classes: nothing, or in each class every combination
    # of substructures that gives it.
    balance: Literal["classes", "combinations"]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= len(self.substructures) <= _MAX_SUBSTRUCTURES:
            raise ValueError(
                f"substructures: expected 1 to {_MAX_SUBSTRUCTURES}, got {len(self.substructures)}"
            )
        for name, smarts in self.substructures.items():
            check_name(name)
            rdkit_pattern(name, smarts)
            own_pattern(name, smarts)
        check_decisive(self.rule, self.expression, self.names)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the substructures, whatever their order in the recipe."""
        return tuple(sorted(self.substructures))

    @property
    def expression(self) -> Expression:
        """The parsed rule."""
        return parse_rule(self.rule, self.substructures)


class _Case(NamedTuple):
    """What follows from the substructures that a molecule has."""

    label: int
    stratum: int
    is_null: bool
    present: frozenset[str]


class SmartsGenerator(PoolMoleculeGenerator):
    """Classes by a rule over substructures."""

    Params = SmartsParams
    class_keys = "params.rule or params.substructures"
    # The prover matches patterns in Python.
    proof_sample = 2000

    params: SmartsParams

    def schema(self) -> Schema:
        """Return that of molecules; rationales may be null, or have alternatives."""
        return self.pool_schema(2, has_null=True, has_alternatives=True)

    def class_names(self) -> list[str]:
        """Return the rule and its negation."""
        rule = self.params.rule
        return [f"not ({rule})" if " " in rule else f"not {rule}", rule]

    def strata_of_classes(self) -> list[list[str]]:
        """Return the combinations of substructures that are equally frequent, per class."""
        if self.params.balance == "classes":
            return super().strata_of_classes()
        names: list[list[str]] = [[], []]
        for case in self._cases:
            present = [name if name in case.present else f"no {name}" for name in self.params.names]
            names[case.label].append(", ".join(present))
        return names

    def judge(self, molecule: Chem.Mol) -> Judgement | str:
        """Return whether the rule holds, and the ways to see that, as bits of atoms."""
        has, patterns = molecule.HasSubstructMatch, self._patterns
        case = self._cases[sum(has(pattern) << i for i, pattern in enumerate(patterns.values()))]
        if case.is_null:  # most molecules of most pools: no need to list matches
            return Judgement(case.label, (), case.stratum)
        matches = {
            name: [
                sum(1 << atom for atom in match)
                for match in molecule.GetSubstructMatches(pattern, maxMatches=_MAX_MATCHES)
            ]
            for name, pattern in patterns.items()
        }
        try:
            ways = self._rule.ways(matches, bool(case.label))
        except TooManyWaysError:
            return TOO_MANY
        if len(ways) > MAX_ALTERNATIVES:
            return TOO_MANY
        union = 0
        for way in ways:
            union |= way
        if union.bit_count() == molecule.GetNumAtoms():
            return WHOLE
        return Judgement(case.label, tuple(ways), case.stratum)

    def check_pool(self, path: Path, pool: Sequence[str]) -> None:
        """Raise an `InputError` if a substructure is in no usable molecule of the pool, or in all.

        Most pools show within a few molecules that neither is the case. A pool without any usable
        molecule is left to the selection, which has the reasons.
        """
        undecided = {name: {True, False} for name in self._patterns}
        usable = 0
        for smiles in pool:
            with rdBase.BlockLogs():
                molecule = self.usable(smiles)
            if isinstance(molecule, str):
                continue
            usable += 1
            for name in list(undecided):
                undecided[name].discard(molecule.HasSubstructMatch(self._patterns[name]))
                if not undecided[name]:
                    del undecided[name]
            if not undecided:
                return
        for name, missing in undecided.items() if usable else ():
            where = "none" if True in missing else "all"
            raise InputError(
                f"{path}: substructure '{name}' ({self.params.substructures[name]}) is in {where} "
                f"of {usable} usable molecules; correct params.substructures.{name}, or give "
                "another pool with --source molecules=FILE"
            )

    def truth_columns(self, truth: Any, atoms: int) -> dict[str, Any]:
        """Return the bits of alternatives, from sets of atoms."""
        bits = [0] * atoms
        for number, way in enumerate(truth):
            while way:
                atom = way.bit_length() - 1
                bits[atom] |= 1 << number
                way ^= 1 << atom
        return {"alternative_bits": np.array(bits, np.int64)}

    def prover(self, sources: Sources) -> Prover:
        """Return the proof by independent code."""
        from graphxai_data.generators.smarts_proof import SmartsProver

        return SmartsProver(self.params)

    def rules(self) -> tuple[Rule, ...]:
        """Return simple rules that look for elements, aromatic atoms, and the substructures."""
        patterns = {
            name: own_pattern(name, smarts) for name, smarts in self.params.substructures.items()
        }
        return smarts_rules(self.params.atoms, patterns, self._rule)

    @cached_property
    def _patterns(self) -> dict[str, Chem.Mol]:
        smarts = self.params.substructures
        return {name: rdkit_pattern(name, smarts[name]) for name in self.params.names}

    @cached_property
    def _rule(self) -> Expression:
        return self.params.expression

    @cached_property
    def _cases(self) -> list[_Case]:
        """What follows from every combination of substructures, as `combinations` numbers them."""
        cases = []
        met = [0, 0]
        for number, holds in enumerate(combinations(self._rule, self.params.names)):
            present = [name for i, name in enumerate(self.params.names) if number >> i & 1]
            # Nothing has to be seen, whichever atoms the substructures have.
            matches = {
                name: [1 << i] * (name in present) for i, name in enumerate(self.params.names)
            }
            is_null = self._rule.ways(matches, holds) == [0]
            stratum = met[holds] if self.params.balance == "combinations" else 0
            cases.append(_Case(int(holds), stratum, is_null, frozenset(present)))
            met[holds] += 1
        return cases


def rdkit_pattern(name: str, smarts: str) -> Chem.Mol:
    """Return the pattern that RDKit searches for, or raise a `ValueError`."""
    if not smarts.strip():
        raise ValueError(f"substructures.{name}: is empty; write a SMARTS, such as 'C=O'")
    with rdBase.BlockLogs():
        pattern: Chem.Mol | None = Chem.MolFromSmarts(smarts)
    if pattern is None or not pattern.GetNumAtoms():
        raise ValueError(f"substructures.{name}: RDKit cannot parse '{smarts}'; correct the SMARTS")
    return pattern


def own_pattern(name: str, smarts: str) -> Pattern:
    """Return the pattern as the prover reads it, or raise a `ValueError`."""
    try:
        return parse_smarts(smarts)
    except ValueError as error:
        raise ValueError(f"substructures.{name}: '{smarts}': {error}") from None
