import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from graphxai_data import GraphXAIDataset, build, load_model
from graphxai_data.drawing.graphs import draw_graph
from graphxai_data.errors import CheckFailedError, InputError
from graphxai_data.evaluation import paper_figures as figures
from graphxai_data.evaluation import reproduce as module
from graphxai_data.evaluation.evaluate import Row
from graphxai_data.evaluation.reproduce import BUDGETS, Budget, reproduce, run_cell
from graphxai_data.evaluation.reproduction import (
    PARTS,
    Cell,
    Reproduction,
    prediction_rows,
    sweep_rows,
)
from graphxai_data.progress import with_time_left
from graphxai_data.training.checkpoint import read_card
from tests.generators.test_nci1 import tu_files, written

QUICK = {"epochs": 2, "hidden": 8}


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = {"ba2motif": 60, "molhiv": 60, "dihalo": 90}
    budget = Budget(graphs, (0, 1), ("ba2motif",), QUICK)
    monkeypatch.setitem(BUDGETS, "small", budget)


def places(folder: Path) -> dict[str, Path]:
    return {"root": folder / "data", "out": folder / "runs", "results": folder / "results"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Reproduction]:
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(BUDGETS, "small", Budget({"ba2motif": 60}, (0, 1), ("ba2motif",), QUICK))
        return folder, reproduce(datasets=["ba2motif"], **places(folder))


def test_rows_have_our_value_the_papers_and_the_difference(
    whole: tuple[Path, Reproduction],
) -> None:
    _, report = whole
    assert [row["model"] for row in report.predictions] == ["bcos-gin", "gin", "gsat"]
    for row in report.predictions:
        assert (row["paper"], row["seeds"]) == (1.0, 2)
        assert row["difference"] == pytest.approx(row["f1"] - 1)
        assert row["seconds"] > 0
    by_name = {row["explainer"]: row for row in report.explanations}
    assert by_name["bcos"]["paper"]["jaccard"] == 0.84
    assert by_name["bcos"]["difference"]["jaccard"] == pytest.approx(
        by_name["bcos"]["jaccard"] - 0.84
    )
    assert by_name["gsat-mean"]["seeds"] == by_name["random"]["seeds"] == 2
    assert by_name["oracle"]["jaccard"] == 1
    bcos = by_name["bcos"]
    assert bcos["seconds"] == pytest.approx(bcos["ms_per_graph"] * 6 * 2 / 1000)
    assert [row["b"] for row in report.sweep] == [1, 1.5, 2, 2.5, 3]
    assert report.sweep[0]["accuracy_paper"] == 0.726
    for row in report.sweep:
        assert row["auroc_difference"] == pytest.approx(row["auroc"] - row["auroc_paper"])
        assert 0 <= row["jaccard"] <= 1
        assert row["seconds"] > 0
    assert report.missing == 0


def test_the_markdown_has_the_same_numbers_as_the_json(
    whole: tuple[Path, Reproduction],
) -> None:
    folder, report = whole
    saved = json.loads((folder / "results" / "report.json").read_text())
    assert saved["predictions"][0]["f1"] == report.predictions[0]["f1"]
    text = (folder / "results" / "report.md").read_text()
    row = report.predictions[0]
    assert f"| `ba2motif` | bcos-gin | {row['f1']:.3f} ± {row['f1_std']:.3f} | 1.00 |" in text
    assert f"`{report.builds['ba2motif']}`" in text
    assert "Not finished" not in text
    for name in report.figures:
        assert (folder / "results" / name).stat().st_size > 1000
    assert {Path(name).suffix for name in report.figures} == {".png", ".svg"}
    assert {Path(n).stem for n in report.figures} == {"sensitivity-to-b", "qualitative-ba2motif"}


def test_a_stopped_run_goes_on_without_repeating_finished_cells(
    tmp_path: Path, whole: tuple[Path, Reproduction]
) -> None:
    class StoppedError(Exception):
        pass

    def stop(done: int, total: int, what: str) -> None:
        if done == 3 and not what.startswith("building"):
            raise StoppedError

    with pytest.raises(StoppedError):
        reproduce(["table 2"], ["ba2motif"], **places(tmp_path), progress=stop)
    text = (tmp_path / "results" / "report.md").read_text()
    assert "Not finished: 3 cells are missing" in text
    finished = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("model.toml")}
    assert len(finished) == 3
    reports: list[tuple[int, int, str]] = []
    again = reproduce(
        ["table 2"], ["ba2motif"], **places(tmp_path), progress=lambda *args: reports.append(args)
    )
    assert all(path.stat().st_mtime_ns == time for path, time in finished.items())
    steps = dict.fromkeys((done, total) for done, total, _ in reports)
    assert list(steps) == [(i, 6) for i in range(6)]
    assert [what for done, _, what in reports if done == 3] == [
        "table 2: gin on ba2motif, seed 1",
        *(f"table 2: gin on ba2motif, seed 1: epoch {epoch} of 2" for epoch in (1, 2)),
    ]
    _, once = whole
    assert [row["f1"] for row in again.predictions] == [row["f1"] for row in once.predictions]


def test_figures_have_the_same_bytes_again(
    tmp_path: Path, whole: tuple[Path, Reproduction]
) -> None:
    folder, report = whole
    again = reproduce(
        ["figure b", "figure qualitative"], ["ba2motif"], root=folder / "data",
        out=folder / "runs", results=tmp_path,
    )  # fmt: skip
    assert set(again.figures) == set(report.figures)
    for name in again.figures:
        assert (tmp_path / name).read_bytes() == (folder / "results" / name).read_bytes(), name


def test_a_dataset_without_raw_files_is_left_out_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing could be done: molhiv: 'ogbg-molhiv' is neither"):
        reproduce(["table 2"], ["molhiv"], **places(tmp_path))
    report = reproduce(["table 2"], ["molhiv", "ba2motif"], **places(tmp_path))
    assert {row["dataset"] for row in report.predictions} == {"ba2motif"}
    assert report.left_out[0].startswith("molhiv: 'ogbg-molhiv' is neither shipped")
    assert report.left_out[1:] == [
        "seeds: 2 instead of the paper's 5",
        "ba2motif: 60 of its 1,000 graphs",
    ]
    text = (tmp_path / "results" / "report.md").read_text()
    assert "- molhiv: 'ogbg-molhiv' is neither shipped nor downloadable" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"parts": ["table 4"]}, "unknown part 'table 4'; did you mean 'table 3'?"),
        ({"datasets": ["dihallo"]}, "unknown dataset 'dihallo'; did you mean 'dihalo'?"),
        ({"datasets": ["dihalo-decoy"]}, "unknown dataset 'dihalo-decoy'"),
        (
            {"parts": ["table 3"], "datasets": ["nci1"]},
            "dataset 'nci1' is not in table 3; there are ba2motif, dihalo, mnist75sp-r23",
        ),
        (
            {"parts": ["figure b"], "datasets": ["dihalo"]},
            "dataset 'dihalo' is not in figure b with this budget; try --budget paper; there are b",
        ),
        ({"configuration": "papr"}, "unknown configuration 'papr'; did you mean 'paper'?"),
        ({"sources": {"nci": "x"}}, "unknown source 'nci'; did you mean 'nci1'?"),
        ({"budget": "smal"}, "unknown budget 'smal'; did you mean 'small'?"),
        ({"seeds": [-1]}, "seed: expected"),
        ({"seeds": []}, "seeds: expected at least one"),
        ({"sources": {"nci1": "/nowhere"}}, "--source nci1=/nowhere: no such file or folder"),
        ({"device": "nonsense"}, "device: 'nonsense' cannot be used"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_written(
    arguments: dict[str, object], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        reproduce(**places(tmp_path), **arguments)  # type: ignore[arg-type]
    assert not list(tmp_path.iterdir())


def test_results_that_cannot_be_written_are_an_error_at_once(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("a file")
    with pytest.raises(InputError, match="--results"):
        reproduce(["table 2"], ["ba2motif"], **places(tmp_path))
    assert not (tmp_path / "runs").exists()


def test_a_build_of_another_size_is_refused(tmp_path: Path) -> None:
    build("ba2motif", root=tmp_path / "data", graphs=60, rings=False)
    with pytest.raises(InputError, match="a build of 60 graphs, expected 1000 for this budget"):
        reproduce(["table 2"], ["ba2motif"], budget="paper", **places(tmp_path))


def test_a_training_that_diverges_is_left_out_and_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_sometimes(cell: Cell, *args: Any, **options: Any) -> list[Row]:
        if (cell.model, cell.seed) == ("gin", 1):
            raise CheckFailedError("the loss is not finite")
        return run_cell(cell, *args, **options)

    monkeypatch.setattr(module, "run_cell", fail_sometimes)
    report = reproduce(["table 2"], ["ba2motif"], **places(tmp_path))
    assert {row["model"]: row["seeds"] for row in report.predictions} == {
        "bcos-gin": 2, "gin": 1, "gsat": 2,
    }  # fmt: skip
    assert "table 2: gin on ba2motif, seed 1: the loss is not finite" in report.left_out


def test_a_stopped_rerun_keeps_the_complete_report_and_its_figures(
    whole: tuple[Path, Reproduction],
) -> None:
    folder, _ = whole
    saved = {path: path.read_bytes() for path in (folder / "results").iterdir()}
    assert len(saved) == 6

    def stop(done: int, total: int, what: str) -> None:
        if done == 15:  # some cells of the sweep are done
            assert what.startswith("figure b")
            raise KeyboardInterrupt

    # The same parts in another order, and one of them twice, are the same report.
    with pytest.raises(KeyboardInterrupt):
        reproduce([*PARTS[::-1], PARTS[0]], ["ba2motif"], **places(folder), progress=stop)
    assert {path: path.read_bytes() for path in (folder / "results").iterdir()} == saved


def test_an_unreadable_report_is_replaced(tmp_path: Path) -> None:
    for text in ("[" * 200_000, "{", "[]", ""):
        (tmp_path / module.NUMBERS).write_text(text)
        assert module._read_report(tmp_path) == {}


@pytest.mark.parametrize("missing", ["x", [], -1, None])
def test_an_earlier_report_with_an_invalid_count_is_replaced(missing: object) -> None:
    report = Reproduction("small", "default", ["table 2"], [0], {}, missing=3)
    before = json.loads(report.to_json())
    assert module._missing_in(before, report) == 3
    assert module._missing_in(before | {"missing": missing}, report) == math.inf


def test_the_papers_configuration_is_trained_in_a_folder_of_its_own(tmp_path: Path) -> None:
    report = reproduce(["table 2"], ["ba2motif"], [0], "small", "paper", **places(tmp_path))
    assert report.configuration == "paper"
    folder = tmp_path / "runs" / "small" / "paper" / "bcos-gin-ba2motif" / "seed-0"
    assert (read_card(folder).configuration, read_card(folder).training.loss) == ("paper", "ce")
    text = (tmp_path / "results" / "report.md").read_text()
    assert "configuration `paper` of the models" in text


def test_the_time_left_is_guessed_from_the_cells_that_took_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reports: list[tuple[int, int, str]] = []
    clock = iter([0.0, 0.1, 600.0, 1800.0])  # the start, and the end of each of three cells
    monkeypatch.setattr("graphxai_data.progress.time.monotonic", lambda: next(clock))
    progress = with_time_left(lambda *report: reports.append(report), [1.0, 1.0, 1.0, 4.0])
    for done in range(4):
        progress(done, 4, "training")
    # The first cell was done earlier. The second took 10 minutes, the third 20.
    assert reports == [
        (0, 4, "training"), (1, 4, "training"), (2, 4, "training, about 50 min left"),
        (3, 4, "training, about 60 min left"),
    ]  # fmt: skip


def test_the_figure_of_the_sweep_has_our_curves_and_the_papers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[figures.Figure] = []
    monkeypatch.setattr(figures, "_save", lambda figure, *_: drawn.append(figure) or [])
    results = {}
    for b in (2.0, 1.0):
        rows = {
            "ba2motif": {"accuracy": b / 4, "auroc": b / 5, "seconds": 1.0},
            "molhiv": {"roc_auc": b / 6, "seconds": 1.0},
        }
        for dataset, row in rows.items():
            results[Cell("figure b", dataset, "bcos-gin", 0, b)] = [row]
    table = sweep_rows(results)
    assert [(row["dataset"], row["b"]) for row in table] == [
        ("ba2motif", 1), ("ba2motif", 2), ("molhiv", 1), ("molhiv", 2),
    ]  # fmt: skip
    figures.draw_sweep(table, tmp_path)
    accuracy, auroc = drawn[0].axes
    assert [0.752, 0.789] in [list(line.get_ydata()) for line in accuracy.lines]
    assert [text.get_text() for text in drawn[0].legends[0].get_texts()] == [
        "ba2motif (accuracy)", "molhiv (ROC AUC)", "the paper",
    ]  # fmt: skip
    assert {line.get_color() for line in auroc.lines} == {figures._COLOURS["ba2motif"]}
    assert [list(line.get_ydata()) for line in accuracy.lines if len(line.get_ydata()) == 2][
        :1
    ] == [[0.25, 0.5]]
    assert [0.726, 1.0] in [list(line.get_ydata()) for line in accuracy.lines]
    assert [0.47, 0.94] in [list(line.get_ydata()) for line in auroc.lines]


def test_the_sweep_has_predictions_only_if_there_is_no_rationale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(BUDGETS, "small", Budget({"nci1": 60}, (0, 1), ("nci1",), QUICK))
    (tmp_path / "raw").mkdir()
    sources = {"nci1": written(tmp_path / "raw", tu_files(60))}
    report = reproduce(["figure b"], ["nci1"], **places(tmp_path), sources=sources)
    assert [(row["b"], row["predictions"], row["seeds"]) for row in report.sweep] == [
        (b, "f1", 2) for b in (1, 1.5, 2, 2.5, 3)
    ]
    for row in report.sweep:
        runs = tmp_path / "runs" / "small" / "sweep" / f"b-{row['b']}" / "bcos-gin-nci1"
        scores = [read_card(runs / f"seed-{seed}").scores["test"]["f1"] for seed in (0, 1)]
        assert row["f1"] == pytest.approx(sum(scores) / 2)
        assert row["f1_difference"] == pytest.approx(row["f1"] - row["f1_paper"])
        assert "auroc" not in row
        assert row["seconds"] > 0
    text = (tmp_path / "results" / "report.md").read_text()
    row = report.sweep[2]
    assert f"| `nci1` | 2 | F1 | {row['f1']:.3f} ± {row['f1_std']:.3f} | 0.703 |" in text


def test_positive_scores_are_red_and_negative_ones_blue(motif_root: Path) -> None:
    dataset = GraphXAIDataset(motif_root, "ba2motif")
    model = load_model("bcos-gin-ba2motif", dataset)
    axes = figures.Figure().subplots()
    data = dataset[0]
    scores = figures.explain(model, data).node_scores.detach().numpy()
    draw_graph(axes, data, scores, None)
    (nodes,) = [c for c in axes.collections if len(c.get_offsets()) == data.num_nodes]
    red, _, blue, _ = nodes.get_facecolors()[scores.argmax()]
    assert red > blue
    draw_graph(axes, data, -scores, None)
    red, _, blue, _ = axes.collections[-1].get_facecolors()[scores.argmax()]
    assert red < blue


def test_on_the_command_line(
    tmp_path: Path, cli: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[object, ...]] = []

    def instead(*arguments: object, **_: object) -> Reproduction:
        calls.append(arguments)
        conditions = {"threads": 1, "torch": "2", "graphxai_data": "1"}
        return Reproduction("small", "default", [], [0], conditions)

    monkeypatch.setattr(module, "reproduce", instead)
    order = ["reproduce", "--table", "3", "--figure", "b", "--datasets", "ba2motif,dihalo"]
    result = cli(*order, "--seeds", "0-1", "--root", tmp_path, "--results", tmp_path / "r")
    assert result.exit_code == 0
    assert result.stdout.startswith("# The paper's tables and figures, reproduced")
    assert f"written to {tmp_path / 'r'}" in result.stderr
    arguments = (["table 3", "figure b"], ["ba2motif", "dihalo"], [0, 1], "small", "default")
    assert calls == [arguments]
    as_json = cli("reproduce", "--json", "--root", tmp_path, "--results", tmp_path / "r")
    assert json.loads(as_json.stdout)["budget"] == "small"
    assert calls[1] == (PARTS, None, None, "small", "default")
    for bad, message in (
        (("--seeds", ""), "--seeds: expected"),
        (("--results", "s3://bucket/r"), "expected a folder on this machine, got a URL"),
    ):
        refused = cli("reproduce", *bad)
        assert (refused.exit_code, message in refused.stderr) == (2, True), refused.stderr
    assert cli("reproduce", "--table", "1").exit_code == 2
    empty = cli("reproduce", "--datasets", ",")
    assert (empty.exit_code, "expected names with commas" in empty.stderr) == (2, True)


def test_the_floor_by_degree_follows_the_models_of_its_dataset() -> None:
    scores = {"f1": 0.5, "seconds": 1.0}
    results = {
        Cell("table 2", dataset, "gin", 0): [scores] for dataset in ("pattern", "mnist75sp-r23")
    }
    rows = prediction_rows(results, {"pattern": {"f1": 0.8, "roc_auc": 0.9}, "nci1": {"f1": 1.0}})
    assert [(row["dataset"], row["model"]) for row in rows] == [
        ("pattern", "gin"), ("pattern", "degree (no model)"), ("mnist75sp-r23", "gin"),
    ]  # fmt: skip
    assert (rows[1]["f1"], rows[1]["roc_auc"]) == (0.8, 0.9)
