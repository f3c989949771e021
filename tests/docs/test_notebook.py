"""The notebook is stored without outputs, and runs from top to bottom."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import CHECKOUT

NOTEBOOK = CHECKOUT / "docs" / "tutorial.ipynb"

# In a process of its own: a kernel's client brings an event loop and threads of its own.
RUN = """
import sys, nbformat
from nbclient import NotebookClient
notebook = nbformat.read(sys.argv[1], as_version=4)
NotebookClient(notebook, timeout=120, resources={"metadata": {"path": sys.argv[2]}}).execute()
nbformat.write(notebook, sys.argv[3])
"""


def test_the_notebook_is_stored_without_outputs() -> None:
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(code) >= 6
    for cell in code:
        assert cell["outputs"] == []
        assert cell["execution_count"] is None
    assert set(notebook["metadata"]) == {"kernelspec", "language_info"}


def test_the_notebook_runs_from_top_to_bottom(readers_folder: Path, tmp_path: Path) -> None:
    for package in ("nbclient", "ipykernel", "nbformat"):
        pytest.importorskip(package, reason=f"a kernel needs {package}, of the extra test")
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GRAPHXAI_")}
    environment |= {"PYTHONPATH": str(CHECKOUT), "OMP_NUM_THREADS": "1"}
    environment.pop("MPLBACKEND", None)  # figures show themselves, as they do for a reader
    command = [sys.executable, "-c", RUN, NOTEBOOK, readers_folder, tmp_path / "run.ipynb"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]
    cells = json.loads((tmp_path / "run.ipynb").read_text())["cells"]
    shown = [
        kind for cell in cells for out in cell.get("outputs", []) for kind in out.get("data", {})
    ]
    assert sum(kind.startswith("image/") for kind in shown) >= 3
    assert "text/html" in shown
