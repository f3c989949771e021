"""What a page says, read without a browser."""

import base64
import json
import re
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
from graphxai_data.build import build
from graphxai_data.errors import CheckFailedError, InputError
from graphxai_data.explain.files import ScoreFile
from graphxai_data.manifest import Manifest
from graphxai_data.report.packed import Graphs
from graphxai_data.report.page import write_report

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


def test_words_of_a_recipe_stay_words(recipe_file: Callable[..., Path], tmp_path: Path) -> None:
    mean = '</script><script>alert("&")</script>'
    recipe = recipe_file(
        ('name = "ba2motif"', 'name = "mine"'),
        ('summary = "House or', f"summary = '{mean} House or"),
        ('one-hot degrees"', "one-hot degrees'"),
    )
    build(recipe, root=tmp_path, graphs=20, rings=False)
    page = write_report(tmp_path / "mine" / "seed-0").read_text(encoding="utf-8")
    assert mean not in page
    assert "&lt;/script&gt;&lt;script&gt;alert" in page


def test_a_damaged_build_gets_no_page(small_build: Path) -> None:
    path = small_build / "shard-00001.h5"
    content = bytearray(path.read_bytes())
    content[-200] ^= 1
    path.write_bytes(content)
    with pytest.raises(CheckFailedError, match="a page is made of whole builds only"):
        write_report(small_build)
    assert not (small_build / "report.html").exists()


def test_explanations_of_others_are_shown(small_build: Path, tmp_path: Path) -> None:
    dataset = GraphXAIDataset.from_folder(small_build)
    sizes = [dataset[i].num_nodes for i in (5, 2)]
    ptr = np.array([0, sizes[0], sum(sizes)])
    scores = np.random.default_rng(0).normal(size=sum(sizes))
    content = dataset.manifest.content_sha256
    file = ScoreFile("ba2motif", content, "theirs", np.array([5, 2]), ptr, scores)
    file.save(tmp_path / "theirs.h5")
    page = write_report(small_build, [tmp_path / "theirs.h5"])
    scripts = Scripts(page.read_text(encoding="utf-8")).text
    meta, index = json.loads(scripts["meta"]), unpacked(scripts["index"])
    k = [shown["title"] for shown in meta["explainers"]].index("theirs")
    assert meta["explainers"][k]["model"] is None
    given = index["graph_id"][~np.isnan(index[f"jaccard_{k}"])]
    assert sorted(given.tolist()) == [2, 5]

    ScoreFile("ba2motif", "0" * 64, "theirs", np.array([5, 2]), ptr, scores).save(tmp_path / "o.h5")
    with pytest.raises(InputError, match="about other graphs"):
        write_report(small_build, [tmp_path / "o.h5"])
    short = ScoreFile("ba2motif", content, "theirs", np.array([5, 2]), ptr - [0, 1, 1], scores[1:])
    short.save(tmp_path / "short.h5")
    with pytest.raises(InputError, match=f"{sizes[0] - 1} nodes in graph 5, expected {sizes[0]}"):
        write_report(small_build, [tmp_path / "short.h5"])
    beyond = ScoreFile("ba2motif", content, "t", np.array([40, 2]), ptr, scores)
    beyond.save(tmp_path / "beyond.h5")
    with pytest.raises(InputError, match="graph 40, but there are 40 graphs"):
        write_report(small_build, [tmp_path / "beyond.h5"])


def test_what_evaluate_leaves_is_shown(cli: Cli, small_build: Path, tmp_path: Path) -> None:
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
        of_models = [s["title"] for s in shown if s["model"] is not None]
        seeds = ["bcos of bcos-gin-ba2motif", "bcos of bcos-gin-ba2motif, seed 1"]
        assert of_models == ([] if evaluations[0].name == "table.json" else seeds)


@pytest.mark.parametrize("content", ["{}", "[]", "no json", '{"rows": 1, "content_sha256": "x"}'])
def test_what_is_no_evaluation_is_refused(
    cli: Cli, small_build: Path, tmp_path: Path, content: str
) -> None:
    (tmp_path / "bad.json").write_text(content)
    result = cli("report", small_build, "--evaluation", tmp_path / "bad.json")
    assert result.exit_code == 2
    assert "bad.json" in result.stderr
    assert not (small_build / "report.html").exists()


def test_the_command_says_where_the_page_is(cli: Cli, small_build: Path, tmp_path: Path) -> None:
    result = cli("report", small_build, "--explainer", "degree", "--json")
    found = json.loads(result.stdout)
    assert found == {
        "page": str(small_build / "report.html"),
        "bytes": (small_build / "report.html").stat().st_size,
    }
    assert cli("report", tmp_path).exit_code == 2
    assert cli("report", small_build, "--evaluation", tmp_path / "none.h5").exit_code == 2
    assert cli("report", small_build, "--explainer", "nosuch").exit_code == 2
    (tmp_path / "file").write_text("")
    blocked = cli("report", small_build, "--explainer", "degree", "--out", tmp_path / "file" / "x")
    assert blocked.exit_code == 2
    assert "--out" in blocked.stderr


def test_explanations_of_nodes_are_not_shown(pages: dict[str, Path], small_root: Path) -> None:
    meta = json.loads(Scripts(pages["pattern"].read_text(encoding="utf-8")).text["meta"])
    assert meta["explainers"] == []
    with pytest.raises(InputError, match="its classes are of nodes"):
        write_report(small_root / "pattern" / "seed-0", [small_root])


def test_a_page_holds_what_fits_and_says_so(
    small_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import graphxai_data.report.page as module

    monkeypatch.setattr(module, "_GRAPHS_LIMIT", 10_000)
    folder = small_root / "mnist75sp-r23" / "seed-0"
    page = write_report(folder, out=tmp_path / "p.html", explainers=["degree"], check=False)
    text = page.read_text(encoding="utf-8")
    assert "This page holds 256 of 260 graphs" in text
    assert len(unpacked(Scripts(text).text["index"])["graph_id"]) == 256
