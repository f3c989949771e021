import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from click.testing import Result

import graphxai_data.training.state as state_module
import graphxai_data.training.train as train_module
from graphxai_data.building.build import build
from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.errors import CheckFailedError, DamagedError, InputError
from graphxai_data.nn.zoo import Settings, Training
from graphxai_data.progress import Progress
from graphxai_data.training.checkpoint import CARD, WEIGHTS, load_model, read_card
from graphxai_data.training.schedule import best_epoch, is_over, learning_rate
from graphxai_data.training.scores import predictive_scores
from graphxai_data.training.state import STATE, Epoch
from graphxai_data.training.train import HISTORY, train

SMALL = {"epochs": 3, "batch_size": 16, "hidden": 8}


@pytest.fixture
def dataset(small_root: Path) -> GraphXAIDataset:
    return GraphXAIDataset(small_root, "ba2motif")


@pytest.mark.parametrize("model", ["bcos-gin", "gin", "gsat", "deepsets", "bcos-gine", "gine"])
def test_the_same_seed_gives_the_same_files_and_another_seed_others(
    model: str, small_root: Path, tmp_path: Path
) -> None:
    dataset = GraphXAIDataset(small_root, "dihalo")
    changes = {**SMALL, "dropout": 0.5}
    for out in ("a", "b"):
        train(dataset, model, "paper", 0, tmp_path / out, changes=changes)
    _, other = train(dataset, model, "paper", 1, tmp_path / "a", changes=changes)
    here = f"{model}-dihalo/seed-0"
    for name in (CARD, WEIGHTS):
        assert (tmp_path / "a" / here / name).read_bytes() == (
            tmp_path / "b" / here / name
        ).read_bytes()
    assert read_card(tmp_path / "a" / here).weights_sha256 != other.weights_sha256
    assert not (tmp_path / "a" / here / STATE).exists()


class StopHereError(Exception):
    pass


@pytest.mark.parametrize("model", ["bcos-gin", "gsat"])
@pytest.mark.parametrize("schedule", ["plateau", "cosine"])
def test_a_stopped_training_resumes_with_the_same_result(
    model: str, schedule: str, dataset: GraphXAIDataset, tmp_path: Path
) -> None:
    changes = {**SMALL, "epochs": 6, "schedule": schedule, "rate_patience": 1}
    _, whole = train(dataset, model, out=tmp_path / "whole", changes=changes)

    def stop_after(count: int) -> Progress:
        def progress(done: int, total: int, what: str) -> None:
            if done == count:
                raise StopHereError

        return progress

    for count in (1, 2, 5):
        with pytest.raises(StopHereError):
            train(dataset, model, out=tmp_path, changes=changes, progress=stop_after(count))
    seen = []
    _, parts = train(
        dataset, model, out=tmp_path, changes=changes, progress=lambda done, *_: seen.append(done)
    )
    assert seen == [6]
    assert parts == whole


def test_a_killed_training_resumes_with_the_same_result(small_root: Path, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "graphxai_data.cli",
        "train",
        "ba2motif",
        "--root",
        str(small_root),
    ]
    command += ["--set", "epochs=40", "--set", "hidden=8", "--threads", "1", "--json", "--out"]
    whole = subprocess.run([*command, tmp_path / "a"], capture_output=True, text=True, check=True)
    state = tmp_path / "b" / "bcos-gin-ba2motif" / "seed-0" / STATE
    for _ in range(2):
        running = subprocess.Popen([*command, tmp_path / "b"], stdout=subprocess.DEVNULL)
        before = state.stat().st_mtime_ns if state.exists() else 0
        while not state.exists() or state.stat().st_mtime_ns == before:
            assert running.poll() is None
            time.sleep(0.005)
        os.kill(running.pid, signal.SIGKILL)
        running.wait()
        assert state.exists()
    rest = subprocess.run([*command, tmp_path / "b"], capture_output=True, text=True, check=True)
    results = [json.loads(run.stdout)[0] for run in (whole, rest)]
    assert results[0]["scores"] == results[1]["scores"]
    weights = [tmp_path / name / "bcos-gin-ba2motif" / "seed-0" / WEIGHTS for name in "ab"]
    assert weights[0].read_bytes() == weights[1].read_bytes()


def test_a_finished_training_is_kept(dataset: GraphXAIDataset, tmp_path: Path) -> None:
    _, first = train(dataset, "gin", out=tmp_path, changes=SMALL)
    folder = tmp_path / "gin-ba2motif" / "seed-0"
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    model, again = train(dataset, "gin", out=tmp_path, changes=SMALL)
    assert again == first
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    assert not model.training
    lines = (folder / HISTORY).read_text().splitlines()
    assert len(lines) == 3
    assert json.loads(lines[0])["valid"].keys() == {"loss", "accuracy", "f1", "roc_auc"}


def test_test_graphs_are_used_only_once_at_the_end(
    dataset: GraphXAIDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at: list[set[int]] = []
    usual = predictive_scores

    def noted(model: torch.nn.Module, loader: object, loss: str, device: torch.device) -> object:
        looked_at.append(set(loader.dataset.split_of_graphs))  # type: ignore[attr-defined]
        return usual(model, loader, loss, device)  # type: ignore[arg-type]

    monkeypatch.setattr(
        GraphXAIDataset,
        "split_of_graphs",
        property(lambda self: self._data.split[list(self.indices())].tolist()),
        raising=False,
    )
    monkeypatch.setattr(train_module, "predictive_scores", noted)
    train(dataset, "gin", out=tmp_path, changes=SMALL)
    assert looked_at == [{1}, {1}, {1}, {2}]


def test_the_card_has_the_scores_of_the_saved_weights(
    dataset: GraphXAIDataset, tmp_path: Path
) -> None:
    _, card = train(dataset, "gin", out=tmp_path, changes={**SMALL, "epochs": 8})
    model = load_model(tmp_path / "gin-ba2motif" / "seed-0", dataset)
    rows = dataset.get_idx_split()
    for split in ("valid", "test"):
        loader = train_module.BatchLoader(dataset[rows[split]], 1)
        scores = predictive_scores(model, loader, "ce", torch.device("cpu"))
        assert scores == pytest.approx(card.scores[split], abs=1e-5)
    assert card.data.content_sha256 == dataset.manifest.content_sha256


@pytest.mark.parametrize("bad", ["loss", "gradient"])
def test_a_loss_that_is_not_finite_stops_and_keeps_the_best_weights(
    bad: str, dataset: GraphXAIDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = 0
    usual = train_module.training_loss

    def diverging(*arguments: Any) -> torch.Tensor:
        nonlocal calls
        calls += 1
        value = usual(*arguments)
        if calls < 15:
            return value
        # The square root of zero is finite, and its gradient is not.
        return value * math.inf if bad == "loss" else value + (0 * value).sqrt()

    monkeypatch.setattr(train_module, "training_loss", diverging)
    steps = -(-len(dataset.get_idx_split()["train"]) // 16)
    where = f"in batch {14 % steps + 1}, is not finite in epoch {14 // steps + 1}"
    message = rf"{where}; the weights of epoch \d+, the best so far, are kept"
    with pytest.raises(CheckFailedError, match=message):
        train(dataset, "gin", out=tmp_path, changes={**SMALL, "epochs": 9})
    folder = tmp_path / "gin-ba2motif" / "seed-0"
    model = load_model(folder)
    assert all(torch.isfinite(p).all() for p in model.parameters())
    card = read_card(folder)
    assert not card.complete
    assert set(card.scores) == {"valid"}
    monkeypatch.setattr(train_module, "training_loss", usual)
    _, card = train(dataset, "gin", out=tmp_path, changes={**SMALL, "epochs": 9})
    assert card.complete


def test_a_loss_that_is_not_finite_in_the_first_epoch_leaves_nothing(
    dataset: GraphXAIDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = train_module.training_loss
    monkeypatch.setattr(train_module, "training_loss", lambda *a: usual(*a) * math.nan)
    message = "in batch 1, is not finite in epoch 1; nothing was learned before; look at features"
    with pytest.raises(CheckFailedError, match=message):
        train(dataset, "gin", out=tmp_path, changes=SMALL)
    assert not list((tmp_path / "gin-ba2motif" / "seed-0").iterdir())


def test_another_training_in_the_same_folder_is_refused_unless_forced(
    small_root: Path, dataset: GraphXAIDataset, tmp_path: Path
) -> None:
    train(dataset, "gin", out=tmp_path, changes=SMALL)
    with pytest.raises(InputError, match=r"other settings \(hidden 8, expected 9\); .* --force"):
        train(dataset, "gin", out=tmp_path, changes={**SMALL, "hidden": 9})
    other_root = tmp_path / "other"
    build("ba2motif", root=other_root, graphs=80, engine="serial", rings=False)
    other = GraphXAIDataset(other_root, "ba2motif")
    with pytest.raises(InputError, match="a training on another build of 'ba2motif'"):
        train(other, "gin", out=tmp_path, changes=SMALL)
    _, card = train(other, "gin", out=tmp_path, changes=SMALL, force=True)
    assert card.data.content_sha256 == other.manifest.content_sha256


def test_bad_settings_destroy_nothing_even_by_force(
    dataset: GraphXAIDataset, tmp_path: Path
) -> None:
    _, card = train(dataset, "gin", out=tmp_path, changes=SMALL)
    with pytest.raises(InputError, match="dropout: expected"):
        train(dataset, "gin", out=tmp_path, changes={**SMALL, "dropout": 2.0}, force=True)
    assert train(dataset, "gin", out=tmp_path, changes=SMALL)[1] == card
    with pytest.raises(InputError, match="initial logits are all alike"):
        train(dataset, out=tmp_path / "new", changes={**SMALL, "b": 40.0}, force=True)
    with pytest.raises(InputError, match="norm: expected"):
        train(dataset, "gin", out=tmp_path / "new", changes={**SMALL, "norm": "rms"})
    assert not (tmp_path / "new").exists()


def test_weights_that_diverge_in_the_last_step_are_never_the_best(
    dataset: GraphXAIDataset, tmp_path: Path
) -> None:
    changes = {"learning_rate": 1e18, "batch_size": 1000, "norm": "none"}
    with pytest.raises(CheckFailedError, match="the loss on validation, is not finite in epoch 1"):
        train(dataset, "gin", out=tmp_path, changes={**SMALL, **changes})
    assert not list((tmp_path / "gin-ba2motif" / "seed-0").iterdir())


def test_a_training_resumes_only_under_the_same_conditions(
    dataset: GraphXAIDataset, tmp_path: Path
) -> None:
    def stop(done: int, total: int, what: str) -> None:
        raise StopHereError

    with pytest.raises(StopHereError):
        train(dataset, "gin", out=tmp_path, changes=SMALL, progress=stop)
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    try:
        message = f"under other conditions .threads {threads}, expected {threads + 1}.; choose"
        with pytest.raises(InputError, match=message):
            train(dataset, "gin", out=tmp_path, changes=SMALL)
    finally:
        torch.set_num_threads(threads)
    train(dataset, "gin", out=tmp_path, changes=SMALL)


def test_two_trainings_in_one_folder_at_once_are_refused(
    dataset: GraphXAIDataset, tmp_path: Path
) -> None:
    def again(done: int, total: int, what: str) -> None:
        message = "another process is training here .*; wait for it, or choose another --out"
        with pytest.raises(InputError, match=message):
            train(dataset, "gin", out=tmp_path, changes=SMALL)

    train(dataset, "gin", out=tmp_path, changes=SMALL, progress=again)


def test_a_folder_that_cannot_be_written_to_is_named(
    dataset: GraphXAIDataset, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file.*; choose a --out that you can write to"):
        train(dataset, "gin", out=tmp_path / "file", changes=SMALL)


def test_a_damaged_state_is_refused(dataset: GraphXAIDataset, tmp_path: Path) -> None:
    def stop(done: int, total: int, what: str) -> None:
        raise StopHereError

    with pytest.raises(StopHereError):
        train(dataset, "gin", out=tmp_path, changes=SMALL, progress=stop)
    state = tmp_path / "gin-ba2motif" / "seed-0" / STATE
    whole = state.read_bytes()
    for damaged in (b"", whole[:100], whole[:-10]):
        state.write_bytes(damaged)
        with pytest.raises(DamagedError, match=f"{STATE}: not the state of a training .*; delete"):
            train(dataset, "gin", out=tmp_path, changes=SMALL)
    state.write_bytes(whole)
    tensors = safetensors.torch.load_file(state)
    with safetensors.safe_open(state, "pt") as file:
        about = file.metadata()["about"]
    about = about.replace('"accuracy"', '"accurate"')
    metadata = {"about": about, "sha256": state_module._digest(about, tensors)}
    state.write_bytes(safetensors.torch.save(tensors, metadata))
    with pytest.raises(DamagedError, match="valid: expected loss, and accuracy or mae, got .'loss"):
        train(dataset, "gin", out=tmp_path, changes=SMALL)
    _, card = train(dataset, "gin", out=tmp_path, changes=SMALL, force=True)
    assert card.complete


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("key", ["x", "edge_attr"])
def test_features_that_are_not_finite_are_named(
    key: str, value: float, small_root: Path, tmp_path: Path
) -> None:
    dataset = GraphXAIDataset(small_root, "dihalo")
    dataset._data[key][int(dataset.slices[key][17]), 0] = value
    with pytest.raises(InputError, match=f"'dihalo': {key} of graph 17 has a value that is not"):
        train(dataset, "gin", out=tmp_path, changes=SMALL)
    assert not any(tmp_path.iterdir())


def test_graphs_without_nodes_are_named(dataset: GraphXAIDataset, tmp_path: Path) -> None:
    dataset.slices = dataset.slices | {"x": dataset.slices["x"].clone()}
    dataset.slices["x"][6] = dataset.slices["x"][5]
    with pytest.raises(InputError, match="'ba2motif': graph 5 has no nodes; leave it out"):
        train(dataset, "gin", out=tmp_path, changes=SMALL)


def test_graphs_without_edges_and_nodes_without_features_can_be_trained_on(
    dataset: GraphXAIDataset, tmp_path: Path
) -> None:
    dataset._data.x[::3] = 0
    dataset.slices = dataset.slices | {"edge_index": torch.zeros_like(dataset.slices["x"])}
    for model in ("bcos-gin", "gin", "gsat"):
        _, card = train(dataset, model, out=tmp_path, changes=SMALL)
        assert math.isfinite(card.scores["test"]["loss"])


def test_only_whole_datasets_can_be_trained_on(small_root: Path, tmp_path: Path) -> None:
    part = GraphXAIDataset(small_root, "ba2motif", split="train")
    with pytest.raises(InputError, match="only split 'train' is loaded"):
        train(part, "gin", out=tmp_path)
    whole = GraphXAIDataset(small_root, "ba2motif")
    with pytest.raises(InputError, match="is loaded with a choice of graphs, so that no digest"):
        train(whole[:100], "gin", out=tmp_path)
    with pytest.raises(InputError, match="is loaded with a transform"):
        train(GraphXAIDataset(small_root, "ba2motif", transform=lambda d: d), "gin", out=tmp_path)
    with pytest.raises(InputError, match="device: 'gpu' cannot be used here"):
        train(whole, "gin", out=tmp_path, device="gpu")
    with pytest.raises(InputError, match="'gine' needs edge features"):
        train(whole, "gine", out=tmp_path)


def history(*losses: float) -> list[Epoch]:
    return [Epoch(0.0, {"loss": loss, "accuracy": -loss, "f1": 0.0}, 0.0, 0.0) for loss in losses]


def settings(**changes: object) -> Training:
    return Settings.named("gin", "ba2motif", "paper", changes).training


def test_the_first_of_equally_good_epochs_is_best() -> None:
    for select in ("loss", "accuracy"):
        training = settings(select=select)
        assert best_epoch(training, history(0.5, 0.2, 0.3, 0.2)) == 1


def test_training_ends_after_its_patience_or_its_epochs() -> None:
    training = settings(stop_patience=2, epochs=5)
    assert not is_over(training, [])
    assert not is_over(training, history(0.2, 0.3))
    assert is_over(training, history(0.2, 0.3, 0.2))
    assert is_over(training, history(0.5, 0.4, 0.3, 0.2, 0.1))


def test_the_plateau_schedule_is_torchs() -> None:
    losses = [0.9, 0.8, 0.85, 0.8, 0.81, 0.79, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.1, 0.2]
    training = settings(select="loss", rate_patience=2, learning_rate=1e-3, minimum_rate=2e-4)
    optimiser = torch.optim.Adam([torch.zeros(1, requires_grad=True)], lr=1e-3)
    peer = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimiser, factor=0.5, patience=2, min_lr=2e-4, threshold=0.0
    )
    for i, loss in enumerate(losses):
        rate = learning_rate(training, history(*losses[:i]), float(i))
        assert rate == pytest.approx(optimiser.param_groups[0]["lr"])
        peer.step(loss)
    assert rate == 2e-4


def test_the_cosine_schedule_rises_and_falls() -> None:
    training = settings(schedule="cosine", epochs=40, learning_rate=1e-2)
    rates = [learning_rate(training, [], done / 10) for done in range(400)]
    assert rates[0] == pytest.approx(1e-4)
    top = rates.index(max(rates))
    assert top == 20
    assert rates[top] == pytest.approx(1e-2)
    assert rates[:21] == sorted(rates[:21])
    assert rates[20:] == sorted(rates[20:], reverse=True)
    assert rates[-1] < 1e-5


def test_the_command_trains_several_seeds_and_says_where(
    cli: Callable[..., Result], small_root: Path, tmp_path: Path
) -> None:
    common = ("train", "ba2motif", "--model", "gin", "--root", small_root, "--out", tmp_path)
    small = [part for key, value in SMALL.items() for part in ("--set", f"{key}={value}")]
    result = cli(*common, "--seed", "0-1", *small)
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[-2:] == [str(tmp_path / "gin-ba2motif" / f"seed-{i}") for i in (0, 1)]
    assert any(line.strip().startswith("all") and "±" in line for line in lines)
    as_json = cli(*common, "--seed", "0-1", *small, "--json")
    assert [run["epochs"] for run in json.loads(as_json.stdout)] == [3, 3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "gim"], "unknown model 'gim'; did you mean 'gin'?"),
        (["--config", "best"], "unknown configuration 'best'; known: default, paper"),
        (["--seed", "1-x"], "--seed: expected a number, or up to 1000 as in 0-4 or 0,2,5"),
        (["--seed", "4-1"], "--seed: expected a number"),
        (["--seed", "0-99999999999"], "--seed: expected a number"),
        (["--set", "epochs"], "--set: expected KEY=VALUE, got 'epochs'"),
        (["--set", "epoch=3"], "unknown setting 'epoch'; did you mean 'epochs'?"),
        (["--set", "hidden=wide"], "hidden: expected a whole number"),
        (["--set", "logit_bias=abc"], "logit_bias: expected a finite number, got 'abc'"),
        (["--set", "logit_bias=1979-05-27"], "logit_bias: expected a finite number, got datetime"),
        (["--set", "logit_bias=nan"], "logit_bias: expected a finite number, got nan"),
        (["--device", "meta"], "device: 'meta' cannot be used here"),
        (["--threads", "0"], "--threads: expected a whole number from 1"),
        (["--device", "tpu9"], "device: 'tpu9' cannot be used here"),
    ],
)
def test_bad_arguments_end_with_one_line(
    arguments: list[str], message: str, cli: Callable[..., Result], small_root: Path, tmp_path: Path
) -> None:
    result = cli("train", "ba2motif", "--root", small_root, "--out", tmp_path, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1
