"""What torch offers for modules works on all models, and B-cos maps stay exact under it."""

import copy
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed
import torch.multiprocessing
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch_geometric.data import Data
from torch_geometric.explain.algorithm.utils import clear_masks, set_masks

from graphxai_data.errors import InputError
from graphxai_data.explain import Inputs
from graphxai_data.explain.bcos import all_contribution_maps, contribution_map
from graphxai_data.nn import GIN, GSAT, BcosGIN, DeepSets, explanation_mode
from graphxai_data.nn.bcos import RMSNorm, contributions
from graphxai_data.nn.gin import GraphModel
from graphxai_data.nn.random import seeded
from tests.nn.test_masks import NAMES, SIZE, hard_mask, settled, some_batch, some_graph

# Inductor scripts parts of itself when it is imported, which torch deprecates.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script_method` is deprecated")
BCOS = ["bcos-gin", "additive", "multiplicative"]


def compiled_by(names: Iterable[str], quick: str) -> list[Any]:
    """Return names and backends; all but one are slow tests, since a compilation takes seconds."""
    return [
        pytest.param(
            name, backend, marks=() if (name, backend) == (quick, "aot_eager") else pytest.mark.slow
        )
        for backend in ("aot_eager", "inductor")
        for name in names
    ]  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_compiled_before(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path / "inductor"))
    torch.compiler.reset()


@pytest.fixture(params=NAMES)
def model(request: pytest.FixtureRequest) -> GraphModel:
    network: GraphModel = settled(NAMES[request.param]())
    return network


def arguments(data: Data) -> dict[str, Any]:
    batch = torch.zeros(len(data.x), dtype=torch.int64) if data.batch is None else data.batch
    return {"edge_index": data.edge_index, "edge_attr": data.edge_attr, "batch": batch}


def run(model: nn.Module, data: Data, x: Tensor | None = None, graphs: int = 3) -> Tensor:
    x = data.x if x is None else x
    out: Tensor = model(x, **arguments(data), batch_size=graphs)
    return out


def gradients(out: Tensor, model: nn.Module) -> list[Tensor]:
    leaves = list(model.parameters())
    return list(
        torch.autograd.grad(out.square().sum(), leaves, materialize_grads=True, allow_unused=True)
    )


def assert_same(ours: list[Tensor], expected: list[Tensor]) -> None:
    for value, of_eager in zip(ours, expected, strict=True):
        torch.testing.assert_close(value, of_eager, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("name", "backend"), compiled_by(NAMES, "gin"))
def test_a_compiled_model_is_one_graph_with_the_same_logits_and_gradients(
    name: str, backend: str
) -> None:
    model = settled(NAMES[name]())
    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend=backend)
    for data, graphs in ((some_batch(), 3), (some_graph(8, 4), 1), (some_graph(11, 6), 1)):
        out, expected = (run(network, data, graphs=graphs) for network in (compiled, model))
        torch.testing.assert_close(out, expected)
        assert_same(gradients(out, model), gradients(expected, model))


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("name", ["gin, node level", "bcos-gin"])
def test_a_compiled_model_trains_as_the_model_does(name: str, backend: str) -> None:
    # These have statistics of batches: batch normalisation, and root mean squares.
    model = settled(NAMES[name]()).train()
    other = copy.deepcopy(model)
    compiled = torch.compile(other, fullgraph=True, backend=backend)
    out, expected = run(compiled, some_batch()), run(model, some_batch())
    torch.testing.assert_close(out, expected)
    assert_same(gradients(out, other), gradients(expected, model))
    assert_same(list(other.buffers()), list(model.buffers()))
    assert any(isinstance(module, RMSNorm | nn.BatchNorm1d) for module in model.modules())


@pytest.mark.parametrize(("name", "backend"), compiled_by(BCOS, "additive"))
def test_maps_of_a_compiled_model_are_exact(name: str, backend: str) -> None:
    model, data = settled(NAMES[name]()), some_batch()
    compiled = torch.compile(model, fullgraph=True, backend=backend)
    expected = contribution_map(model, Inputs.of(data), target=1)
    run(compiled, data)  # a pass outside, with weights that are not held
    leaves = [t.clone().requires_grad_() for t in (data.x, data.edge_attr)]
    with explanation_mode(compiled):
        out = compiled(leaves[0], data.edge_index, leaves[1], data.batch, batch_size=3)
        rows = torch.autograd.grad(out[:, 1].sum(), leaves, materialize_grads=True)
    nodes, edges = ((leaf * row).sum(dim=1) for leaf, row in zip(leaves, rows, strict=True))
    torch.testing.assert_close(nodes, expected.node_scores)
    if expected.edge_scores is not None:
        torch.testing.assert_close(edges, expected.edge_scores)
    gap = nodes.sum() + edges.sum() + 3 * model.logit_bias - out[:, 1].sum()
    assert abs(gap.item()) < 1e-12


def test_a_map_to_differentiate_is_refused_from_a_compiled_model() -> None:
    # Its backward pass would not hold the weights, and the map would be another gradient.
    model, data = settled(BcosGIN(*SIZE)), some_batch()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    x = data.x.clone().requires_grad_()
    with pytest.raises(InputError, match="contributions: the logits are those of a compiled model"):
        contributions(run(compiled, data, x)[:, 0], [x], compiled)
    (scores,) = contributions(run(model, data, x)[:, 0], [x], model)
    torch.testing.assert_close(scores.sum(), run(model, data)[:, 0].sum())


@pytest.mark.parametrize(("name", "backend"), compiled_by(NAMES, "gin"))
def test_masks_reach_the_messages_of_a_compiled_model(name: str, backend: str) -> None:
    model, data = settled(NAMES[name]()), some_graph(8, 4)
    compiled = torch.compile(model, backend=backend)
    whole = run(compiled, data, graphs=1)
    mask = hard_mask(data.num_edges)
    set_masks(compiled, mask, data.edge_index, apply_sigmoid=False)
    masked = run(compiled, data, graphs=1)
    clear_masks(compiled)
    kept = mask.bool()
    fewer = Data(x=data.x, edge_index=data.edge_index[:, kept], edge_attr=data.edge_attr[kept])
    torch.testing.assert_close(masked, run(model, fewer, graphs=1))
    torch.testing.assert_close(run(compiled, data, graphs=1), whole)


def exported(model: nn.Module, data: Data) -> nn.Module:
    """Return the model as `torch.export` stores it, for any numbers of nodes and edges."""
    auto = torch.export.Dim.AUTO
    shapes = {
        "x": {0: auto}, "edge_index": {1: auto}, "edge_attr": {0: auto}, "batch": {0: auto},
        "batch_size": None,
    }  # fmt: skip
    options = {**arguments(data), "batch_size": 3}
    program = torch.export.export(model, (data.x,), options, dynamic_shapes=shapes)
    module: nn.Module = program.module()
    return module


def test_an_exported_model_takes_graphs_of_any_size(model: GraphModel) -> None:
    module = exported(model, some_batch())
    for data in (some_batch(), some_graph(8, 4)):
        torch.testing.assert_close(run(module, data), run(model, data))


@pytest.mark.parametrize("name", BCOS)
def test_maps_of_an_exported_model_are_exact(name: str) -> None:
    model, data = settled(NAMES[name]()), some_batch()
    with explanation_mode(model):
        module = exported(model, some_batch())
    expected = contribution_map(model, Inputs.of(data), target=1)
    x = data.x.clone().requires_grad_()
    out = run(module, data, x)
    (row,) = torch.autograd.grad(out[:, 1].sum(), x)
    torch.testing.assert_close((x * row).sum(dim=1), expected.node_scores)
    torch.testing.assert_close(out[:, 1], expected.logit)


def test_a_number_of_graphs_that_only_values_tell_can_be_exported(model: GraphModel) -> None:
    data = some_batch()
    program = torch.export.export(model, (data.x,), arguments(data))
    torch.testing.assert_close(program.module()(data.x, **arguments(data)), run(model, data))


def test_jacobians_are_the_gradients_of_all_logits(model: GraphModel) -> None:
    data = some_graph(6, 5)
    x = data.x.clone().requires_grad_()
    out = run(model, data, x, graphs=1)
    directions = torch.eye(out.numel(), dtype=torch.double).reshape(-1, *out.shape)
    rows = torch.stack(
        [torch.autograd.grad(out, x, direction, retain_graph=True)[0] for direction in directions]
    )
    (together,) = torch.autograd.grad(out, x, directions, is_grads_batched=True)
    torch.testing.assert_close(together, rows)

    def logits(x: Tensor) -> Tensor:
        return run(model, data, x, graphs=1)

    for jacobian in (torch.func.jacrev(logits), torch.func.jacfwd(logits)):
        torch.testing.assert_close(jacobian(data.x).reshape(rows.shape), rows)
    scaled = torch.stack([data.x, 2 * data.x, -data.x])
    one_by_one = torch.stack([logits(features) for features in scaled])
    torch.testing.assert_close(torch.func.vmap(logits)(scaled), one_by_one)


@pytest.mark.parametrize("name", BCOS)
def test_one_jacobian_holds_the_maps_of_all_classes(name: str) -> None:
    model, data = settled(NAMES[name]()), some_graph(6, 5)
    with explanation_mode(model):
        jacobian = torch.func.jacrev(lambda x: run(model, data, x, graphs=1)[0])(data.x)
    maps = all_contribution_maps(model, data)
    assert len(maps) == len(jacobian)
    for row, expected in zip(jacobian, maps, strict=True):
        torch.testing.assert_close(row * data.x, expected.feature_scores)


def test_gradients_by_weights_are_those_of_functional_calls(model: GraphModel) -> None:
    data = some_graph(6, 5)
    weights = {name: value.detach() for name, value in model.named_parameters()}

    def loss(weights: dict[str, Tensor]) -> Tensor:
        options = {**arguments(data), "batch_size": 1}
        out: Tensor = torch.func.functional_call(model, weights, (data.x,), options)
        return out.square().sum()

    ours = torch.func.grad(loss)(weights)
    assert_same(list(ours.values()), gradients(run(model, data, graphs=1), model))


@pytest.mark.parametrize("training", [False, True])
def test_autocast_gives_the_logits_to_two_digits(model: GraphModel, training: bool) -> None:
    model.float().train(mode=training)
    data = some_batch()
    data.x, data.edge_attr = data.x.float(), data.edge_attr.float()
    with seeded(0):  # attention is noisy in training
        expected = run(copy.deepcopy(model), data)
    with seeded(0), torch.autocast("cpu", torch.bfloat16):
        out = run(model, data)
    assert out.dtype == torch.bfloat16
    # One rounding of bfloat16 is 0.004; RMS normalisation over few nodes magnifies it.
    error = (out.float() - expected).abs().max() / expected.abs().max()
    assert error < 0.08
    assert all(torch.isfinite(gradient).all() for gradient in gradients(out, model))


@pytest.mark.parametrize("name", BCOS)
def test_maps_under_autocast_are_those_of_full_precision(name: str) -> None:
    model, data = settled(NAMES[name]()).float(), some_batch()
    data.x, data.edge_attr = data.x.float(), data.edge_attr.float()
    expected = contribution_map(model, Inputs.of(data), target=1)
    with torch.autocast("cpu", torch.bfloat16):
        explanation = contribution_map(model, Inputs.of(data), target=1)
        assert torch.is_autocast_enabled("cpu")
        assert run(model, data).dtype == torch.bfloat16
    assert torch.equal(explanation.node_scores, expected.node_scores)
    assert torch.equal(explanation.logit, expected.logit)
    assert explanation.completeness_gap().max() < 1e-4


def test_models_of_short_floats_sum_in_longer_ones() -> None:
    # 300 neighbours of 1 make 300, which a sum in bfloat16 never reaches: 256 + 1 = 256.
    model = GIN(1, 1, 1, 1, update_layers=1, readout_layers=1)
    for value in model.parameters():
        value.data.fill_(0 if value.ndim == 1 else 1)
    edge_index = torch.stack([torch.arange(1, 301), torch.zeros(300, dtype=torch.int64)])
    x = torch.ones(301, 1, dtype=torch.bfloat16)
    node_level = copy.deepcopy(model).bfloat16()
    node_level.level = "node"
    assert node_level(x, edge_index)[0].item() == 300
    assert model.bfloat16()(x, edge_index).item() == 600


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_results_have_the_precision_of_the_model(model: GraphModel, dtype: torch.dtype) -> None:
    model.to(dtype)
    data = some_batch()
    data.x, data.edge_attr = data.x.to(dtype), data.edge_attr.to(dtype)
    out = run(model, data)
    assert out.dtype == dtype
    torch.testing.assert_close(
        out.double(), run(copy.deepcopy(model).double(), data_in_double(data)), rtol=1e-3, atol=1e-3
    )


def data_in_double(data: Data) -> Data:
    longer = data.clone()
    longer.x, longer.edge_attr = data.x.double(), data.edge_attr.double()
    return longer


def test_a_missing_node_is_an_error_in_a_compiled_model_too() -> None:
    model, data = settled(GIN(*SIZE)), some_graph(6, 5)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    data.edge_index[0, 0] = 6
    with pytest.raises((IndexError, RuntimeError), match="out of range|out of bounds"):
        run(compiled, data, graphs=1)


def test_deepsets_can_be_compiled_without_edges() -> None:
    model = settled(DeepSets(*SIZE))
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    x = some_batch().x
    torch.testing.assert_close(compiled(x), model(x))


def test_the_explanation_mode_of_the_public_b_cos_package_holds_our_weights() -> None:
    # It calls this method of every module that has it.
    model, data = settled(NAMES["multiplicative"]()), some_batch()
    layers = [m for m in model.modules() if hasattr(m, "set_explanation_mode")]
    for layer in layers:
        layer.set_explanation_mode(True)
    x = data.x.clone().requires_grad_()
    out = run(model, data, x)[:, 0].sum()
    (row,) = torch.autograd.grad(out, x)
    torch.testing.assert_close((x * row).sum(), out)
    for layer in layers:
        layer.set_explanation_mode(False)
    assert not any(layer.hold_weights for layer in layers)


def on_one_process(rank: int, processes: int, file: str, names: list[str]) -> None:
    """Compare the gradients of all processes with those of the whole batch in this one."""
    options = {"rank": rank, "world_size": processes}
    torch.distributed.init_process_group("gloo", init_method=f"file://{file}", **options)
    try:
        for name in names:
            with seeded(0):
                model = settled(NAMES[name]())
            parallel = DistributedDataParallel(copy.deepcopy(model))
            parts = [some_graph(8, 10 + part) for part in range(processes)]
            for _ in range(2):  # the second pass would complain about weights without gradient
                parallel.zero_grad()
                run(parallel, parts[rank], graphs=1).square().sum().backward()
            losses = [run(model, part, graphs=1).square().sum() for part in parts]
            (sum(losses) / processes).backward()
            for value, expected in zip(parallel.parameters(), model.parameters(), strict=True):
                torch.testing.assert_close(value.grad, expected.grad)
    finally:
        torch.distributed.destroy_process_group()


def test_gradients_of_a_distributed_model_are_the_models(tmp_path: Path) -> None:
    on_one_process(0, 1, str(tmp_path / "meeting"), list(NAMES))


@pytest.mark.slow
def test_gradients_of_two_processes_are_those_of_their_graphs_together(tmp_path: Path) -> None:
    torch.multiprocessing.spawn(
        on_one_process, (2, str(tmp_path / "meeting"), list(NAMES)), nprocs=2
    )


@pytest.mark.slow
def test_gsat_draws_the_same_attention_when_compiled() -> None:
    model, data = settled(GSAT(*SIZE)).train(), some_batch()
    model.classifier[2].p = 0.0
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    with seeded(1):
        expected = run(model, data)
    with seeded(1):
        out = run(compiled, data)
    torch.testing.assert_close(out, expected)
