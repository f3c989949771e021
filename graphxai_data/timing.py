"""How long an explanation takes: after a warm-up, the median, graph by graph and in batches."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from torch import nn

from graphxai_data.batches import BatchLoader
from graphxai_data.dataset import GraphXAIDataset
from graphxai_data.explain import explain
from graphxai_data.explain.variants import Variant

_SINGLE_GRAPHS, _BATCHES = 20, 8
# Of slow explainers fewer are measured, but never fewer than this.
_ENOUGH_SECONDS, _FEWEST = 3.0, 3


@dataclass(frozen=True)
class Timing:
    """Milliseconds a graph, on a device with a number of threads.

    Attributes:
        single: median of graphs explained one at a time.
        batched: median over batches of the time of a batch by its number of graphs.
        forward: the same of the model's own forward pass; nan without a model.
        device: where.
        threads: of the CPU.
    """

    single: float
    batched: float
    forward: float
    device: str
    threads: int

    def row(self) -> dict[str, Any]:
        """Columns of a table."""
        return {
            "ms_per_graph": self.single,
            "ms_per_graph_batched": self.batched,
            "ms_forward_batched": self.forward,
        }


def time_explainer(
    variant: Variant, model: nn.Module | None, part: GraphXAIDataset, batch_size: int = 64
) -> Timing:
    """Time one explainer on the first graphs of a dataset."""
    options = dict(variant.options)
    if variant.method == "halogen-closeness":
        options["atoms"] = part.manifest.load_recipe().params.atoms
    device = torch.device("cpu") if model is None else next(model.parameters()).device
    singles = [part[i].to(device) for i in range(min(_SINGLE_GRAPHS, len(part)))]
    batches = [b.to(device) for b in islice(BatchLoader(part, batch_size), _BATCHES)]

    def run(data: Any) -> None:
        explain(model, data, method=variant.method, **options)

    def forward(data: Any) -> None:
        if model is not None:
            with torch.no_grad():
                model(data.x, data.edge_index, data.edge_attr, data.batch)

    return Timing(
        single=_median(run, singles, [1] * len(singles)),
        batched=_median(run, batches, [b.num_graphs for b in batches]),
        forward=float("nan")
        if model is None
        else _median(forward, batches, [b.num_graphs for b in batches]),
        device=device.type,
        threads=torch.get_num_threads(),
    )


def _median(run: Callable[[Any], None], items: list[Any], graphs: list[int]) -> float:
    run(items[0])  # warm-up: what is compiled or allocated at first use
    taken = []
    begin = time.perf_counter()
    for item, count in zip(items, graphs, strict=True):
        start = time.perf_counter()
        run(item)
        taken.append((time.perf_counter() - start) * 1000 / count)
        if len(taken) >= _FEWEST and time.perf_counter() - begin > _ENOUGH_SECONDS:
            break
    return statistics.median(taken)
