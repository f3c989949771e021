"""The worked example of docs/add-a-dataset.md is a real package: installed, built and tested."""

from pathlib import Path

import pytest

from tests.conftest import fresh_environment
from tests.docs.blocks import parse_blocks, run_blocks
from tests.docs.test_blocks import INSTALLS

BLOCKS = parse_blocks(INSTALLS.read_text(encoding="utf-8"))
# pip installs what the page says, but fetches nothing: all dependencies are there already.
OFFLINE = {
    "PIP_NO_INDEX": "1", "PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0", "PYTHONPATH": "",
}  # fmt: skip


@pytest.fixture(scope="module")
def fresh_python(tmp_path_factory: pytest.TempPathFactory, wheel: Path) -> Path:
    """The Python of a fresh environment with graphxai-data; other packages are those from here."""
    return fresh_environment(tmp_path_factory.mktemp("fresh") / "venv", wheel)


def test_the_page_runs_in_a_fresh_environment(fresh_python: Path, tmp_path: Path) -> None:
    problems = run_blocks(BLOCKS, tmp_path, fresh_python, OFFLINE)
    assert not problems, problems[0]


def test_the_example_is_shorter_than_eighty_lines() -> None:
    files = [block for block in BLOCKS if block.kind == "file"]
    assert len(files) == 4
    lines = sum(len(block.text.splitlines()) for block in files)
    assert lines < 80
    assert f"four files, {lines} lines in all" in INSTALLS.read_text(encoding="utf-8")
