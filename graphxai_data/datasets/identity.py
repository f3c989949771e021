"""The identity of a transform: a digest that changes if its values change, or the code it runs.

Code of installed packages is known by their version, other code by its bytecode and by all that
it refers to. What a function reads from files, the network or a random generator is not seen.
"""

import dis
import functools
import hashlib
import importlib
import importlib.metadata
import logging
import re
import site
import sys
import sysconfig
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path, PurePath
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    MappingProxyType,
    MethodType,
    ModuleType,
)
from typing import Any

import numpy as np
import torch
from torch import Tensor

_PLAIN = (
    bool, int, float, complex, str, bytes, type(None), type(Ellipsis), range, torch.dtype,
    torch.device, torch.Size, torch.layout, np.dtype,
)  # fmt: skip
# Entries of a class that say nothing about what it does.
_IDLE = {
    "__module__", "__dict__", "__weakref__", "__doc__", "__annotations__", "__abstractmethods__",
    "_abc_impl", "__parameters__", "__firstlineno__", "__static_attributes__", "__qualname__",
}  # fmt: skip


class UnidentifiedError(Exception):
    """The identity of an object cannot be established; the message says why."""


def identity(thing: object) -> str:
    """Return the digest of a callable or value.

    Raises:
        UnidentifiedError: it holds or runs something that has no digest.
    """
    try:
        return _Walk().digest(thing).hex()
    except RecursionError:
        raise UnidentifiedError("it refers to too many objects") from None


class _Walk:
    """Digests objects recursively, each once."""

    def __init__(self) -> None:
        self._known: dict[int, bytes] = {}
        self._open: list[int] = []  # the objects around the present one, outermost first
        self._kept: list[object] = []  # alive, so that their ids stay theirs

    def digest(self, thing: object) -> bytes:
        if type(thing) in _PLAIN:
            return _hash(type(thing).__name__, repr(thing))
        if id(thing) in self._open:  # such as a function that calls itself
            return _hash("around", str(self._open.index(id(thing))))
        if id(thing) not in self._known:
            self._kept.append(thing)
            self._open.append(id(thing))
            self._known[id(thing)] = _hash(*self._parts(thing))
            self._open.pop()
        return self._known[id(thing)]

    def _all(self, things: Any) -> Iterator[bytes]:
        return map(self.digest, things)

    def _parts(self, thing: object) -> Iterator[str | bytes]:
        for kind, parts in self._kinds():
            if isinstance(thing, kind):
                yield kind.__name__ if isinstance(kind, type) else "builtin"
                yield from parts(thing)
                return
        yield "object"
        yield from self._of_object(thing)

    def _kinds(self) -> Iterator[tuple[Any, Callable[[Any], Iterator[str | bytes]]]]:
        yield Tensor, self._of_tensor
        yield np.ndarray, _of_array
        yield np.generic, lambda value: iter((value.dtype.str, value.tobytes()))
        yield type, self._of_class
        yield FunctionType, self._of_function
        yield MethodType, lambda method: self._all((method.__func__, method.__self__))
        yield (BuiltinFunctionType, np.ufunc), self._of_builtin
        yield ModuleType, lambda module: iter((module.__name__, _version(module.__name__)))
        yield functools.partial, lambda p: self._all((p.func, p.args, p.keywords))
        yield CodeType, self._of_code
        yield (staticmethod, classmethod), lambda method: self._all((type(method), method.__func__))
        yield property, lambda value: self._all((value.fget, value.fset, value.fdel))
        yield Enum, lambda member: self._all((type(member), member.name))
        yield (PurePath, re.Pattern, slice), lambda value: iter((repr(value),))
        yield logging.Logger, lambda logger: iter((logger.name,))
        yield MappingProxyType, lambda proxy: self._all((dict(proxy),))

    def _of_tensor(self, tensor: Tensor) -> Iterator[str | bytes]:
        if tensor.layout != torch.strided or tensor.is_nested:
            raise UnidentifiedError(f"it holds a tensor of layout {tensor.layout}")
        content = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        yield str(tensor.dtype)
        yield str(tuple(tensor.shape))
        yield content.numpy().tobytes()

    def _of_class(self, cls: type) -> Iterator[str | bytes]:
        yield f"{cls.__module__}.{cls.__qualname__}"
        if _is_installed(cls.__module__):
            yield _version(cls.__module__)
            return
        yield from self._all(cls.__mro__[1:])
        for name, value in vars(cls).items():
            if name not in _IDLE and not isinstance(value, _SLOT):
                yield name
                yield self.digest(value)

    def _of_function(self, function: FunctionType) -> Iterator[str | bytes]:
        module = function.__module__ or ""
        if _is_installed(module) and not function.__closure__:
            yield f"{module}.{function.__qualname__}"
            yield _version(module)
            return
        yield self.digest(function.__code__)
        yield from self._all((function.__defaults__, function.__kwdefaults__, vars(function)))
        for cell in function.__closure__ or ():
            try:
                yield self.digest(cell.cell_contents)
            except ValueError:
                yield "an empty cell"
        for name in sorted(set(_globals_of(function.__code__))):
            yield name
            if name in function.__globals__:
                yield self.digest(function.__globals__[name])
            elif name in ("__import__", "eval", "exec"):
                raise UnidentifiedError(f"it calls {name}, which may run anything")

    def _of_code(self, code: CodeType) -> Iterator[str | bytes]:
        for imported in _imports_of(code):
            yield imported
            yield _version(imported)
        yield code.co_code
        yield code.co_exceptiontable
        counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags
        names = code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
        yield from self._all((*counts, *names, code.co_consts))

    def _of_builtin(self, function: Any) -> Iterator[str | bytes]:
        owner = getattr(function, "__self__", None)
        module = function.__module__ if hasattr(function, "__module__") else "numpy"
        if isinstance(owner, ModuleType):
            module = owner.__name__
        elif owner is not None and not isinstance(owner, type):
            yield self.digest(owner)
            module = module or type(owner).__module__
        elif owner is not None:
            module = module or owner.__module__
        yield getattr(function, "__qualname__", function.__name__)
        yield module
        yield _version(module)

    def _of_object(self, thing: object) -> Iterator[str | bytes]:
        yield self.digest(type(thing))
        if isinstance(thing, set | frozenset):
            yield from sorted(self._all(thing))
        elif isinstance(thing, dict):
            for key, value in thing.items():
                yield from self._all((key, value))
        elif isinstance(thing, list | tuple):
            yield from self._all(thing)
        elif isinstance(thing, str | bytes | int | float):
            yield repr(thing)
        elif _has_hidden_state(type(thing)):
            kind = type(thing).__name__
            raise UnidentifiedError(f"it holds an object of type {kind}, which has no digest")
        slots = {name for cls in type(thing).__mro__ for name in _slots(cls)}
        for name, value in [
            *getattr(thing, "__dict__", {}).items(),
            *((name, getattr(thing, name)) for name in sorted(slots) if hasattr(thing, name)),
        ]:
            yield name
            yield self.digest(value)


class _Slotted:
    __slots__ = ("a",)


_SLOT = type(vars(_Slotted)["a"])
_POINTER = tuple.__itemsize__


def _has_hidden_state(cls: type) -> bool:
    """Return whether objects of a class hold more than `__dict__`, `__weakref__` and slots."""
    pointers = 2 + sum(len(_slots(base)) for base in cls.__mro__)
    return cls.__basicsize__ > object.__basicsize__ + pointers * _POINTER or (
        "__dict__" not in dir(cls) and pointers == 2
    )


def _slots(cls: type) -> tuple[str, ...]:
    slots = cls.__dict__.get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(name for name in names if name not in ("__dict__", "__weakref__"))


def _of_array(array: np.ndarray[Any, Any]) -> Iterator[str | bytes]:
    if array.dtype.hasobject:
        raise UnidentifiedError("it holds an array of Python objects")
    yield array.dtype.str
    yield str(array.shape)
    yield array.tobytes()


def _hash(*parts: str | bytes) -> bytes:
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        digest.update(len(content).to_bytes(8, "little") + content)
    return digest.digest()


def _globals_of(code: CodeType) -> Iterator[str]:
    """Yield the global names that code, or code inside it, refers to."""
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield step.argval
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _globals_of(constant)


def _imports_of(code: CodeType) -> Iterator[str]:
    """Yield the names of modules that code imports when it runs."""
    steps = list(dis.get_instructions(code))
    for i, step in enumerate(steps):
        if step.opname == "IMPORT_NAME":
            if steps[i - 2].argval != 0:
                raise UnidentifiedError("it imports a module relative to its own")
            yield step.argval


def _is_installed(module: str) -> bool:
    try:
        _version(module)
    except UnidentifiedError:
        return False
    return True


@functools.cache
def _version(module: str) -> str:
    """Return the version of the installed package, or of Python, that a module belongs to."""
    top = (module or "").partition(".")[0]
    if top in sys.stdlib_module_names and top != "__main__":
        return sys.version
    if top not in ("", "__main__"):
        try:
            package = importlib.import_module(top)
        except Exception as error:
            raise UnidentifiedError(f"the module '{top}' cannot be imported: {error}") from None
        places = {sysconfig.get_path(key) for key in ("purelib", "platlib")}
        places |= {*site.getsitepackages(), site.getusersitepackages()}
        file = getattr(package, "__file__", None)
        if file and any(Path(file).is_relative_to(place) for place in places):
            version = getattr(package, "__version__", None)
            try:
                return str(version or importlib.metadata.version(top))
            except importlib.metadata.PackageNotFoundError:
                pass
    raise UnidentifiedError(
        f"it runs code of the module '{module}', which is not an installed package with a version"
    )
