import dataclasses
import math
from pathlib import Path

import pytest
import torch

from graphxai_data import load_model
from graphxai_data.building.build import build
from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.errors import DamagedError, InputError
from graphxai_data.nn.zoo import Settings, make_model
from graphxai_data.training.checkpoint import (
    CARD,
    WEIGHTS,
    Card,
    Shape,
    TrainingData,
    check_fits,
    load_checkpoint,
    read_card,
    save_checkpoint,
)

SHAPE = Shape(in_features=5, edge_features=3, classes=4)


@pytest.fixture(params=["bcos-gin", "bcos-gine", "gin", "gine", "gsat", "deepsets"])
def checkpoint(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A new model of every kind, saved."""
    settings = Settings.named(request.param, "mnist75sp")
    with torch.random.fork_rng():
        model = make_model(request.param, settings.architecture, **dataclasses.asdict(SHAPE))
    card = Card(
        model=request.param,
        configuration="default",
        seed=3,
        complete=True,
        shape=SHAPE,
        architecture=settings.architecture,
        training=settings.training,
        data=TrainingData("mine", 0, "0" * 64, "1" * 64),
        scores={"test": {"f1": 0.5}},
        run={"epochs": 7},
    )
    save_checkpoint(tmp_path / "model", model.state_dict(), card)
    return tmp_path / "model"


def test_a_checkpoint_gives_the_same_model_and_card_back(checkpoint: Path) -> None:
    model, card = load_checkpoint(checkpoint)
    assert not model.training
    assert (card.seed, card.scores, card.run) == (3, {"test": {"f1": 0.5}}, {"epochs": 7})
    again = save_checkpoint(checkpoint.with_name("again"), model.state_dict(), card)
    assert again == card
    for name in (CARD, WEIGHTS):
        assert (checkpoint / name).read_bytes() == (
            checkpoint.with_name("again") / name
        ).read_bytes()
    x, edges = torch.ones(2, 5), torch.tensor([[0, 1], [1, 0]])
    other = load_model(checkpoint)
    assert torch.equal(model(x, edges, torch.ones(2, 3)), other(x, edges, torch.ones(2, 3)))


@pytest.mark.parametrize("checkpoint", ["bcos-gin"], indirect=True)
def test_a_truncated_or_changed_checkpoint_is_refused(checkpoint: Path) -> None:
    weights = (checkpoint / WEIGHTS).read_bytes()
    for damaged in (b"", weights[:7], weights[:-1], weights[:-1] + bytes([weights[-1] ^ 1])):
        (checkpoint / WEIGHTS).write_bytes(damaged)
        with pytest.raises(DamagedError, match="weights.safetensors: truncated or changed: sha256"):
            load_model(checkpoint)
    (checkpoint / WEIGHTS).unlink()
    with pytest.raises(DamagedError, match="weights.safetensors: cannot be read"):
        load_model(checkpoint)


@pytest.mark.parametrize("checkpoint", ["bcos-gin"], indirect=True)
def test_a_card_that_does_not_fit_the_weights_is_refused(checkpoint: Path) -> None:
    text = (checkpoint / CARD).read_text()

    def changed(old: str, new: str) -> None:
        assert old in text
        (checkpoint / CARD).write_text(text.replace(old, new))

    changed("in_features = 5", "in_features = 6")
    with pytest.raises(DamagedError, match="weights do not fit the model.toml in .*: size mism"):
        load_model(checkpoint)
    changed('model = "bcos-gin"', 'model = "bcos-gan"')
    with pytest.raises(InputError, match="unknown model 'bcos-gan'; did you mean 'bcos-gin'"):
        load_model(checkpoint)
    changed("hidden = 64", "hiden = 64")
    with pytest.raises(InputError, match="bcos-gin: unknown setting 'hiden'; did you mean"):
        load_model(checkpoint)
    changed("hidden = 64", "hidden = 65000")
    with pytest.raises(DamagedError, match="weights do not fit the model.toml in .*: size mism"):
        load_model(checkpoint)
    changed("seed = 3", 'seed = "three"')
    with pytest.raises(InputError, match="model.toml: seed: expected a whole number, got 'three'"):
        load_model(checkpoint)
    (checkpoint / CARD).write_text("[")
    with pytest.raises(InputError, match="model.toml: not valid TOML"):
        load_model(checkpoint)


@pytest.mark.parametrize("checkpoint", ["bcos-gin"], indirect=True)
def test_weights_of_another_type_or_not_finite_are_refused(checkpoint: Path) -> None:
    model, card = load_checkpoint(checkpoint)
    for change, message in (
        (lambda t: t.double(), "is torch.float64, expected torch.float32"),
        (lambda t: t * math.nan, "is not finite"),
    ):
        weights = {key: change(tensor) for key, tensor in model.state_dict().items()}
        save_checkpoint(checkpoint, weights, card)
        with pytest.raises(DamagedError, match=message):
            load_model(checkpoint)


def test_unknown_models_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown model 'bcos-dihalo'; .*path of its folder"):
        load_model("bcos-dihalo")
    with pytest.raises(InputError, match=r"no checkpoint here \(model.toml is missing\)"):
        load_model(tmp_path)


@pytest.mark.parametrize("checkpoint", ["gin"], indirect=True)
def test_a_model_of_another_build_is_refused_unless_forced(
    checkpoint: Path, tmp_path: Path
) -> None:
    for seed in (0, 1):
        build("ba2motif", seed=seed, root=tmp_path, graphs=40, engine="serial", rings=False)
    dataset, other = (GraphXAIDataset(tmp_path, "ba2motif", seed) for seed in (0, 1))
    card = read_card(checkpoint)
    with pytest.raises(
        InputError, match="a model for 5 node features, 3 edge features, 4 classes; 'ba2motif' has"
    ):
        load_model(checkpoint, dataset, force=True)
    card = dataclasses.replace(card, shape=Shape.of(dataset), data=TrainingData.of(dataset))
    check_fits(card, dataset, "here")
    with pytest.raises(InputError, match="here: trained on another build: 'ba2motif', seed 0"):
        check_fits(card, other, "here")
    check_fits(card, other, "here", force=True)
