"""Floors as rows of an evaluation: the rules of a build, scored for all graphs at once."""

import logging
from collections.abc import Collection, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np

from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.datasets.loader import BatchLoader
from graphxai_data.errors import InputError
from graphxai_data.evaluation.other_datasets import OtherGraphs
from graphxai_data.evaluation.parts import Part, recipe_of, union_of
from graphxai_data.evaluation.truth import FORMS, Scores
from graphxai_data.explain.variants import FloorNames, Variant
from graphxai_data.manifest import Manifest
from graphxai_data.rings.colour_rules import ROWS
from graphxai_data.rings.floors import Floors, measure_floors, require_rationale
from graphxai_data.rings.known import KnownGraphs, read_split
from graphxai_data.rings.scored_rules import scored_rules

log = logging.getLogger(__name__)


def floor_names(part: Part, asked: Collection[str]) -> FloorNames:
    """Return the rules for some graphs, if "all" or "floors" is among the names `asked` for."""
    if not {"all", "floors"} & set(asked):
        return FloorNames()
    if isinstance(part, OtherGraphs):
        known = _known(part)
        scored = scored_rules(known, None, None)
        return FloorNames([s.name for s in scored if s.says_something(known)])
    if not part.has_rationale:
        if "floors" in asked:
            require_rationale(part.manifest)
        return FloorNames()
    floors = Floors.load(part.folder)
    if floors is None or floors.content_sha256 != part.manifest.content_sha256:
        log.info("%s has no floors.json; they are measured now", part.name)
        floors = measure_floors(part.folder, part.manifest)
    return FloorNames(list(floors.rows), floors.strongest)


def floor_scores(variants: Sequence[Variant], part: Part) -> dict[str, Scores]:
    """Return the scores of rules that look at no model, by name; they depend on no seed."""
    names = {variant.name for variant in variants}
    counting = names & {row.name for row in ROWS}
    if counting and isinstance(part, OtherGraphs):
        raise InputError(
            f"explainer '{min(counting)}' counts colours in training graphs; these graphs are of "
            "no build: leave it out"
        )
    training = None
    if counting and isinstance(part, GraphXAIDataset):
        training = _training(part.folder, part.manifest.content_sha256)
    known = _known(part)
    scores = {}
    for scored in scored_rules(known, recipe_of(part), training, names):
        if scored.scores is None:
            advice = ", or leave it out" if ";" in scored.why else "; leave it out"
            raise InputError(f"explainer '{scored.name}': {scored.why}{advice}")
        scores[scored.name] = Scores(scored.scores)
    return scores


@lru_cache(maxsize=2)
def _training(folder: Path, content_sha256: str) -> KnownGraphs:
    """Return the training graphs of a build; `content_sha256` tells builds in one place apart."""
    return read_split(folder, Manifest.load(folder), "train")


def _known(part: Part) -> KnownGraphs:
    """Return the graphs of a part as rules take them."""
    keys = ("x", "edge_index", "edge_attr", "y", "node_mask", "graph_id", "cause", *FORMS)
    whole = next(iter(BatchLoader(part, len(part), keys=[k for k in keys if k in part._data])))
    return KnownGraphs(
        union_of(part, whole),
        whole.graph_id.numpy(),
        whole.y.numpy() if "y" in whole else np.zeros(len(part), np.int64),
        whole.node_mask.numpy(),
        whole.cause.numpy() if "cause" in whole else None,
        whole.alternative_bits.numpy() if "alternative_bits" in whole else None,
        whole.node_weight.double().numpy() if "node_weight" in whole else None,
    )
