import numpy as np
import pytest
import torch

from graphxai_data.errors import InputError
from graphxai_data.nn import GSAT
from graphxai_data.nn.gsat import both_ways
from graphxai_data.nn.sums import Edges

EDGES = torch.tensor([[0, 1, 1, 2, 3], [1, 0, 2, 1, 0]])
X = torch.arange(12.0).reshape(4, 3) / 12


def test_attention_is_the_mean_of_both_directions_where_there_are_two() -> None:
    values = torch.tensor([0.2, 0.4, 0.6, 1.0, 0.5])
    expected = torch.tensor([0.3, 0.3, 0.8, 0.8, 0.5])
    torch.testing.assert_close(both_ways(values, EDGES, 4), expected)
    shuffle = torch.tensor([4, 2, 0, 3, 1])
    shuffled = both_ways(values[shuffle], EDGES[:, shuffle], 4)
    torch.testing.assert_close(shuffled, expected[shuffle])
    assert both_ways(values[:0], EDGES[:, :0], 4).shape == (0,)


@pytest.mark.parametrize("edge_features", [0, 2])
@pytest.mark.parametrize("own_encoder", [False, True])
def test_attention_is_random_in_training_and_not_afterwards(
    edge_features: int, own_encoder: bool
) -> None:
    model = GSAT(3, 2, 8, edge_features=edge_features, own_encoder=own_encoder)
    edge_attr = torch.ones(5, 2) if edge_features else None
    first, second = (model.attend(X, Edges(EDGES, 4, edge_attr)).attention for _ in range(2))
    assert not torch.equal(first, second)
    model.train(mode=False)
    logits, attention, scores = model.attend(X, Edges(EDGES, 4, edge_attr))
    assert torch.equal(attention[4], torch.sigmoid(scores[4]))
    model.train()
    torch.testing.assert_close(model.attend(X, Edges(EDGES, 4, edge_attr)).scores, scores)
    model.train(mode=False)
    half = torch.full((5,), 0.5)
    assert not torch.equal(model(X, EDGES, edge_attr, edge_weight=half), logits)
    assert torch.equal(model(X, EDGES, edge_attr), logits)
    assert logits.shape == (1, 2)
    assert ((attention > 0) & (attention < 1)).all()
    assert attention[0] == attention[1]


def test_attention_of_one_and_of_zero_are_all_edges_and_none() -> None:
    model = GSAT(3, 2, 8).train(mode=False)
    last = model.attention[-1]
    last.weight.data.zero_()
    for bias, edges in ((50.0, EDGES), (-200.0, EDGES[:, :0])):
        last.bias.data.fill_(bias)
        h = model.backbone.states(X, Edges(edges, len(X))).sum(dim=0, keepdim=True)
        torch.testing.assert_close(model(X, EDGES), model.classifier(h))


def test_an_encoder_of_its_own_decides_attention_alone() -> None:
    model = GSAT(3, 2, 8, own_encoder=True).train(mode=False)
    before = model.attend(X, Edges(EDGES, 4))
    for parameter in model.backbone.parameters():
        parameter.data.mul_(2)
    after = model.attend(X, Edges(EDGES, 4))
    assert torch.equal(after.attention, before.attention)
    assert not torch.equal(after.logits, before.logits)


def test_information_loss_is_the_papers_cross_entropy_against_one_minus_r() -> None:
    model = GSAT(3, 2, prior=0.7, information=2.0)
    scores = torch.tensor([-2.0, 0.0, 3.0], requires_grad=True)
    a = 1 / (1 + np.exp(-scores.detach().numpy().astype(float)))
    expected = 2 * np.mean(-0.3 * np.log(a) - 0.7 * np.log(1 - a))
    assert np.isclose(model.information_loss(scores).item(), expected)
    assert model.information_loss(scores[:0]) == 0
    # The gradient at a large score is exact as well.
    (pull,) = torch.autograd.grad(model.information_loss(40 * scores), scores)
    np.testing.assert_allclose(pull, 2 / 3 * 40 * np.array([-0.3, 0.2, 0.7]), rtol=1e-6)


def test_temperature_falls_linearly_and_sharpens_attention() -> None:
    model = GSAT(3, 2)
    temperatures = []
    for progress in (0, 0.5, 1, 2):
        model.anneal(progress)
        temperatures.append(model.temperature)
    assert np.allclose(temperatures, [1, 0.55, 0.1, 0.1])
    sharp = torch.cat([model.attend(X, Edges(EDGES, 4)).attention[4:] for _ in range(50)])
    model.anneal(0)
    soft = torch.cat([model.attend(X, Edges(EDGES, 4)).attention[4:] for _ in range(50)])
    assert (sharp - 0.5).abs().mean() > 1.3 * (soft - 0.5).abs().mean()


@pytest.mark.parametrize("level", ["graph", "node"])
def test_graphs_without_edges_have_logits(level: str) -> None:
    model = GSAT(3, 2, level=level)
    batch = torch.tensor([0, 0, 1, 2])
    logits, attention, scores = model.attend(X, Edges(EDGES[:, :0], 4), batch)
    assert logits.shape == ((3, 2) if level == "graph" else (4, 2))
    assert len(attention) == 0
    (logits.sum() + model.information_loss(scores)).backward()


@pytest.mark.parametrize(
    "options",
    [
        {"prior": 1.5},
        {"prior": "often"},
        {"information": float("nan")},
        {"dropout": 1.0},
        {"temperature": 1.0},
        {"temperature": (1.0,)},
        {"temperature": (0.0, 1.0)},
        {"temperature": (1.0, float("nan"))},
    ],
)
def test_impossible_settings_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InputError, match="expected"):
        GSAT(3, 2, **options)  # type: ignore[arg-type]
