"""Ensembles of trained models: one checkpoint for all members."""

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from click.testing import Result

from graphxai_data import explain, load_model
from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.errors import DamagedError, InputError
from graphxai_data.nn import Ensemble
from graphxai_data.training.checkpoint import WEIGHTS, load_checkpoint, save_checkpoint
from graphxai_data.training.ensemble import join_checkpoints, member_seeds
from graphxai_data.training.train import run_folder, train

SMALL = {"epochs": 2, "batch_size": 16, "hidden": 8}


@pytest.fixture
def dataset(small_root: Path) -> GraphXAIDataset:
    return GraphXAIDataset(small_root, "ba2motif")


def test_members_are_ordinary_trainings_and_the_ensemble_is_their_mean(
    dataset: GraphXAIDataset, tmp_path: Path
) -> None:
    steps: list[tuple[int, int, str]] = []
    ensemble, card = train(
        dataset, "bcos-gin-x3", seed=4, out=tmp_path, changes=SMALL,
        progress=lambda *step: steps.append(step),
    )  # fmt: skip
    assert isinstance(ensemble, Ensemble)
    assert card.model == "bcos-gin-x3"
    assert card.run["member_seeds"] == [4, 1004, 2004]
    assert [step[:2] for step in steps] == [(i + 1, 6) for i in range(6)]
    assert steps[2][2].startswith("member 2 of 3: ")
    batch = dataset[0]
    parts = []
    for seed in (4, 1004, 2004):
        alone, own = train(dataset, "bcos-gin", seed=seed, out=tmp_path / "alone", changes=SMALL)
        _, joined = load_checkpoint(run_folder(tmp_path, "bcos-gin", dataset.name, seed))
        assert own.weights_sha256 == joined.weights_sha256
        parts.append(explain(alone, batch, 0).node_scores)
    torch.testing.assert_close(explain(ensemble, batch, 0).node_scores, sum(parts) / 3)
    folder = run_folder(tmp_path, "bcos-gin-x3", dataset.name, 4)
    again = load_model(folder, dataset)
    assert torch.equal(
        explain(again, batch, 0).node_scores, explain(ensemble, batch, 0).node_scores
    )


def test_a_finished_ensemble_is_loaded_and_a_lost_one_is_joined_again(
    dataset: GraphXAIDataset, tmp_path: Path
) -> None:
    _, first = train(dataset, "gin-x2", out=tmp_path, changes=SMALL)
    folder = run_folder(tmp_path, "gin-x2", dataset.name, 0)
    trained: list[str] = []
    train(
        dataset, "gin-x2", out=tmp_path, changes=SMALL,
        progress=lambda done, total, what: trained.append(what),
    )  # fmt: skip
    assert not trained
    shutil.rmtree(folder)
    _, second = train(
        dataset, "gin-x2", out=tmp_path, changes=SMALL,
        progress=lambda done, total, what: trained.append(what),
    )  # fmt: skip
    assert not trained  # its members were kept
    assert second == first
    with pytest.raises(InputError, match="a training with other settings"):
        train(dataset, "gin-x2", out=tmp_path, changes=SMALL | {"epochs": 1})
    path = folder / WEIGHTS
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DamagedError, match="truncated or changed"):
        load_model(folder)


def test_ensembles_share_no_member() -> None:
    seeds = [member_seeds(seed, 5) for seed in (0, 1, 999)]
    assert len({seed for own in seeds for seed in own}) == 15
    with pytest.raises(InputError, match="seed: expected less than 1000 for an ensemble, got 1000"):
        member_seeds(1000, 2)


def test_members_of_other_trainings_are_refused(
    dataset: GraphXAIDataset, small_root: Path, tmp_path: Path
) -> None:
    first = run_folder(tmp_path, "gin", dataset.name, 0)
    train(dataset, "gin", seed=0, out=tmp_path, changes=SMALL)
    other = GraphXAIDataset(small_root, "dihalo")
    train(other, "gin", seed=1, out=tmp_path, changes=SMALL)
    train(dataset, "gin", seed=1, out=tmp_path / "wide", changes=SMALL | {"hidden": 9})
    train(dataset, "gin", seed=1, out=tmp_path / "long", changes=SMALL | {"epochs": 3})
    train(dataset, "deepsets", seed=1, out=tmp_path, changes=SMALL)
    unfinished = tmp_path / "unfinished"
    model, card = load_checkpoint(first)
    card = dataclasses.replace(card, complete=False, seed=5)
    save_checkpoint(unfinished, model.state_dict(), card)
    build = tmp_path / "another-build"
    data = dataclasses.replace(card.data, content_sha256="0" * 64)
    card = dataclasses.replace(card, complete=True, data=data)
    save_checkpoint(build, model.state_dict(), card)
    for member, message in {
        first: "expected at least two members, got 1",
        run_folder(tmp_path, "gin", "dihalo", 1): r"in its shape \(classes 9, expected classes 2",
        run_folder(tmp_path / "wide", "gin", "ba2motif", 1): r"architecture \(hidden 9, expected",
        run_folder(
            tmp_path / "long", "gin", "ba2motif", 1
        ): r"training \(epochs 3, expected epochs 2",
        run_folder(tmp_path, "deepsets", "ba2motif", 1): r"model \(deepsets, expected gin\)",
        unfinished: "its training is not finished",
        build: r"in its data \(content_sha256 000",
    }.items():
        members = [first] if member == first else [first, member]
        with pytest.raises(InputError, match=message):
            join_checkpoints(tmp_path / "joined", members, dataset)
        assert not (tmp_path / "joined").exists()
    shutil.copytree(first, tmp_path / "copy")
    with pytest.raises(InputError, match="has seed 0, like .*; members need different seeds"):
        join_checkpoints(tmp_path / "joined", [first, tmp_path / "copy"], dataset)


def test_the_command_line_trains_and_evaluates_ensembles(
    cli: Callable[..., Result], small_root: Path, tmp_path: Path
) -> None:
    common = (
        "--root",
        str(small_root),
        "--out",
        str(tmp_path),
        "--set",
        "epochs=1",
        "--threads",
        "1",
    )
    result = cli("train", "ba2motif", "--members", "2", *common)
    assert result.exit_code == 0, result.output
    assert "bcos-gin-x2-ba2motif/seed-0" in result.stdout
    result = cli(
        "evaluate", "ba2motif", "--model", "bcos-gin-x2", "--explainer", "bcos", "--seeds", "0",
        "--no-timing", *common,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "bcos-gin-x2" in result.stdout
    for arguments, message in {
        ("--members", "0"): "expected 2 to 100 members, got 0; a single model is 'bcos-gin'",
        ("--model", "gin-x2", "--members", "3"): "--members 3: model 'gin-x2' has 2",
        ("--members", "2", "--seed", "1000"): "expected less than 1000 for an ensemble",
    }.items():
        result = cli("train", "ba2motif", *arguments, *common)
        assert result.exit_code == 2
        assert message in result.stderr
