"""The generators: each module turns (params, plan, seed) into graphs, purely.

A generator module has
    Params                          frozen dataclass: the recipe's `[params]`, with `graphs`
    SOURCES                         the raw inputs it needs by name; for one that is a folder, the
                                    names of the files in it
    OTHER_FILES                     optional: for some of those, the names of files that they may
                                    consist of instead; they are taken where the first is there
    GIVEN                           optional, True: graphs are given, not drawn; the means of some
                                    of them are not held to those of all
    schema(params) -> Schema        what its graphs have in common
    class_names(params)             what people call the classes
    node_values(params)             what people call the values of a node, in the order they are
                                    stored: for each the names of what it may be, or None for a
                                    number
    picture(params, records, sources)    optional: an SVG with one graph of each class
    plan(params, graphs)            class and group of every graph, before any is drawn; or, where
                                    classes come with the source,
    strata(params, graphs)          optional: what every split has its share of; the class if not
    plan_from_sources(params, fractions, graphs, sources, draws)    class, group and split
    read(params, sources, group, seed)    with SOURCES only: what each graph is made from, and for
                                    each source what was rejected; the plan carries the former to
                                    wherever graphs are drawn
    generate(params, plan, seed)    Columns of the planned graphs; each graph depends on its own
                                    line of the plan alone, whichever others are asked for
    check(params, columns)          invariants of many graphs at once, vectorised: problems found
    Prover(params, sources)         the slow, independent proof: `problems(record)` of one graph
                                    after the other, remembering what must not repeat; sources are
                                    given to those that plan from them; `sample` is how many graphs
                                    `verify` proves where nobody asks for all
"""

import importlib
from types import ModuleType

from graphxai_data.errors import InputError, nearest

GENERATORS = {
    "ba2motif": "graphxai_data.generators.ba2motif",
    "dihalo": "graphxai_data.generators.dihalo",
    "mnist75sp": "graphxai_data.generators.mnist75sp",
    "molhiv": "graphxai_data.generators.molhiv",
    "nci1": "graphxai_data.generators.nci1",
    "pattern": "graphxai_data.generators.pattern",
    "pattern_published": "graphxai_data.generators.pattern_published",
}


def generator_module(name: str, where: str = "recipe") -> ModuleType:
    """The module of a generator, imported only now: some need heavy libraries."""
    if name not in GENERATORS:
        raise InputError(f"{where}: unknown generator '{name}'; {nearest(name, GENERATORS)}")
    return importlib.import_module(GENERATORS[name])
