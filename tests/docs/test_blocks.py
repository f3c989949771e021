"""Every block of README.md and docs/ is run, or says why not; and the way of running them."""

from pathlib import Path

import pytest

from tests.docs.blocks import CHECKOUT, Block, blocks_of, pages, run_blocks

# A page may leave a block out for a reason; many would be none.
MOST_NOT_RUN = 12


def name_of(page: Path) -> str:
    return str(page.relative_to(CHECKOUT))


def with_code() -> list[Path]:
    return [page for page in pages() if "```" in page.read_text(encoding="utf-8")]


@pytest.mark.parametrize("page", with_code(), ids=name_of)
def test_the_blocks_of_a_page_run(page: Path, readers_folder: Path) -> None:
    blocks = blocks_of(page.read_text(encoding="utf-8"))
    problems = run_blocks(blocks, readers_folder)
    assert not problems, problems[0]


def test_few_blocks_are_not_run_and_each_says_why() -> None:
    left_out = [
        (name_of(page), block)
        for page in with_code()
        for block in blocks_of(page.read_text(encoding="utf-8"))
        if block.kind == "not run"
    ]
    assert len(left_out) <= MOST_NOT_RUN
    for page, block in left_out:
        assert len(block.note.split()) >= 3, f"{page}, line {block.line}: no reason"
    everything = [b for page in with_code() for b in blocks_of(page.read_text(encoding="utf-8"))]
    assert sum(b.kind == "run" for b in everything) > 3 * len(left_out)


def page_of(*parts: str) -> str:
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
def test_a_page_that_is_right_passes(parts: list[str], tmp_path: Path) -> None:
    assert run_blocks(blocks_of(page_of(*parts)), tmp_path) == []


@pytest.mark.parametrize(
    ("parts", "said"),
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
def test_a_page_that_is_wrong_fails(parts: list[str], said: str, tmp_path: Path) -> None:
    (problem,) = run_blocks(blocks_of(page_of(*parts)), tmp_path)
    assert said in problem
    assert "block at line" in problem


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("```\nx\n```", "no language"),
        ("```text\nx\n```", "'text' is not run"),
        ("<!-- not run: -->\n```sh\nx\n```", "needs a name or a reason"),
        ("<!-- output -->\n```text\nx\n```", "output of what"),
        ("```python\nx", "not closed"),
    ],
)
def test_a_block_that_says_nothing_of_itself_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        blocks_of(page_of(text))


def test_a_block_keeps_its_line_and_loses_its_indent() -> None:
    page = page_of("1. First:", "", "    ```python", "    if 1:", "        x = 2", "    ```")
    assert blocks_of(page) == [Block(4, "python", "if 1:\n    x = 2\n", "run")]
