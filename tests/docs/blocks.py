"""The code blocks of a Markdown page, and a way to run them as a reader would: in order.

What is done with a block stands in a comment on the line above its fence:

    (nothing)                     python and sh blocks are run
    <!-- output -->               what the block before prints, to the letter
    <!-- file: NAME -->           what the reader saves as NAME
    <!-- not run: REASON -->      nothing

Any other block is an error: nothing is left out without a word.
"""

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).parent.parent.parent
_DRIVER = Path(__file__).with_name("driver.py")
_FENCE = re.compile(r"^( *)(`{3,})(\w*)[^`\n]*\n(.*?)^\1\2[ ]*$", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile(r"<!-- (output|file|not run)(?:: *(.*?))? *-->[ ]*\n\Z")
RUNNABLE = ("python", "sh")


@dataclass(frozen=True)
class Block:
    """One fenced block.

    Attributes:
        line: of its fence in the page.
        language: what the fence says.
        text: between the fences.
        kind: "run", "output", "file" or "not run".
        note: the name of the file, or the reason.
    """

    line: int
    language: str
    text: str
    kind: str
    note: str = ""


def pages() -> list[Path]:
    """README.md and every Markdown page of the documentation."""
    return [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").rglob("*.md"))]


def blocks_of(text: str) -> list[Block]:
    """All fenced blocks of a page; a ValueError names the first that cannot be understood."""
    found = []
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
        if kind == "output" and not (found and found[-1].kind == "run"):
            raise ValueError(f"line {line}: output of what? no block that is run stands before it")
        found.append(Block(line, language, content, kind, note))
    if len(re.findall("^ *```", text, re.MULTILINE)) != 2 * len(found):
        raise ValueError("a fence is not closed, or not understood")
    return found


def run_blocks(blocks: list[Block], folder: Path) -> list[str]:
    """Run the blocks of a page in a folder, in one process; what went wrong, at most one thing."""
    steps = [vars(block) for block in blocks if block.kind != "not run"]
    environment = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("GRAPHXAI_", "PYTEST_", "COV_"))
    }
    environment |= {
        # The package of this checkout, and the commands of this environment.
        "PYTHONPATH": str(CHECKOUT),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "MPLBACKEND": "Agg",
        "OMP_NUM_THREADS": "1",
        "PYTHONIOENCODING": "utf-8",
        "COLUMNS": "200",
    }
    done = subprocess.run(
        [sys.executable, _DRIVER], input=json.dumps(steps), cwd=folder, env=environment,
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    if done.returncode:
        return [done.stderr[-4000:] or f"exit code {done.returncode} without a word"]
    return []
