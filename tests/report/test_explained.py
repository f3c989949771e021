"""What a page shows of explainers: models, tables and explanation files."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

from graphxai_data import GraphXAIDataset, explain, jaccard_at_k, load_model
from graphxai_data.building.build import build
from graphxai_data.errors import InputError
from graphxai_data.explain.files import ScoreFile
from graphxai_data.files.shipped import shipped
from graphxai_data.manifest import Manifest
from graphxai_data.report.page import write_report
from graphxai_data.training.train import train
from tests.fake_packages import write_package
from tests.report.reading import Page

Cli = Callable[..., Result]


def test_scores_predictions_and_overlaps_are_those_of_the_model(
    pages: dict[str, Path], small_root: Path
) -> None:
    page = Page(pages["dihalo"])
    index, piece = page.index, page.piece(0)
    assert page.titles == [
        "bcos of bcos-gine-dihalo", "bcos of bcos-gine-x5-dihalo",
        "integrated-gradients of gine-dihalo", "degree", "halogen-closeness", "wl-log-odds-ball-2",
    ]  # fmt: skip
    dataset = GraphXAIDataset.from_folder(small_root / "dihalo" / "seed-0")
    model = load_model("bcos-gine-dihalo")
    explained = np.flatnonzero(~np.isnan(index["jaccard_0"]))
    assert set(dataset.get_idx_split()["test"].tolist()) <= set(index["graph_id"][explained])
    for place in explained[:20].tolist():
        data = dataset[int(index["graph_id"][place])]
        explanation = explain(model, data)
        assert explanation.target is not None
        assert index["predicted_0"][place] == explanation.target[0]
        expected = explanation.node_scores.detach().numpy()
        nodes = slice(*piece["node_ptr"][place : place + 2].tolist())
        stored = piece["scores_0"][nodes] / page.meta["scores"] * piece["scale_0"][place]
        assert stored == pytest.approx(expected, abs=2e-4 * float(np.abs(expected).max()))
        jaccard = jaccard_at_k(expected, data.node_mask.numpy())
        assert index["jaccard_0"][place] == pytest.approx(jaccard, abs=1e-6)


def test_explanation_files_are_shown(small_build: Path, tmp_path: Path) -> None:
    dataset = GraphXAIDataset.from_folder(small_build)
    sizes = [dataset[i].num_nodes for i in (5, 2)]
    ptr = np.array([0, sizes[0], sum(sizes)])
    scores = np.random.default_rng(0).normal(size=sum(sizes))
    content = dataset.manifest.content_sha256
    file = ScoreFile("ba2motif", content, "theirs", np.array([5, 2]), ptr, scores)
    file.save(tmp_path / "theirs.safetensors")
    page = Page(write_report(small_build, [tmp_path / "theirs.safetensors"]))
    k = page.titles.index("theirs")
    assert page.meta["explainers"][k]["model"] is None
    given = page.index["graph_id"][~np.isnan(page.index[f"jaccard_{k}"])]
    assert sorted(given.tolist()) == [2, 5]

    ScoreFile("ba2motif", "0" * 64, "theirs", np.array([5, 2]), ptr, scores).save(
        tmp_path / "o.safetensors"
    )
    with pytest.raises(InputError, match="about other graphs"):
        write_report(small_build, [tmp_path / "o.safetensors"])
    short = ScoreFile("ba2motif", content, "theirs", np.array([5, 2]), ptr - [0, 1, 1], scores[1:])
    short.save(tmp_path / "short.safetensors")
    with pytest.raises(InputError, match=f"{sizes[0] - 1} nodes in graph 5, expected {sizes[0]}"):
        write_report(small_build, [tmp_path / "short.safetensors"])
    beyond = ScoreFile("ba2motif", content, "t", np.array([40, 2]), ptr, scores)
    beyond.save(tmp_path / "beyond.safetensors")
    with pytest.raises(InputError, match="graph 40, but there are 40 graphs"):
        write_report(small_build, [tmp_path / "beyond.safetensors"])


def test_results_of_evaluate_are_shown(cli: Cli, small_build: Path, tmp_path: Path) -> None:
    root = small_build.parent.parent
    fast = ("--set", "epochs=1", "--threads", 1, "--out", tmp_path / "runs", "--root", root)
    rows = ("--model", "bcos-gin", "--explainer", "bcos", "--explainer", "oracle")
    options = (*rows, "--seeds", "0-1", *fast, "--no-timing")
    printed = cli("evaluate", "ba2motif", *options, "--json")
    assert printed.exit_code == 0, printed.stderr
    (tmp_path / "table.json").write_text(printed.stdout)
    models = [tmp_path / "runs" / "bcos-gin-ba2motif" / f"seed-{seed}" for seed in (0, 1)]

    files = [[m / name for m in models] for name in ("evaluation.json", "weights.safetensors")]
    for evaluations in ([tmp_path / "table.json"], models, *files):
        page = Page(write_report(small_build, evaluations))
        lines = page.explainer_table.splitlines()
        bcos = next(line for line in lines if "<td>bcos</td>" in line)
        assert '<td class="number">2</td></tr>' in bcos  # seeds
        mean = np.mean([json.loads((m / "evaluation.json").read_text())["splits"]["test"]["bcos"]
                        ["jaccard"] for m in models])  # fmt: skip
        assert f"{mean:.3f} ±" in bcos
        explainers = page.meta["explainers"]
        model_titles = [e["title"] for e in explainers if e["model"] is not None]
        seeds = ["bcos of bcos-gin-ba2motif", "bcos of bcos-gin-ba2motif, seed 1"]
        assert model_titles == ([] if evaluations[0].name == "table.json" else seeds)


ROWS_OF_NO_MODEL = """{"dataset": "ba2motif", "split": "test", "content_sha256": "HERE",
    "rows": [{"model": 1, "explainer": "bcos", "seed": 0, "jaccard": 0.5}]}"""


@pytest.mark.parametrize(
    "content",
    ["{}", "[]", "no json", '{"rows": 1, "content_sha256": "x"}', ROWS_OF_NO_MODEL],
)
def test_other_files_are_refused(cli: Cli, small_build: Path, tmp_path: Path, content: str) -> None:
    digest = Manifest.load(small_build).content_sha256
    (tmp_path / "bad.json").write_text(content.replace("HERE", digest))
    result = cli("report", small_build, "--evaluation", tmp_path / "bad.json")
    assert result.exit_code == 2
    assert "bad.json" in result.stderr
    assert not (small_build / "report.html").exists()


def test_explanations_of_nodes_are_not_shown(pages: dict[str, Path], small_root: Path) -> None:
    assert Page(pages["pattern"]).titles == []
    with pytest.raises(InputError, match="its classes are of nodes"):
        write_report(small_root / "pattern" / "seed-0", [shipped("models") / "bcos-gin-ba2motif"])


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A small build, and models on it: two of one kind and seed, and a copy of the first."""
    root = tmp_path_factory.mktemp("trained")
    build("ba2motif", root=root, graphs=60, rings=False)
    dataset = GraphXAIDataset(root, "ba2motif")
    for name, b in (("first", 2.0), ("second", 1.5)):
        train(dataset, "bcos-gin", out=root / name, changes={"epochs": 1, "b": b})
    folders = {n: root / n / "bcos-gin-ba2motif" / "seed-0" for n in ("first", "second")}
    shutil.copytree(folders["first"], root / "copy")
    return folders | {"copy": root / "copy", "build": root / "ba2motif" / "seed-0"}


def test_no_model_is_counted_twice_or_mistaken_for_another(
    trained: dict[str, Path], tmp_path: Path
) -> None:
    given = [trained[name] for name in ("first", "second", "copy")]
    page = Page(write_report(trained["build"], given, out=tmp_path / "p.html"))
    bcos = [row for row in page.explainer_rows if row[0] == "bcos"]
    assert [row[1] for row in bcos] == ["bcos-gin", f"bcos-gin ({trained['second']})"]
    assert {row[-1] for row in bcos} == {"1"}
    index = page.index
    assert [explainer["model"] for explainer in page.meta["explainers"][:2]] == [0, 1]
    dataset = GraphXAIDataset.from_folder(trained["build"])
    for k, name in enumerate(("first", "second")):
        model = load_model(trained[name])
        for place in np.flatnonzero(index[f"predicted_{k}"] >= 0).tolist():
            data = dataset[int(index["graph_id"][place])]
            assert index[f"predicted_{k}"][place] == int(model(data.x, data.edge_index).argmax())


def test_lower_and_upper_bound_are_measured_once(small_build: Path) -> None:
    page = Page(write_report(small_build, explainers=["random", "oracle"]))
    counts = {row[0]: row[-1] for row in page.explainer_rows}
    assert counts == {"random": "1", "oracle": "1"}


def test_saved_faithfulness_is_accepted_and_results_of_other_weights_refused(
    cli: Cli, trained: dict[str, Path], tmp_path: Path
) -> None:
    root = trained["build"].parent.parent
    fast = ("--set", "epochs=1", "--threads", 1, "--out", trained["first"].parent.parent)
    rows = ("--model", "bcos-gin", "--explainer", "bcos", "--seeds", 0, "--root", root)
    measured = cli("evaluate", "ba2motif", *rows, *fast, "--set", "b=2.0", "--faithfulness")
    assert measured.exit_code == 0, measured.stderr
    page = Page(write_report(trained["build"], [trained["first"]], out=tmp_path / "p.html"))
    assert page.explainer_rows[0][0] == "bcos"

    saved = json.loads((trained["first"] / "evaluation.json").read_text())
    folder = tmp_path / "other"
    shutil.copytree(trained["first"], folder)
    saved["of"]["weights_sha256"] = "0" * 64
    (folder / "evaluation.json").write_text(json.dumps(saved))
    with pytest.raises(InputError, match="about other weights than the model's; evaluate it again"):
        write_report(trained["build"], [folder])


def test_tables_of_other_graphs_are_refused(
    cli: Cli, trained: dict[str, Path], tmp_path: Path
) -> None:
    root = trained["build"].parent.parent
    printed = cli("evaluate", "ba2motif", "--explainer", "degree", "--split", "valid", "--seeds", 0,
                  "--root", root, "--out", tmp_path / "none", "--json", "--no-timing")  # fmt: skip
    (tmp_path / "valid.json").write_text(printed.stdout)
    with pytest.raises(InputError, match="about valid graphs"):
        write_report(trained["build"], [tmp_path / "valid.json"])
    (tmp_path / "list.json").write_text("[{}]")
    with pytest.raises(InputError, match="give the explanation files themselves"):
        write_report(trained["build"], [tmp_path / "list.json"])


def test_a_file_with_all_test_graphs_has_a_row(trained: dict[str, Path], tmp_path: Path) -> None:
    dataset = GraphXAIDataset.from_folder(trained["build"])
    test = dataset.get_idx_split()["test"].tolist()
    masks = [dataset[i].node_mask.numpy().astype(float) for i in test]
    content, ptr = dataset.manifest.content_sha256, np.cumsum([0, *map(len, masks)])
    for name in ("a.safetensors", "b.safetensors"):
        file = ScoreFile("ba2motif", content, "best", np.array(test), ptr, np.concatenate(masks))
        file.save(tmp_path / name)
    given = [tmp_path / "a.safetensors", tmp_path / "b.safetensors"]
    page = Page(write_report(trained["build"], given, out=tmp_path / "p.html"))
    rows = {row[0]: row[2] for row in page.explainer_rows}
    assert rows["best"] == rows["best (b.safetensors)"] == rows["oracle"] == "1.000"


def test_models_are_described_with_and_without_test_scores(
    trained: dict[str, Path], tmp_path: Path
) -> None:
    text = write_report(trained["build"], [trained["first"]], out=tmp_path / "p.html").read_text()
    assert "macro F1" in text
    card = trained["copy"] / "model.toml"
    plain = re.sub(r"\[scores\.test\][^\[]*", "", card.read_text())
    folder = tmp_path / "without"
    shutil.copytree(trained["copy"], folder)
    (folder / "model.toml").write_text(plain)
    assert "it has no test scores" in write_report(trained["build"], [folder]).read_text()


def test_models_of_another_build_are_not_compared_with_the_paper(
    pages: dict[str, Path],
) -> None:
    rows = [row for row in Page(pages["dihalo"]).explainer_rows if row[0] == "bcos"]
    models = ["bcos-gine of another build", "bcos-gine-x5 of another build"]
    assert [row[1] for row in rows] == models
    for row in rows:
        assert row[3] == row[5] == ""


def test_an_explainer_that_applies_to_no_model_is_refused(cli: Cli, tmp_path: Path) -> None:
    build("spmotif-50", root=tmp_path, graphs=40, rings=False)
    folder = tmp_path / "spmotif-50" / "seed-0"
    result = cli("report", folder, "--explainer", "bcos")
    assert result.exit_code == 2
    assert "explainer 'bcos' is not for 'spmotif-50' with no model" in result.stderr


def test_huge_scores_are_shown(trained: dict[str, Path], tmp_path: Path) -> None:
    dataset = GraphXAIDataset.from_folder(trained["build"])
    nodes = dataset[0].num_nodes
    scores = np.linspace(-1e300, 1e300, nodes)
    content, ptr = dataset.manifest.content_sha256, np.array([0, nodes])
    ScoreFile("ba2motif", content, "huge", np.array([0]), ptr, scores).save(
        tmp_path / "huge.safetensors"
    )
    given = [tmp_path / "huge.safetensors"]
    page = Page(write_report(trained["build"], given, out=tmp_path / "p.html"))
    place = page.index["graph_id"].tolist().index(0)
    assert page.piece(0)["scale_0"][place] == 1e300


def test_explainers_of_plugins_are_shown(
    small_build: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = """
def first_feature(model, batch):
    "The first feature."
    return batch.x[:, 1]

def backwards(batch):
    return -batch.x[:, 1]
"""
    names = {"first-feature": "first_feature", "backwards": "backwards"}
    site = write_package(tmp_path / "site", "firsts", code, explainers=names)
    monkeypatch.syspath_prepend(site)
    page = Page(write_report(small_build, explainers=[*names]))
    assert page.titles == [
        "first-feature of bcos-gin-ba2motif", "first-feature of gin-ba2motif", "backwards",
    ]  # fmt: skip
