"""Pages about small builds, written once per session."""

from pathlib import Path

import pytest

from graphxai_data.building.build import build
from graphxai_data.report.page import write_report


@pytest.fixture(scope="session")
def small_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the root of small builds of every kind of graph; do not change them."""
    root = tmp_path_factory.mktemp("small")
    build("ba2motif", root=root, graphs=120)
    build("dihalo", root=root, graphs=180)
    build("mnist75sp-r23", root=root, graphs=260, rings=False)
    build("pattern", root=root, graphs=70, rings=False)
    return root


@pytest.fixture(scope="session")
def pages(small_root: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return a page about each build, with the shipped models."""
    folder = tmp_path_factory.mktemp("pages")
    return {
        path.name: write_report(path / "seed-0", out=folder / f"{path.name}.html")
        for path in sorted(small_root.iterdir())
        if path.is_dir()
    }
