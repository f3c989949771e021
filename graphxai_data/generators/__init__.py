"""The generators: one class per dataset, shipped here or brought by plug-ins.

A plug-in is a class that another package offers in the group `graphxai_data.generators` of entry
points, or that a script passes to `register`. Recipes name generators, never modules: only what is
shipped, installed or registered can run.
"""

import hashlib
import importlib
import inspect
import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphxai_data.errors import InputError
from graphxai_data.files.plugins import Group, Origin, PluginError, blamed

if TYPE_CHECKING:  # listing datasets needs no NumPy
    from graphxai_data.generators.base import Generator

# The class of each shipped generator, imported on demand: some need heavy libraries.
GENERATORS = {
    "ba2motif": "BA2MotifGenerator",
    "ba2motif_balanced": "BalancedBA2MotifGenerator",
    "ba2motif_pair": "BA2MotifPairGenerator",
    "crippen": "CrippenGenerator",
    "dihalo": "DiHaloGenerator",
    "dihalo_pair": "DiHaloPairGenerator",
    "mnist75sp": "MNIST75spGenerator",
    "mnist75sp_pair": "MNIST75spPairGenerator",
    "molhiv": "MolHIVGenerator",
    "nci1": "NCI1Generator",
    "pattern": "PatternGenerator",
    "pattern_published": "PublishedPatternGenerator",
    "smarts": "SmartsGenerator",
    "spmotif": "SPMotifGenerator",
}
PLUGINS = Group("graphxai_data.generators", "generator", GENERATORS)


def register(name: str, cls: "type[Generator]") -> None:
    """Make a generator known by a name, for recipes used in this process and its workers.

    For scripts and notebooks; an installed package offers an entry point instead. A class can be
    registered again, as when a cell of a notebook runs again.
    """
    from graphxai_data.generators.base import check_class

    try:
        check_class(cls)
    except InputError as error:
        raise InputError(f"generator {name!r}: {error}") from None
    PLUGINS.register(name, cls)


def generator_class(name: str) -> "type[Generator]":
    """Return the class of a shipped, installed or registered generator."""
    from graphxai_data.generators.base import check_class

    if name in GENERATORS:
        module = importlib.import_module(f"{__name__}.{name}")
        shipped: type[Generator] = getattr(module, GENERATORS[name])
        return shipped
    cls: type[Generator] = PLUGINS.load(name)
    try:
        check_class(cls)
    except InputError as error:
        raise PluginError(f"{PLUGINS.origin(name)}: {error}") from None
    return cls


def plugin_origin(name: str) -> Origin | None:
    """Return the plug-in that a generator comes from; None if it is shipped."""
    return None if name in GENERATORS else PLUGINS.origin(name)


def code_digest(name: str) -> str:
    """Return a digest of the code of a plug-in; a random text if the code cannot be found."""
    cls = generator_class(name)
    module = sys.modules[cls.__module__]
    digest = hashlib.sha256()
    if file := getattr(module, "__file__", None):
        top = sys.modules.get(cls.__module__.partition(".")[0], module)
        folders = [Path(folder) for folder in getattr(top, "__path__", ())]
        paths = {path for folder in folders for path in folder.rglob("*.py")} | {Path(file)}
        for path in sorted(paths):
            digest.update(path.read_bytes())
        return digest.hexdigest()
    try:
        return hashlib.sha256(inspect.getsource(cls).encode()).hexdigest()
    except (OSError, TypeError):  # a class without a file, as in an interactive session
        return secrets.token_hex()


def make_generator(name: str, params: Any) -> "Generator":
    """Return a generator with its params, after checking its schema and names."""
    cls = generator_class(name)
    with blamed(plugin_origin(name)):
        generator = cls(params)
        generator.name = name
        _check_descriptions(generator)
    return generator


def _check_descriptions(generator: "Generator") -> None:
    """Raise an `InputError` unless schema, names and descriptions make sense."""
    from graphxai_data.graphs.schema import Schema

    schema: Any = generator.schema()
    if not isinstance(schema, Schema):
        raise InputError(f"schema: expected a Schema, got {type(schema).__name__}")
    names: Any = generator.class_names()
    if not isinstance(names, list | tuple):
        raise InputError(f"class_names: expected a list of texts, got {type(names).__name__}")
    for hook in ("node_values", "edge_values"):
        values: Any = getattr(generator, hook)()
        options = list(values.values()) if isinstance(values, dict) else [0]
        if not all(option is None or isinstance(option, list) for option in options):
            raise InputError(f"{hook}: expected a dict of names, each with a list of texts or None")
    descriptions: Any = generator.field_descriptions()
    if not isinstance(descriptions, dict):
        raise InputError("field_descriptions: expected a dict of fields, each with one line")
    if problem := generator.meaning().problem(schema):
        raise InputError(problem)
