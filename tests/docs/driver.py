"""Run the blocks of one page, given as JSON on stdin, in a process of their own.

Python blocks share a namespace; shell blocks run with `bash -e`. The first block that fails, or
does not print what the page shows, ends the run.
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


def _run_python(block: dict[str, Any], namespace: dict[str, Any]) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block["text"], f"<line {block['line']}>", "exec"), namespace)  # noqa: S102
    return printed.getvalue()


def _run_shell(block: dict[str, Any]) -> str:
    result = subprocess.run(["bash", "-e", "-c", block["text"]], capture_output=True, text=True)
    if result.returncode:
        raise RuntimeError(f"exit code {result.returncode}: {result.stdout[-1000:]}{result.stderr}")
    return result.stdout


def _lines(text: str) -> list[str]:
    """Return lines without trailing spaces, and without empty lines at the start and end."""
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n").splitlines()


def _differences(shown: str, printed: str) -> str:
    """Return a diff, empty if the texts agree; a line "…" on the page stands for any lines."""
    expected, actual = _lines(shown), _lines(printed)
    parts: list[list[str]] = [[]]
    for line in expected:
        if line.strip() == "…":
            parts.append([])
        else:
            parts[-1].append(line)
    position, agree = 0, True
    for i, part in enumerate(parts):
        starts = range(position, len(actual) - len(part) + 1)
        if i == 0:
            starts = starts[:1]
        if i == len(parts) - 1:
            starts = starts[-1:]
        start = next((s for s in starts if actual[s : s + len(part)] == part), None)
        if start is None or (len(parts) == 1 and len(part) != len(actual)):
            agree = False
            break
        position = start + len(part)
    return "" if agree else "\n".join(difflib.unified_diff(expected, actual, "page", "printed"))


def main() -> None:
    """Run all blocks; exit with a message at the first that fails."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    printed = ""
    warnings.simplefilter("error")
    # torch-geometric still scripts some of its modules when it is imported.
    warnings.filterwarnings("ignore", "`torch.jit.script` is deprecated", DeprecationWarning)
    for block in json.load(sys.stdin):
        try:
            if block["kind"] == "file":
                path = Path(block["note"])
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(block["text"], encoding="utf-8")
            elif block["kind"] == "output":
                if differences := _differences(block["text"], printed):
                    raise RuntimeError(f"the page shows something else:\n{differences}")
            else:
                is_python = block["language"] == "python"
                printed = _run_python(block, namespace) if is_python else _run_shell(block)
        except BaseException:
            sys.exit(f"block at line {block['line']}:\n{block['text']}\n{traceback.format_exc()}")


if __name__ == "__main__":
    main()
