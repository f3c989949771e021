import io
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from click.testing import Result

from tests.conftest import CHECKOUT, importing_environment
from tests.docs.blocks import parse_blocks
from tests.fake_packages import write_package

CODE = '''
def mine(model, batch):
    """Degree, as a function of a model."""
    return batch.edge_index[1].bincount(minlength=batch.num_nodes)


def plain(batch):
    return batch.edge_index[1].bincount(minlength=batch.num_nodes)


def failing(model, batch):
    raise ZeroDivisionError("three\\nlines\\nlong")


def wrong(model, batch):
    return [1]


def hit(scores, mask):
    return float(mask[scores.argmax()])


def endless(scores, mask):
    return float("inf")
'''
EXPLAINERS = {"mine": "mine", "plain": "plain", "failing": "failing", "wrong": "wrong"}
QUICK = ("--set", "epochs=1", "--set", "hidden=8", "--seeds", "0-1", "--no-timing")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_package(
        tmp_path_factory.mktemp("site"), "evaluate_more", CODE, "evaluate-more", "0.5",
        explainers=EXPLAINERS | {"gone": "gone", "twin": "plain"},
        metrics={"hit": "hit", "endless": "endless"},
    )  # fmt: skip
    return write_package(folder, "twin", CODE, "twin", "7", explainers={"twin": "mine"})


@pytest.fixture
def run(
    site: Path,
    small_root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    cli: Callable[..., Result],
) -> Callable[..., Result]:
    monkeypatch.syspath_prepend(site)
    common = ("evaluate", "ba2motif", "--root", small_root, "--out", tmp_path / "runs")
    return lambda *arguments: cli(*common, *arguments)


def test_plugins_are_rows_and_columns_of_the_table(run: Callable[..., Result]) -> None:
    chosen = (*QUICK, "--model", "bcos-gin", "--explainer", "mine", "--explainer", "bcos")
    chosen += ("--explainer", "plain", "--explainer", "degree", "--metric", "hit")
    printed = run(*chosen)
    assert printed.exit_code == 0, printed.output
    header = next(line for line in printed.stdout.splitlines() if "explainer" in line)
    assert header.split()[-1] == "hit"
    table = pd.read_csv(io.StringIO(run(*chosen, "--csv").stdout))
    assert table.explainer.unique().tolist() == ["bcos", "degree", "mine", "plain"]
    assert table.groupby("explainer").model.first()["mine"] == "bcos-gin"
    means = table.groupby("explainer")[["jaccard", "hit"]].mean()
    assert means.loc["mine"].tolist() == means.loc["degree"].tolist()
    assert means.loc["plain"].tolist() == means.loc["degree"].tolist()
    line = next(line for line in printed.stdout.splitlines() if " mine " in line)
    assert line.split()[-3] == f"{means.loc['mine', 'hit']:.3f}"  # mean ± deviation
    whole = json.loads(run(*chosen, "--json").stdout)
    assert whole["metrics"] == {"hit": "evaluate-more 0.5"}
    assert [row["hit"] for row in whole["rows"]] == table.hit.tolist()


def test_files_and_sweeps_have_the_columns_too(run: Callable[..., Result], tmp_path: Path) -> None:
    one = (*QUICK, "--model", "bcos-gin", "--explainer", "mine")
    saved = run(*one, "--save-scores", tmp_path / "scores")
    assert saved.exit_code == 0, saved.output
    file = tmp_path / "scores" / "mine-bcos-gin-0.safetensors"
    files = run("--scores", file, "--metric", "hit")
    assert "hit" in files.stdout
    table = pd.read_csv(io.StringIO(run("--scores", file, "--metric", "hit", "--csv").stdout))
    assert table.set_index("explainer").loc["oracle", "hit"] == 1
    swept = run(*one, "--metric", "hit", "--sweep", "b=1,2")
    assert swept.exit_code == 0, swept.output
    header = next(line for line in swept.stdout.splitlines() if "jaccard" in line)
    assert (header.split()[0], header.split()[-1]) == ("b", "hit")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ["--explainer", "failing"], 1,
            "explainer 'failing' of package evaluate-more 0.5: ZeroDivisionError: three lines long",
        ),
        (["--explainer", "wrong"], 1, "explainer 'wrong' of package evaluate-more 0.5: node "),
        (["--explainer", "gone"], 2, "explainer 'gone' of package evaluate-more 0.5 cannot be imp"),
        (["--explainer", "twin"], 2, "'twin' is offered by package evaluate-more 0.5 and by packa"),
        (["--explainer", "plian"], 2, "unknown explainer 'plian'; did you mean 'plain'"),
        (
            ["--explainer", "bcos", "--metric", "endless"], 2,
            "metric 'endless' of package evaluate-more 0.5: scores of 'bcos', graph 0: expected a",
        ),
        (["--metric", "hits"], 2, "unknown metric 'hits'; did you mean 'hit'"),
        (["--metric", "f1"], 2, "metric 'f1': a column of this name exists already"),
    ],
)  # fmt: skip
def test_every_problem_of_a_plugin_is_one_line(
    arguments: list[str], code: int, message: str, run: Callable[..., Result]
) -> None:
    result = run(*QUICK, "--model", "bcos-gin", *arguments)
    assert result.exit_code == code
    assert message in result.stderr.splitlines()[-1]
    assert "Traceback" not in result.output


def test_the_packages_of_the_documentation_work(
    run: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for page in ("models.md", "metrics.md"):
        blocks = parse_blocks((CHECKOUT / "docs" / page).read_text(encoding="utf-8"))
        files = {block.note: block.text for block in blocks if block.kind == "file"}
        project = tomllib.loads(files["pyproject.toml"])["project"]
        ((group, names),) = project["entry-points"].items()
        targets = {name: target.partition(":")[2] for name, target in names.items()}
        module = next(iter(names.values())).partition(":")[0]
        code = files.get(f"{module}.py")
        if code is None:  # shown as a block that is run
            code = next(b.text for b in blocks if f"def {next(iter(targets.values()))}" in b.text)
            code = code[code.index("def ") : code.index("\n\n\ntable")]
        folder = write_package(
            tmp_path / page, module, code, project["name"], project["version"],
            **{group.removeprefix("graphxai_data."): targets},
        )  # fmt: skip
        monkeypatch.syspath_prepend(folder)
    result = run(*QUICK, "--model", "gin", "--explainer", "gradient-norm", "--explainer", "oracle",
                 "--metric", "first-hit", "--csv")  # fmt: skip
    assert result.exit_code == 0, result.output
    table = pd.read_csv(io.StringIO(result.stdout)).set_index("explainer")
    assert table.loc["gradient-norm", "plugin"].tolist() == ["my-explainers 1.0"] * 2
    assert table.loc["oracle", "first-hit"].tolist() == [1, 1]


def test_workers_find_plugins_themselves(site: Path, small_root: Path, tmp_path: Path) -> None:
    environment = importing_environment()
    environment["PYTHONPATH"] = os.pathsep.join([str(site), environment["PYTHONPATH"]])

    def evaluated(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "graphxai_data.cli", "evaluate", "ba2motif", *QUICK]
        command += ["--root", small_root, "--model", "bcos-gin", "--metric", "hit", "--csv"]
        return subprocess.run(
            [*map(str, command), *map(str, arguments)], capture_output=True, text=True,
            timeout=300, env=environment,
        )  # fmt: skip

    both = ("--explainer", "mine", "--explainer", "plain")
    workers = evaluated(*both, "--engine", "processes", "--jobs", 2, "--out", tmp_path / "workers")
    serial = evaluated(*both, "--out", tmp_path / "serial")
    assert workers.returncode == serial.returncode == 0, workers.stderr
    assert workers.stdout == serial.stdout
    assert (
        pd.read_csv(io.StringIO(serial.stdout)).explainer.tolist() == ["mine"] * 2 + ["plain"] * 2
    )
    failing = evaluated(
        "--explainer", "failing", "--engine", "processes", "--out", tmp_path / "failing"
    )
    assert failing.returncode == 1
    assert "explainer 'failing' of package evaluate-more 0.5: ZeroDivision" in failing.stderr
    assert "Traceback" not in failing.stderr
