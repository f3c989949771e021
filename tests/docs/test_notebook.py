"""The notebook is stored without outputs, and runs from top to bottom."""

import json
import os
from pathlib import Path

import pytest

from tests.conftest import CHECKOUT, run_python

NOTEBOOK = CHECKOUT / "docs" / "tutorial.ipynb"

# In a process of its own: the client of a kernel starts an event loop and threads.
RUN_NOTEBOOK = """
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
    environment.pop("MPLBACKEND", None)  # Jupyter's own, which shows figures in the notebook
    path = tmp_path / "run.ipynb"
    result = run_python(RUN_NOTEBOOK, NOTEBOOK, readers_folder, path, env=environment, timeout=300)
    assert result.returncode == 0, result.stderr[-4000:]
    outputs = [
        out for cell in json.loads(path.read_text())["cells"] for out in cell.get("outputs", [])
    ]
    types = [mime_type for output in outputs for mime_type in output.get("data", {})]
    assert sum(mime_type.startswith("image/") for mime_type in types) >= 3
    assert "text/html" in types
