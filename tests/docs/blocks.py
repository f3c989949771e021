"""Find the code blocks of a Markdown page, and run them in order, as a reader would.

A comment on the line above a block says what the block is:

    (no comment)                  code to run, in Python or sh
    <!-- output -->               exactly what the block before it prints
    <!-- file: NAME -->           a file that the reader saves as NAME
    <!-- not run: REASON -->      code that is not run

Any other block is an error, so that no code goes unchecked by mistake.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import CHECKOUT

_DRIVER = Path(__file__).with_name("driver.py")
_FENCE = re.compile(r"^( *)(`{3,})(\w*)[^`\n]*\n(.*?)^\1\2[ ]*$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!-- (output|file|not run)(?:: *(.*?))? *-->[ ]*\n\Z")
RUNNABLE = ("python", "sh")


@dataclass(frozen=True)
class Block:
    """One fenced block.

    Attributes:
        line: the line number of its opening fence.
        language: the language that the fence names.
        text: the lines between the fences.
        kind: "run", "output", "file" or "not run".
        note: the name of the file, or the reason why the block is not run.
    """

    line: int
    language: str
    text: str
    kind: str
    note: str = ""


def pages() -> list[Path]:
    """Return README.md and every Markdown page of the documentation."""
    return [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").rglob("*.md"))]


def parse_blocks(text: str) -> list[Block]:
    """Return all fenced blocks of a page; a ValueError names the first that is not valid."""
    blocks: list[Block] = []
    for fence in _FENCE.finditer(text):
        indent, _, language, content = fence.groups()
        line = text.count("\n", 0, fence.start()) + 1
        content = "".join(row.removeprefix(indent) for row in content.splitlines(keepends=True))
        comment = _COMMENT.search(text, 0, fence.start())
        kind, note = (comment[1], comment[2] or "") if comment else ("run", "")
        if kind == "run" and language not in RUNNABLE:
            raise ValueError(
                f"line {line}: a block of '{language or 'no language'}' is not run; say in a "
                "comment above it what it is: output, file, or not run"
            )
        if kind in ("file", "not run") and not note:
            raise ValueError(f"line {line}: '{kind}' needs a name or a reason")
        if kind == "output" and not (blocks and blocks[-1].kind == "run"):
            raise ValueError(f"line {line}: output of what? the block before it is not run")
        blocks.append(Block(line, language, content, kind, note))
    if len(re.findall("^ *```", text, re.MULTILINE)) != 2 * len(blocks):
        raise ValueError("a fence is not closed, or not valid")
    return blocks


def run_blocks(
    blocks: list[Block],
    folder: Path,
    python: Path = Path(sys.executable),
    settings: Mapping[str, str] | None = None,
) -> list[str]:
    """Run the blocks of a page in a folder, in one process; return the problem, if there is one.

    `python` is that of the virtual environment to use, `settings` are added to the environment.
    """
    steps = [vars(block) for block in blocks if block.kind != "not run"]
    environment = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("GRAPHXAI_", "PYTEST_", "COV_"))
    }
    environment |= {
        # Use the package of this checkout, and the commands of this virtual environment.
        "PYTHONPATH": str(CHECKOUT),
        "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}",
        "MPLBACKEND": "Agg",
        "OMP_NUM_THREADS": "1",
        "PYTHONIOENCODING": "utf-8",
        "COLUMNS": "200",
        **(settings or {}),
    }
    result = subprocess.run(
        [python, _DRIVER], input=json.dumps(steps), cwd=folder, env=environment,
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    if result.returncode:
        return [result.stderr[-4000:] or f"exit code {result.returncode} without a message"]
    return []
