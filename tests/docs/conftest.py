"""The folder that a reader of the documentation works in."""

import shutil
from pathlib import Path

import pytest

from graphxai_data.building.build import build
from tests.docs.blocks import CHECKOUT

# What the README's first command, and its first example, leave in ./data.
BUILT = ("dihalo", "ba2motif")


@pytest.fixture(scope="session")
def built_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds that blocks would make first; each takes seconds, and pages share them."""
    root = tmp_path_factory.mktemp("built")
    for name in BUILT:
        build(name, root=root)
    return root


@pytest.fixture
def readers_folder(tmp_path: Path, built_root: Path) -> Path:
    """A fresh folder with a checkout's `recipes/`, and the builds in `data/`."""
    folder = tmp_path / "reader"
    folder.mkdir()
    (folder / "recipes").symlink_to(CHECKOUT / "recipes")
    shutil.copytree(built_root, folder / "data")
    return folder
