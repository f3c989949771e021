"""Runs the blocks of one page, given as JSON on stdin: a process of its own, for their sake.

Python blocks share a namespace, shell blocks run with `bash -e`. The first block that fails, or
does not print what the page says, ends the run.
"""

import contextlib
import difflib
import io
import json
import subprocess
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any


def _python(block: dict[str, Any], namespace: dict[str, Any]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block["text"], f"<line {block['line']}>", "exec"), namespace)  # noqa: S102
    return printed.getvalue()


def _shell(block: dict[str, Any]) -> str:
    done = subprocess.run(["bash", "-e", "-c", block["text"]], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"exit code {done.returncode}: {done.stdout[-1000:]}{done.stderr}")
    return done.stdout


def _lines(text: str) -> list[str]:
    """Without the spaces that tables end lines with, and without empty lines around."""
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n").splitlines()


def _differences(shown: str, printed: str) -> str:
    """Empty if they agree; a line "…" on the page stands for any lines."""
    wanted, found = _lines(shown), _lines(printed)
    parts: list[list[str]] = [[]]
    for line in wanted:
        if line.strip() == "…":
            parts.append([])
        else:
            parts[-1].append(line)
    at, good = 0, True
    for i, part in enumerate(parts):
        starts = range(at, len(found) - len(part) + 1)
        if i == 0:
            starts = starts[:1]
        if i == len(parts) - 1:
            starts = starts[-1:]
        start = next((s for s in starts if found[s : s + len(part)] == part), None)
        if start is None or (len(parts) == 1 and len(part) != len(found)):
            good = False
            break
        at = start + len(part)
    return "" if good else "\n".join(difflib.unified_diff(wanted, found, "page", "printed"))


def main() -> None:
    """Run all blocks."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    printed = ""
    warnings.simplefilter("error")
    # torch-geometric still scripts some of its modules when it is imported.
    warnings.filterwarnings("ignore", "`torch.jit.script` is deprecated", DeprecationWarning)
    for block in json.load(sys.stdin):
        try:
            if block["kind"] == "file":
                Path(block["note"]).write_text(block["text"], encoding="utf-8")
            elif block["kind"] == "output":
                if found := _differences(block["text"], printed):
                    raise RuntimeError(f"the page shows something else:\n{found}")
            else:
                is_python = block["language"] == "python"
                printed = _python(block, namespace) if is_python else _shell(block)
        except BaseException:
            sys.exit(f"block at line {block['line']}:\n{block['text']}\n{traceback.format_exc()}")


if __name__ == "__main__":
    main()
