"""Builds that many tests share, and helpers to run the command line as a user does."""

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# One thread per process: the workers of pytest-xdist share the cores. Set before NumPy and torch
# are imported, which read it once.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest
import rich.console  # noqa: F401 - it draws from `random` when it is imported, and only then
from click.testing import CliRunner, Result
from filelock import FileLock

from graphxai_data.building.build import build
from graphxai_data.cli import main
from graphxai_data.recipe import Recipe, shipped_names
from graphxai_data.sources import registry


def offline_names() -> list[str]:
    """Recipes that need no download: all raw inputs, if any, are shipped."""
    known = registry()
    return [
        name
        for name in shipped_names()
        if not any(
            known[source].urls or known[source].elsewhere
            for source in Recipe.load(name).sources.values()
        )
    ]


def with_reference_build(*values: Any) -> Any:
    """Return parameters of a test that needs minutes of building; `.ci/run` runs these."""
    return pytest.param(*values, marks=(pytest.mark.slow, pytest.mark.reference))


class SharedBuilds:
    """Builds that all tests and all workers of pytest-xdist share; not to be changed.

    Each is made when it is first asked for.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def root(self, name: str, graphs: int | None = None, rings: bool = False) -> Path:
        """Return a root that has this build, without RINGS unless asked for.

        Args:
            name: of a shipped recipe.
            graphs: how many; the recipe's number if None, as in the reference build.
            rings: measure RINGS.
        """
        size = "reference" if graphs is None else f"{graphs}-graphs"
        root = self._root / (f"{size}-rings" if rings else size)
        root.mkdir(parents=True, exist_ok=True)
        whole = root / f"{name}.whole"
        with FileLock(root / f"{name}.lock"):
            if not whole.exists():
                engine = "processes" if graphs is None else "serial"
                build(name, root=root, graphs=graphs, engine=engine, rings=rings)
                whole.touch()
        return root

    def folder(self, name: str, graphs: int | None = None, rings: bool = False) -> Path:
        """Return the folder of a build; arguments as for `root`."""
        return self.root(name, graphs, rings) / name / "seed-0"


@pytest.fixture(scope="session")
def builds(tmp_path_factory: pytest.TempPathFactory) -> SharedBuilds:
    """Builds that many tests read."""
    base = tmp_path_factory.getbasetemp()
    in_worker = "PYTEST_XDIST_WORKER" in os.environ
    return SharedBuilds((base.parent if in_worker else base) / "shared")


@pytest.fixture(scope="session")
def reference_root(builds: SharedBuilds) -> Path:
    """Root with the reference builds of all recipes that need no download; minutes: for `slow`."""
    roots = {builds.root(name, rings=True) for name in offline_names()}
    (root,) = roots
    return root


@pytest.fixture(scope="session")
def motif_root(builds: SharedBuilds) -> Path:
    """Root with the reference builds of both BA-2Motif recipes, without RINGS."""
    (root,) = {builds.root(name) for name in ("ba2motif", "ba2motif-balanced")}
    return root


@pytest.fixture(scope="session")
def small_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Root with small builds to train on; not to be changed."""
    root = tmp_path_factory.mktemp("small")
    for name, graphs in (("ba2motif", 120), ("dihalo", 90), ("pattern", 100)):
        build(name, root=root, graphs=graphs, engine="serial", rings=False)
    return root


@pytest.fixture
def small_build(tmp_path: Path) -> Path:
    """Folder of a fresh build of 40 graphs in four shards; tests may damage it."""
    build("ba2motif", root=tmp_path, graphs=40, shard_size=10, engine="serial")
    return tmp_path / "ba2motif" / "seed-0"


@pytest.fixture
def cli() -> Callable[..., Result]:
    """Run `graphxai-data` in this process; a traceback is a failure of the test."""

    def run(*arguments: object) -> Result:
        result = CliRunner().invoke(main, [str(a) for a in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


@pytest.fixture
def recipe_file(tmp_path: Path) -> Callable[..., Path]:
    """Write a copy of a shipped recipe with some of its text replaced."""
    from graphxai_data.recipe import find

    def write(*replacements: tuple[str, str], name: str = "ba2motif") -> Path:
        text = find(name).read_text(encoding="utf-8")
        for old, new in replacements:
            assert old in text
            text = text.replace(old, new)
        path = tmp_path / "my.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture(autouse=True)
def global_random_state_untouched() -> Iterator[None]:
    """No test, and so no code under test, may touch a global random generator."""
    before = (random.getstate(), _numpy_state(), _torch_state())
    yield
    after = (random.getstate(), _numpy_state(), _torch_state())
    assert before[:2] == after[:2]
    assert before[2] is None or before[2] == after[2]


def _numpy_state() -> str:
    return repr(np.random.get_state())  # noqa: NPY002 - it is the global state that is looked at


def _torch_state() -> bytes | None:
    torch = sys.modules.get("torch")
    return None if torch is None else torch.get_rng_state().numpy().tobytes()


def run_python(code: str, *arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh interpreter."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


def edit_manifest(folder: Path, **changes: Any) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def copy_build(source: Path, root: Path) -> Path:
    folder = root / source.parent.name / source.name
    shutil.copytree(source, folder)
    return folder
