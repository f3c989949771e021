"""Crippen: the logP of a molecule is the sum of contributions of its atoms, which are the truth.

Wildman and Crippen 1999: every atom has a type, which depends on its neighbours, and every type a
published contribution. The label is the sum, or whether it is above a threshold. Nodes are heavy
atoms; the contribution of a hydrogen counts as that of the atom it is bonded to. The number of
hydrogens is a node feature: the graph of heavy atoms alone does not say which aromatic nitrogen has
one.
"""

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from rdkit import Chem

from graphxai_data.files.toml import Names
from graphxai_data.generators.base import Prover, Rule, Sources
from graphxai_data.generators.crippen_rules import crippen_rules
from graphxai_data.generators.crippen_types import ELEMENTS, UNITS, contributions, units_of
from graphxai_data.generators.pool_molecules import PoolMoleculeGenerator, PoolParams
from graphxai_data.generators.pool_selection import Judgement
from graphxai_data.graphs.columns import Columns, one_hot, pointers
from graphxai_data.graphs.invariants import Findings
from graphxai_data.graphs.record import GraphRecord
from graphxai_data.graphs.schema import Feature, Schema

MAX_HYDROGENS = 4  # per atom
_CHARGED = Chem.MolFromSmarts("[!+0]")
_MANY_HYDROGENS = Chem.MolFromSmarts("[!H0;!H1;!H2;!H3;!H4]")


class CrippenGenerator(PoolMoleculeGenerator):
    """Molecules of a pool with their logP."""

    @dataclass(frozen=True)
    class Params(PoolParams):
        """The recipe's numbers."""

        atoms: Annotated[tuple[str, ...], Names(ELEMENTS, noun="element")]
        # Decimal text, so that it is exact. Class 1 is a logP above it; without it, the label is
        # the logP itself.
        threshold: str | None = None

        def __post_init__(self) -> None:
            super().__post_init__()
            try:
                units_of("0" if self.threshold is None else self.threshold)
            except ValueError as error:
                raise ValueError(f"threshold: {error}") from None

    params: Params
    # One graph takes about a millisecond.
    proof_sample: ClassVar = 5000
    class_keys: ClassVar = "params.threshold"

    def schema(self) -> Schema:
        """Elements and hydrogens, signed weights, and a number or two classes."""
        is_number = self.params.threshold is None
        schema = self.pool_schema(
            1 if is_number else 2, has_weights=True, label="number" if is_number else "class"
        )
        widths = (len(self.params.atoms), MAX_HYDROGENS + 1)
        return replace(schema, node_features=Feature.multihot(widths))

    def class_names(self) -> list[str]:
        """Return what the number is, or what a class says about it."""
        threshold = self.params.threshold
        if threshold is None:
            return ["logP, as a sum of contributions of atoms (Wildman and Crippen 1999)"]
        return [f"logP up to {threshold}", f"logP above {threshold}"]

    def node_values(self) -> dict[str, list[str] | None]:
        """Return the elements that a node may be, and the hydrogens that it may have."""
        hydrogens = [str(count) for count in range(MAX_HYDROGENS + 1)]
        return {**super().node_values(), "hydrogens": hydrogens}

    def field_descriptions(self) -> dict[str, str]:
        """Return what the fields of molecules and weights mean."""
        return {
            **super().field_descriptions(),
            "node_weight": "contribution of the atom and its hydrogens to logP; rounded to five "
            "decimals it is exact",
        }

    def judge(self, molecule: Chem.Mol) -> Judgement | str:
        """Return class and contributions of a molecule, or why it is left out."""
        if molecule.HasSubstructMatch(_CHARGED):
            return "has a charge, which features do not show"
        if molecule.HasSubstructMatch(_MANY_HYDROGENS):
            return f"has an atom with more than {MAX_HYDROGENS} hydrogens"
        atoms = range(molecule.GetNumAtoms())
        if any(molecule.GetAtomWithIdx(i).GetNumRadicalElectrons() for i in atoms):
            return "has an unpaired electron"
        units = contributions(molecule)
        threshold = self.params.threshold
        above = threshold is not None and int(units.sum()) > units_of(threshold)
        return Judgement(int(above), units)

    def truth_columns(self, truth: Any, atoms: int) -> dict[str, Any]:
        """Return weights [n], and the label where it is a number, from units of 1/100,000."""
        columns: dict[str, Any] = {"node_weight": (truth / UNITS).astype(np.float32)}
        if self.params.threshold is None:
            columns["y"] = int(truth.sum()) / UNITS
        return columns

    def check(self, columns: Columns) -> list[str]:
        """Return graphs whose weights do not sum to the label, or whose features differ."""
        findings = Findings(columns)
        units = np.rint(columns["node_weight"].astype(np.float64) * UNITS).astype(np.int64)
        sums = np.diff(pointers(units)[columns["node_ptr"]])
        if self.params.threshold is None:
            label = (sums / UNITS).astype(np.float32)
            findings.require(columns["y"] == label, "its label is not the sum of its weights")
        else:
            above = sums > units_of(self.params.threshold)
            findings.require(columns["y"] == above, "its class is not that of its weights' sum")
        differs = columns["x"][:, 1] != columns["hydrogens"]
        findings.require(findings.nodes(differs) == 0, "x does not have the number of hydrogens")
        charged = columns["charge"] != 0
        findings.require(findings.nodes(charged) == 0, "has a charge")
        return findings.problems

    def prover(self, sources: Sources) -> Prover:
        """Return the proof by independent code."""
        from graphxai_data.generators.crippen_proof import CrippenProver

        return CrippenProver(self.params)

    def rules(self) -> tuple[Rule, ...]:
        """Return rules that tell from elements and hydrogens which atoms raise logP."""
        return crippen_rules(self.params.atoms)

    def _draw(self, seed: int, smiles: str, truth: Any, *row: int) -> GraphRecord:
        record = super()._draw(seed, smiles, truth, *row)
        hydrogens = one_hot(record.meta["hydrogens"], MAX_HYDROGENS + 1)
        return replace(record, x=np.concatenate([record.x, hydrogens], axis=1))
