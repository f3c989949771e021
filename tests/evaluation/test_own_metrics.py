import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from graphxai_data import GraphXAIDataset, evaluate
from graphxai_data.errors import CheckFailedError, InputError
from graphxai_data.evaluation.comparison import Comparison, compare, sweep
from graphxai_data.evaluation.own_metrics import COLUMNS
from graphxai_data.evaluation.study import RESULTS
from graphxai_data.evaluation.workers import run_on_worker
from graphxai_data.files.plugins import Origin
from graphxai_data.metrics import precision_at_k
from graphxai_data.report.evaluations import read_evaluations
from graphxai_data.training.train import run_folder
from tests.fake_packages import write_package

SMALL = {"epochs": 2, "hidden": 8}
CODE = """
import numpy as np

calls = []


def gain(scores, mask):
    calls.append("gain")
    return scores[mask].mean() - scores[~mask].mean()


def first(scores, mask):
    calls.append("first")
    return mask[scores.argmax()].astype(np.float32)


def infinite(scores, mask):
    return np.inf


def text(scores, mask):
    return "high"


def failing(scores, mask):
    raise ValueError("no metric")


def flat(batch):
    calls.append("flat")
    return np.arange(batch.num_nodes) * SIGN


def doubled(model, batch):
    calls.append("doubled")
    return batch.edge_index[1].bincount(minlength=batch.num_nodes) * 2 * SIGN


number = 3
"""
METRICS = {
    "gain": "gain", "first-hit": "first", "infinite": "infinite", "text": "text",
    "failing": "failing", "number": "number", "auroc": "gain",
}  # fmt: skip


@pytest.fixture
def dataset(small_root: Path) -> GraphXAIDataset:
    return GraphXAIDataset(small_root, "ba2motif")


class Site:
    """Installs one version of a package at a time."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder, self._monkeypatch = folder, monkeypatch
        self._path = list(sys.path)
        self.module = ""

    def install(self, version: str, sign: int = 1) -> None:
        """Replace the package by another version; `sign` is that of its explainers' scores."""
        self.module = f"measure_{version.replace('.', '_')}"
        folder = write_package(
            self._folder / version, self.module, CODE.replace("SIGN", str(sign)), "measure-more",
            version, metrics=METRICS, explainers={"flat": "flat", "doubled": "doubled"},
        )  # fmt: skip
        self._monkeypatch.setattr(sys, "path", [str(folder), *self._path])

    def calls(self) -> list[str]:
        """Return the functions that were called since the last time, each once."""
        module = sys.modules.get(self.module)
        if module is None:
            return []
        called = sorted(set(module.calls))
        module.calls.clear()
        return called


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    site = Site(tmp_path / "site", monkeypatch)
    site.install("1.2")
    yield site
    for name in [name for name in sys.modules if name.startswith("measure_")]:
        del sys.modules[name]


def precision(scores: np.ndarray, mask: np.ndarray) -> float:
    assert (scores.dtype, mask.dtype, scores.shape) == (np.float64, np.bool_, mask.shape)
    value = precision_at_k(scores, mask)
    scores[:] = 0  # a careless function changes nothing
    mask[:] = False
    return value


def test_a_function_is_a_column_with_the_mean_over_graphs(dataset: GraphXAIDataset) -> None:
    usual = evaluate(dataset, ["degree", "random"])
    table = evaluate(
        dataset, ["degree", "random"],
        metrics={"mine": precision, "tensor": lambda s, m: torch.tensor(precision(s, m))},
    )  # fmt: skip
    assert list(table.columns) == [*usual.columns, "mine", "tensor"]
    assert table.mine.tolist() == pytest.approx(table.precision.tolist())
    assert table.tensor.tolist() == pytest.approx(table.precision.tolist(), abs=1e-6)
    pd.testing.assert_frame_equal(table[usual.columns], usual)
    graphs = [dataset[i] for i in dataset.get_idx_split()["test"]]
    again = evaluate(graphs, ["degree", "random"], metrics={"mine": precision})
    assert again.mine.tolist() == table.mine.tolist()


def test_metrics_of_plugins_are_chosen_by_name(dataset: GraphXAIDataset, site: Site) -> None:
    table = evaluate(dataset, ["degree", "oracle"], metrics=["gain", "first-hit", "gain"])
    assert list(table.columns[-2:]) == ["gain", "first-hit"]
    assert table.loc["oracle", ["gain", "first-hit"]].tolist() == [1, 1]
    assert evaluate(dataset, ["oracle"], metrics="gain").loc["oracle", "gain"] == 1
    assert "gain" not in evaluate(dataset, ["oracle"])


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ({"auroc": precision}, "metric 'auroc': a column of this name exists already"),
        ({"curves": precision}, "metric 'curves': a column of this name exists already"),
        ({"mine_std": precision}, "metric 'mine_std': columns of deviations end like this"),
        ({"": precision}, "metric: expected a name, got ''"),
        ({"mine": 3}, r"metric 'mine': expected fn\(scores, mask\), got int"),
        (["jaccard"], "metric 'jaccard': a column of this name exists already"),
        (["auroc"], "metric 'auroc': a column of this name exists already"),
        (["gian"], "unknown metric 'gian'; did you mean 'gain'"),
        (["number"], r"'number' of package measure-more 1.2: expected a function fn\(scores, mask"),
        (
            {"mine": lambda scores, mask: np.nan},
            "metric 'mine': scores of 'degree', graph 0: expected a finite number, got nan",
        ),
        ({"mine": lambda scores, mask: None}, "graph 0: expected a finite number, got None"),
        ({"mine": lambda scores, mask: scores}, "graph 0: expected a finite number, got array"),
        (
            ["infinite"],
            "^metric 'infinite' of package measure-more 1.2: scores of 'degree', graph 0: expected "
            "a finite number, got inf",
        ),
        (["text"], "'text' of package .* graph 0: expected a finite number, got 'high'"),
    ],
)
def test_metrics_that_cannot_be_columns_are_refused(
    metrics: Any, message: str, dataset: GraphXAIDataset, site: Site
) -> None:
    with pytest.raises(InputError, match=message):
        evaluate(dataset, ["degree"], metrics=metrics)


def test_an_error_inside_a_metric_names_it_and_the_graph(
    dataset: GraphXAIDataset, site: Site
) -> None:
    message = (
        "^metric 'failing' of package measure-more 1.2: scores of 'degree', graph 0: "
        "ValueError: no metric"
    )
    with pytest.raises(CheckFailedError, match=message):
        evaluate(dataset, ["degree"], metrics=["failing"])

    def own(scores: np.ndarray, mask: np.ndarray) -> float:
        raise KeyError("mine")

    values = iter([0.0, 0.5, 1.0, np.nan])
    with pytest.raises(InputError, match="metric 'own': scores of 'degree', graph 3: expected"):
        evaluate(dataset, ["degree"], metrics={"own": lambda scores, mask: next(values)})
    with pytest.raises(KeyError, match="mine"):  # a traceback helps more in one's own script
        evaluate(dataset, ["degree"], metrics={"own": own})


def test_no_metric_takes_the_name_of_a_column(
    dataset: GraphXAIDataset, tmp_path: Path, site: Site
) -> None:
    comparison = compare(
        dataset, ("bcos-gin",), ("bcos", "doubled"), (0, 1), tmp_path, changes=SMALL,
        faithfulness=True,
    )  # fmt: skip
    columns = {key for row in comparison.rows for key in row}
    columns |= {key for row in comparison.summary() for key in row if not key.endswith("_std")}
    assert columns <= COLUMNS
    assert len(columns) > 30


def compared(dataset: GraphXAIDataset, out: Path, **options: Any) -> Comparison:
    usual: dict[str, Any] = {"explainers": ("bcos", "doubled", "flat"), "timing": False}
    return compare(
        dataset, ("bcos-gin",), seeds=(0, 1), out=out, changes=SMALL, **(usual | options)
    )


def test_plugins_are_rows_and_columns_of_a_comparison(
    dataset: GraphXAIDataset, tmp_path: Path, site: Site
) -> None:
    comparison = compared(dataset, tmp_path, metrics=("gain",), timing=True)
    rows = comparison.frame()
    assert rows.explainer.tolist() == ["bcos"] * 2 + ["doubled"] * 2 + ["flat"] * 2
    assert rows.model.tolist() == ["bcos-gin"] * 4 + ["-"] * 2
    assert rows.plugin.isna().tolist() == [True] * 2 + [False] * 4
    assert set(rows.plugin.dropna()) == {"measure-more 1.2"}
    expected = evaluate(
        dataset, ["degree"], metrics={"gain": lambda s, m: s[m].mean() - s[~m].mean()}
    )
    assert rows.jaccard[2] == expected.loc["degree", "jaccard"]
    assert rows.gain[2] == pytest.approx(2 * expected.loc["degree", "gain"])
    assert (rows.ms_per_graph > 0).all()
    summary = {row["explainer"]: row for row in comparison.summary()}
    assert summary["bcos"]["gain"] == rows.gain[:2].mean()
    assert summary["doubled"]["paper"] == {}
    printed = json.loads(comparison.to_json())
    assert printed["metrics"] == {"gain": "measure-more 1.2"}
    assert pd.read_csv(io.StringIO(comparison.to_csv())).gain.tolist() == rows.gain.tolist()


def test_rows_are_measured_again_with_another_version(
    dataset: GraphXAIDataset, tmp_path: Path, site: Site
) -> None:
    first = compared(dataset, tmp_path, metrics=("gain",), faithfulness=True)
    assert site.calls() == ["doubled", "flat", "gain"]
    again = compared(dataset, tmp_path, metrics=("gain",), faithfulness=True)
    assert site.calls() == []
    assert again.rows == first.rows
    # Without the metric, tables do not have its column, although it is saved.
    plain = compared(dataset, tmp_path, faithfulness=True)
    assert all("gain" not in row and "metrics" not in row for row in plain.rows)
    assert site.calls() == []
    compared(dataset, tmp_path, metrics=("gain", "first-hit"), faithfulness=True)
    assert site.calls() == ["doubled", "first", "flat", "gain"]
    site.install("1.3", sign=-1)
    new = compared(dataset, tmp_path, metrics=("gain",))
    assert site.calls() == ["doubled", "flat", "gain"]
    old_rows, new_rows = first.frame(), new.frame()
    doubled = old_rows.explainer == "doubled"
    assert set(new_rows.plugin.dropna()) == {"measure-more 1.3"}
    assert new_rows.gain[doubled].tolist() == (-old_rows.gain[doubled]).tolist()
    assert new_rows.gain[:2].tolist() == old_rows.gain[:2].tolist()
    saved = json.loads((run_folder(tmp_path, "bcos-gin", "ba2motif", 0) / RESULTS).read_text())
    rows = saved["splits"]["test"]
    assert rows["doubled"]["plugin"] == "measure-more 1.3"
    assert "fidelity_plus" not in rows["doubled"]  # that of the earlier version
    assert "fidelity_plus" in rows["bcos"]
    assert rows["bcos"]["metrics"]["gain"]["by"] == "measure-more 1.3"
    assert rows["bcos"]["metrics"]["first-hit"]["by"] == "measure-more 1.2"


def test_saved_columns_that_are_damaged_are_measured_again(
    dataset: GraphXAIDataset, tmp_path: Path, site: Site
) -> None:
    first = compared(dataset, tmp_path, metrics=("gain",), explainers=("doubled",))
    path = run_folder(tmp_path, "bcos-gin", "ba2motif", 0) / RESULTS
    for damage in ({"gain": 3}, {"gain": {"by": "measure-more 1.2", "value": None}}, [], "x"):
        saved = json.loads(path.read_text())
        saved["splits"]["test"]["doubled"]["metrics"] = damage
        path.write_text(json.dumps(saved))
        again = compared(dataset, tmp_path, metrics=("gain",), explainers=("doubled",))
        assert again.rows == first.rows


def test_reports_read_rows_of_plugins(dataset: GraphXAIDataset, tmp_path: Path, site: Site) -> None:
    comparison = compared(dataset, tmp_path, metrics=("gain",))
    folder = run_folder(tmp_path, "bcos-gin", "ba2motif", 1)
    rows = read_evaluations([folder], dataset.manifest).rows
    assert {row["explainer"] for row in rows} == {"bcos", "doubled"}
    (tmp_path / "table.json").write_text(comparison.to_json())
    printed = read_evaluations([tmp_path / "table.json"], dataset.manifest).rows
    assert [row["gain"] for row in printed] == comparison.frame().gain.tolist()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metrics": {"mine": precision}}, "takes names of plug-ins, got functions; give them to"),
        ({"metrics": ("gian",)}, "unknown metric 'gian'; did you mean 'gain'"),
        ({"explainers": ("flatt",)}, "unknown explainer 'flatt'; did you mean 'flat'"),
    ],
)
def test_a_comparison_is_refused_before_anything_is_trained(
    options: dict[str, Any], message: str, dataset: GraphXAIDataset, tmp_path: Path, site: Site
) -> None:
    with pytest.raises(InputError, match=message):
        compared(dataset, tmp_path / "runs", **options)
    assert not (tmp_path / "runs").exists()


def test_a_sweep_has_the_columns_of_plugins(
    dataset: GraphXAIDataset, tmp_path: Path, site: Site
) -> None:
    table = sweep(
        dataset, "bcos-gin", "b", (1.0, 2.0), (0,), tmp_path, changes=SMALL, explainer="doubled",
        metrics=("gain",),
    )  # fmt: skip
    assert table.gain.notna().all()
    with pytest.raises(InputError, match="metric 'gain': the setting has a column of this name"):
        sweep(dataset, "bcos-gin", "gain", (1, 2), out=tmp_path, metrics=("gain",))


@pytest.mark.parametrize(
    ("origin", "message"),
    [
        (
            Origin("explainer", "doubled", "measure-more", "9"),
            "'doubled' of package measure-more 9: a worker has measure-more 1.2 instead; install",
        ),
        (
            Origin("metric", "loss", "measure-more", "1.2"),
            "metric 'loss' of package measure-more 1.2: a worker has nothing instead",
        ),
    ],
)
def test_a_worker_needs_the_same_plugins(origin: Origin, message: str, site: Site) -> None:
    with pytest.raises(InputError, match=message):
        run_on_worker(
            None, None, "", "", 1, torch.__version__, [origin]  # type: ignore[arg-type]
        )  # fmt: skip
