"""Builds that many tests share, and helpers to run the command line as a user does."""

import json
import os
import random
import shutil
import subprocess
import sys
import sysconfig
import venv
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
from graphxai_data.recipe import Recipe, find, shipped_names
from graphxai_data.sources import registry

CHECKOUT = Path(__file__).parent.parent
needs_proc = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux")


def offline_names() -> list[str]:
    """Return the recipes that need no download: all their raw inputs, if any, are shipped."""
    entries = registry()
    return [
        name
        for name in shipped_names()
        if not any(
            entries[source].urls or entries[source].elsewhere
            for source in Recipe.load(name).sources.values()
        )
    ]


# One recipe each of families with many recipes.
_REPRESENTATIVES = {"smarts": "benzene", "crippen": "crippen", "spmotif": "spmotif-90"}


def reference_names() -> list[str]:
    """Return the recipes whose full builds `.ci/run` makes.

    There is one half of a pair: the others have the same code. Pairs of digits take too long, and
    large families have representatives. The digests of 500 graphs of each recipe are tested in
    every run, and `pytest -m slow` builds all in full.
    """
    left_out = ("-pair-b", "-pair-both", "mnist75sp-pair-a", "-knn", "-gated", "-strokes")
    return [
        name
        for name in offline_names()
        if not name.endswith(left_out)
        and _REPRESENTATIVES.get(Recipe.load(name).generator, name) == name
    ]


def with_reference_build(*values: Any) -> Any:
    """Return parameters of a test that needs minutes of building; `.ci/run` runs these."""
    return pytest.param(*values, marks=(pytest.mark.slow, pytest.mark.reference))


class SharedBuilds:
    """Builds that all tests and all workers of pytest-xdist share; tests must not change them.

    A build is made when a test first asks for it.
    """

    def __init__(self, root: Path) -> None:
        self._root = root

    def root(self, name: str, graphs: int | None = None, rings: bool = False) -> Path:
        """Return a root that contains this build.

        Args:
            name: of a shipped recipe.
            graphs: the number of graphs; None means the recipe's, as in the reference build.
            rings: whether the build includes a RINGS measurement.
        """
        size = "reference" if graphs is None else f"{graphs}-graphs"
        root = self._root / (f"{size}-rings" if rings else size)
        root.mkdir(parents=True, exist_ok=True)
        finished = root / f"{name}.finished"
        with FileLock(root / f"{name}.lock"):
            if not finished.exists():
                engine = "processes" if graphs is None else "serial"
                build(name, root=root, graphs=graphs, engine=engine, rings=rings)
                finished.touch()
        return root

    def folder(self, name: str, graphs: int | None = None, rings: bool = False) -> Path:
        """Return the folder of a build; the arguments are those of `root`."""
        return self.root(name, graphs, rings) / name / "seed-0"


@pytest.fixture(scope="session")
def builds(shared_folder: Path) -> SharedBuilds:
    """Builds that many tests read."""
    return SharedBuilds(shared_folder)


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers of pytest-xdist share."""
    base = tmp_path_factory.getbasetemp()
    in_worker = "PYTEST_XDIST_WORKER" in os.environ
    return (base.parent if in_worker else base) / "shared"


@pytest.fixture(scope="session")
def wheel(shared_folder: Path) -> Path:
    """The wheel of this checkout, built once."""
    folder = shared_folder / "wheel"
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(shared_folder / "wheel.lock"):
        if not list(folder.glob("*.whl")):
            command = [sys.executable, "-m", "build", "--wheel", "--no-isolation"]
            subprocess.run([*command, "-o", folder, CHECKOUT], check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    return path


def fresh_environment(folder: Path, wheel: Path) -> Path:
    """Return the Python of a new virtual environment with the wheel.

    Only the dependencies of the outer environment are visible: a .pth file adds a folder to the
    path without running that folder's own .pth files, such as that of an editable install.
    """
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    install = [python, "-m", "pip", "install", "--no-deps", "--no-index", wheel]
    subprocess.run(install, check=True, capture_output=True)
    (site,) = folder.glob("lib/*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


@pytest.fixture(scope="session")
def reference_root(builds: SharedBuilds) -> Path:
    """Root with the builds of `reference_names`, which take minutes: only for slow tests."""
    (root,) = {builds.root(name, rings=True) for name in reference_names()}
    return root


@pytest.fixture(scope="session")
def motif_root(builds: SharedBuilds) -> Path:
    """Root with the reference builds of both BA-2Motif recipes, without RINGS."""
    (root,) = {builds.root(name) for name in ("ba2motif", "ba2motif-balanced")}
    return root


@pytest.fixture(scope="session")
def small_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Root with small builds to train on; tests must not change them."""
    root = tmp_path_factory.mktemp("small")
    for name, graphs in (("ba2motif", 120), ("dihalo", 90), ("pattern", 100)):
        build(name, root=root, graphs=graphs, engine="serial", rings=False)
    return root


@pytest.fixture(scope="session")
def root_of_small_build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Root that `small_build` is copied from."""
    root = tmp_path_factory.mktemp("small-build")
    build("ba2motif", root=root, graphs=40, shard_size=10, engine="serial")
    return root


@pytest.fixture
def small_build(tmp_path: Path, root_of_small_build: Path) -> Path:
    """Folder of a build of 40 graphs in four shards, with RINGS; tests may damage it."""
    shutil.copytree(root_of_small_build, tmp_path, dirs_exist_ok=True)
    return tmp_path / "ba2motif" / "seed-0"


@pytest.fixture
def cli() -> Callable[..., Result]:
    """Run `graphxai-data` in this process; an exception fails the test."""

    def run(*arguments: object) -> Result:
        result = CliRunner().invoke(main, [str(a) for a in arguments])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return run


@pytest.fixture
def recipe_file(tmp_path: Path) -> Callable[..., Path]:
    """Write a copy of a shipped recipe with some of its text replaced."""

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
    """Fail a test if it, or the code under test, changes a global random generator."""
    before = (random.getstate(), _numpy_state(), _torch_state())
    yield
    after = (random.getstate(), _numpy_state(), _torch_state())
    assert before[:2] == after[:2]
    assert before[2] is None or before[2] == after[2]


def _numpy_state() -> str:
    return repr(np.random.get_state())  # noqa: NPY002 - the global state is what is checked


def _torch_state() -> bytes | None:
    torch = sys.modules.get("torch")
    return None if torch is None else torch.get_rng_state().numpy().tobytes()


def importing_environment() -> dict[str, str]:
    """Return the environment of a process that can import the package and the tests.

    It has one thread, so that it can be forked.
    """
    paths = os.pathsep.join([str(CHECKOUT), *sys.path])
    return os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}


def run_python(code: str, *arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run code in a fresh interpreter; `options` are those of `subprocess.run`."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    options = {"timeout": 120, "env": importing_environment()} | options
    return subprocess.run(command, capture_output=True, text=True, **options)


def edit_manifest(folder: Path, **changes: Any) -> None:
    """Replace some entries of the manifest of a build."""
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def copy_build(source: Path, root: Path) -> Path:
    """Copy the folder of a build to another root, and return the new folder."""
    folder = root / source.parent.name / source.name
    shutil.copytree(source, folder)
    return folder
