"""The generators: each module turns (params, plan, seed) into graphs, as pure functions.

A generator module has
    Params                    frozen dataclass: the recipe's `[params]`, with `graphs`
    SOURCES                   the raw inputs it needs, by name; for a folder, the names of its files
    OTHER_FILES               optional: other files that such a folder may hold instead; used if the
                              first of them exists
    GIVEN                     optional, True: graphs are published, not drawn; the means of a part
                              of them are not compared with the expected ones
    schema(params)            the `Schema`: what its graphs have in common
    class_names(params)       names of the classes
    node_values(params)       names of the values of a node, in the order they are stored: for each
                              the names of its options, or None for a number
    picture(params, records, sources)    optional: an SVG of graphs, one of each class
    plan(params, graphs)      class and group of every graph, before any is drawn; or, if classes
                              come with the source,
    plan_from_sources(params, fractions, graphs, sources, draws)    class, group and split
    strata(params, graphs)    optional: what is kept in proportion in every split; else the class
    read(params, sources, group, seed)    only with SOURCES: what each graph is made from (the plan
                              carries it to the workers), and what was rejected, by source
    generate(params, plan, seed)    Columns of the planned graphs; each graph depends only on its
                              own row of the plan
    check(params, columns)    problems with the arrays of many graphs at once, vectorised

A second module, `<name>_proof`, has
    Prover(params, sources)   the slow, independent proof: `problems(record)` of one graph after the
                              other, remembering what must not repeat; `sample` is how many graphs
                              `verify` proves unless asked for all
"""

import importlib
from types import ModuleType
from typing import Any

from graphxai_data.errors import InputError, nearest

GENERATORS = (
    "ba2motif", "dihalo", "mnist75sp", "molhiv", "nci1", "pattern", "pattern_published",
)  # fmt: skip


def generator_module(name: str, where: str = "recipe") -> ModuleType:
    """Return the module of a generator, imported on demand: some need heavy libraries."""
    if name not in GENERATORS:
        raise InputError(f"{where}: unknown generator '{name}'; {nearest(name, GENERATORS)}")
    return importlib.import_module(f"{__name__}.{name}")


def prover_class(name: str) -> Any:
    """Return the `Prover` of a generator, from the module `<name>_proof`."""
    return importlib.import_module(f"{__name__}.{name}_proof").Prover
