"""The identity of a transform: a digest that changes if its values change, or the code it runs.

Code of installed packages is known by their version, other code by its bytecode and by all that
it refers to. What a function reads from files, the network or a random generator is not seen.
"""

import builtins
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
from collections import OrderedDict, defaultdict
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

# What may reach any code or value, by a name that the bytecode does not show.
_REACH_ALL = (
    eval, exec, compile, globals, locals, vars, __import__, importlib.import_module,
    importlib.__import__, sys.modules,
)  # fmt: skip
_REACH_ALL_NAMES = {"__import__", "import_module", "__globals__", "f_globals", "__builtins__"}
# Values whose content is read below: an object of a subclass may hold more.
_MAPPINGS: tuple[type[Any], ...] = (defaultdict, OrderedDict, dict)
_SEQUENCES: tuple[type[Any], ...] = (list, tuple)
_SETS: tuple[type[Any], ...] = (set, frozenset)
_SCALARS: tuple[type[Any], ...] = (str, bytes, int, float)


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
        _refuse_if_it_reaches_all(thing)
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
        yield functools.partial, lambda p: self._all((p.func, p.args, p.keywords, vars(p)))
        yield CodeType, self._of_code
        yield (staticmethod, classmethod), lambda method: self._all((type(method), method.__func__))
        yield property, lambda value: self._all((value.fget, value.fset, value.fdel))
        yield Enum, lambda member: self._all((type(member), vars(member)))
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
        if _is_installed(cls.__module__) and not any(map(_is_of_user, vars(cls).values())):
            yield _version(cls.__module__)
            return
        yield from self._all((type(cls), *cls.__mro__[1:]))
        for name, value in vars(cls).items():
            if name not in _IDLE and not isinstance(value, _SLOT):
                yield name
                yield self.digest(value)

    def _of_function(self, function: FunctionType) -> Iterator[str | bytes]:
        # Not __module__, __qualname__: functools.wraps copies them from another function.
        module, code = function.__globals__.get("__name__") or "", function.__code__
        installed = _is_installed(module) and _is_in_installed_file(code)
        if installed:
            yield f"{module}.{code.co_qualname}"
            yield _version(module)
            if not function.__closure__ and "<locals>" not in code.co_qualname:
                yield self.digest(getattr(function, "__wrapped__", None))
                return
        yield self.digest(code)
        yield from self._all((function.__defaults__, function.__kwdefaults__, vars(function)))
        for cell in function.__closure__ or ():
            try:
                content = cell.cell_contents
            except ValueError:
                yield "an empty cell"
            else:
                yield self.digest(content)
        if not installed:
            yield from self._of_globals(function)

    def _of_globals(self, function: FunctionType) -> Iterator[str | bytes]:
        attributes = set(_names_of(function.__code__))
        if names := attributes & _REACH_ALL_NAMES:
            raise UnidentifiedError(f"it calls {min(names)}, which may run anything")
        for name in sorted(set(_globals_of(function.__code__))):
            yield name
            if name in function.__globals__:
                value = function.__globals__[name]
                yield self.digest(value)
                if isinstance(value, ModuleType):
                    _refuse_members(value, attributes)
            else:
                _refuse_if_it_reaches_all(vars(builtins).get(name))

    def _of_code(self, code: CodeType) -> Iterator[str | bytes]:
        for imported in _imports_of(code):
            yield imported
            yield _version(imported)
            _refuse_members(importlib.import_module(imported), {*code.co_names})
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
        # The methods of the base, because those of a subclass may hide something.
        kinds = (*_MAPPINGS, *_SEQUENCES, *_SETS, *_SCALARS, object)
        base: Any = next(kind for kind in kinds if isinstance(thing, kind))
        if _has_hidden_state(type(thing), base):
            kind = type(thing).__name__
            raise UnidentifiedError(f"it holds an object of type {kind}, which has no digest")
        if base in _MAPPINGS:
            for key, value in base.items(thing):
                yield from self._all((key, value))
        elif base in _SEQUENCES:
            yield from self._all(base.__iter__(thing))
        elif base in _SETS:
            yield from sorted(self._all(base.__iter__(thing)))
        elif base in _SCALARS:
            yield base.__repr__(thing)
        if base is defaultdict:
            yield self.digest(vars(defaultdict)["default_factory"].__get__(thing))
        for name, value in getattr(thing, "__dict__", {}).items():
            yield name
            yield self.digest(value)
        for cls in type(thing).__mro__:
            for name, slot in _slots(cls).items():
                yield f"{cls.__qualname__}.{name}"
                try:
                    content = slot.__get__(thing)
                except AttributeError:
                    yield "an empty slot"
                else:
                    yield self.digest(content)


class _Slotted:
    __slots__ = ("a",)


_SLOT = type(vars(_Slotted)["a"])
_POINTER = tuple.__itemsize__


def _has_hidden_state(cls: type, base: type) -> bool:
    """Return whether objects of a class hold more than `__dict__`, slots and what `base` holds."""
    if cls is base and base is not object:
        return False
    slots = sum(len(_slots(parent)) for parent in cls.__mro__)
    pointers = slots + (cls.__dictoffset__ != 0) + (cls.__weakrefoffset__ != 0)
    return cls.__basicsize__ > base.__basicsize__ + pointers * _POINTER or (
        base is object and not cls.__dictoffset__ and not slots
    )


def _slots(cls: type) -> dict[str, Any]:
    """Return the slots that a class adds, private ones by their mangled names.

    A slot whose descriptor was replaced is missing here, and thus is hidden state.
    """
    if "__slots__" not in vars(cls):
        return {}
    return {name: value for name, value in vars(cls).items() if isinstance(value, _SLOT)}


def _refuse_if_it_reaches_all(thing: object) -> None:
    if any(thing is one for one in _REACH_ALL):
        name = getattr(thing, "__name__", "sys.modules")
        raise UnidentifiedError(f"it calls {name}, which may run anything")


def _refuse_members(module: ModuleType, names: set[str]) -> None:
    """Refuse a module if one of these names of it may run anything."""
    for name in sorted(names & vars(module).keys()):
        _refuse_if_it_reaches_all(vars(module)[name])


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


def _names_of(code: CodeType) -> Iterator[str]:
    """Yield the names of globals and attributes in code, and in code inside it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_of(constant)


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


def _is_in_installed_file(code: CodeType) -> bool:
    """Return whether code is of a package or of Python; such code may have been generated."""
    return code.co_filename.startswith("<") or any(
        Path(code.co_filename).is_relative_to(place) for place in (*_places(), *_OF_PYTHON)
    )


def _is_of_user(value: object) -> bool:
    """Return whether this is a function that a user put into a class of a package."""
    if not isinstance(value, FunctionType):
        return False
    return value.__globals__.get("__name__") == "__main__" or not _is_in_installed_file(
        value.__code__
    )


_OF_PYTHON = {sysconfig.get_path(key) for key in ("stdlib", "platstdlib")}


@functools.cache
def _places() -> set[str]:
    """Return the folders of installed packages."""
    places = {sysconfig.get_path(key) for key in ("purelib", "platlib")}
    return places | {*site.getsitepackages(), site.getusersitepackages()}


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
        file = getattr(package, "__file__", None)
        if file and any(Path(file).is_relative_to(place) for place in _places()):
            version = getattr(package, "__version__", None)
            try:
                return str(version or importlib.metadata.version(top))
            except importlib.metadata.PackageNotFoundError:
                pass
    raise UnidentifiedError(
        f"it runs code of the module '{module}', which is not an installed package with a version"
    )
