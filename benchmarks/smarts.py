"""Time to make `fluoride-carbonyl`, relative to RDKit parsing molecules and matching the SMARTS.

Run with `python -m benchmarks.smarts`, in one process. The pool is walked until both classes are
filled, so most molecules that are looked at do not become graphs. RDKit parses and matches

* the molecules that are looked at: compared with all the work, the walk and the graphs together;
* the molecules that become graphs: compared with making their graphs alone.
"""

import json

from rdkit import Chem

from benchmarks.timing import best_seconds
from graphxai_data.building.plan import make_plan, read_sources
from graphxai_data.files.raw import Source
from graphxai_data.generators import pool_molecules
from graphxai_data.generators.molecule_pool import read_molecules
from graphxai_data.graphs.record import Plan
from graphxai_data.recipe import Recipe
from graphxai_data.seeds import rng_for
from graphxai_data.sources import find_sources

GRAPHS = 10_000


def plan_graphs(recipe: Recipe, sources: dict[str, Source]) -> tuple[Plan, int]:
    """Return the plan of the graphs, and how many molecules were looked at."""
    pool_molecules.selected.cache_clear()  # it keeps the molecules of the last plan
    plan = make_plan(recipe, 0, GRAPHS, sources)
    plan, rejected = read_sources(plan, recipe, sources, seed=0)
    return plan, GRAPHS + sum(rejected["molecules"].values())


def parse_and_match(smiles: list[str], patterns: list[Chem.Mol]) -> None:
    for text in smiles:
        molecule = Chem.MolFromSmiles(text)
        for pattern in patterns:
            molecule.GetSubstructMatches(pattern)


def main() -> None:
    recipe = Recipe.load("fluoride-carbonyl")
    generator, sources = recipe.generator_object, find_sources(recipe)
    patterns = [Chem.MolFromSmarts(smarts) for smarts in recipe.params.substructures.values()]
    plan, looked_at = plan_graphs(recipe, sources)
    pool = read_molecules(sources["molecules"].path)
    order = rng_for(0, "smarts/molecules").permutation(len(pool))[:looked_at]
    walked = [pool[i] for i in order.tolist()]
    selected = [smiles for smiles, _ in plan.raw or ()]

    def everything() -> None:
        generator.generate(plan_graphs(recipe, sources)[0], seed=0)

    seconds = best_seconds(
        {
            "RDKit, molecules looked at": lambda: parse_and_match(walked, patterns),
            "RDKit, molecules of the graphs": lambda: parse_and_match(selected, patterns),
            "walk and graphs": everything,
            "graphs": lambda: generator.generate(plan, seed=0),
        },
        rounds=3,
    )
    result = {
        "graphs": GRAPHS,
        "molecules looked at": looked_at,
        "walk and graphs, in units of RDKit": round(
            seconds["walk and graphs"] / seconds["RDKit, molecules looked at"], 2
        ),
        "graphs alone, in units of RDKit": round(
            seconds["graphs"] / seconds["RDKit, molecules of the graphs"], 2
        ),
    }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
