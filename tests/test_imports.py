import re
import subprocess
import sys
from pathlib import Path

import pytest

import graphxai_data
from tests.conftest import run_python

PACKAGE = Path(graphxai_data.__file__).parent


@pytest.mark.parametrize(
    "code",
    [
        "import graphxai_data",
        "import graphxai_data.build",
        "from graphxai_data import build, verify, Recipe, Manifest, GraphRecord, ShardReader",
        "import graphxai_data.cli",
    ],
)
def test_no_torch_is_imported_before_it_is_needed(code: str) -> None:
    result = run_python(f"{code}\nimport sys\nprint('torch' in sys.modules)")
    assert result.stdout == "False\n", result.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["list"], ["build", "--help"]])
def test_help_and_list_import_neither_torch_nor_numpy(arguments: list[str]) -> None:
    code = (
        "import sys\nfrom graphxai_data.cli import main\n"
        f"main({arguments!r}, standalone_mode=False)\n"
        "print([m for m in ('torch', 'numpy', 'h5py') if m in sys.modules])"
    )
    assert run_python(code).stdout.splitlines()[-1] == "[]"


def test_build_evaluate_and_explain_are_functions_even_after_their_modules_were_imported() -> None:
    code = """
import graphxai_data.build, graphxai_data.evaluate, graphxai_data.explain
import graphxai_data
from graphxai_data import build, evaluate, explain
from graphxai_data.build import make_plan
import types
assert all(isinstance(f, types.FunctionType) for f in (build, evaluate, explain))
import graphxai_data.datasets.in_memory
assert all(getattr(graphxai_data, f.__name__) is f for f in (build, evaluate, explain))
print("good")
"""
    result = run_python(code)
    assert result.stdout == "good\n", result.stderr


def test_every_public_name_can_be_imported() -> None:
    for name in graphxai_data.__all__:
        assert getattr(graphxai_data, name) is not None
    assert set(dir(graphxai_data)) == set(graphxai_data.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        graphxai_data.nothing  # noqa: B018


def test_a_script_without_main_guard_can_build_with_many_processes(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "from graphxai_data import build\n"
        f"print(build('ba2motif', root={str(tmp_path)!r}, graphs=60, shard_size=20, jobs=2).graphs)"
    )
    result = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert result.stdout == "60\n"


def test_nothing_is_stored_or_loaded_as_code() -> None:
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for word in (
            "import pickle",
            "allow_pickle",
            "torch.save",
            "eval(",
            "exec(",
        ):
            assert word not in text, f"{path.name}: {word}"
        # weights_only: tensors and plain containers, never code.
        calls = re.findall(r"torch\.load\((.*?)\)", text, re.DOTALL)
        assert len(calls) == text.count("torch.load"), path.name
        assert all("weights_only=True" in call for call in calls), path.name
