import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from graphxai_data.errors import InputError
from graphxai_data.nn import BcosLinear, explanation_mode
from graphxai_data.nn.bcos import RMSNorm, contributions

PRESSURES = [1, 1.5, 2, 2.5, 3]


def paper_formula(
    x: np.ndarray, weight: np.ndarray, b: float, max_out: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return output [n, o] and dynamic weights [n, o, p] by the paper's equations 3 and 5.

    The cosine is that of unit vectors, not a product divided afterwards.
    """
    unit_rows = weight / np.sqrt((weight**2).sum(axis=1, keepdims=True))
    length = np.sqrt((x**2).sum(axis=1, keepdims=True))
    cosine = (x / np.where(length == 0, 1, length)) @ unit_rows.T
    outputs = len(weight) // max_out
    winner = cosine.reshape(len(x), outputs, max_out).argmax(axis=2)
    rows = unit_rows.reshape(outputs, max_out, -1)[np.arange(outputs), winner]
    cosine = np.take_along_axis(cosine.reshape(len(x), outputs, max_out), winner[..., None], 2)[
        ..., 0
    ]
    dynamic = np.abs(cosine)[..., None] ** (b - 1) * rows
    return length * np.abs(cosine) ** b * np.sign(cosine), dynamic


@pytest.mark.parametrize("b", PRESSURES)
@pytest.mark.parametrize("max_out", [1, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_output_and_dynamic_weights_are_those_of_the_papers_equations(
    b: float, max_out: int, dtype: torch.dtype
) -> None:
    draws = np.random.default_rng(0)
    weight = draws.normal(size=(6 * max_out, 20)) * draws.uniform(0.01, 30, size=(6 * max_out, 1))
    x = draws.normal(size=(50, 20)) * 10.0 ** draws.uniform(-4, 4, size=(50, 1))
    output, dynamic = paper_formula(x, weight, b, max_out)
    layer = BcosLinear(20, 6, b, max_out).to(dtype)
    layer.weight.data = torch.from_numpy(weight).to(dtype)
    inputs = torch.from_numpy(x).to(dtype).requires_grad_()
    tolerance = 1e-6 * np.abs(x).max(axis=1, keepdims=True)
    # With B < 2 a power magnifies a small cosine and its rounding error in float32.
    rounding = 2e-4 if dtype == torch.float32 and 1 < b < 2 else 0
    assert (np.abs(layer(inputs).detach().double().numpy() - output) < tolerance).all()
    with explanation_mode(layer):
        explained = layer(inputs)
        assert torch.equal(explained, layer(inputs))
        for j in range(6):
            (row,) = torch.autograd.grad(explained[:, j].sum(), inputs, retain_graph=True)
            assert np.abs(row.double().numpy() - dynamic[:, j]).max() < 1e-6 + rounding


@pytest.mark.parametrize("b", [1, 1.1, *PRESSURES])
@pytest.mark.parametrize("max_out", [1, 2])
def test_gradients_are_those_of_finite_differences(b: float, max_out: int) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layer = BcosLinear(5, 4, b, max_out).double()
        x = torch.randn(7, 5, dtype=torch.double, requires_grad=True)
        weight = layer.weight.detach().clone().requires_grad_()

    def run(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(layer, {"weight": weight}, (x,))

    assert torch.autograd.gradcheck(run, (x, weight))


@settings(max_examples=60)
@given(
    b=st.floats(1, 6),
    scale=st.sampled_from([0.0, 1e-18, 1e-15, 1e-12, 1e-6, 1.0, 1e6, 1e15]),
    tilt=st.sampled_from([0.0, 1e-20, 1e-8, 1e-3]),
)
def test_zero_inputs_and_small_cosines_give_finite_values_and_gradients(
    b: float, scale: float, tilt: float
) -> None:
    layer = BcosLinear(3, 2, b)
    layer.weight.data = torch.tensor([[1.0, 0, 0], [0, 0, 0]])
    x = (scale * torch.tensor([[tilt, 1.0, 0], [0, 0, 0], [1.0, 0, 0]])).requires_grad_()
    out = layer(x)
    out.sum().backward()
    assert torch.isfinite(out).all()
    assert torch.isfinite(x.grad).all()
    assert torch.isfinite(layer.weight.grad).all()
    assert not out[1].any()
    assert torch.allclose(out[2], torch.tensor([scale, 0.0]), rtol=1e-5, atol=0)


@pytest.mark.parametrize("scale", [1e-30, 1e-22, 1e25])
def test_lengths_that_no_float_holds_give_finite_values(scale: float) -> None:
    x = torch.full((2, 3), scale, requires_grad=True)
    out = BcosLinear(3, 2, b=1.5)(x)
    out.sum().backward()
    assert torch.isfinite(out).all()
    assert torch.isfinite(x.grad).all()


@pytest.mark.parametrize(
    "arguments", [(0, 1), (1, 0), (1, 1, 0.9), (1, 1, float("nan")), (1, 1, 2, 0)]
)
def test_impossible_layers_are_refused(arguments: tuple[float, ...]) -> None:
    with pytest.raises(InputError, match="expected"):
        BcosLinear(*arguments)  # type: ignore[arg-type]


def test_explanation_mode_is_left_after_an_exception() -> None:
    model = nn.Sequential(BcosLinear(3, 3), nn.Dropout(0.5), nn.Sequential(RMSNorm(3)))
    model[1].train(mode=False)
    before = [(m.training, getattr(m, "hold_weights", None)) for m in model.modules()]
    with pytest.raises(KeyboardInterrupt), explanation_mode(model) as same:
        assert same is model
        assert not model.training
        assert model[0].hold_weights
        with explanation_mode(model[0]):
            pass
        assert model[0].hold_weights
        raise KeyboardInterrupt
    assert [(m.training, getattr(m, "hold_weights", None)) for m in model.modules()] == before


def test_normalisation_divides_by_the_root_mean_square_and_keeps_zero_zero() -> None:
    x = torch.tensor([[3.0, 0.0, 1e-8], [4.0, 0.0, -1e-8]])
    norm = RMSNorm(3, momentum=1.0)
    out = norm(x)
    expected = np.sqrt((3**2 + 4**2) / 2 * (1 + 1e-3 / 3))
    np.testing.assert_allclose(out[:, 0].numpy(), [3 / expected, 4 / expected], rtol=1e-6)
    assert not out[:, 1].any()
    # A channel that is tiny compared with the others stays tiny.
    assert out[:, 2].abs().max() < 1e-6
    norm.train(mode=False)
    torch.testing.assert_close(norm(x), out)
    assert torch.equal(norm(2 * x), 2 * norm(x))
    assert norm(x[:0]).shape == (0, 3)


def test_gradient_of_normalisation_is_that_of_finite_differences() -> None:
    draws = torch.from_numpy(np.random.default_rng(1).normal(size=(9, 4)))
    norm = RMSNorm(4).double()
    scale = [1.0, 2.0, 3.0, 0.5]

    def run(x: torch.Tensor) -> torch.Tensor:
        return norm(x * torch.tensor(scale, dtype=torch.double))

    assert torch.autograd.gradcheck(run, (draws.requires_grad_(),))


@pytest.mark.parametrize("scale", [0.0, 1e-30, 1e-14, 1.0, 1e15])
def test_gradient_of_normalisation_is_finite_for_any_input(scale: float) -> None:
    x = (scale * torch.randn(6, 3)).requires_grad_()
    RMSNorm(3)(x).sum().backward()
    assert torch.isfinite(x.grad).all()


class Small(nn.Module):
    """Two B-cos layers with a normalisation between them, whose weights can be replaced."""

    def __init__(self, b: float) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.layers = nn.Sequential(
                BcosLinear(4, 6, b, 2), RMSNorm(6), BcosLinear(6, 3, b)
            ).double()
            self.x = torch.rand(5, 4, dtype=torch.double)

    def of(self, *weights: torch.Tensor) -> torch.Tensor:
        """Return the sum of squared contributions to the second output, for these weights."""
        named = dict(zip(("layers.0.weight", "layers.2.weight"), weights, strict=True))
        x = self.x.clone().requires_grad_()
        value = torch.func.functional_call(self, named, (x,))[:, 1]
        (scores,) = contributions(value, [x], self)
        torch.testing.assert_close(scores, value)  # rows do not mix here
        return scores.square().sum()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.layers(x)
        return out


@pytest.mark.parametrize("b", [1, 1.5, 2, 2.5])
@pytest.mark.parametrize("training", [True, False])
def test_a_map_can_be_differentiated_by_the_weights(b: float, training: bool) -> None:
    small = Small(b)
    small(small.x)
    small.train(mode=training)
    weights = [small.layers[i].weight.detach().clone().requires_grad_() for i in (0, 2)]
    assert torch.autograd.gradcheck(small.of, weights)
    assert small.training == training


def test_weights_are_held_in_the_backward_pass_of_an_earlier_forward_pass() -> None:
    small = Small(2.5).train(mode=False)
    x = small.x.clone().requires_grad_()
    with explanation_mode(small):
        (inside,) = torch.autograd.grad(small(x)[:, 0].sum(), x)
    value = small(x)[:, 0].sum()
    with explanation_mode(small):
        (later,) = torch.autograd.grad(value, x, retain_graph=True)
    assert torch.equal(inside, later)
    (plain,) = torch.autograd.grad(value, x)
    assert not torch.allclose(plain, later)


@pytest.mark.parametrize("part", [slice(0, 1), slice(1, 2)])
def test_other_gradients_than_maps_cannot_be_differentiated(part: slice) -> None:
    layers = Small(2).layers[part]
    x = torch.rand(5, 4 if part.start == 0 else 6, dtype=torch.double, requires_grad=True)
    with pytest.raises(RuntimeError, match="only contribution maps can be differentiated"):
        torch.autograd.grad(layers(x).sum(), x, create_graph=True)


def test_a_map_of_a_forward_pass_inside_cannot_be_differentiated() -> None:
    # Weights were constants in the forward pass, so the gradient of the map would be wrong.
    small = Small(2)
    x = small.x.clone().requires_grad_()
    with explanation_mode(small), pytest.raises(RuntimeError, match="compute the logits outside"):
        contributions(small(x)[:, 0], [x], small)


@pytest.mark.parametrize("b", [1.1, 1.5])
def test_a_map_to_be_differentiated_is_the_map_even_at_a_cosine_of_zero(b: float) -> None:
    layer = BcosLinear(2, 1, b)
    layer.weight.data = torch.tensor([[1.0, -1.0]])
    x = torch.tensor([[1.0, 1.0], [1.0, 0.5]], requires_grad=True)
    value = layer(x)
    with explanation_mode(layer):
        (row,) = torch.autograd.grad(value.sum(), x, retain_graph=True)
        (again,) = torch.autograd.grad(value.sum(), x, create_graph=True)
    assert torch.equal(row, again.detach())
    assert (row[0] == 0).all()
    again.square().sum().backward()
    assert torch.isfinite(layer.weight.grad).all()
