"""The folder that a reader of the documentation works in."""

import os
import shutil
from pathlib import Path

import pytest

from tests.conftest import SharedBuilds
from tests.docs.blocks import CHECKOUT

# What the README's first command, and its first example, leave in ./data.
BUILT = ("dihalo", "ba2motif")


@pytest.fixture(scope="session")
def built_root(builds: SharedBuilds) -> Path:
    """Builds that blocks would make first; each takes seconds, and pages share them."""
    (root,) = {builds.root(name, rings=True) for name in BUILT}
    return root


@pytest.fixture
def readers_folder(tmp_path: Path, built_root: Path) -> Path:
    """A fresh folder with a checkout's `recipes/`, and the builds in `data/`."""
    folder = tmp_path / "reader"
    folder.mkdir()
    (folder / "recipes").symlink_to(CHECKOUT / "recipes")
    for name in BUILT:
        # Links instead of copies: nothing writes into a file of a build, files are replaced.
        shutil.copytree(built_root / name, folder / "data" / name, copy_function=os.link)
    return folder
