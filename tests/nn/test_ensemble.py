"""Ensembles: the mean of logits, and of exact maps."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data
from torch_geometric.explain.algorithm.utils import clear_masks, set_masks

from graphxai_data import explain
from graphxai_data.errors import InputError
from graphxai_data.explain.variants import kind_of, variants_for
from graphxai_data.nn import GIN, GSAT, BcosGIN, BcosGINE, Ensemble
from graphxai_data.nn.zoo import ModelName, make_model

FEATURES, BONDS, CLASSES = 3, 2, 4


def bcos(**options: Any) -> BcosGIN:
    return BcosGIN(FEATURES, CLASSES, 8, 2, logit_bias=-2.0, **options).train(mode=False)


@pytest.fixture
def batch() -> Data:
    draws = torch.Generator().manual_seed(3)
    graphs = []
    for nodes in (5, 7):
        edges = torch.randint(nodes, (2, 12), generator=draws)
        bonds = torch.randn(12, BONDS, generator=draws)
        x = torch.randn(nodes, FEATURES, generator=draws)
        graphs.append(Data(x=x, edge_index=edges, edge_attr=bonds))
    return Batch.from_data_list(graphs)


def logits(model: torch.nn.Module, batch: Data) -> Tensor:
    result: Tensor = model(batch.x, batch.edge_index, batch.edge_attr, batch.batch)
    return result


@pytest.mark.parametrize("target", [0, 3])
@pytest.mark.parametrize("row", ["logit", "contrast"])
def test_logits_and_maps_are_means_and_the_map_adds_up(batch: Data, target: int, row: Any) -> None:
    members = [bcos(combine="cat", b=2.5) for _ in range(3)]
    ensemble = Ensemble(members)
    expected = torch.stack([logits(member, batch) for member in members]).mean(dim=0)
    torch.testing.assert_close(logits(ensemble, batch), expected)
    whole = explain(ensemble, batch, target, row=row)
    parts = [explain(member, batch, target, row=row) for member in members]
    mean = torch.stack([part.feature_scores for part in parts]).mean(dim=0)
    torch.testing.assert_close(whole.feature_scores, mean)
    sums = torch.zeros(2).index_add_(0, batch.batch, whole.node_scores)
    torch.testing.assert_close(sums + whole.bias, whole.logit)
    assert whole.bias.tolist() == [-2.0 if row == "logit" else 0.0] * 2


def test_an_edge_mask_reaches_every_member(batch: Data) -> None:
    members = [GIN(FEATURES, CLASSES, 8, 2).train(mode=False) for _ in range(2)]
    ensemble = Ensemble(members)
    set_masks(ensemble, torch.zeros(24), batch.edge_index, apply_sigmoid=False)
    masked = logits(ensemble, batch)
    clear_masks(ensemble)
    without = ensemble(batch.x, batch.edge_index[:, :0], None, batch.batch)
    torch.testing.assert_close(masked, without)


def test_attention_of_gsats_is_averaged(batch: Data) -> None:
    members = [GSAT(FEATURES, CLASSES, 8, 2).train(mode=False) for _ in range(2)]
    ensemble = Ensemble(members)
    parts = [explain(member, batch, method="gsat").edge_scores for member in members]
    whole = explain(ensemble, batch, method="gsat")
    assert whole.edge_scores is not None
    torch.testing.assert_close(whole.edge_scores, (parts[0] + parts[1]) / 2)
    with pytest.raises(InputError, match="shows the attention of a GSAT; Ensemble has none"):
        explain(Ensemble([bcos(), bcos()]), batch, method="gsat")


def test_an_ensemble_has_the_rows_of_its_members() -> None:
    gsats = Ensemble([GSAT(FEATURES, CLASSES) for _ in range(2)])
    additive = Ensemble([BcosGINE(FEATURES, BONDS, CLASSES) for _ in range(2)])
    assert kind_of(gsats) == "gsat"
    assert kind_of(additive) == "bcos"
    for ensemble in (gsats, additive):
        rows = [variant.name for variant in variants_for(ensemble, None)]
        assert rows == [variant.name for variant in variants_for(ensemble.first, None)]


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([], "expected at least two members, got 0"),
        ([bcos()], "expected at least two members, got 1; use a single model as it is"),
        ([bcos(), GIN(FEATURES, CLASSES)], "member 1 is a GIN, the first a BcosGIN"),
        ([bcos(), bcos(b=3.0)], "member 1 has b 3.0, the first 2.0"),
        ([bcos(), BcosGIN(FEATURES, 9, 8, 2)], "member 1 has classes 9, the first 4"),
        ([bcos(), torch.nn.Linear(3, 4)], "member 1 is a Linear, expected a model"),
    ],
)
def test_members_that_differ_in_more_than_weights_are_refused(
    members: list[Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        Ensemble(members)


def test_a_name_says_how_many_members_there_are() -> None:
    assert ModelName.parse("bcos-gine-x5") == ("bcos-gine", 5)
    assert str(ModelName("gin", 3)) == "gin-x3"
    ensemble = make_model("gin-x3", {"hidden": 4}, 3, 0, 2)
    assert isinstance(ensemble, Ensemble)
    assert len(ensemble.members) == 3
    for name, message in {
        "gin-x1": "model 'gin-x1': expected 2 to 100 members, got 1; a single model is 'gin'",
        "gin-x101": "expected 2 to 100 members, got 101",
        "gin-x": "unknown model 'gin-x'",
        "gim-x3": "unknown model 'gim-x3'",
    }.items():
        with pytest.raises(InputError, match=message):
            ModelName.parse(name)
    with pytest.raises(InputError, match="this dataset lacks; use bcos-gin-x2"):
        make_model("bcos-gine-x2", {}, 3, 0, 2)
