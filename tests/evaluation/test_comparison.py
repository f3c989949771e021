import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import Result

from graphxai_data import GraphXAIDataset, evaluate
from graphxai_data.errors import InputError
from graphxai_data.evaluation.comparison import compare, paper_figures, sweep
from graphxai_data.evaluation.study import RESULTS
from graphxai_data.explain.files import ScoreFile
from graphxai_data.training.train import run_folder, train

SMALL = {"epochs": 2, "hidden": 8}
QUICK = ("bcos", "integrated-gradients", "gsat", "random", "oracle")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def dataset(small_root: Path) -> GraphXAIDataset:
    return GraphXAIDataset(small_root, "ba2motif")


def test_a_comparison_has_the_same_scores_as_evaluate(dataset: GraphXAIDataset, runs: Path) -> None:
    comparison = compare(dataset, None, QUICK, (0, 1), runs, changes=SMALL)
    rows = comparison.frame()
    models = ["bcos-gin"] * 2 + ["gin"] * 2 + ["gsat"] * 6 + ["-"] * 4
    assert rows.model.tolist() == models
    assert rows.seed.tolist() == [0, 1] * 7
    for seed in (0, 1):
        model, card = train(dataset, "bcos-gin", seed=seed, out=runs, changes=SMALL)
        expected = evaluate(dataset, ["bcos"], model).loc["bcos"]
        row = rows[(rows.explainer == "bcos") & (rows.seed == seed)].iloc[0]
        for key in ("jaccard", "auroc", "auroc_average", "auroc_pooled", "negative_winners"):
            assert row[key] == expected[key]
        assert row.f1 == card.scores["test"]["f1"]
        assert row.ms_per_graph > 0
    summary = {r["explainer"]: r for r in comparison.summary()}
    both = rows[rows.explainer == "bcos"].jaccard
    assert summary["bcos"]["jaccard"] == both.mean()
    assert summary["bcos"]["jaccard_std"] == pytest.approx(both.std())
    assert summary["bcos"]["paper"]["jaccard"] == 0.84
    assert summary["gsat-max"]["paper"]["jaccard"] == 0.57
    assert summary["random"]["paper"] == {}
    assert rows[rows.explainer == "random"].jaccard.nunique() == 2  # another draw for each seed


def test_measurements_are_saved_and_used_again(dataset: GraphXAIDataset, runs: Path) -> None:
    first = compare(dataset, None, QUICK, (0, 1), runs, changes=SMALL)
    reports: list[str] = []
    again = compare(
        dataset, None, QUICK, (0, 1), runs, changes=SMALL,
        progress=lambda done, total, what: reports.append(what),
    )  # fmt: skip
    for old, new in zip(first.rows, again.rows, strict=True):
        if old["model"] != "-":  # the floor is quick, so it is measured again
            assert json.dumps(new) == json.dumps(old)
    assert not reports
    forced: list[str] = []
    compare(
        dataset, ("bcos-gin",), ("bcos",), (0,), runs, changes=SMALL, force=True,
        progress=lambda done, total, what: forced.append(what),
    )  # fmt: skip
    assert forced
    path = run_folder(runs, "bcos-gin", "ba2motif", 0) / RESULTS
    saved = json.loads(path.read_text())
    saved["of"]["weights_sha256"] = "another"
    for text in (json.dumps(saved), "{", "[]"):  # another model, truncated, not an object
        path.write_text(text)
        reports.clear()
        compare(
            dataset, ("bcos-gin",), ("bcos",), (0,), runs, changes=SMALL, timing=False,
            progress=lambda done, total, what: reports.append(what),
        )  # fmt: skip
        assert reports


def test_json_and_csv_have_the_same_rows(dataset: GraphXAIDataset, runs: Path) -> None:
    comparison = compare(dataset, None, QUICK, (0, 1), runs, changes=SMALL)
    whole = json.loads(comparison.to_json())  # NaN would not be JSON
    table = pd.read_csv(io.StringIO(comparison.to_csv()))
    assert len(table) == len(whole["rows"]) == len(comparison.rows)
    assert table.jaccard.tolist() == [row["jaccard"] for row in whole["rows"]]
    assert whole["content_sha256"] == dataset.manifest.content_sha256
    assert whole["conditions"]["device"] == "cpu"


def test_every_explainer_runs_on_molecules_and_additive_edges_are_folded(
    small_root: Path, runs: Path
) -> None:
    dataset = GraphXAIDataset(small_root, "dihalo")
    changes = {**SMALL, "edges": "additive"}
    comparison = compare(
        dataset, ("bcos-gine",), seeds=(0,), out=runs, changes=changes, timing=False
    )
    rows = comparison.frame().set_index("explainer")
    assert set(rows.index) == {
        "bcos", "bcos-contrast", "bcos-folded", "bcos-input-x-gradient",
        "random", "degree", "halogen-closeness", "aryl-halogens", "like-pair", "di-halo-ring",
        "wl-log-odds-ball-2", "oracle",
    }  # fmt: skip
    assert rows.loc["bcos", "edge_share"] != 0
    assert rows.loc["bcos", "completeness_gap"] < 1e-4
    assert rows.loc["bcos-folded", "auroc"] != rows.loc["bcos", "auroc"]
    comparison = compare(
        dataset, ("gine", "gsat"), seeds=(0,), out=runs, changes=SMALL, timing=False
    )
    names = set(comparison.frame().explainer)
    assert names >= {"gnn-explainer-mean", "gnn-explainer-features", "gsat-sum", "saliency"}
    assert "bcos" not in names


def test_faithfulness_is_measured_with_floor_and_ceiling_for_each_model(
    dataset: GraphXAIDataset, runs: Path
) -> None:
    comparison = compare(
        dataset, ("bcos-gin",), ("bcos", "random", "oracle"), (0,), runs, changes=SMALL,
        timing=False, faithfulness=True,
    )  # fmt: skip
    rows = comparison.frame().set_index("explainer")
    assert rows.model.tolist() == ["bcos-gin"] * 3
    for key in ("fidelity_plus", "fidelity_minus", "characterisation", "retrained_accuracy"):
        assert rows[key].between(0, 1).all()
    assert set(comparison.curves) == {f"bcos-gin/{e}/0" for e in ("bcos", "random", "oracle")}
    assert len(comparison.curves["bcos-gin/bcos/0"]["fidelity_plus"]) == 9


def test_a_sweep_trains_every_value_in_its_own_folder(
    dataset: GraphXAIDataset, tmp_path: Path
) -> None:
    table = sweep(dataset, "bcos-gin", "b", (1.0, 2.0), (0, 1), tmp_path, changes=SMALL)
    assert table[["b", "seed"]].values.tolist() == [[1, 0], [1, 1], [2, 0], [2, 1]]
    assert (tmp_path / "b-1.0" / "bcos-gin-ba2motif" / "seed-0" / "model.toml").is_file()
    assert table.auroc.between(0, 1).all()


def test_only_the_models_that_are_needed_are_trained(
    dataset: GraphXAIDataset, tmp_path: Path
) -> None:
    compare(dataset, None, ("bcos", "random"), (0,), tmp_path, changes=SMALL, timing=False)
    assert [p.name for p in tmp_path.iterdir() if p.is_dir()] == ["bcos-gin-ba2motif"]
    nothing = compare(dataset, None, ("random",), (0,), tmp_path / "none", timing=False)
    assert len(nothing.rows) == 1
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"explainers": ("bcoss",)}, "unknown explainer 'bcoss'; did you mean 'bcos'"),
        ({"models": ("bcos-gim",)}, "unknown model 'bcos-gim'; did you mean 'bcos-gin'"),
        (
            {"models": ("gin",), "explainers": ("bcos",)},
            "explainer 'bcos' is not for 'ba2motif' with gin",
        ),
        ({"seeds": ()}, "seeds: expected at least one, got none"),
        ({"seeds": (-1,)}, "seed: expected a whole number"),
        ({"split": "tests"}, "split: expected one of"),
        ({"changes": {"bee": 2}}, "bee"),
    ],
)
def test_impossible_comparisons_are_refused_before_anything_is_trained(
    arguments: dict[str, object], message: str, dataset: GraphXAIDataset, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        compare(dataset, out=tmp_path, **arguments)  # type: ignore[arg-type]
    assert not list(tmp_path.glob("*-ba2motif/*/model.toml"))


def test_the_papers_figures_are_found_for_its_rows_only() -> None:
    assert paper_figures("mnist75sp-r23", "integrated-gradients-abs")["auroc"] == 0.92
    assert paper_figures("dihalo-decoy", "bcos") == {}  # not a dataset of the paper
    assert paper_figures("dihalo", "bcos")["jaccard"] == 0.96
    assert paper_figures("dihalo", "bcos-contrast") == {}
    assert paper_figures("nci1", "bcos") == {}


def test_the_command_line_compares(
    small_root: Path, tmp_path: Path, cli: Callable[..., Result], dataset: GraphXAIDataset
) -> None:
    common = [
        "evaluate",
        "ba2motif",
        "--root",
        small_root,
        "--out",
        tmp_path / "runs",
        "--seeds",
        "0-1",
    ]
    common += ["--set", "epochs=2", "--set", "hidden=8", "--no-timing"]
    quick = ["--explainer", "bcos", "--explainer", "random"]
    result = cli(*common, *quick, "--save-scores", tmp_path / "scores")
    assert result.exit_code == 0, result.output
    heading = result.stdout.splitlines()[0]
    assert heading == "ba2motif, test graphs; mean ± standard deviation over seeds 0-1"
    assert "ms/graph" not in result.stdout
    line = next(line for line in result.stdout.splitlines() if " bcos " in line)
    assert "0.84" in line
    assert "±" in line
    assert "training bcos-gin, seed 0" in result.stderr
    saved = sorted(p.name for p in (tmp_path / "scores").iterdir())
    names = ("bcos-bcos-gin-0", "bcos-bcos-gin-1", "random-none-0", "random-none-1")
    assert saved == [f"{name}.safetensors" for name in names]
    printed = json.loads(cli(*common, *quick, "--json").stdout)
    file = ScoreFile.load(tmp_path / "scores" / "bcos-bcos-gin-0.safetensors")
    scored = evaluate(dataset, {"file": file}, tmp_path / "runs" / "bcos-gin-ba2motif" / "seed-0")
    assert scored.loc["file", "jaccard"] == pytest.approx(printed["rows"][0]["jaccard"])
    table = pd.read_csv(io.StringIO(cli(*common, *quick, "--csv").stdout))
    assert table.explainer.tolist() == ["bcos", "bcos", "random", "random"]
    faithful = cli(*common, "--explainer", "bcos", "--faithfulness")
    assert "fidelity+" in faithful.stdout
    one = ["--model", "bcos-gin", "--explainer", "bcos", "--sweep", "b=1.5,2"]
    swept = cli(*common, *one, "--csv")
    assert np.unique(pd.read_csv(io.StringIO(swept.stdout)).b).tolist() == [1.5, 2]
    assert "1.5" in cli(*common, *one).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--csv", "--json"], "--csv and --json: expected one of them"),
        (["--sweep", "b"], "--sweep: expected KEY=V1,V2,…"),
        (["--sweep", "b=1,2"], "--sweep: give one --model and one --explainer with it"),
        (["--sweep", "b=1,,2"], "--sweep: expected KEY=V1,V2,…"),
        (
            ["--sweep", "b=1,x", "--model", "bcos-gin", "--explainer", "bcos"],
            "b: expected a finite number",
        ),
        (
            ["--sweep", "b=1,2", "--model", "gsat", "--explainer", "gsat"],
            "explainer: expected one row, got 'gsat'",
        ),
        (["--sweep", "b=1", "--faithfulness"], "--faithfulness cannot be combined with --sweep"),
        (["--scores", "a", "--explainer", "bcos"], "--explainer cannot be combined with --scores"),
        (["--scores", "a", "--device", "cpu"], "--device cannot be combined with --scores"),
        (["--explainer", "halogen-closeness"], "is for builds of dihalo and dihalo_pair only"),
        (["--explainer", "bcos-folded"], "is not for 'ba2motif'"),
        (
            ["--model", "deepsets", "--explainer", "gnn-explainer"],
            "explainer 'gnn-explainer-mean' is not for 'ba2motif' with deepsets",
        ),
        (["--model", "gsat", "--model", "gin", "--explainer", "gsat"], "model 'gin': none of the"),
        (["--seeds", "x"], "--seeds: expected a number"),
        (["--explainer", "nope"], "unknown explainer 'nope'"),
        (["--model", "nope"], "unknown model 'nope'"),
        (["--scores", "nope.safetensors"], "nope.safetensors: no such file"),
        (["--device", "nope"], "device: 'nope' cannot be used here"),
    ],
)
def test_bad_usage_is_one_clear_line(
    arguments: list[str], message: str, small_root: Path, tmp_path: Path, cli: Callable[..., Result]
) -> None:
    result = cli("evaluate", "ba2motif", "--root", small_root, "--out", tmp_path, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output


def test_saved_rows_grow_and_tables_do_not_depend_on_them(
    dataset: GraphXAIDataset, tmp_path: Path
) -> None:
    def run(**options: object) -> tuple[set[str], list[str]]:
        reports: list[str] = []
        comparison = compare(
            dataset, ("bcos-gin",), ("bcos", "bcos-contrast"), (0,), tmp_path, changes=SMALL,
            progress=lambda done, total, what: reports.append(what), **options,
        )  # fmt: skip
        return set(comparison.rows[0]), [what for what in reports if "training" not in what]

    plain, first = run(timing=False)
    assert "ms_per_graph" not in plain
    timed, second = run()
    faithful, third = run(timing=False, faithfulness=True)
    assert timed - plain == {
        "ms_per_graph", "ms_per_graph_batched", "ms_forward_batched", "timed_on", "timed_threads",
    }  # fmt: skip
    assert "retrained_accuracy" in faithful - plain
    valid, fourth = run(split="valid", timing=False)
    assert valid == plain
    assert all((first, second, third, fourth))
    for options, expected in (
        ({"timing": False}, plain),
        ({}, timed),
        ({"timing": False, "faithfulness": True}, faithful),
        ({"split": "valid", "timing": False}, plain),
    ):
        assert run(**options) == (expected, [])
    run(timing=False, save_scores=tmp_path / "scores")  # scores again; nothing is lost
    assert run(faithfulness=True) == (faithful | timed, [])


def test_times_are_taken_again_under_other_conditions(
    dataset: GraphXAIDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run() -> dict[str, object]:
        return compare(dataset, ("bcos-gin",), ("bcos",), (0,), tmp_path, changes=SMALL).rows[0]

    before = run()
    assert run() == before
    monkeypatch.setattr(
        "graphxai_data.evaluation.study.conditions",
        lambda model: {"timed_on": "cpu", "timed_threads": 99},
    )
    assert run()["ms_per_graph"] != before["ms_per_graph"]
