import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from graphxai_data.recipe import shipped_names
from tests.conftest import edit_manifest

Cli = Callable[..., Result]


def _one_clear_line(result: Result, exit_code: int, *fragments: str) -> None:
    """Assert the contract for bad input: exit code, one line on stderr, nothing on stdout."""
    assert result.exit_code == exit_code, result.output
    lines = [line for line in result.stderr.splitlines() if line.strip()]
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("Error: ")
    for fragment in fragments:
        assert fragment in lines[0]
    assert result.stdout == ""


def test_list_shows_every_recipe(cli: Cli) -> None:
    result = cli("list")
    assert result.exit_code == 0
    for name in shipped_names():
        assert name in result.stdout
    rows = json.loads(cli("list", "--json").stdout)
    assert [row["name"] for row in rows] == shipped_names()
    assert {row["name"]: row["graphs"] for row in rows}["ba2motif"] == 1000


def test_build_verify_and_info_agree(cli: Cli, tmp_path: Path) -> None:
    built = cli("build", "ba2motif", "--root", tmp_path)
    folder = tmp_path / "ba2motif" / "seed-0"
    assert built.exit_code == 0
    assert "matches data/digests.toml" in built.stdout
    assert str(folder) in built.stdout
    shown = cli("info", folder).stdout
    assert shown.startswith(built.stdout)
    assert [line.split()[0] for line in shown[len(built.stdout) :].splitlines()] == [
        "nodes",
        "degrees",
    ]
    verified = cli("verify", folder)
    assert verified.exit_code == 0
    assert verified.stdout == f"{folder}: whole\n"
    proven = cli("verify", "--full", folder)
    assert proven.stdout == f"{folder}: whole, every graph proven and reproduced\n"


def test_json_is_the_manifest_with_folder_reference_and_rings(cli: Cli, tmp_path: Path) -> None:
    built = cli("build", "ba2motif", "--root", tmp_path, "--graphs", 20, "--json")
    folder = tmp_path / "ba2motif" / "seed-0"
    manifest = json.loads((folder / "manifest.json").read_text())
    reference = "none pinned for this recipe, seed and number of graphs"
    measured = {
        key: json.loads((folder / f"{key}.json").read_text()) for key in ("rings", "floors")
    }
    expected = manifest | {"folder": str(folder), "reference": reference} | measured
    assert json.loads(built.stdout) == expected
    assert json.loads(cli("info", folder, "--json").stdout) == expected
    verified = json.loads(cli("verify", folder, "--json").stdout)
    assert verified == {"folder": str(folder), "full": False, "problems": []}


def test_a_build_without_reference_says_so(cli: Cli, tmp_path: Path) -> None:
    result = cli("build", "ba2motif", "--root", tmp_path, "--graphs", 20)
    assert "none pinned for this recipe, seed and number of graphs" in result.stdout


def test_root_is_the_option_else_the_environment_else_data(tmp_path: Path) -> None:
    def run(*arguments: str, **environment: str) -> None:
        command = [sys.executable, "-m", "graphxai_data.cli", "build", "ba2motif", "--graphs", "10"]
        clean = {k: v for k, v in os.environ.items() if k != "GRAPHXAI_DATA_ROOT"}
        subprocess.run(
            [*command, *arguments], cwd=tmp_path, env=clean | environment, check=True,
            capture_output=True,
        )  # fmt: skip

    run("--root", "option", GRAPHXAI_DATA_ROOT="environment")
    run(GRAPHXAI_DATA_ROOT="environment")
    run()
    for root in ("option", "environment", "data"):
        assert (tmp_path / root / "ba2motif/seed-0/manifest.json").is_file()


def test_progress_goes_to_stderr_and_results_to_stdout(tmp_path: Path) -> None:
    command = ["build", "ba2motif", "--graphs", "30", "--root", str(tmp_path), "--json"]
    result = subprocess.run(
        [sys.executable, "-m", "graphxai_data.cli", *command],
        capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL,
        env=os.environ | {"FORCE_COLOR": "1", "TTY_COMPATIBLE": "1"},
    )  # fmt: skip
    assert json.loads(result.stdout)["graphs"] == 30
    assert "Building ba2motif" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        (["ba3motif"], ["unknown dataset 'ba3motif'; did you mean 'ba2motif'?"]),
        (["nothing-like-it"], ["unknown dataset", "known: alkane-carbonyl, amide, ba2motif"]),
        (["none.toml"], ["none.toml: no such recipe file"]),
        (["[/x].toml"], ["[/x].toml: no such recipe file"]),
        (["ba2motif", "--engine", "tcp://127.0.0.1:abc"], ["unknown engine"]),
        (["ba2motif", "--engine", "tcp://..:1"], ["no Dask scheduler answers"]),
        (["ba2motif", "--engine", f"tcp://{'a' * 300}:1"], ["no Dask scheduler answers"]),
        (["ba2motif", "--engine", "tcp://127.0.0.1:9"], ["no Dask scheduler answers"]),
        (["ba2motif", "--seed", "-1"], ["seed: expected a whole number from 0", "got -1"]),
        (["ba2motif", "--seed", str(2**70)], ["seed: expected a whole number from 0"]),
        (["ba2motif", "--graphs", "0"], ["graphs: expected a whole number from 1"]),
        (["ba2motif", "--graphs", str(10**20)], ["graphs: expected a whole number from 1"]),
        (["ba2motif", "--shard-size", "0"], ["shard_size: expected a whole number from 1"]),
        (["ba2motif", "--jobs", "0"], ["jobs: expected a whole number from 1"]),
        (["ba2motif", "--engine", "spark"], ["unknown engine 'spark'", "tcp://host:8786"]),
        (["ba2motif", "--source", "zinc"], ["--source: expected ID=PATH, got 'zinc'"]),
        (["ba2motif", "--source", "zinc=x"], ["no source named 'zinc'; it takes none"]),
    ],
    ids=str,
)
def test_bad_arguments_get_one_clear_line_and_exit_2(
    cli: Cli, tmp_path: Path, arguments: list[str], fragments: list[str]
) -> None:
    root = tmp_path / "root"
    _one_clear_line(cli("build", *arguments, "--root", root), 2, *fragments)
    assert not root.exists()


def test_a_bad_recipe_gets_one_clear_line_and_exit_2(
    cli: Cli, tmp_path: Path, recipe_file: Callable[..., Path]
) -> None:
    path = recipe_file(("graphs = 1000", "grafs = 1000"))
    result = cli("build", path, "--root", tmp_path)
    _one_clear_line(result, 2, f"{path}: unknown key 'params.grafs'; did you mean 'graphs'?")


@pytest.mark.parametrize("option", [["--seed", "x"], ["--nonsense"], []])
def test_clicks_own_usage_errors_exit_2_without_traceback(cli: Cli, option: list[str]) -> None:
    result = cli("build", *(["ba2motif", *option] if option else []))
    assert result.exit_code == 2
    assert "Error: " in result.stderr
    assert "Traceback" not in result.stderr


def test_a_foreign_folder_gets_one_clear_line_and_exit_2(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "ba2motif/seed-0").mkdir(parents=True)
    (tmp_path / "ba2motif/seed-0/notes.txt").write_text("mine")
    result = cli("build", "ba2motif", "--root", tmp_path)
    _one_clear_line(result, 2, "exists but is not a graphxai-data build", "choose another --root")


def test_a_root_that_cannot_be_written_gets_one_clear_line_and_exit_2(
    cli: Cli, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    result = cli("build", "ba2motif", "--root", tmp_path / "file")
    _one_clear_line(result, 2, "choose a --root that you can write to")


def test_another_build_in_the_folder_gets_one_clear_line_and_exit_2(
    cli: Cli, small_build: Path
) -> None:
    result = cli("build", "ba2motif", "--root", small_build.parent.parent)
    _one_clear_line(result, 2, "holds another build (graphs 40, asked for 1000)")


@pytest.mark.parametrize("command", ["verify", "info"])
def test_a_folder_without_a_build_gets_one_clear_line_and_exit_2(
    cli: Cli, tmp_path: Path, command: str
) -> None:
    for folder in (tmp_path, tmp_path / "nowhere", Path(__file__)):
        _one_clear_line(cli(command, folder), 2, "not a graphxai-data build", "no manifest.json")


def test_info_on_a_damaged_manifest_gets_one_clear_line_and_exit_1(
    cli: Cli, small_build: Path
) -> None:
    edit_manifest(small_build, schema_version=99)
    _one_clear_line(cli("info", small_build), 1, "schema version 99, expected 2")
    edit_manifest(small_build, schema_version=2, statistics={"nodes_mean": "many"})
    _one_clear_line(cli("info", small_build), 1, "manifest.json")
    (small_build / "manifest.json").write_text("{")
    _one_clear_line(cli("info", small_build), 1, "not valid JSON")


@pytest.mark.parametrize("damage", ["missing", "truncated", "foreign"])
def test_a_damaged_build_is_reported_by_verify_and_not_replaced_by_build(
    cli: Cli, small_build: Path, damage: str
) -> None:
    path = small_build / "shard-00002.h5"
    if damage == "missing":
        path.unlink()
    elif damage == "truncated":
        path.write_bytes(path.read_bytes()[:1000])
    else:
        path.write_text("not HDF5")
    result = cli("verify", small_build)
    assert result.exit_code == 1
    assert str(path) in result.stdout
    assert "1 problem found" in result.stderr
    root = small_build.parent.parent
    again = cli("build", "ba2motif", "--root", root, "--graphs", 40, "--shard-size", 10)
    _one_clear_line(again, 1, str(path))


def test_a_terminal_without_unicode_works(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "graphxai_data.cli"]
    for arguments in (["list"], ["build", "ba2motif", "--graphs", "9", "--root", str(tmp_path)]):
        subprocess.run([*command, *arguments], env=environment, check=True, capture_output=True)


def test_a_build_that_differs_from_the_reference_exits_1_every_time(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphxai_data.manifest.reference_digest", lambda manifest: "0" * 64)
    for _ in range(2):
        result = cli("build", "ba2motif", "--graphs", 20, "--root", tmp_path)
        assert result.exit_code == 1
        assert "data/digests.toml" in result.stderr


def test_help_lists_every_option_and_exit_code(cli: Cli) -> None:
    assert "0 good, 1 a check failed, 2 bad usage or input" in cli("--help").stdout
    text = cli("build", "--help").stdout
    for option in ("--seed", "--root", "--jobs", "--engine", "--graphs", "--shard-size",
                   "--source", "--no-rings", "--json"):  # fmt: skip
        assert option in text
