"""Time to compute superpixels: ours against scikit-image, image by image, with the same size rule.

Run with `python -m benchmarks.mnist75sp`, in one process. It also checks that the labels are equal.
The whole way from images to checked graphs is a second ratio.
"""

import json

import numpy as np

from benchmarks.timing import best_seconds
from graphxai_data.building.plan import make_plan, read_sources
from graphxai_data.generators.mnist75sp_proof import slic_superpixels
from graphxai_data.generators.superpixels import superpixels
from graphxai_data.recipe import Recipe
from graphxai_data.sources import find_sources

GRAPHS = 500


def main() -> None:
    recipe = Recipe.load("mnist75sp-r23")
    sources = find_sources(recipe)
    plan, _ = read_sources(make_plan(recipe, 0, GRAPHS, sources), recipe, sources, seed=0)
    images, slic = np.asarray(plan.raw), recipe.params.slic
    theirs = np.stack([slic_superpixels(image, slic) for image in images])
    assert (superpixels(images, slic)[0] == theirs).all()  # also compiles
    seconds = best_seconds(
        {
            "scikit-image": lambda: [slic_superpixels(image, slic) for image in images],
            "superpixels": lambda: superpixels(images, slic),
            "graphs": lambda: recipe.generator_object.generate(plan, seed=0),
        },
        rounds=5,
    )
    peer = seconds.pop("scikit-image")
    ratios = {f"{name}, times scikit-image": round(peer / s, 1) for name, s in seconds.items()}
    print(json.dumps(ratios, indent=2))


if __name__ == "__main__":
    main()
