import tomllib
from pathlib import Path

import pytest
import torch

import graphxai_data.nn.zoo as zoo
from graphxai_data.cli.evaluate import EXPLAINER_NAMES
from graphxai_data.cli.train import MODEL_NAMES
from graphxai_data.errors import InputError
from graphxai_data.explain.variants import VARIANTS
from graphxai_data.generators import GENERATORS
from graphxai_data.nn import GIN, GSAT, BcosGIN, BcosGINE
from graphxai_data.nn.zoo import CONFIGURATIONS, MODELS, Settings, make_model

TABLES = tomllib.loads(Path(zoo.__file__).with_name("zoo.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("generator", GENERATORS)
def test_every_configuration_makes_a_model(configuration: str, model: str, generator: str) -> None:
    settings = Settings.named(model, generator, configuration)
    network = make_model(model, settings.architecture, in_features=5, edge_features=3, classes=4)
    x, edges = torch.ones(2, 5), torch.tensor([[0, 1], [1, 0]])
    assert network(x, edges, torch.ones(2, 3)).shape == (1, 4)


def test_the_tables_have_no_unknown_names() -> None:
    assert set(TABLES) == set(CONFIGURATIONS)
    for tables in TABLES.values():
        assert set(tables) <= {"all", "number", *MODELS}
        of_numbers = {key for key, value in tables["number"].items() if isinstance(value, dict)}
        assert of_numbers <= set(MODELS)
        for model in set(tables) - {"all", "number"}:
            nested = {key for key, value in tables[model].items() if isinstance(value, dict)}
            assert nested <= set(GENERATORS)


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
@pytest.mark.parametrize("model", MODELS)
def test_every_configuration_suits_labels_that_are_numbers(configuration: str, model: str) -> None:
    settings = Settings.named(model, "another", configuration, label="number")
    assert (settings.training.loss, settings.training.select) == ("mse", "loss")
    assert settings.architecture.get("logit_bias", 0.0) == 0.0
    network = make_model(model, settings.architecture, 5, 3, 1, label="number")
    x, edges = torch.ones(2, 5), torch.tensor([[0, 1], [1, 0]])
    assert network(x, edges, torch.ones(2, 3)).shape == (1, 1)
    with pytest.raises(InputError, match="classes: expected 1 per graph, since the label is a num"):
        make_model(model, settings.architecture, 5, 3, 2, label="number")


def test_the_papers_tables_are_those_of_its_appendix() -> None:
    bcos_gin = Settings.named("bcos-gin", "ba2motif", "paper")
    network = make_model(
        "bcos-gin", bcos_gin.architecture, in_features=7, edge_features=0, classes=2
    )
    assert isinstance(network, BcosGIN)
    assert network.widths == [7, 64, 64, 64]
    assert [type(layer).__name__ for layer in network.readout] == ["BcosLinear"] * 3
    assert {layer.b for layer in network.readout} == {2.0}
    assert network.dropout.p == 0
    assert network.logit_bias == 0

    gine = Settings.named("bcos-gine", "dihalo", "paper")
    network = make_model("bcos-gine", gine.architecture, in_features=8, edge_features=4, classes=9)
    assert isinstance(network, BcosGINE)
    assert network.widths == [8, 128, 128, 128, 128]
    assert len(network.readout) == 2
    assert network.dropout.p == 0.5
    assert type(network.edges[0]).__name__ == "_Additive"

    gsat = Settings.named("gsat", "ba2motif", "paper")
    network = make_model("gsat", gsat.architecture, in_features=7, edge_features=0, classes=2)
    assert isinstance(network, GSAT)
    config = network.config
    assert (len(network.backbone.updates), config.prior, config.information) == (4, 0.7, 1.0)
    assert list(config.temperature) == [1.0, 0.1]
    assert [
        layer.out_features for layer in network.classifier if hasattr(layer, "out_features")
    ] == [
        32,
        2,
    ]
    assert [
        layer.out_features for layer in network.attention if hasattr(layer, "out_features")
    ] == [
        64,
        64,
        1,
    ]
    for settings in (bcos_gin, gine, gsat):
        training = settings.training
        assert (training.learning_rate, training.schedule) == (1e-3, "plateau")
        assert (training.rate_factor, training.rate_patience) == (0.5, 25)
        assert (training.minimum_rate, training.stop_patience) == (1e-6, 25)


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
@pytest.mark.parametrize(("bcos", "relu"), [("bcos-gin", "gin"), ("bcos-gine", "gine")])
@pytest.mark.parametrize("generator", GENERATORS)
def test_twins_are_alike_in_depth_and_width(
    configuration: str, bcos: str, relu: str, generator: str
) -> None:
    shapes = [
        {
            key: value
            for key, value in Settings.named(name, generator, configuration).architecture.items()
            if key in ("hidden", "layers", "readout_layers", "update_layers", "dropout")
        }
        for name in (bcos, relu)
    ]
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("bcosgin", "dihalo"), "unknown model 'bcosgin'; did you mean 'bcos-gin'?"),
        (("gin", "dihalo", "papers"), "unknown configuration 'papers'; did you mean 'paper'?"),
        (("gin", "dihalo", "paper", {"hiden": 3}), "gin: unknown setting 'hiden'; did you mean"),
        (("gin", "dihalo", "paper", {"b": 3.0}), "gin: unknown setting 'b'"),
        (("gin", "dihalo", "paper", {"epochs": 1.5}), "epochs: expected a whole number"),
        (("gin", "dihalo", "paper", {"epochs": 0}), "epochs: expected a whole number from 1"),
        (("gin", "dihalo", "paper", {"loss": "hinge"}), "loss: expected one of 'ce', 'bce', 'mse'"),
        (
            ("gin", "dihalo", "paper", {"loss": "mse"}),
            "loss: expected ce or bce, since the labels are classes, got mse; leave it out",
        ),
        (
            ("gin", "numbers", "paper", {"loss": "ce"}, "number"),
            "loss: expected mse or mae, since the labels are numbers, got ce; leave it out",
        ),
        (
            ("gin", "numbers", "default", {"select": "accuracy"}, "number"),
            "select: expected loss, since the labels are numbers, got accuracy; leave it out",
        ),
        (("gin", "numbers", "default", {"logit_bias": 1.0}, "number"), "gin: unknown setting"),
        (("gin", "dihalo", "paper", {"learning_rate": 0.0}), "learning_rate: expected at least"),
        (
            ("gin", "dihalo", "paper", {"rate_factor": 2.0}),
            "rate_factor: expected a finite number from 0 to 1, but not 0 or 1",
        ),
    ],
)
def test_unknown_names_and_impossible_values_are_refused(
    arguments: tuple[str, ...], message: str
) -> None:
    with pytest.raises(InputError, match=message.replace("?", "[?]")):
        Settings.named(*arguments)  # type: ignore[arg-type]


def test_the_command_line_names_all_models_and_explainers() -> None:
    assert ", ".join(MODELS) == MODEL_NAMES
    assert ", ".join(variant.name for variant in VARIANTS) == EXPLAINER_NAMES


def test_models_that_need_edge_features_are_refused_without() -> None:
    with pytest.raises(InputError, match="'gine' needs edge features, which this dataset lacks"):
        make_model("gine", {}, in_features=3, edge_features=0, classes=2)
    with pytest.raises(InputError, match="gin: unknown setting 'in_feature'"):
        make_model("gin", {"in_feature": 3}, in_features=3, edge_features=0, classes=2)
    with pytest.raises(InputError, match="b: expected a finite number"):
        make_model("bcos-gin", {"b": "much"}, in_features=3, edge_features=0, classes=2)
    network = make_model("gin", {}, in_features=3, edge_features=2, classes=2, level="node")
    assert isinstance(network, GIN)
    assert network.level == "node"
