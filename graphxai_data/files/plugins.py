"""Plug-ins: what other packages offer by entry points, and what scripts register.

A group of entry points maps names to objects:

    graphxai_data.generators    subclasses of `graphxai_data.Generator`
    graphxai_data.explainers    functions of a model and a batch, or of a batch
    graphxai_data.metrics       functions of scores [n] and mask [n] of one graph

Nothing is imported before it is used by its name.
"""

import logging
import re
import sys
import traceback
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, nullcontext, redirect_stdout
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from graphxai_data.errors import CheckFailedError, GraphXAIDataError, InputError, nearest

log = logging.getLogger(__name__)


def is_name(text: str) -> bool:
    """Return whether a text can name a dataset or a plug-in: it is safe as the name of a folder."""
    return re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,63}", text) is not None


class PluginError(InputError):
    """A plug-in is missing, cannot be imported, is here in another version, or is not unique."""


@dataclass(frozen=True)
class Origin:
    """Where a plug-in comes from: package and version, both empty if a script registered it."""

    what: str  # such as "generator"
    name: str
    package: str = ""
    version: str = ""

    @property
    def words(self) -> str:
        """Return package and version for people, or how else the plug-in came here."""
        return f"{self.package} {self.version}" if self.package else "registered by a script"

    def __str__(self) -> str:
        end = f"of package {self.words}" if self.package else f"({self.words})"
        return f"{self.what} '{self.name}' {end}"


class Group:
    """The plug-ins of one group of entry points, and those registered in this process.

    Args:
        group: name of the group of entry points.
        what: what its members are, such as "generator".
        shipped: names that plug-ins may not take.
    """

    def __init__(self, group: str, what: str, shipped: Collection[str]) -> None:
        self._group, self._what, self._shipped = group, what, shipped
        self.registered: dict[str, Any] = {}

    def register(self, name: str, value: Any) -> None:
        """Add a plug-in to this process; the same class or function can be registered again."""
        if not (isinstance(name, str) and is_name(name)):
            raise InputError(
                f"{self._what} {name!r}: expected a name of 1 to 64 of a-z, 0-9, '-', '_'"
            )
        if name in self._shipped:
            raise InputError(
                f"{self._what} '{name}' comes with graphxai-data; choose another name for yours"
            )
        if installed := _installed(self._group).get(name):
            raise InputError(
                f"{self._what} '{name}' is that of package {_package(installed[0])}; choose "
                "another name for yours"
            )
        known = self.registered.get(name)
        if known is not None and _path(known) != _path(value):
            raise InputError(
                f"{self._what} '{name}' is registered already, as {_path(known)}; choose another "
                f"name for {_path(value)}"
            )
        self.registered[name] = value

    def adopt(self, registered: Mapping[str, Any]) -> None:
        """Take over what was registered in another process."""
        self.registered.update(registered)

    def names(self) -> list[str]:
        """Return the names of all plug-ins, installed or registered."""
        taken = self._shipped
        return sorted({n for n in (*_installed(self._group), *self.registered) if n not in taken})

    def modules(self) -> dict[str, list[str]]:
        """Return the modules of installed plug-ins by package and version; none is imported."""
        modules: dict[str, list[str]] = {}
        for entries in _installed(self._group).values():
            for entry in entries:
                modules.setdefault(_package(entry), []).append(entry.module)
        return modules

    def offers(self, name: str, value: Any) -> bool:
        """Return whether an installed package offers this class or function by a name."""
        path = value.__module__, value.__qualname__
        return path in [
            (entry.module, entry.attr) for entry in _installed(self._group).get(name, [])
        ]

    def problems(self) -> dict[str, str]:
        """Return, by name, a sentence about each plug-in that cannot be used."""
        problems = {}
        for name, entries in _installed(self._group).items():
            if name in self._shipped:
                problems[name] = (
                    f"package {_package(entries[0])} offers {self._what} '{name}', which comes "
                    "with graphxai-data; the package's is ignored"
                )
            elif len(entries) > 1 or name in self.registered:
                problems[name] = self._conflict(name, entries)
        return problems

    def origin(self, name: str) -> Origin:
        """Return where a plug-in comes from; a `PluginError` if it is unknown or not unique."""
        entries = _installed(self._group).get(name, [])
        if not entries and name not in self.registered:
            _installed_on.cache_clear()  # it may have been installed since
            entries = _installed(self._group).get(name, [])
        if len(entries) > 1 or (entries and name in self.registered):
            raise PluginError(self._conflict(name, entries))
        if entries:
            return Origin(self._what, name, *_package(entries[0]).split(" "))
        if name in self.registered:
            return Origin(self._what, name)
        end = nearest(name, (*self._shipped, *self.names()))
        if end.startswith("known"):
            end += "; one of a plug-in has to be installed or registered first"
        raise PluginError(f"unknown {self._what} '{name}'; {end}")

    def load(self, name: str) -> Any:
        """Return a plug-in, imported if need be; a `PluginError` if that fails."""
        origin = self.origin(name)
        if name in self.registered:
            return self.registered[name]
        (entry,) = _installed(self._group)[name]
        try:
            with redirect_stdout(sys.stderr):  # as in `blamed`
                return entry.load()
        except (Exception, SystemExit) as error:  # whatever the import of foreign code raises
            raise PluginError(
                f"{origin} cannot be imported: {described(error)}; "
                f"repair or uninstall {origin.package}"
            ) from error

    def _conflict(self, name: str, entries: list[EntryPoint]) -> str:
        packages = [f"package {_package(entry)}" for entry in entries]
        packages += ["this process, by register"] if name in self.registered else []
        return f"{self._what} '{name}' is offered by {' and by '.join(packages)}; keep one of them"


@contextmanager
def blamed(origin: Origin | None, keep: type[GraphXAIDataError] | tuple[()] = ()) -> Iterator[None]:
    """Let every error inside name the plug-in that it comes from; None for our own code.

    What a plug-in prints goes to stderr: it must not get between results on stdout. Errors of the
    kind `keep` name what is wrong already.
    """
    try:
        with nullcontext() if origin is None else redirect_stdout(sys.stderr):
            yield
    except GraphXAIDataError as error:
        if origin is None or isinstance(error, keep) or str(error).startswith(str(origin)):
            raise
        raise type(error)(f"{origin}: {error}") from error
    except (Exception, SystemExit) as error:  # whatever foreign code raises
        if origin is None:
            raise
        raise CheckFailedError(f"{origin}: {described(error)}") from error


def checked_texts(value: Any, what: str) -> list[str]:
    """Return the list of texts that foreign code returned, or raise a `CheckFailedError`."""
    if not isinstance(value, list):
        kind = type(value).__name__
        raise CheckFailedError(f"{what} returned {kind}, expected a list of texts")
    return [str(text) for text in value]


def described(error: BaseException) -> str:
    """Return type and text of an error of foreign code, with the file and line it comes from."""
    text = f"{type(error).__name__}: {error}"
    ours = Path(__file__).parent.parent
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        of_import = any(part.startswith("importlib") for part in path.parts)
        if path.is_file() and ours not in path.parents and not of_import:
            return f"{text} ({path.parent.name}/{path.name}, line {frame.lineno})"
    return text


def _installed(group: str) -> dict[str, list[EntryPoint]]:
    """Return the entry points of a group by name: more than one if packages compete for a name."""
    return _installed_on(group, tuple(sys.path))


@lru_cache(maxsize=16)
def _installed_on(group: str, path: tuple[str, ...]) -> dict[str, list[EntryPoint]]:
    """Return `_installed`; reading the metadata of all packages takes a while, so it is cached."""
    by_name: dict[str, list[EntryPoint]] = {}
    for entry in entry_points(group=group):
        by_name.setdefault(entry.name, []).append(entry)
    return {name: sorted(by_name[name], key=_package) for name in sorted(by_name)}


def _package(entry: EntryPoint) -> str:
    """Return name and version of the package that offers an entry point."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "unknown 0"


def _path(value: Any) -> str:
    return f"{getattr(value, '__module__', '?')}.{getattr(value, '__qualname__', value)}"
