"""How models are called: arguments by the names of their parameters, and a check of the result.

A model is any torch module. Its `forward` is given those of `ARGUMENTS` that it has as parameters.
"""

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.explain.algorithm.utils import clear_masks, set_masks
from torch_geometric.nn import MessagePassing

from graphxai_data.errors import InputError
from graphxai_data.nn.conv import BlindConv

ARGUMENTS = ("x", "edge_index", "edge_attr", "batch", "edge_weight", "batch_size")
# What a forward of `*args` is given, in this order, and one of `**kwargs` by these names.
_USUAL = ARGUMENTS[:4]
_VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
# Where wrappers such as those of torch.compile and DataParallel keep the model.
_INNER = ("_orig_mod", "module")


def call_model(
    model: nn.Module,
    x: Tensor,
    edge_index: Tensor,
    edge_attr: Tensor | None = None,
    batch: Tensor | None = None,
    *,
    edge_weight: Tensor | None = None,
    batch_size: int | None = None,
) -> Any:
    """Return the output of a model for these of its arguments that it takes.

    Edge weights [m] multiply the messages. A model that has no such argument gets them as PyG's
    edge masks.
    """
    given = (x, edge_index, edge_attr, batch, edge_weight, batch_size)
    values = dict(zip(ARGUMENTS, given, strict=True))
    if edge_weight is None or "edge_weight" in parameters_of(model):
        args, named = _bound(model, values)
        return model(*args, **named)
    args, named = _bound(model, values | {"edge_weight": None})
    with _edge_masks(model, edge_weight, edge_index):
        return model(*args, **named)


def parameters_of(model: nn.Module) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of a model's forward; of the model inside it for a wrapper."""
    try:
        parameters = inspect.signature(model.forward).parameters
    except (ValueError, TypeError):
        raise InputError(
            f"model: the parameters of {type(model).__name__}.forward cannot be read; wrap it in a "
            f"module whose forward names them: {', '.join(ARGUMENTS)}"
        ) from None
    if all(parameter.kind in _VARIABLE for parameter in parameters.values()):
        inner = [getattr(model, key, None) for key in _INNER]
        for module in inner:
            if isinstance(module, nn.Module):
                return parameters_of(module)
    return parameters


def takes(model: nn.Module, argument: str) -> bool:
    """Return whether a model is given an argument, one of `ARGUMENTS`."""
    parameters = parameters_of(model)
    is_open = any(parameter.kind in _VARIABLE for parameter in parameters.values())
    return argument in parameters or (is_open and argument in _USUAL)


def takes_edge_masks(model: nn.Module) -> bool:
    """Return whether the messages of single edges can be masked, by an argument or in PyG's way."""
    return "edge_weight" in parameters_of(model) or bool(mask_layers(model))


def mask_layers(model: nn.Module) -> list[MessagePassing]:
    """Return the layers that take PyG's edge masks."""
    return [
        module
        for module in model.modules()
        if isinstance(module, MessagePassing)
        and module.explain is not False
        and not isinstance(module, BlindConv)
    ]


def arguments_in_order(model: nn.Module, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an explainer of PyG passes on to a model besides x and edge_index.

    Some of them pass it on by position, so it is in the order of the parameters, and those without
    a value have their default.

    Args:
        model: to be explained.
        values: of all `ARGUMENTS`, None for those that the graph has not.
    """
    _, named = _bound(model, values)
    parameters = list(parameters_of(model).values())
    fixed = [p for p in parameters if p.kind not in _VARIABLE]
    names = [p.name for p in fixed]
    if names[:2] != ["x", "edge_index"][: len(names)]:
        raise InputError(
            f"model: explainers of PyG call forward(x, edge_index, …), that of "
            f"{type(model).__name__} begins with {', '.join(names[:2])}; change the order"
        )
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return {key: values[key] for key in _USUAL[2:]}
    last = max(i for i, name in enumerate(names) if name in named)
    in_order = {p.name: named.get(p.name, p.default) for p in fixed[2 : last + 1]}
    return in_order | {key: value for key, value in named.items() if key not in names[:2]}


def further_arguments(model: nn.Module) -> tuple[str, ...]:
    """Return what a model takes besides x and edge_index, if the graphs have it, and needs."""
    required = [p.name for p in parameters_of(model).values() if p.default is p.empty]
    usual = [key for key in _USUAL if takes(model, key)]
    return tuple(key for key in ARGUMENTS[2:] if key in usual or key in required)


def _bound(model: nn.Module, values: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return the positional and the named arguments of a model for values of all `ARGUMENTS`."""
    parameters = list(parameters_of(model).values())
    fixed = {p.name: p for p in parameters if p.kind not in _VARIABLE}
    required = [name for name, p in fixed.items() if p.default is p.empty]
    if unknown := [name for name in required if name not in values]:
        raise InputError(
            f"model: {type(model).__name__}.forward needs {', '.join(unknown)}; models are given "
            f"{', '.join(ARGUMENTS)} by name: rename its parameters, or wrap it in a module"
        )
    open_ended = {p.kind for p in parameters} & set(_VARIABLE)
    positional = [name for name, p in fixed.items() if p.kind is p.POSITIONAL_ONLY]
    if open_ended == {inspect.Parameter.VAR_POSITIONAL}:
        first = [name for name, p in fixed.items() if p.kind is not p.KEYWORD_ONLY]
        positional = list(_USUAL)
        if first != positional[: len(first)]:
            raise InputError(
                f"model: {type(model).__name__}.forward has {', '.join(first)} before *args; "
                f"expected {', '.join(_USUAL)} in this order: name all parameters instead"
            )
    names = {*fixed, *(_USUAL if inspect.Parameter.VAR_KEYWORD in open_ended else ())}
    named = {
        key: value
        for key, value in values.items()
        # Without a value, what is optional keeps its default.
        if key in names - set(positional) and (value is not None or key in required)
    }
    return [values[key] for key in positional], named


@contextmanager
def _edge_masks(model: nn.Module, mask: Tensor, edge_index: Tensor) -> Iterator[None]:
    """Multiply the messages of all layers by a mask [m]."""
    layers = mask_layers(model)
    if not layers:
        raise InputError(
            f"model: edges of {type(model).__name__} cannot be masked; expected a forward that "
            "takes edge_weight [edges], or layers that are PyG's MessagePassing"
        )
    free_masks(model)
    try:
        set_masks(model, mask, edge_index, apply_sigmoid=False)
        yield
    finally:
        clear_masks(model)


def free_masks(model: nn.Module) -> None:
    """Let masks that are no parameters be set again, with their gradients.

    An explainer of PyG whose mask is a parameter leaves the name of it in the layers. PyG then
    makes every later mask a parameter, which cuts its gradient.
    """
    for module in model.modules():
        if isinstance(module, MessagePassing) and "_edge_mask" in module._parameters:
            mask = module._parameters.pop("_edge_mask")
            module._edge_mask = None if mask is None else mask.detach()


def check_ready(model: nn.Module) -> None:
    """Raise an `InputError` unless the model is a torch module in evaluation mode."""
    if not isinstance(model, nn.Module):
        raise InputError(f"model: expected a torch module, got {type(model).__name__}")
    if any(module.training for module in model.modules()):
        raise InputError("model: in training mode, where dropout is random; call `eval` on it")


def check_unmasked(model: nn.Module) -> None:
    """Raise an `InputError` if an explainer of PyG has left an edge mask in a model."""
    for module in model.modules():
        if isinstance(module, MessagePassing) and module.explain:
            raise InputError(
                "model: has an edge mask of an earlier explainer, which changes its outputs; call "
                "torch_geometric.explain.algorithm.utils.clear_masks(model)"
            )


def device_of_model(model: nn.Module | None) -> torch.device:
    """Return the device of a model's weights; the CPU for none."""
    tensors = () if model is None else (*model.parameters(), *model.buffers())
    devices = sorted({str(tensor.device) for tensor in tensors})
    if len(devices) > 1:
        raise InputError(
            f"model: on several devices, {' and '.join(devices)}; move all of it to one"
        )
    return torch.device(devices[0] if devices else "cpu")


def check_logits(logits: Any, rows: int, nodes: int) -> Tensor:
    """Return the output of a model; an `InputError` unless it is [rows, classes].

    Args:
        logits: what the model returned.
        rows: expected rows: the number of graphs, or that of nodes if one of them is explained.
        nodes: number of nodes of all graphs, for the message.
    """
    if isinstance(logits, Tensor) and logits.ndim == 2 and len(logits) == rows:
        return logits
    what = "node" if rows == nodes else "graph"
    got, advice = type(logits).__name__, "return logits only"
    if isinstance(logits, Tensor):
        got, advice = str(list(logits.shape)), "return a row of logits for each"
        if what == "graph" and logits.ndim and len(logits) == nodes:
            got += ", a row per node"
            advice = "pool the nodes of each graph in the model, or explain one `node`"
    raise InputError(
        f"model: expected logits [{rows}, classes], a row per {what}, got {got}; {advice}"
    )
