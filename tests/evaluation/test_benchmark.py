"""The big table: filled step by step, the same by every engine, and nothing measured twice."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result

from graphxai_data import GraphXAIDataset, build, evaluate
from graphxai_data.errors import DamagedError, InputError
from graphxai_data.evaluation.benchmark.cell import Place, scored_graphs
from graphxai_data.evaluation.benchmark.plan import Plan
from graphxai_data.evaluation.benchmark.run import fill
from graphxai_data.evaluation.benchmark.store import Store
from graphxai_data.evaluation.benchmark.summary import rank_methods, summarise
from graphxai_data.evaluation.benchmark.tables import both_rows, overview_row, table_rows
from graphxai_data.explain.third_party import THIRD_PARTY
from graphxai_data.training.train import run_folder, train

NAMES = ("ba2motif-balanced", "ba2motif-pair-a", "ba2motif-pair-b", "ba2motif-pair-both")
SLOW = dict.fromkeys((*THIRD_PARTY, "gnn-explainer"), 0)
PLAN = Plan(
    datasets=("ba2motif-balanced",),
    pairs=("ba2motif-pair",),
    seeds=(0, 1, 2),
    members=2,
    ensembles=("ba2motif-pair",),
    graphs=6,
    fewer=SLOW | {"guided-backprop": 3, "gnn-explainer": 2},
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small builds of a dataset and a pair."""
    folder = tmp_path_factory.mktemp("benchmark")
    for name in NAMES:
        build(name, root=folder, graphs=120, rings=False, jobs=1)
    return folder


@pytest.fixture(scope="module")
def filled(root: Path) -> Path:
    """The whole table of the small plan."""
    fill(PLAN, root / "results", Place(str(root), 0, str(root / "runs")))
    return root / "results"


def without_times(folder: Path, name: str) -> Any:
    content = Store(folder).read(name)
    for cell in content["cells"]:
        for row in cell["rows"].values():
            row.pop("ms_per_graph")
            row.pop("seconds_before", None)
    return content


def test_scores_of_graphs_are_those_of_evaluate(filled: Path, root: Path) -> None:
    content = Store(filled).read("ba2motif-balanced")
    ids = content["graph_id"]["ba2motif-balanced"]
    assert len(ids) == 6
    dataset = GraphXAIDataset(root, "ba2motif-balanced")
    part = dataset[[int(np.flatnonzero(dataset._data.graph_id.numpy() == i)[0]) for i in ids]]
    assert set(part._data.split[list(part.indices())].tolist()) == {2}
    for cell in content["cells"]:
        if cell["model"] != "gin":
            continue
        model, card = train(dataset, "gin", seed=cell["seed"], out=root / "runs")
        assert card.weights_sha256 == cell["weights_sha256"]
        assert card.scores["test"]["accuracy"] == cell["accuracy"]
        table = evaluate(part, ["saliency"], model).loc["saliency"]
        row = cell["rows"]["saliency"]
        assert np.isclose(np.mean(row["jaccard"]), table.jaccard, atol=1e-4)
        assert np.isclose(np.mean(row["auroc"]), table.auroc, atol=1e-4)
        assert len(cell["rows"]["guided-backprop"]["jaccard"]) == 3
        assert len(cell["rows"]["gnn-explainer-mean"]["jaccard"]) == 2


def test_models_of_a_pair_are_scored_on_their_own_cause(filled: Path, root: Path) -> None:
    content = Store(filled).read("ba2motif-pair")
    ids = content["graph_id"]
    assert ids["ba2motif-pair-a"] == ids["ba2motif-pair-b"]
    assert content["bounds"]["own"] == pytest.approx(0.5)
    place = Place(str(root), 0, str(root / "runs"))
    for half in "ab":
        known = scored_graphs(place, f"ba2motif-pair-{half}", half, 6)
        assert known.cause is not None
        assert np.array_equal(known.cause, known.truth.node_mask)  # the mask of its own build
    cell = next(c for c in content["cells"] if c["half"] == "b")
    assert set(cell["interventions"]) == {"moves", "stays", "agrees", "follows"}
    assert len(cell["rows"]["bcos"]["both_jaccard"]) == 6
    rule = content["floors"]["red-then-blue-motif"]
    pair_mean = np.mean(rule["a"]["jaccard"] + rule["b"]["jaccard"])
    assert pair_mean == pytest.approx(0.5)  # as proven: A everywhere, B nowhere


def test_nothing_is_measured_twice_and_a_stopped_table_goes_on(filled: Path, root: Path) -> None:
    steps: list[Any] = []
    place = Place(str(root), 0, str(root / "runs"))
    before = {name: Store(filled).path(name).read_bytes() for name in PLAN.names}
    fill(PLAN, filled, place, progress=lambda *step: steps.append(step))
    assert not steps
    assert {name: Store(filled).path(name).read_bytes() for name in PLAN.names} == before

    class StopError(Exception):
        pass

    def stop(done: int, total: int, what: str) -> None:
        steps.append((done, total, what))
        if done == 2:
            raise StopError

    elsewhere = root / "stopped"
    with pytest.raises(StopError):
        fill(PLAN, elsewhere, place, progress=stop)
    assert steps[-1] == (2, 27, "twin on ba2motif-balanced, seed 0")
    steps.clear()
    fill(PLAN, elsewhere, place, progress=lambda *step: steps.append(step))
    assert len(steps) == 25
    for name in PLAN.names:
        assert without_times(elsewhere, name) == without_times(filled, name)


def test_a_new_explainer_is_added_to_known_cells(filled: Path, root: Path) -> None:
    store, steps = Store(root / "partial"), []
    content = Store(filled).read("ba2motif-balanced")
    for cell in content["cells"]:
        cell["rows"].pop("saliency", None)
        if cell["model"] == "gsat":
            cell["settings_sha256"] = "0" * 64  # of other settings: measured again as a whole
    store.add("ba2motif-balanced", content["cells"], floors={})
    plan = Plan.load(["ba2motif-balanced"])
    plan = replace(PLAN, datasets=plan.datasets, pairs=())
    place = Place(str(root), 0, str(root / "runs"))
    fill(plan, store.folder, place, progress=lambda *step: steps.append(step[2]))
    assert sorted(steps) == sorted(
        f"{kind} on ba2motif-balanced, seed {seed}"
        for kind in ("twin", "gsat")
        for seed in range(3)
    )
    assert without_times(store.folder, "ba2motif-balanced") == without_times(
        filled, "ba2motif-balanced"
    )


@pytest.mark.parametrize("engine", ["processes", "dask"])
def test_workers_give_the_same_results(engine: str, filled: Path, root: Path) -> None:
    plan = replace(PLAN, datasets=())
    place = Place(str(root), 0, str(root / "runs"))
    fill(plan, root / engine, place, engine=engine, jobs=2)
    assert without_times(root / engine, "ba2motif-pair") == without_times(filled, "ba2motif-pair")


def test_tables_show_means_intervals_and_floors(filled: Path) -> None:
    summary = summarise(Store(filled), "ba2motif-pair")
    assert (summary.seeds, summary.graphs) == (3, 6)
    rows = table_rows(summary)
    means = [float(row[2]) for row in rows if row[1] != "–"]
    assert means == sorted(means, reverse=True)
    labels = {line.label for line in summary.lines}
    assert {"bcos", "bcos ×2", "saliency", "gsat-mean", "guided-backprop"} <= labels
    line = next(line for line in summary.lines if line.label == "saliency")
    cells = [c for c in Store(filled).read("ba2motif-pair")["cells"] if c["model"] == "gin"]
    expected = np.mean([c["rows"]["saliency"]["jaccard"] for c in cells])
    assert line.interval.mean == pytest.approx(expected)
    assert line.interval.low <= line.interval.mean <= line.interval.high
    assert {row[0] for row in both_rows(summary)} >= {"bcos", "`low-closeness`"}
    overview = overview_row(summary)
    assert overview[0] == "`ba2motif-pair`"
    assert overview[-1] == "0.500"
    assert sum(cell.startswith("**") for cell in overview) == 1
    # The definition of the rationale is no floor, and "random" is only a reference.
    alone = summarise(Store(filled), "ba2motif-balanced")
    assert not any("one-colour-motif" in row[0] for row in table_rows(alone))
    names, ranks = rank_methods([summary, alone, summary])
    assert "gnn-explainer" in names  # one method, whatever the rule of its rows
    assert ranks.means.sum() == pytest.approx(len(names) * (len(names) + 1) / 2)
    with pytest.raises(InputError, match="at least 3 datasets"):
        rank_methods([summary])


def test_fewer_than_three_seeds_have_no_statistics(
    filled: Path, root: Path, cli: Callable[..., Result]
) -> None:
    with pytest.raises(InputError, match="2 seeds have all models, expected at least 3"):
        summarise(Store(filled), "ba2motif-pair", seeds=(0, 1))
    result = cli("evaluate", "--all", "--seeds", "0,1", "--root", root)
    assert result.exit_code == 2
    assert "seeds: expected at least 3, got 2; an interval over trainings needs" in result.stderr


def test_bad_input_is_one_line(root: Path, tmp_path: Path, cli: Callable[..., Result]) -> None:
    (tmp_path / "ba2motif-balanced.json").write_text('{"cells": [{"model": "gin"}]}')
    for arguments, code, message in (
        (("--all", "dihalo-par"), 2, "'dihalo-par' is not in the big table; did you mean"),
        (("--all", "--model", "gin"), 2, "--model cannot be combined with --all"),
        (("--all", "--threads", "2"), 2, "--threads cannot be combined with --all"),
        (("--all", "--engine", "ray"), 2, "unknown engine 'ray'"),
        (("ba2motif-balanced", "--results", "r"), 2, "--results is for --all; add it"),
        ((), 2, "Missing argument 'NAME'"),
        (("--all", "ba2motif-balanced", "--results", tmp_path), 1, "not results of a table"),
    ):
        result = cli("evaluate", *arguments, *(("--root", root) if arguments else ()))
        assert result.exit_code == code, result.output
        assert message in result.stderr
        assert "Traceback" not in result.output
    with pytest.raises(DamagedError, match="delete it to measure again"):
        Store(tmp_path).read("ba2motif-balanced")


def test_the_command_prints_the_table(
    filled: Path, root: Path, cli: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(only: Any = (), seeds: Any = None) -> Plan:
        datasets = tuple(name for name in PLAN.datasets if name in (only or PLAN.names))
        pairs = tuple(name for name in PLAN.pairs if name in (only or PLAN.names))
        return replace(PLAN, datasets=datasets, pairs=pairs)

    monkeypatch.setattr(Plan, "load", load)
    common = ("--root", root, "--out", root / "runs", "--results", filled)
    result = cli("evaluate", "--all", *common)
    assert result.exit_code == 0, result.output
    assert "ba2motif-pair" in result.stdout
    result = cli("evaluate", "--all", "ba2motif-pair", *common)
    assert "guided-backprop" in result.stdout
    result = cli("evaluate", "--all", "ba2motif-pair", "--json", *common)
    rows = json.loads(result.stdout)["rows"]
    assert {"low", "high", "mean"} <= set(rows[0]["jaccard"])
    assert run_folder(root / "runs", "bcos-gin-x2", "ba2motif-pair-a", 0).is_dir()
