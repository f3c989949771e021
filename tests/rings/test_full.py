import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from graphxai_data.building.build import build
from graphxai_data.errors import InputError
from graphxai_data.nn import GIN, GINE, DeepSets
from graphxai_data.rings import check, full
from graphxai_data.rings.full import full_check
from graphxai_data.rings.sample import sample_dataset
from tests.rings.planted import EXPECTED, planted


@pytest.mark.slow
@pytest.mark.parametrize("kind", EXPECTED)
def test_controls(kind: str) -> None:
    measurement = check(planted(kind, 400), depth="full", runs=8, epochs=15)
    assert (measurement.p1, measurement.p2) == EXPECTED[kind], measurement.principles


def test_a_trained_score_is_the_same_every_time_and_high_where_it_can_be() -> None:
    sample = sample_dataset(planted("features", 200))
    first, again = (full._trained_score(sample, "empty_graph", 0, 1, 25) for _ in range(2))
    assert first == again > 0.9
    assert full._trained_score(sample, "shuffled_labels", 0, 1, 25) < 0.8
    probe = full._trained_score(sample, "pooled_features", 0, 1, 25)
    assert probe > 0.9


@pytest.mark.parametrize(("seed", "run"), [(1, 4), (3, 3), (4, 2), (4, 4), (8, 0)])
def test_evaluation_is_as_good_as_training(seed: int, run: int) -> None:
    # With the running statistics of batch normalisation, these five predicted a single class.
    sample = sample_dataset(planted("features", 200))
    assert full._trained_score(sample, "empty_graph", seed, run, 25) > 0.9


def test_a_stopped_check_resumes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, int]] = []

    def score(sample: object, name: str, seed: int, run: int, epochs: int) -> float:
        calls.append((name, run))
        if len(calls) == 30:
            raise KeyboardInterrupt
        return (0.9 if name == "original" else 0.5) + run / 100

    monkeypatch.setattr(full, "_trained_score", score)
    sample, stored = sample_dataset(planted("both")), tmp_path / "scores.json"
    with pytest.raises(KeyboardInterrupt):
        full_check(sample, runs=6, resume=stored)
    assert stored.is_file()
    seen: list[tuple[int, int, str]] = []
    measurement = full_check(sample, runs=6, resume=stored, progress=lambda *at: seen.append(at))
    finished = [c for i, c in enumerate(calls) if i != 29]
    assert len(finished) == len(set(finished)) == 6 * len(measurement.scores)
    assert seen[-1] == (*[6 * len(measurement.scores)] * 2, "RINGS, shuffled_labels, run 6")
    assert (measurement.p1, measurement.p2) == ("pass", "pass")
    assert not stored.exists()


def test_scores_of_another_check_are_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(full, "_trained_score", lambda *_: 0.5)
    stored = tmp_path / "scores.json"
    stored.write_text(json.dumps({"settings": {"seed": 9}, "scores": {"original": [1.0] * 9}}))
    measurement = full_check(sample_dataset(planted("both")), runs=6, resume=stored)
    assert set(measurement.scores["original"]) == {0.5}
    stored.write_text("no json")
    with pytest.raises(InputError, match="scores.json: not scores of a check"):
        full_check(sample_dataset(planted("both")), runs=6, resume=stored)


def test_too_few_runs_are_refused() -> None:
    with pytest.raises(InputError, match="runs"):
        check(planted("both"), depth="full", runs=5)


def test_the_command_trains_and_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Callable
) -> None:
    build("ba2motif", root=tmp_path, graphs=200, rings=False)
    folder = tmp_path / "ba2motif" / "seed-0"
    result = cli("rings", folder, "--runs", 6, "--graphs", 110, "--epochs", 1)
    assert result.exit_code == 0, result.stderr
    measurement = json.loads((folder / "rings.json").read_text())
    assert measurement["depth"] == "full"
    assert {len(s) for s in measurement["scores"].values()} == {6}
    assert "(full)" in result.stdout
    assert not list(folder.glob(".rings*"))
    few = cli("rings", folder, "--graphs", 1)
    assert few.exit_code == 0
    assert "one class only" in few.stdout
    assert not (folder / "rings.svg").exists()


def test_models_do_not_depend_on_the_order_of_nodes_or_the_batch() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(5, 3, generator=generator)
    edges = torch.tensor([[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]])
    attributes = torch.rand(6, 2, generator=generator)
    order = torch.tensor([3, 0, 4, 2, 1])
    place = torch.argsort(order)
    with torch.random.fork_rng():
        models = [GIN(3, 4), GINE(3, 2, 4), DeepSets(3, 4)]
    for model in models:
        model.eval()
        whole = model(x, edges, attributes)
        assert whole.shape == (1, 4)
        assert torch.allclose(whole, model(x[order], place[edges], attributes), atol=1e-5)
        twice = model(
            torch.cat([x, x]),
            torch.cat([edges, edges + 5], dim=1),
            torch.cat([attributes, attributes]),
            torch.arange(2).repeat_interleave(5),
        )
        assert torch.allclose(twice, whole.repeat(2, 1), atol=1e-5)
    assert torch.equal(models[2](x, edges), models[2](x))
    with pytest.raises(ValueError, match=r"edge_attr: expected \[6 edges, 2\], got none"):
        models[1](x, edges)
