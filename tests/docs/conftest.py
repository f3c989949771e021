"""The folder that a reader of the documentation works in."""

import shutil
from pathlib import Path

import pytest

from tests.conftest import SharedBuilds
from tests.docs.blocks import CHECKOUT

# The builds that the README's first command and first example write to ./data.
BUILT = ("dihalo", "ba2motif")


@pytest.fixture(scope="session")
def built_root(builds: SharedBuilds) -> Path:
    """Root with the builds that most pages need."""
    (root,) = {builds.root(name, rings=True) for name in BUILT}
    return root


@pytest.fixture
def readers_folder(tmp_path: Path, built_root: Path) -> Path:
    """A fresh folder with `recipes/` as in a checkout, and the builds in `data/`."""
    folder = tmp_path / "reader"
    folder.mkdir()
    (folder / "recipes").symlink_to(CHECKOUT / "recipes")
    for name in BUILT:
        shutil.copytree(built_root / name, folder / "data" / name)
    return folder
