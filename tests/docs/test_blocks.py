"""Every block of README.md and docs/ runs, or says why not; and a wrong block is noticed."""

from pathlib import Path

import pytest

from tests.conftest import CHECKOUT
from tests.docs.blocks import Block, pages, parse_blocks, run_blocks

# Run in an environment of its own: test_add_a_dataset.py.
INSTALLS = CHECKOUT / "docs" / "add-a-dataset.md"

# Exceptions must stay rare.
MOST_NOT_RUN = 13


def page_name(page: Path) -> str:
    return str(page.relative_to(CHECKOUT))


def pages_with_code() -> list[Path]:
    return [page for page in pages() if "```" in page.read_text(encoding="utf-8")]


@pytest.mark.parametrize("page", [p for p in pages_with_code() if p != INSTALLS], ids=page_name)
def test_the_blocks_of_a_page_run(page: Path, readers_folder: Path) -> None:
    blocks = parse_blocks(page.read_text(encoding="utf-8"))
    problems = run_blocks(blocks, readers_folder)
    assert not problems, problems[0]


def test_few_blocks_are_not_run_and_each_gives_a_reason() -> None:
    blocks = [
        (page_name(page), block)
        for page in pages_with_code()
        for block in parse_blocks(page.read_text(encoding="utf-8"))
    ]
    not_run = [(page, block) for page, block in blocks if block.kind == "not run"]
    assert len(not_run) <= MOST_NOT_RUN
    for page, block in not_run:
        assert len(block.note.split()) >= 3, f"{page}, line {block.line}: no reason"
    assert sum(block.kind == "run" for _, block in blocks) > 3 * len(not_run)


def make_page(*parts: str) -> str:
    return "\n".join(["# Page", *parts, ""])


PYTHON = "```python\n{}\n```"
SHELL = "```sh\n{}\n```"
OUTPUT = "<!-- output -->\n```text\n{}\n```"


@pytest.mark.parametrize(
    "parts",
    [
        [PYTHON.format("x = 1"), "Then:", PYTHON.format("assert x == 1")],
        [SHELL.format("echo 1 > a"), PYTHON.format("import os\nprint(os.path.getsize('a'))"),
         OUTPUT.format("2")],
        ["<!-- file: b.toml -->\n```toml\nb = 2\n```", SHELL.format("cat b.toml"),
         OUTPUT.format("b = 2")],
        [PYTHON.format("print('a', 1, 2, 'z', sep='\\n')"), OUTPUT.format("a\n…\nz")],
        ["<!-- not run: it would never end -->", PYTHON.format("while True: pass")],
    ],
)  # fmt: skip
def test_a_correct_page_passes(parts: list[str], tmp_path: Path) -> None:
    assert run_blocks(parse_blocks(make_page(*parts)), tmp_path) == []


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([PYTHON.format("x = 1"), PYTHON.format("1 / 0")], "ZeroDivisionError"),
        ([PYTHON.format("print(undefined)")], "NameError"),
        ([PYTHON.format("import warnings\nwarnings.warn('old')")], "UserWarning: old"),
        ([PYTHON.format("raise SystemExit(0)")], "SystemExit"),
        ([SHELL.format("false\necho fine")], "exit code 1"),
        ([SHELL.format("graphxai-data build dihallo")], "did you mean 'dihalo'?"),
        ([PYTHON.format("print(1)"), OUTPUT.format("2")], "shows something else"),
        ([PYTHON.format("print('a', 'b', sep='\\n')"), OUTPUT.format("a")], "something else"),
        ([PYTHON.format("print('a', 'b', sep='\\n')"), OUTPUT.format("…\na")], "something else"),
        ([SHELL.format("echo 1"), OUTPUT.format("1\n…\n2")], "shows something else"),
    ],
)
def test_a_wrong_page_fails(parts: list[str], message: str, tmp_path: Path) -> None:
    (problem,) = run_blocks(parse_blocks(make_page(*parts)), tmp_path)
    assert message in problem
    assert "block at line" in problem


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("```\nx\n```", "no language"),
        ("```text\nx\n```", "'text' is not run"),
        ("<!-- not run: -->\n```sh\nx\n```", "needs a name or a reason"),
        ("<!-- output -->\n```text\nx\n```", "output of what"),
        ("```python\nx", "not closed"),
    ],
)
def test_a_block_of_unknown_kind_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        parse_blocks(make_page(text))


def test_a_block_keeps_its_line_and_loses_its_indent() -> None:
    page = make_page("1. First:", "", "    ```python", "    if 1:", "        x = 2", "    ```")
    assert parse_blocks(page) == [Block(4, "python", "if 1:\n    x = 2\n", "run")]
