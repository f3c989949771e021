"""The graphs that are evaluated: a split of a build, or graphs that are not of a build."""

from typing import Any

from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.errors import InputError
from graphxai_data.evaluation.other_datasets import OtherGraphs, graphs_of
from graphxai_data.graphs.columns import compact
from graphxai_data.graphs.record import SPLIT_NAMES
from graphxai_data.graphs.union import Graphs
from graphxai_data.recipe import Recipe
from graphxai_data.rings.modes import tidy_edges

Part = GraphXAIDataset | OtherGraphs


def select_part(dataset: Any, split: str | None = None) -> Part:
    """Return the graphs of a split of a build, or all graphs of another dataset or of a list."""
    if isinstance(dataset, GraphXAIDataset):
        return select_split(dataset, split)
    graphs = graphs_of(dataset)
    if split is not None:
        raise InputError(
            f"split: these graphs have none that is known, got '{split}'; select the graphs "
            "yourself, and leave split out"
        )
    return OtherGraphs(graphs)


def select_split(dataset: GraphXAIDataset, split: str | None = None) -> GraphXAIDataset:
    """Return the graphs of a split; if None, of the one that is loaded, else of "test"."""
    split = split or dataset.split or "test"
    if split not in SPLIT_NAMES:
        raise InputError(f"split: expected one of {', '.join(SPLIT_NAMES)}, got {split!r}")
    if dataset.split not in (None, split):
        raise InputError(f"'{dataset.name}' is loaded with split '{dataset.split}', not '{split}'")
    if dataset.transform is not None:
        raise InputError(f"'{dataset.name}' is loaded with a transform; load it without")
    if dataset.pre_transform is not None or dataset.pre_filter is not None:
        raise InputError(
            f"'{dataset.name}' is loaded with a pre_transform or pre_filter, so its graphs are not "
            "those of the build; give the graphs themselves: list(dataset)"
        )
    part = dataset if dataset.split else dataset[dataset.get_idx_split()[split]]
    if not dataset.has_rationale:
        raise InputError(
            f"'{dataset.name}' has no rationale: what its classes come from is unknown, so no "
            "explanation can be scored on it; `train` measures predictions"
        )
    if not len(part):
        raise InputError(f"'{dataset.name}' has no {split} graphs here; choose another split")
    return part


def has_numbers(part: Part) -> bool:
    """Return whether labels are numbers."""
    if isinstance(part, OtherGraphs):
        return part.has_numbers
    return part.label == "number"


def weights_are_for_class_1(part: Part) -> bool:
    """Return whether nodes have weights of two classes: positive ones speak for class 1.

    Then explainers explain class 1, whatever a model predicts. What weights of graphs of others
    speak for is not known: they are compared with scores as they are.
    """
    if isinstance(part, OtherGraphs) or not part.has_weights:
        return False
    return part.label == "class" and part.num_classes == 2


def recipe_of(part: Part) -> Recipe | None:
    """Return the recipe of a build; None for graphs of others."""
    return None if isinstance(part, OtherGraphs) else part.manifest.load_recipe()


def union_of(part: Part, whole: Any) -> Graphs:
    """Return the graphs of a part as rules take them.

    Args:
        part: the graphs.
        whole: all of them in one batch with `x`, `edge_index` and, if they have it, `edge_attr`.
    """
    arrays = {key: whole[key].numpy() for key in ("x", "edge_attr") if key in whole}
    edges = whole.edge_index.numpy()
    if isinstance(part, OtherGraphs):
        edges, attributes = tidy_edges(edges, arrays.get("edge_attr"), len(arrays["x"]))
        arrays |= {} if attributes is None else {"edge_attr": attributes}
    else:
        for column in part.manifest.load_recipe().schema.columns():
            if column.name in arrays:
                arrays[column.name] = compact(arrays[column.name], column)
    return Graphs(arrays["x"], edges, arrays.get("edge_attr"), whole.ptr.numpy())
