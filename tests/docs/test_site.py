"""The site builds without a warning, and its pages load nothing from other servers."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT

pytest.importorskip("material", reason="the site needs mkdocs-material, of the extra test")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the built site."""
    folder = tmp_path_factory.mktemp("site")
    # mkdocs-material warns about the future of mkdocs, which has nothing to do with this site.
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder]
    result = subprocess.run(command, cwd=CHECKOUT, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "WARNING" not in result.stderr, result.stderr
    return folder


def test_every_page_is_on_the_site(site: Path) -> None:
    for page in (CHECKOUT / "docs").glob("*.md"):
        name = "index.html" if page.stem == "index" else f"{page.stem}/index.html"
        assert (site / name).is_file()
    assert (site / "tutorial.ipynb").is_file()


def test_no_page_loads_anything_from_another_server(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        urls = re.findall(r'<(?:script|img|iframe)[^>]* src="?(https?:[^" >]+)', text)
        urls += re.findall(r'<link[^>]* rel="?(?:stylesheet|preconnect)[^>]*(https?:[^" >]+)', text)
        assert not urls, page


def test_the_site_draws_the_layers(site: Path) -> None:
    page = (site / "architecture" / "index.html").read_text(encoding="utf-8")
    assert '<pre class="mermaid"><code>flowchart LR' in page


def test_every_link_of_the_readme_has_a_target(site: Path) -> None:
    readme = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)\s]+)\)", readme)
    assert len(links) > 20
    for link in links:
        path, _, anchor = link.partition("#")
        assert (CHECKOUT / path).exists(), link
        if anchor:
            page = site / Path(path).stem / "index.html"
            assert f'id="{anchor}"' in page.read_text(encoding="utf-8"), link
