import gzip
import json
import os
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

from graphxai_data import GraphXAIDataset, build, evaluate
from graphxai_data.building.verify import verify
from graphxai_data.errors import InputError
from graphxai_data.manifest import Manifest
from graphxai_data.training.train import train

RAW = os.environ.get("GRAPHXAI_DATA_RAW")
Files = dict[str, str]


def tu_files(graphs: int = 60, seed: int = 0) -> Files:
    """Return small files in the format of TUDataset: cycles, with edges in random order."""
    draws = np.random.default_rng(seed)
    edges, indicator, kinds, labels = [], [], [], []
    for graph in range(1, graphs + 1):
        first, size = len(indicator) + 1, int(draws.integers(3, 8))
        pairs = [(first + i, first + (i + 1) % size) for i in range(size)]
        edges += [*pairs, *((b, a) for a, b in pairs)]
        indicator += [graph] * size
        kinds += draws.integers(1, 38, size).tolist()
        labels.append(int(draws.integers(0, 2)))
    draws.shuffle(edges)
    lines = {
        "A": [f"{a}, {b}" for a, b in edges],
        "graph_indicator": indicator,
        "graph_labels": labels,
        "node_labels": kinds,
    }
    return {f"NCI1_{k}.txt": "".join(f"{line}\n" for line in v) for k, v in lines.items()}


def written(folder: Path, files: Files, packed: str = "plain") -> Path:
    if packed == "zip":
        with zipfile.ZipFile(folder / "NCI1.zip", "w") as archive:
            for name, text in files.items():
                archive.writestr(f"NCI1/{name}", text)
        return folder / "NCI1.zip"
    for name, text in files.items():
        if packed == "gzip":
            (folder / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
        else:
            (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize("packed", ["plain", "gzip", "zip"])
def test_graphs_are_those_of_the_files(packed: str, tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    files = tu_files()
    source = written(tmp_path / "raw", files, packed)
    manifest = build("nci1", root=tmp_path, graphs=60, sources={"nci1": source}, rings=False)
    folder = tmp_path / "nci1" / "seed-0"
    assert verify(folder, full=True, sources={"nci1": source}) == []
    dataset = GraphXAIDataset(tmp_path, "nci1")
    assert len(dataset) == 60
    assert not dataset.has_rationale
    assert dataset.task == "graph"
    assert "node_mask" not in dataset[0]
    indicator = [int(line) for line in files["NCI1_graph_indicator.txt"].split()]
    kinds = np.array([int(line) for line in files["NCI1_node_labels.txt"].split()])
    for i, data in enumerate(dataset):
        nodes = np.flatnonzero(np.array(indicator) == i + 1)
        assert (data.x.argmax(dim=1).numpy() + 1 == kinds[nodes]).all()
        assert data.y.item() == int(files["NCI1_graph_labels.txt"].split()[i])
        assert data.is_undirected()
        assert data.num_edges == 2 * len(nodes)
    assert manifest.statistics["rationale_nodes_mean"] is None
    assert Manifest.load(folder).statistics == manifest.statistics
    shares = {k: len(v) for k, v in dataset.get_idx_split().items()}
    assert shares == {"train": 42, "valid": 12, "test": 6}


def test_line_ends_and_blanks_at_the_end_do_not_matter(tmp_path: Path) -> None:
    manifests = []
    for end in ("\n", "\r\n", "\n\n\n"):
        folder = tmp_path / str(len(manifests))
        folder.mkdir()
        files = {k: v.rstrip().replace("\n", end.strip("\n") + "\n") + end for k, v in
                 tu_files().items()}  # fmt: skip
        source = written(folder, files)
        manifests.append(
            build("nci1", root=folder, graphs=30, sources={"nci1": source}, rings=False)
        )
        assert verify(folder / "nci1" / "seed-0", full=True, sources={"nci1": source}) == []
    assert len({m.content_sha256 for m in manifests}) == 1


def test_the_same_files_packed_otherwise_are_the_same_source(tmp_path: Path) -> None:
    manifests = []
    for packed in ("plain", "gzip", "zip"):
        folder = tmp_path / packed
        folder.mkdir()
        source = written(folder, tu_files(), packed)
        manifests.append(
            build("nci1", root=folder, graphs=30, sources={"nci1": source}, rings=False)
        )
    assert len({m.content_sha256 for m in manifests}) == 1
    assert len({m.sources["nci1"].sha256 for m in manifests}) == 1


def changed(name: str, old: str, new: str) -> Callable[[Files], Files]:
    def change(files: Files) -> Files:
        key = f"NCI1_{name}.txt"
        assert old in files[key] or not old
        text = files[key].replace(old, new, 1) if old else new
        return files | {key: text}

    return change


def without(name: str) -> Callable[[Files], Files]:
    return lambda files: {k: v for k, v in files.items() if k != f"NCI1_{name}.txt"}


def cut(name: str) -> Callable[[Files], Files]:
    def change(files: Files) -> Files:
        text = files[f"NCI1_{name}.txt"]
        return files | {f"NCI1_{name}.txt": text[: text.rindex("\n", 0, -1) + 1]}

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without("A"), "no file NCI1_A.txt"),
        (changed("A", "", ""), "NCI1_A.txt: has no lines; is it truncated"),
        (cut("node_labels"), "NCI1_node_labels.txt: .* lines, expected .*: is a file truncated"),
        (cut("graph_labels"), "graph 60, expected 1 to 59, the graphs of NCI1_graph_labels.txt"),
        (cut("A"), r"NCI1_A.txt: line \d+: \d+, \d+ lacks its reverse"),
        (changed("graph_labels", "1\n", "2\n"), r"line \d+: 2 in column 1, expected 0 to 1"),
        (changed("node_labels", "", "1\n" * 10**3), "lines, expected"),
        (changed("graph_labels", "1\n", "x\n"), r"line \d+: expected a whole number, got 'x'"),
        (changed("graph_labels", "1\n", "1.5\n"), r"line \d+: expected a whole number, got '1.5'"),
        (changed("graph_labels", "1\n", "1 0\n"), r"line \d+: expected a whole number, got '1 0'"),
        (changed("graph_labels", "1\n", "1\n\n"), r"line \d+: expected a whole number, got ''"),
        (changed("graph_labels", "1\n", "-\n"), r"line \d+: expected a whole number, got '-'"),
        (changed("graph_labels", "1\n", "1, 2\n"), "expected a whole number, got '1, 2'"),
        (changed("graph_labels", "1\n", "9" * 20 + "\n"), "expected a whole number, got '999"),
        (changed("graph_indicator", "1\n", "9" * 20 + "\n"), "line 1: expected a whole number"),
        (changed("graph_indicator", "1\n", "9" * 14 + "\n"), "line 1: graph 99999999999999, exp"),
        (changed("graph_indicator", "1\n", "-1\n"), "line 1: graph -1, expected 1 to 60"),
        (changed("A", "\n", ", 3\n"), "line 1: expected 2 whole numbers, separated by commas"),
        (changed("A", ", ", " , ,"), "line 1: expected 2 whole numbers, separated by commas"),
        (changed("A", "", "1 2,\n"), "line 1: expected 2 whole numbers, .* got '1 2,'"),
        (changed("A", "", "1, 999999\n"), "line 1: 1, 999999 are not both nodes: expected"),
        (changed("A", "", "0, 1\n"), "line 1: 0, 1 are not both nodes: expected numbers from 1"),
        (changed("A", "", "1, 30\n30, 1\n"), "line 1: 1, 30 joins nodes of two graphs"),
        (changed("A", "", "1, 1\n"), "line 1: 1, 1 is a self-loop"),
        (changed("A", "", "1, 2\n2, 1\n1, 2\n"), "line 3: 1, 2 is there twice"),
        (changed("graph_indicator", "1\n", "2\n"), "line 2: graph 1 after graph 2; expected"),
    ],
)  # fmt: skip
def test_files_that_make_no_sense_are_refused_and_nothing_is_written(
    change: Callable[[Files], Files], message: str, tmp_path: Path, cli: Callable[..., Result]
) -> None:
    (tmp_path / "raw").mkdir()
    files = change(tu_files())
    source = written(tmp_path / "raw", files)
    result = cli("build", "nci1", "--root", tmp_path, "--source", f"nci1={source}", "--graphs", 20)
    assert result.exit_code == 2
    assert re.search(message, result.stderr), result.stderr
    assert not (tmp_path / "nci1").exists()


def test_kinds_of_atoms_beyond_the_recipes_are_refused(tmp_path: Path) -> None:
    files = tu_files()
    kinds = files["NCI1_node_labels.txt"].split()
    kinds[3] = "38"
    files["NCI1_node_labels.txt"] = "\n".join(kinds) + "\n"
    with pytest.raises(
        InputError, match=r"node_labels.txt: line 4: 38 in column 1, expected 1 to 37"
    ):
        build("nci1", root=tmp_path, graphs=20, sources={"nci1": written(tmp_path, files)})


def test_more_graphs_than_the_source_has_are_refused(tmp_path: Path) -> None:
    source = written(tmp_path, tu_files())
    with pytest.raises(InputError, match="60 graphs, 61 asked for"):
        build("nci1", root=tmp_path, graphs=61, sources={"nci1": source})


def test_predictions_are_measured_and_explanations_refused(tmp_path: Path) -> None:
    source = written(tmp_path, tu_files())
    build("nci1", root=tmp_path, graphs=60, sources={"nci1": source}, rings=False)
    dataset = GraphXAIDataset(tmp_path, "nci1")
    _, card = train(dataset, "bcos-gin", out=tmp_path / "runs", changes={"epochs": 1, "hidden": 4})
    assert set(card.scores["test"]) == {"loss", "accuracy", "f1", "roc_auc"}
    with pytest.raises(
        InputError, match="'nci1' has no rationale: what its classes come from is unknown"
    ):
        evaluate(dataset, ["degree"])
    with pytest.raises(InputError, match="no rationale is known for this graph"):
        dataset[0].to_explanation()


@pytest.mark.skipif(RAW is None, reason="GRAPHXAI_DATA_RAW does not point at the raw files")
def test_the_real_files_give_the_pinned_digest(tmp_path: Path, cli: Callable[..., Result]) -> None:
    order = ["build", "nci1", "--root", tmp_path, "--source", f"nci1={RAW}/nci1", "--json"]
    built = json.loads(cli(*order).stdout)
    assert built["reference"] == "matches data/digests.toml"
    assert built["statistics"]["classes"] == {"0": 2053, "1": 2057}
    assert round(built["statistics"]["nodes_mean"] * 4110) == 122_747
    assert round(built["statistics"]["edges_mean"] * 4110) == 265_506
    assert built["rings"]["p1"]["verdict"] == "pass"
    order[3] = tmp_path / "fewer"
    assert (
        cli(*order, "--graphs", 1000).exit_code == 0
    )  # means of a part are not held to those of all
