"""Time of an explanation: the median after a warm-up, graph by graph and in batches."""

import math
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import Any, cast

import torch
from torch import nn

from graphxai_data.datasets.loader import BatchLoader
from graphxai_data.evaluation.parts import Part, recipe_of
from graphxai_data.evaluation.score_sources import Source, explained_model, is_function
from graphxai_data.evaluation.truth import Truth
from graphxai_data.explain import explain
from graphxai_data.explain.functions import without_answers
from graphxai_data.explain.models import call_model, device_of_model
from graphxai_data.explain.plugins import guarded, plugin_batch, plugin_function
from graphxai_data.explain.pyg_explainers import PyGFunction
from graphxai_data.explain.variants import Variant
from graphxai_data.nn.random import seeded, torch_seed

_SINGLE_GRAPHS, _BATCHES = 20, 8
# Stop early with a slow explainer: after so many seconds, but not before so many measurements.
_ENOUGH_SECONDS, _FEWEST = 3.0, 3


def conditions(model: nn.Module | None) -> dict[str, Any]:
    """Return what times depend on; it is saved with them."""
    return {"timed_on": device_of_model(model).type, "timed_threads": torch.get_num_threads()}


def times_of(
    source: Source, model: nn.Module | None, truth: Truth, batch_size: int
) -> dict[str, Any]:
    """Return how long an explanation takes; nothing for scores that were computed elsewhere."""
    if isinstance(source, Variant):
        if source.is_floor:  # scored for all graphs at once
            return {}
        return time_explainer(source, model, truth.part, batch_size)
    if is_function(source):
        model = explained_model(source, model)
        device, as_given = device_of_model(model), not isinstance(source, PyGFunction)
        graphs = [data.to(device) for data in islice(truth.shown(as_given), _SINGLE_GRAPHS)]
        with seeded(torch_seed(0, "evaluate/timing")):
            time_per_graph = _median_milliseconds(source, graphs, without_answers)
        return {"ms_per_graph": time_per_graph, **conditions(model)}
    return {}


def time_explainer(
    variant: Variant, model: nn.Module | None, part: Part, batch_size: int = 64
) -> dict[str, Any]:
    """Return milliseconds per graph of an explainer, on the first graphs of a dataset."""
    options = variant.options_for(recipe_of(part))
    device = device_of_model(model)
    singles = [data.to(device) for data in part[:_SINGLE_GRAPHS]]
    batches = [b.to(device) for b in islice(BatchLoader(part, batch_size), _BATCHES)]

    def forward(data: Any) -> None:
        with torch.no_grad():
            call_model(
                cast(nn.Module, model), data.x, data.edge_index, data.edge_attr, data.batch,
                batch_size=data.num_graphs,
            )  # fmt: skip

    run: Callable[[Any], Any]
    prepare: Callable[[Any], Any]
    if variant.origin is None:
        run, prepare = partial(explain, model, method=variant.method, **options), _unchanged
    else:  # its function alone: not our checks of the result, nor the forward pass for its logit
        run, prepare = plugin_function(variant, model, options), plugin_batch
    with guarded(variant, options):
        per_graph, batched = (
            _median_milliseconds(run, items, prepare) for items in (singles, batches)
        )
    return {
        "ms_per_graph": per_graph,
        "ms_per_graph_batched": batched,
        "ms_forward_batched": _median_milliseconds(forward, batches, _unchanged)
        if model
        else math.nan,
        **conditions(model),
    }


def _median_milliseconds(
    run: Callable[[Any], Any],
    items: Sequence[Any],
    prepare: Callable[[Any], Any],
) -> float:
    """Return the median time per graph of `run` on graphs or batches; `prepare` is not timed."""
    run(prepare(items[0]))  # warm-up: some things are compiled or allocated at first use
    times = []
    begin = time.perf_counter()
    for item in items:
        graphs = getattr(item, "num_graphs", 1)
        prepared = prepare(item)
        _synchronise()
        start = time.perf_counter()
        run(prepared)
        _synchronise()
        times.append((time.perf_counter() - start) * 1000 / graphs)
        if len(times) >= _FEWEST and time.perf_counter() - begin > _ENOUGH_SECONDS:
            break
    return statistics.median(times)


def _unchanged(item: Any) -> Any:
    return item


def _synchronise() -> None:
    """Wait until the GPU has finished."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
