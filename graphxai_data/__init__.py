"""graphxai-data: graph-explainability benchmarks whose ground truth is known by construction.

Names are resolved on first use, so that `import graphxai_data` stays light: building needs no
torch, and listing datasets needs no NumPy.
"""

import sys
from types import ModuleType
from typing import TYPE_CHECKING

from graphxai_data.lazy import lazy_names

if TYPE_CHECKING:
    from graphxai_data.building.build import build as build
    from graphxai_data.building.verify import verify as verify
    from graphxai_data.datasets.in_memory import NCI1 as NCI1
    from graphxai_data.datasets.in_memory import BA2Motif as BA2Motif
    from graphxai_data.datasets.in_memory import DiHaloBenzene as DiHaloBenzene
    from graphxai_data.datasets.in_memory import GraphXAIDataset as GraphXAIDataset
    from graphxai_data.datasets.in_memory import MNIST75sp as MNIST75sp
    from graphxai_data.datasets.in_memory import MolHIV as MolHIV
    from graphxai_data.datasets.in_memory import Pattern as Pattern
    from graphxai_data.datasets.loader import BatchLoader as BatchLoader
    from graphxai_data.datasets.on_disk import ShardedDataset as ShardedDataset
    from graphxai_data.datasets.stream import StreamedDataset as StreamedDataset
    from graphxai_data.evaluation.evaluate import evaluate as evaluate
    from graphxai_data.evaluation.pairs import Pair as Pair
    from graphxai_data.explain import explain as explain
    from graphxai_data.generators import register as register
    from graphxai_data.generators.base import Generator as Generator
    from graphxai_data.generators.base import Prover as Prover
    from graphxai_data.generators.base import Rule as Rule
    from graphxai_data.graphs.record import GraphRecord as GraphRecord
    from graphxai_data.graphs.schema import Column as Column
    from graphxai_data.graphs.schema import Feature as Feature
    from graphxai_data.graphs.schema import Schema as Schema
    from graphxai_data.graphs.shards import ShardReader as ShardReader
    from graphxai_data.graphs.shards import ShardWriter as ShardWriter
    from graphxai_data.manifest import Manifest as Manifest
    from graphxai_data.metrics import jaccard_at_k as jaccard_at_k
    from graphxai_data.metrics import node_auroc as node_auroc
    from graphxai_data.recipe import Recipe as Recipe
    from graphxai_data.training.checkpoint import load_model as load_model

__version__ = "0.1.0"

_NAMES = {
    "building.build": "build",
    "building.verify": "verify",
    "datasets.in_memory": "BA2Motif DiHaloBenzene GraphXAIDataset MNIST75sp MolHIV NCI1 Pattern",
    "datasets.loader": "BatchLoader",
    "datasets.on_disk": "ShardedDataset",
    "datasets.stream": "StreamedDataset",
    "evaluation.evaluate": "evaluate",
    "evaluation.pairs": "Pair",
    "explain": "explain",
    "generators": "register",
    "generators.base": "Generator Prover Rule",
    "graphs.record": "GraphRecord",
    "graphs.schema": "Column Feature Schema",
    "graphs.shards": "ShardReader ShardWriter",
    "manifest": "Manifest",
    "metrics": "jaccard_at_k node_auroc",
    "recipe": "Recipe",
    "training.checkpoint": "load_model",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = ["__version__", *sorted(_HOME)]


__getattr__ = lazy_names(__name__, _HOME)


def __dir__() -> list[str]:
    return __all__


class _Package(ModuleType):
    """Keeps `graphxai_data.build` the function when a module of the same name is imported.

    `build`, `explain` and `evaluate` are both modules and functions. Importing such a module would
    replace the function by the module; `from graphxai_data.build import …` works nonetheless.
    """

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _HOME and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
