"""Time to make graphs of crippen, relative to RDKit's own parsing and contributions.

Run with `python -m benchmarks.crippen`, in one process. Selection reads the pool, types the atoms
of every molecule, and finds scaffolds; generation parses again, shuffles and fills arrays.
"""

import json

from rdkit import Chem
from rdkit.Chem import rdMolDescriptors

from benchmarks.timing import best_seconds
from graphxai_data.building.plan import make_plan, read_sources
from graphxai_data.generators import pool_molecules
from graphxai_data.generators.crippen_types import contributions
from graphxai_data.graphs.columns import Columns
from graphxai_data.graphs.record import Plan
from graphxai_data.recipe import Recipe
from graphxai_data.sources import find_sources


def main() -> None:
    recipe = Recipe.load("crippen")
    sources = find_sources(recipe)

    def select() -> Plan:
        pool_molecules.selected.cache_clear()
        plan = make_plan(recipe, 0, recipe.params.graphs, sources)
        return read_sources(plan, recipe, sources, 0)[0]

    plan = select()
    texts = [smiles for smiles, _ in plan.raw or ()]

    def generate() -> Columns:
        return recipe.generator_object.generate(plan, 0)

    def type_atoms() -> None:
        for text in texts:
            contributions(Chem.MolFromSmiles(text))

    def rdkit() -> None:
        for text in texts:
            rdMolDescriptors._CalcCrippenContribs(Chem.AddHs(Chem.MolFromSmiles(text)))

    jobs = {"select": select, "generate": generate, "type": type_atoms, "rdkit": rdkit}
    seconds = best_seconds(jobs, rounds=3)
    units = {name: round(seconds[name] / seconds["rdkit"], 2) for name in jobs}
    print(
        json.dumps(
            {
                "parsing and contributions, in units of RDKit": units["type"],
                "selection, in units of RDKit": units["select"],
                "generation, in units of RDKit": units["generate"],
                "all, in units of RDKit": round(units["select"] + units["generate"], 2),
            }
        )
    )


if __name__ == "__main__":
    main()
