"""What is said to run on a device does: explanations, times and faithfulness.

No other device is at hand, so "meta" stands for one: its tensors have a shape but no content. What
would read their content is replaced by a record of where it would run.
"""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from graphxai_data import GraphXAIDataset, build
from graphxai_data.evaluation import comparison, faithfulness, score_sources, study, timing
from graphxai_data.evaluation.comparison import compare
from graphxai_data.evaluation.truth import Scores, Truth
from graphxai_data.explain import Explanation
from graphxai_data.explain.variants import select_variants
from graphxai_data.nn.random import seeded
from graphxai_data.training.train import train

META = torch.device("meta")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> GraphXAIDataset:
    root = tmp_path_factory.mktemp("builds")
    build("ba2motif", root=root, graphs=60, engine="serial", rings=False)
    return GraphXAIDataset(root, "ba2motif")


def device_of(model: nn.Module) -> str:
    (device,) = {parameter.device.type for parameter in model.parameters()}
    return device


@pytest.fixture
def ran_on(monkeypatch: pytest.MonkeyPatch) -> dict[str, set[str]]:
    """Let `--device meta` be a device that can be used; return what would run, and where."""
    ran: dict[str, set[str]] = {}

    def note(what: str, model: nn.Module | None) -> None:
        ran.setdefault(what, set()).add("cpu" if model is None else device_of(model))

    def scores(variants: Any, model: Any, part: Any, *_: Any, **__: Any) -> dict[str, Scores]:
        note("explanations", model)
        nodes = Truth.of(part).node_ptr[-1]
        return {v.name: Scores(torch.arange(float(nodes)).double().numpy()) for v in variants}

    def milliseconds(variant: Any, model: Any, *_: Any) -> dict[str, Any]:
        note("times", model)
        return {"ms_per_graph": 1.0, **timing.conditions(model)}

    def fidelity(model: nn.Module, *_: Any) -> dict[str, float]:
        note("fidelity", model)
        return {"fidelity_plus": 0.5}

    def retrain(model: nn.Module, *_: Any, **__: Any) -> float:
        note("retraining", model)
        return 0.5

    def curves(model: nn.Module, *_: Any) -> dict[str, list[float]]:
        note("curves", model)
        return {}

    def on_cpu(*arguments: Any, device: str, **options: Any) -> Any:
        return train(*arguments, device="cpu", **options)

    for name, function in {
        "variant_scores": scores, "time_explainer": milliseconds, "fidelity": fidelity,
        "retrained_accuracy": retrain, "sparsity_curves": curves, "train": on_cpu,
        "device_of": torch.device,
    }.items():  # fmt: skip
        monkeypatch.setattr(study, name, function)
    monkeypatch.setattr(comparison, "device_of", torch.device)
    return ran


def test_a_comparison_explains_and_times_on_the_device_that_it_states(
    dataset: GraphXAIDataset, ran_on: dict[str, set[str]], tmp_path: Path
) -> None:
    result = compare(
        dataset, ["gin"], ["saliency"], [0], tmp_path, changes={"epochs": 1}, device="meta",
        faithfulness=True,
    )  # fmt: skip
    parts = ("explanations", "times", "fidelity", "retraining", "curves")
    assert ran_on == {part: {"meta"} for part in parts}
    assert result.conditions["device"] == "meta"
    (row,) = result.rows
    assert row["timed_on"] == "meta"


def test_what_looks_at_no_model_runs_on_the_cpu_and_says_so(
    dataset: GraphXAIDataset, ran_on: dict[str, set[str]], tmp_path: Path
) -> None:
    result = compare(dataset, [], ["degree"], [0], tmp_path, device="meta")
    assert ran_on == {"explanations": {"cpu"}, "times": {"cpu"}}
    assert result.conditions["device"] == "cpu"
    assert result.rows[0]["timed_on"] == "cpu"


class Sums(nn.Module):
    """A model that reads no value of its arguments, as "meta" has none."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, 2)

    def forward(self, x: Tensor, batch: Tensor, batch_size: int) -> Tensor:
        return x.new_zeros(batch_size, 2).index_add(0, batch, self.linear(x))


def test_graphs_go_where_the_model_is(
    dataset: GraphXAIDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    with seeded(0):
        model = Sums(dataset.num_node_features).train(mode=False).to(META)
    part, seen = dataset[:5], []

    def explain(model: nn.Module, data: Any, **_: Any) -> Explanation:
        seen.append((device_of(model), data.x.device.type, data.edge_index.device.type))
        zeros = torch.zeros(data.num_nodes)
        graphs = getattr(data, "num_graphs", 1)
        value, ids = torch.zeros(graphs), torch.zeros(graphs).long()
        return Explanation(zeros, None, None, value, value, ids, zeros.long(), ids[:0])

    monkeypatch.setattr(score_sources, "explain", explain)
    monkeypatch.setattr(timing, "explain", explain)
    (saliency,) = select_variants("saliency")
    score_sources.variant_scores([saliency], model, part, 2)
    assert seen == [("meta",) * 3] * 3
    times = timing.time_explainer(saliency, model, part, 2)
    assert set(seen) == {("meta",) * 3}
    assert times["timed_on"] == "meta"
    assert times["ms_forward_batched"] > 0
    logits = faithfulness.graph_logits(model, part, 2)
    assert (logits.device, logits.shape) == (META, (5, 2))
