"""What a page says, read without a browser."""

import base64
import hashlib
import json
import re
import shutil
import struct
import zlib
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result

from graphxai_data import GraphXAIDataset, explain, jaccard_at_k, load_model
from graphxai_data.building.build import build
from graphxai_data.datasets.records import Graphs
from graphxai_data.errors import CheckFailedError, InputError
from graphxai_data.explain.files import ScoreFile
from graphxai_data.files.shipped import shipped
from graphxai_data.manifest import Manifest
from graphxai_data.report.packed import Packer, page_order
from graphxai_data.report.page import write_report
from graphxai_data.rings.verdict import Measurement, Verdict
from graphxai_data.training.train import train

Cli = Callable[..., Result]
NAMES = ["ba2motif", "dihalo", "mnist75sp-r23", "pattern"]


class Scripts(HTMLParser):
    """The text of every script by its id, and all that a page refers to."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text: dict[str, str] = {}
        self.references: list[str] = []
        self._id: str | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        self._id = known.get("id") if tag == "script" else None
        self.references += [known[k] or "" for k in ("src", "href", "xlink:href") if k in known]

    def handle_data(self, data: str) -> None:
        if self._id:
            self.text[self._id] = self.text.get(self._id, "") + data


def unpacked(text: str) -> dict[str, Any]:
    """A piece of a page, read by code of its own."""
    whole = zlib.decompress(base64.b64decode(text))
    (length,) = struct.unpack("<I", whole[:4])
    header = json.loads(whole[4 : 4 + length])
    found: dict[str, Any] = {"drawings": header.get("drawings", {})}
    for name, (kind, at, size) in header["arrays"].items():
        found[name] = np.frombuffer(whole, f"<{kind}", size, 4 + length + at)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_page_needs_nothing_beside_itself(pages: dict[str, Path], name: str) -> None:
    page = pages[name].read_text(encoding="utf-8")
    assert all(reference.startswith("#") for reference in Scripts(page).references)
    assert "default-src 'none'" in page
    assert "@import" not in page
    assert not re.search(r"url\((?!#)", page)


@pytest.mark.parametrize("name", NAMES)
def test_every_graph_of_a_build_is_in_its_page(
    pages: dict[str, Path], small_root: Path, name: str
) -> None:
    scripts = Scripts(pages[name].read_text(encoding="utf-8")).text
    meta, index = json.loads(scripts["meta"]), unpacked(scripts["index"])
    folder = small_root / name / "seed-0"
    graphs = Graphs(folder, Manifest.load(folder))
    assert sorted(index["graph_id"].tolist()) == list(range(len(graphs)))
    pieces = [unpacked(scripts[f"piece-{k}"]) for k in range(-(-len(graphs) // meta["per_piece"]))]
    for place in range(0, len(graphs), 7):
        piece, i = pieces[place // meta["per_piece"]], place % meta["per_piece"]
        record = graphs[int(index["graph_id"][place])]
        nodes = slice(*piece["node_ptr"][i : i + 2].tolist())
        assert index["y"][place] == record.y
        assert index["split"][place] == record.meta["split"]
        if record.node_mask is not None:
            assert piece["mask"][nodes].tolist() == record.node_mask.astype(int).tolist()
        if record.node_y is not None:
            assert piece["node_y"][nodes].tolist() == record.node_y.tolist()
        values = piece["values"].reshape(-1, len(meta["values"]))[nodes]
        if meta["values"][0]["of"] is None:
            low = np.array([value["low"] for value in meta["values"]])
            high = np.array([value["high"] for value in meta["values"]])
            assert values / 65535 * (high - low) + low == pytest.approx(record.x, abs=1e-4)
        else:
            assert values[:, 0].tolist() == record.x.argmax(axis=1).tolist()
        if "segments" in piece:
            pixels = piece["segments"].reshape(-1, 28, 28)[i]
            assert np.array_equal(pixels, record.meta["segments"])
        else:
            edges = slice(*piece["edge_ptr"][i : i + 2].tolist())
            ends = zip(piece["sources"][edges], piece["targets"][edges], strict=True)
            assert {*ends} == {(a, b) for a, b in record.edge_index.T if a < b}


def test_scores_predictions_and_overlaps_are_those_of_the_model(
    pages: dict[str, Path], small_root: Path
) -> None:
    scripts = Scripts(pages["dihalo"].read_text(encoding="utf-8")).text
    meta, index = json.loads(scripts["meta"]), unpacked(scripts["index"])
    titles = [shown["title"] for shown in meta["explainers"]]
    assert titles == [
        "bcos of bcos-gine-dihalo", "integrated-gradients of gine-dihalo", "degree",
        "halogen-closeness",
    ]  # fmt: skip
    dataset = GraphXAIDataset.from_folder(small_root / "dihalo" / "seed-0")
    model = load_model("bcos-gine-dihalo")
    explained = np.flatnonzero(~np.isnan(index["jaccard_0"]))
    assert set(dataset.get_idx_split()["test"].tolist()) <= set(index["graph_id"][explained])
    piece = unpacked(scripts["piece-0"])
    for place in explained[:20].tolist():
        data = dataset[int(index["graph_id"][place])]
        found = explain(model, data)
        assert found.target is not None
        assert index["predicted_0"][place] == found.target[0]
        wanted = found.node_scores.detach().numpy()
        nodes = slice(*piece["node_ptr"][place : place + 2].tolist())
        stored = piece["scores_0"][nodes] / meta["scores"] * piece["scale_0"][place]
        assert stored == pytest.approx(wanted, abs=2e-4 * float(np.abs(wanted).max()))
        jaccard = jaccard_at_k(wanted, data.node_mask.numpy())
        assert index["jaccard_0"][place] == pytest.approx(jaccard, abs=1e-6)


def test_molecules_of_the_sample_are_drawn_by_rdkit(pages: dict[str, Path]) -> None:
    drawings = unpacked(Scripts(pages["dihalo"].read_text(encoding="utf-8")).text["piece-0"])
    assert len(drawings["drawings"]) == 60
    assert all("bond-0" in svg for svg in drawings["drawings"].values())


def test_a_page_says_what_was_proven_and_measured(pages: dict[str, Path], small_root: Path) -> None:
    page = pages["ba2motif"].read_text(encoding="utf-8")
    manifest = Manifest.load(small_root / "ba2motif" / "seed-0")
    assert "Verified when this page was made" in page
    assert f'data-copy="{manifest.content_sha256}"' in page
    assert "23.70 (paper)" in page
    assert 'class="word fail"' in page
    assert "trained on another build of this recipe" in page
    assert "spdx.org" in page


def test_the_same_build_gives_the_same_page(small_root: Path, tmp_path: Path) -> None:
    folder = small_root / "ba2motif" / "seed-0"
    first, second = (
        write_report(folder, out=tmp_path / name, check=False) for name in ("a.html", "b.html")
    )
    assert first.read_bytes() == second.read_bytes()


MEAN = '</script><script>alert("&")</script>'


def test_texts_of_others_are_escaped(recipe_file: Callable[..., Path], tmp_path: Path) -> None:
    recipe = recipe_file(
        ('name = "ba2motif"', 'name = "mine"'),
        ('summary = "House or', f"notes = '{MEAN} notes'\nsummary = '{MEAN} House or"),
        ('one-hot degrees"', "one-hot degrees'"),
    )
    build(recipe, root=tmp_path, graphs=40, rings=False)
    folder = tmp_path / "mine" / "seed-0"
    manifest = Manifest.load(folder)
    pass_ = Verdict("pass", MEAN)
    Measurement(
        "quick", {"p1": pass_, "p2": pass_}, score=MEAN, graphs=40,
        scores={"original": (1.0,), MEAN: (0.5,)}, content_sha256=manifest.content_sha256,
    ).save(folder)  # fmt: skip
    nodes = GraphXAIDataset.from_folder(folder)[3].num_nodes
    scores = np.arange(nodes, dtype=float)
    file = ScoreFile(
        "mine", manifest.content_sha256, MEAN, np.array([3]), np.array([0, nodes]), scores
    )
    file.save(tmp_path / "evil.safetensors")
    page = write_report(folder, [tmp_path / "evil.safetensors"]).read_text(encoding="utf-8")
    assert MEAN not in page
    assert page.count("&lt;/script&gt;&lt;script&gt;alert") >= 5
    # No script but the page's own may run, whatever else slips in.
    assert "script-src 'sha256-" in page
    script = page[page.rindex("<script>") + len("<script>") : page.rindex("</script>")]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page


def test_a_damaged_build_gets_no_page(small_build: Path) -> None:
    path = small_build / "shard-00001.h5"
    content = bytearray(path.read_bytes())
    content[-200] ^= 1
    path.write_bytes(content)
    with pytest.raises(CheckFailedError, match="a page is made of whole builds only"):
        write_report(small_build)
    assert not (small_build / "report.html").exists()


def test_explanation_files_are_shown(small_build: Path, tmp_path: Path) -> None:
    dataset = GraphXAIDataset.from_folder(small_build)
    sizes = [dataset[i].num_nodes for i in (5, 2)]
    ptr = np.array([0, sizes[0], sum(sizes)])
    scores = np.random.default_rng(0).normal(size=sum(sizes))
    content = dataset.manifest.content_sha256
    file = ScoreFile("ba2motif", content, "theirs", np.array([5, 2]), ptr, scores)
    file.save(tmp_path / "theirs.safetensors")
    page = write_report(small_build, [tmp_path / "theirs.safetensors"])
    scripts = Scripts(page.read_text(encoding="utf-8")).text
    meta, index = json.loads(scripts["meta"]), unpacked(scripts["index"])
    k = [shown["title"] for shown in meta["explainers"]].index("theirs")
    assert meta["explainers"][k]["model"] is None
    given = index["graph_id"][~np.isnan(index[f"jaccard_{k}"])]
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

    for evaluations in ([tmp_path / "table.json"], models, [m / "evaluation.json" for m in models]):
        page = write_report(small_build, evaluations).read_text(encoding="utf-8")
        table = page[page.index('id="explainers"') : page.index('id="gallery"')]
        bcos = next(line for line in table.splitlines() if "<td>bcos</td>" in line)
        assert '<td class="number">2</td></tr>' in bcos  # seeds
        mean = np.mean([json.loads((m / "evaluation.json").read_text())["splits"]["test"]["bcos"]
                        ["jaccard"] for m in models])  # fmt: skip
        assert f"{mean:.3f} ±" in bcos
        shown = json.loads(Scripts(page).text["meta"])["explainers"]
        model_titles = [s["title"] for s in shown if s["model"] is not None]
        seeds = ["bcos of bcos-gin-ba2motif", "bcos of bcos-gin-ba2motif, seed 1"]
        assert model_titles == ([] if evaluations[0].name == "table.json" else seeds)


@pytest.mark.parametrize("content", ["{}", "[]", "no json", '{"rows": 1, "content_sha256": "x"}'])
def test_other_files_are_refused(cli: Cli, small_build: Path, tmp_path: Path, content: str) -> None:
    (tmp_path / "bad.json").write_text(content)
    result = cli("report", small_build, "--evaluation", tmp_path / "bad.json")
    assert result.exit_code == 2
    assert "bad.json" in result.stderr
    assert not (small_build / "report.html").exists()


def test_the_command_prints_where_the_page_is(cli: Cli, small_build: Path, tmp_path: Path) -> None:
    result = cli("report", small_build, "--explainer", "degree", "--json")
    found = json.loads(result.stdout)
    assert found == {
        "page": str(small_build / "report.html"),
        "bytes": (small_build / "report.html").stat().st_size,
    }
    assert cli("report", tmp_path).exit_code == 2
    assert cli("report", small_build, "--evaluation", tmp_path / "none.safetensors").exit_code == 2
    assert cli("report", small_build, "--explainer", "nosuch").exit_code == 2
    (tmp_path / "file").write_text("")
    out = tmp_path / "file" / "x.html"
    blocked = cli("report", small_build, "--explainer", "degree", "--out", out)
    assert blocked.exit_code == 2
    assert "--out" in blocked.stderr


def test_explanations_of_nodes_are_not_shown(pages: dict[str, Path], small_root: Path) -> None:
    meta = json.loads(Scripts(pages["pattern"].read_text(encoding="utf-8")).text["meta"])
    assert meta["explainers"] == []
    with pytest.raises(InputError, match="its classes are of nodes"):
        write_report(small_root / "pattern" / "seed-0", [shipped("models") / "bcos-gin-ba2motif"])


def test_pieces_are_packed_until_the_page_is_long_enough(small_root: Path) -> None:
    folder = small_root / "ba2motif" / "seed-0"
    graphs = Graphs(folder, Manifest.load(folder))
    overview = graphs.overview()
    order = page_order(overview, [7, 3])
    whole = list(Packer(graphs, overview, [], 10**9, per_piece=10).pieces(order, []))
    assert len(whole) == 12
    limit = sum(map(len, whole[:5])) + 10
    packer = Packer(graphs, overview, [], limit, per_piece=10)
    pieces = list(packer.pieces(order, []))
    assert pieces == whole[:5]
    assert packer.packed == order[:50].tolist()
    assert packer.packed[:2] == [7, 3]


def test_a_page_says_how_much_it_holds(
    small_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import graphxai_data.report.page as module

    monkeypatch.setattr(module, "_GRAPHS_LIMIT", 10_000)  # less than the first piece
    folder = small_root / "mnist75sp-r23" / "seed-0"
    page = write_report(folder, out=tmp_path / "p.html", explainers=["degree"], check=False)
    text = page.read_text(encoding="utf-8")
    assert "This page holds 256 of 260 graphs" in text
    assert len(unpacked(Scripts(text).text["index"])["graph_id"]) == 256


@pytest.mark.parametrize("graphs", [1, 5])
def test_a_build_without_test_graphs_has_a_page(tmp_path: Path, graphs: int) -> None:
    build("ba2motif", root=tmp_path, graphs=graphs, rings=False)
    page = write_report(tmp_path / "ba2motif" / "seed-0").read_text(encoding="utf-8")
    assert len(unpacked(Scripts(page).text["index"])["graph_id"]) == graphs


def explainer_rows(page: Path) -> list[list[str]]:
    """The cells of the table of explainers."""
    text = page.read_text(encoding="utf-8")
    table = text[text.index('id="explainers"') : text.index('id="gallery"')]
    rows = re.findall(r"<tr>(<td.*?)</tr>", table)
    return [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in rows]


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
    page = write_report(trained["build"], given, out=tmp_path / "p.html")
    bcos = [row for row in explainer_rows(page) if row[0] == "bcos"]
    assert [row[1] for row in bcos] == ["bcos-gin", f"bcos-gin ({trained['second']})"]
    assert {row[-1] for row in bcos} == {"1"}
    scripts = Scripts(page.read_text(encoding="utf-8")).text
    index, meta = unpacked(scripts["index"]), json.loads(scripts["meta"])
    assert [shown["model"] for shown in meta["explainers"][:2]] == [0, 1]
    dataset = GraphXAIDataset.from_folder(trained["build"])
    for k, name in enumerate(("first", "second")):
        model = load_model(trained[name])
        for place in np.flatnonzero(index[f"predicted_{k}"] >= 0).tolist():
            data = dataset[int(index["graph_id"][place])]
            assert index[f"predicted_{k}"][place] == int(model(data.x, data.edge_index).argmax())


def test_lower_and_upper_bound_are_measured_once(small_build: Path) -> None:
    page = write_report(small_build, explainers=["random", "oracle"])
    counts = {row[0]: row[-1] for row in explainer_rows(page)}
    assert counts == {"random": "1", "oracle": "1"}


def test_saved_faithfulness_is_accepted_and_results_of_other_weights_refused(
    cli: Cli, trained: dict[str, Path], tmp_path: Path
) -> None:
    root = trained["build"].parent.parent
    fast = ("--set", "epochs=1", "--threads", 1, "--out", trained["first"].parent.parent)
    rows = ("--model", "bcos-gin", "--explainer", "bcos", "--seeds", 0, "--root", root)
    measured = cli("evaluate", "ba2motif", *rows, *fast, "--set", "b=2.0", "--faithfulness")
    assert measured.exit_code == 0, measured.stderr
    page = write_report(trained["build"], [trained["first"]], out=tmp_path / "p.html")
    assert explainer_rows(page)[0][0] == "bcos"

    kept = json.loads((trained["first"] / "evaluation.json").read_text())
    folder = tmp_path / "other"
    shutil.copytree(trained["first"], folder)
    kept["of"]["weights_sha256"] = "0" * 64
    (folder / "evaluation.json").write_text(json.dumps(kept))
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
    page = write_report(trained["build"], given, out=tmp_path / "p.html")
    rows = {row[0]: row[2] for row in explainer_rows(page)}
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
    rows = {row[0]: row for row in explainer_rows(pages["dihalo"])}
    assert rows["bcos"][1] == "bcos-gine of another build"
    assert rows["bcos"][3] == rows["bcos"][5] == ""


def test_the_build_command_is_given_only_where_it_works(
    recipe_file: Callable[..., Path], pages: dict[str, Path], tmp_path: Path
) -> None:
    assert "graphxai-data build ba2motif --seed 0 --graphs 120" in pages["ba2motif"].read_text()
    build(
        recipe_file(('name = "ba2motif"', 'name = "mine"')), root=tmp_path, graphs=20, rings=False
    )
    text = write_report(tmp_path / "mine" / "seed-0").read_text()
    assert "graphxai-data build mine" not in text
    assert "with this recipe (it is in <code>manifest.json</code>)" in text


def test_no_file_of_a_build_is_overwritten(cli: Cli, small_build: Path, tmp_path: Path) -> None:
    for out in (small_build / "manifest.json", small_build / "shard-00000.h5", tmp_path):
        before = None if out.is_dir() else out.read_bytes()
        result = cli("report", small_build, "--explainer", "degree", "--out", out)
        assert result.exit_code == 2
        assert "--out: expected the name of a file that ends in .html" in result.stderr
        assert before is None or out.read_bytes() == before


def test_an_explainer_that_applies_to_no_model_is_refused(cli: Cli, tmp_path: Path) -> None:
    build("ba2motif-balanced", root=tmp_path, graphs=40, rings=False)
    folder = tmp_path / "ba2motif-balanced" / "seed-0"
    result = cli("report", folder, "--explainer", "bcos")
    assert result.exit_code == 2
    assert "explainer 'bcos' is not for 'ba2motif-balanced' with no model" in result.stderr


def test_huge_scores_are_shown(trained: dict[str, Path], tmp_path: Path) -> None:
    dataset = GraphXAIDataset.from_folder(trained["build"])
    nodes = dataset[0].num_nodes
    scores = np.linspace(-1e300, 1e300, nodes)
    content, ptr = dataset.manifest.content_sha256, np.array([0, nodes])
    ScoreFile("ba2motif", content, "huge", np.array([0]), ptr, scores).save(
        tmp_path / "huge.safetensors"
    )
    page = write_report(trained["build"], [tmp_path / "huge.safetensors"], out=tmp_path / "p.html")
    scripts = Scripts(page.read_text(encoding="utf-8")).text
    place = unpacked(scripts["index"])["graph_id"].tolist().index(0)
    assert unpacked(scripts["piece-0"])["scale_0"][place] == 1e300
