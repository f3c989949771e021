"""Time to generate Di-Halo-Benzene, relative to RDKit parsing the same molecules with hydrogens.

Run with `python -m benchmarks.dihalo`, in one process. Generation grafts, parses, shuffles and
fills arrays. Choosing backgrounds from the pool comes before that and is measured separately.
"""

import json

from rdkit import Chem

from benchmarks.timing import best_seconds
from graphxai_data.building.plan import make_plan, read_sources
from graphxai_data.files.raw import Source
from graphxai_data.generators.dihalo_family import ranked_pool
from graphxai_data.graphs.columns import unpack
from graphxai_data.graphs.record import Plan
from graphxai_data.recipe import Recipe
from graphxai_data.sources import find_sources

GRAPHS = 1000


def measure(name: str) -> dict[str, float]:
    recipe = Recipe.load(name)
    sources = find_sources(recipe)
    bare_plan = make_plan(recipe, 0, GRAPHS, sources)
    plan, _ = read_sources(bare_plan, recipe, sources, seed=0)
    columns = recipe.generator_object.generate(plan, seed=0)
    schema = recipe.schema
    smiles = [unpack(columns, schema, i).meta["smiles"] for i in range(GRAPHS)]
    seconds = best_seconds(
        {
            "RDKit": lambda: [Chem.AddHs(Chem.MolFromSmiles(text)) for text in smiles],
            "generation": lambda: recipe.generator_object.generate(plan, seed=0),
            "choice of backgrounds": lambda: choose(bare_plan, recipe, sources),
        },
        rounds=5,
    )
    floor = seconds.pop("RDKit")
    return {f"{name}, in units of RDKit": round(s / floor, 2) for name, s in seconds.items()}


def choose(plan: Plan, recipe: Recipe, sources: dict[str, Source]) -> None:
    ranked_pool.cache_clear()  # it keeps the molecules that the plan has parsed
    read_sources(plan, recipe, sources, seed=0)


def main() -> None:
    others = {name: measure(name) for name in ("dihalo-decoy", "dihalo-pair-a")}
    print(json.dumps(measure("dihalo") | others, indent=2))


if __name__ == "__main__":
    main()
