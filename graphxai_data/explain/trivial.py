"""Baselines: scores that look at no model.

An explainer that is not better than the best of them shows nothing on a dataset.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from graphxai_data.errors import InputError, whole_number
from graphxai_data.explain.base import Inputs
from graphxai_data.generators.base import Rule
from graphxai_data.graphs.columns import pointers
from graphxai_data.graphs.union import Graphs
from graphxai_data.rings.modes import tidy_edges
from graphxai_data.rings.rules import random_scores as draws_of
from graphxai_data.seeds import MAX_SEED


def random_scores(inputs: Inputs, seed: int = 0) -> Tensor:
    """Return [n] uniform draws, which depend on the seed and the graph's id in `inputs` only."""
    whole_number("seed", seed, 0, MAX_SEED)
    sizes = torch.bincount(inputs.batch, minlength=inputs.graphs).cpu().numpy()
    return _as_scores(torch.from_numpy(draws_of(inputs.ids.cpu().numpy(), sizes, seed)), inputs)


def rule_scores(rule: Rule, inputs: Inputs) -> Tensor:
    """Return [n] the scores of a rule for all datasets."""
    graphs = _union(inputs, inputs.x.cpu().numpy())
    return _as_scores(torch.from_numpy(rule.score(graphs)), inputs)


def intensity(inputs: Inputs) -> Tensor:
    """Return [n] the first feature, which is the mean grey value of a superpixel."""
    return inputs.x[:, 0]


def halogen_closeness(inputs: Inputs, atoms: Sequence[str]) -> Tensor:
    """Return [n] closeness to the nearest halogen, in bonds; carbon wins among equally close atoms.

    The graphs are molecules with one-hot atoms: column i of `x` is the element `atoms[i]`.
    """
    if len(atoms) != inputs.x.shape[1]:
        raise InputError(f"atoms: expected {inputs.x.shape[1]}, one per column, got {len(atoms)}")
    from graphxai_data.generators.dihalo_rules import halogen_closeness as rule  # needs RDKit

    element = inputs.x.argmax(dim=1).cpu().numpy().astype(np.uint8)
    return _as_scores(torch.from_numpy(rule(_union(inputs, element), atoms)), inputs)


def _union(inputs: Inputs, x: npt.NDArray[Any]) -> Graphs:
    """Return the graphs of a batch with these features, as rules take them."""
    edges, _ = tidy_edges(inputs.edge_index.cpu().numpy(), None, len(inputs.x))
    sizes = torch.bincount(inputs.batch, minlength=inputs.graphs).cpu().numpy()
    return Graphs(x, edges, None, pointers(sizes))


def _as_scores(values: Tensor, inputs: Inputs) -> Tensor:
    """Return [n] values in the type of the features, or as floats if features are whole numbers."""
    dtype = inputs.x.dtype if inputs.x.is_floating_point() else torch.float32
    return values.to(inputs.x.device, dtype)
