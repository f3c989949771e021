"""What a page contains, read without a browser."""

import base64
import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

from graphxai_data import GraphXAIDataset
from graphxai_data.building.build import build
from graphxai_data.datasets.records import Graphs
from graphxai_data.errors import CheckFailedError
from graphxai_data.explain.files import ScoreFile
from graphxai_data.manifest import Manifest
from graphxai_data.report.packed import Packer, page_order
from graphxai_data.report.page import write_report
from graphxai_data.rings.verdict import Measurement, Verdict
from tests.report.reading import Page

Cli = Callable[..., Result]
NAMES = ["ba2motif", "dihalo", "mnist75sp-r23", "pattern"]


@pytest.mark.parametrize("name", NAMES)
def test_a_page_needs_no_other_file(pages: dict[str, Path], name: str) -> None:
    page = Page(pages[name])
    assert all(reference.startswith("#") for reference in page.references)
    assert "default-src 'none'" in page.text
    assert "@import" not in page.text
    assert not re.search(r"url\((?!#)", page.text)


@pytest.mark.parametrize("name", NAMES)
def test_every_graph_of_a_build_is_in_its_page(
    pages: dict[str, Path], small_root: Path, name: str
) -> None:
    page = Page(pages[name])
    meta, index = page.meta, page.index
    folder = small_root / name / "seed-0"
    graphs = Graphs(folder, Manifest.load(folder))
    assert sorted(index["graph_id"].tolist()) == list(range(len(graphs)))
    pieces = [page.piece(k) for k in range(-(-len(graphs) // meta["per_piece"]))]
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


def test_molecules_of_the_sample_are_drawn_by_rdkit(pages: dict[str, Path]) -> None:
    drawings = Page(pages["dihalo"]).piece(0)["drawings"]
    assert len(drawings) == 60
    assert all("bond-0" in svg for svg in drawings.values())


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


def test_the_command_prints_where_the_page_is(cli: Cli, small_build: Path, tmp_path: Path) -> None:
    result = cli("report", small_build, "--explainer", "degree", "--json")
    assert json.loads(result.stdout) == {
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
    out = tmp_path / "p.html"
    page = Page(write_report(folder, out=out, explainers=["degree"], check=False))
    assert "This page holds 256 of 260 graphs" in page.text
    assert len(page.index["graph_id"]) == 256


@pytest.mark.parametrize("graphs", [1, 5])
def test_a_build_without_test_graphs_has_a_page(tmp_path: Path, graphs: int) -> None:
    build("ba2motif", root=tmp_path, graphs=graphs, rings=False)
    page = Page(write_report(tmp_path / "ba2motif" / "seed-0"))
    assert len(page.index["graph_id"]) == graphs


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
