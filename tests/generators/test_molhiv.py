import gzip
import json
import os
import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import Result
from ogb.graphproppred import Evaluator
from ogb.utils.features import allowable_features
from ogb.utils.mol import smiles2graph

from graphxai_data import GraphXAIDataset, build
from graphxai_data.building.verify import verify
from graphxai_data.errors import InputError
from graphxai_data.files.raw import Source
from graphxai_data.generators.molhiv import ATOM_WIDTHS, BOND_WIDTHS, MolHIVGenerator
from graphxai_data.generators.molhiv_proof import MolHIVProver
from graphxai_data.graphs.shards import ShardReader
from graphxai_data.metrics import roc_auc
from graphxai_data.recipe import Recipe
from graphxai_data.training.train import train

RAW = os.environ.get("GRAPHXAI_DATA_RAW")
SMILES = [
    "CCO", "c1ccccc1", "C[C@H](N)C(=O)O", "F/C=C/F", "F/C=C\\F", "[Na+].[Cl-]", "C#N",
    "[O-][N+](=O)c1ccccc1", "CC(C)(C)[Si]", "[CH3]", "O=S(=O)(O)c1ccc2ccccc2c1", "[Fe+2]",
    "C1CC1", "N#Cc1ccncc1", "[2H]C", "CCBr", "C[N+](C)(C)C", "P(c1ccccc1)(c1ccccc1)c1ccccc1",
    "[U]", "OO",
]  # fmt: skip
# RDKit's full sanitisation refuses its valences, as it does seven rows of the real table.
UNUSUAL = "CN(C)(C)(C)C"


def files(rows: int = 60, last: str = UNUSUAL) -> dict[str, str]:
    smiles = [*(SMILES * rows)[: rows - 1], last]
    table = ["smiles,HIV_active", *(f"{s},{int(i % 5 == 0)}" for i, s in enumerate(smiles))]
    parts = {"train": range(0, rows - 20), "valid": range(rows - 20, rows - 10),
             "test": range(rows - 10, rows)}  # fmt: skip
    splits = {f"split/scaffold/{k}.csv": "".join(f"{i}\n" for i in v) for k, v in parts.items()}
    return {"hiv.csv": "\n".join(table) + "\n", **splits}


def published_files(rows: int = 60) -> dict[str, str]:
    """Return such molecules as OGB publishes them; the unusual one is left out."""
    texts = files(rows, last="CC")
    lines = texts.pop("hiv.csv").splitlines()
    smiles, label = zip(*(line.split(",") for line in lines[1:]), strict=True)
    graphs = [smiles2graph(s) for s in smiles]

    def table(values: list[np.ndarray]) -> str:
        return "".join(",".join(map(str, row)) + "\n" for part in values for row in part.tolist())

    mapping = ["HIV_active,smiles,mol_id"]
    mapping += [f"{y},{s},ID{i}" for i, (s, y) in enumerate(zip(smiles, label, strict=True))]
    return texts | {
        "raw/node-feat.csv": table([g["node_feat"] for g in graphs]),
        # Each bond once; smiles2graph gives both directions, one after the other.
        "raw/edge.csv": table([g["edge_index"][:, ::2].T for g in graphs]),
        "raw/edge-feat.csv": table([g["edge_feat"][::2] for g in graphs]),
        "raw/num-node-list.csv": "".join(f"{g['num_nodes']}\n" for g in graphs),
        "raw/num-edge-list.csv": "".join(f"{g['edge_index'].shape[1] // 2}\n" for g in graphs),
        "raw/graph-label.csv": "\n".join(label) + "\n",
        "mapping/mol.csv": "\n".join(mapping) + "\n",
    }


def written(folder: Path, texts: dict[str, str], packed: str = "plain") -> Path:
    if packed == "zip":
        with zipfile.ZipFile(folder / "hiv.zip", "w") as archive:
            for name, text in texts.items():
                archive.writestr(f"hiv/{name}.gz", gzip.compress(text.encode()))
        return folder / "hiv.zip"
    for name, text in texts.items():
        path = folder / (f"{name}.gz" if packed == "gzip" else name)
        path.parent.mkdir(parents=True, exist_ok=True)
        content = text.encode()
        path.write_bytes(gzip.compress(content) if packed == "gzip" else content)
    return folder


def test_names_of_values_are_ogbs() -> None:
    """A last option for all others is "misc" in OGB, "other" here."""
    values = MolHIVGenerator(Recipe.load("molhiv").params).edge_values()
    ours = [[name.replace("other", "misc") for name in options] for options in values.values()]
    theirs = ("possible_bond_type_list", "possible_bond_stereo_list", "possible_is_conjugated_list")
    yes_no = {False: "no", True: "yes"}
    assert ours == [
        [yes_no.get(option, option) for option in allowable_features[key]] for key in theirs
    ]


@pytest.mark.parametrize("packed", ["plain", "gzip", "zip"])
def test_graphs_are_ogbs(packed: str, tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    source = written(tmp_path / "raw", files(), packed)
    build("molhiv", root=tmp_path, graphs=60, sources={"molhiv": source}, rings=False)
    folder = tmp_path / "molhiv" / "seed-0"
    assert verify(folder, full=True, sources={"molhiv": source}) == []
    dataset = GraphXAIDataset(tmp_path, "molhiv")
    assert dataset.num_node_features == sum(ATOM_WIDTHS) == 174
    assert dataset.num_edge_features == sum(BOND_WIDTHS) == 13
    for i, data in enumerate(dataset):
        assert data.y.item() == int(i % 5 == 0)
        assert data.smiles == [*(SMILES * 60)[:59], UNUSUAL][i]
        if data.smiles == UNUSUAL:
            assert data.num_nodes == 6
            continue
        theirs = smiles2graph(data.smiles)
        atoms = torch.stack([p.argmax(dim=1) for p in data.x.split(ATOM_WIDTHS, dim=1)], dim=1)
        assert np.array_equal(atoms, theirs["node_feat"])
        assert (data.x.sum(dim=1) == 9).all()
        order = np.lexsort(theirs["edge_index"][::-1])
        assert np.array_equal(data.edge_index, theirs["edge_index"][:, order])
        bonds = [p.argmax(dim=1) for p in data.edge_attr.split(BOND_WIDTHS, dim=1)]
        assert np.array_equal(torch.stack(bonds, dim=1), theirs["edge_feat"][order])
    split = dataset.get_idx_split()
    assert split["test"].tolist() == list(range(50, 60))


@pytest.mark.parametrize("packed", ["plain", "gzip", "zip"])
def test_the_files_that_ogb_publishes_give_the_same_graphs(packed: str, tmp_path: Path) -> None:
    (tmp_path / "raw").mkdir()
    source = written(tmp_path / "raw", published_files(), packed)
    build("molhiv", root=tmp_path, sources={"molhiv": source}, graphs=60, rings=False)
    folder = tmp_path / "molhiv" / "seed-0"
    assert verify(folder, full=True, sources={"molhiv": source}) == []
    (tmp_path / "table").mkdir()
    table = written(tmp_path / "table", files(last="CC"))
    build("molhiv", root=tmp_path / "b", sources={"molhiv": table}, graphs=60, rings=False)
    ours, theirs = GraphXAIDataset(tmp_path, "molhiv"), GraphXAIDataset(tmp_path / "b", "molhiv")
    assert len(ours) == len(theirs) == 60
    for a, b in zip(ours, theirs, strict=True):
        assert a.smiles == b.smiles
        for key in ("x", "edge_index", "edge_attr", "y", "split"):
            assert torch.equal(a[key], b[key]), key


def test_the_proof_accepts_what_the_reader_accepts(tmp_path: Path) -> None:
    texts = published_files()
    texts["raw/num-node-list.csv"] += "\n\n"
    texts[ATOMS] = texts[ATOMS].replace("5,0,", "005, 0,", 1)
    source = written(tmp_path, texts)
    build("molhiv", root=tmp_path, graphs=60, sources={"molhiv": source}, rings=False)
    folder = tmp_path / "molhiv" / "seed-0"
    assert verify(folder, full=True, sources={"molhiv": source}) == []


def test_the_proof_finds_an_invalid_smiles(tmp_path: Path) -> None:
    texts = published_files()
    texts["mapping/mol.csv"] = texts["mapping/mol.csv"].replace(",CCO,", ",CC(O,", 1)
    source = written(tmp_path, texts)
    build("molhiv", root=tmp_path, graphs=60, sources={"molhiv": source}, rings=False)
    folder = tmp_path / "molhiv" / "seed-0"
    problems = verify(folder, sources={"molhiv": source})
    assert [p.partition("graph 0: ")[2] for p in problems] == ["its SMILES cannot be read"]


def test_a_graph_that_is_not_the_published_one_is_found(tmp_path: Path) -> None:
    source = written(tmp_path, published_files())
    build("molhiv", root=tmp_path, graphs=30, sources={"molhiv": source}, rings=False)
    shard = ShardReader(tmp_path / "molhiv" / "seed-0" / "shard-00000.h5")
    prover = MolHIVProver(None, {"molhiv": Source("user's file", source, "")})
    record = next(r for r in shard if r.num_nodes > 3)
    assert prover.problems(record) == []
    record.x[0, -4:] = 1 - record.x[0, -4:]  # aromatic or not, in a ring or not
    assert prover.problems(record) == ["its atoms are not those of the files"]
    record.edge_attr[0, -2:] = 1 - record.edge_attr[0, -2:]
    assert "its bonds are not those of the files" in prover.problems(record)


def test_a_wrong_graph_is_found(tmp_path: Path) -> None:
    source = written(tmp_path, files())
    build("molhiv", root=tmp_path, graphs=60, sources={"molhiv": source}, rings=False)
    shard = ShardReader(tmp_path / "molhiv" / "seed-0" / "shard-00000.h5")
    prover = MolHIVProver(None, {"molhiv": Source("user's file", source, "")})
    record = shard[0]
    assert prover.problems(record) == []
    record.x[0] = np.roll(record.x[0], 1)
    assert "its atoms are not those of its SMILES" in prover.problems(record)


def changed(name: str, old: str, new: str) -> Callable[[dict[str, str]], dict[str, str]]:
    def change(texts: dict[str, str]) -> dict[str, str]:
        assert old in texts[name]
        return texts | {name: texts[name].replace(old, new, 1)}

    return change


VALID = "split/scaffold/valid.csv"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: {k: v for k, v in t.items() if k != VALID}, "no file valid.csv"),
        (changed("hiv.csv", "HIV_active", "label"), "expected columns smiles and HIV_active, got"),
        (changed("hiv.csv", "CCO,1", "CCO,2"), "line 2: expected a SMILES and 0 or 1"),
        (changed("hiv.csv", "CCO,1", "CCO"), "line 2: expected a SMILES and 0 or 1"),
        (changed("hiv.csv", "CCO,1", "C(C,1"), "row 0: not a SMILES: 'C\\(C'"),
        (changed(VALID, "45\n", "999\n"), "999; expected rows of hiv.csv, 0 to 59"),
        (changed(VALID, "45\n", "x\n"), "valid.csv: line 6: expected a whole number, got 'x'"),
        (changed(VALID, "45\n", "46\n"), "row 46 occurs twice"),
        (changed(VALID, "45\n", "5\n"), "row 5 occurs twice, or is also in another split"),
        (changed(VALID, "45\n", ""), "row 45 of hiv.csv is in no split"),
    ],
)
def test_files_that_make_no_sense_are_refused_and_nothing_is_written(
    change: Callable[[dict[str, str]], dict[str, str]],
    message: str,
    tmp_path: Path,
    cli: Callable[..., Result],
) -> None:
    (tmp_path / "raw").mkdir()
    source = written(tmp_path / "raw", change(files()))
    result = cli(
        "build", "molhiv", "--root", tmp_path, "--source", f"molhiv={source}", "--graphs", 60
    )
    assert result.exit_code == 2
    assert re.search(message, result.stderr), result.stderr
    assert not (tmp_path / "molhiv" / "seed-0").exists()


ATOMS, ENDS, COUNTS = "raw/node-feat.csv", "raw/edge.csv", "raw/num-node-list.csv"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t | {ENDS: ""}, "raw/edge.csv: has no lines; is it truncated"),
        (lambda t: {k: v for k, v in t.items() if k != ENDS}, "no file edge.csv"),
        (changed(ATOMS, "5,0,", "5,0,x"), "node-feat.csv: line 1: expected 9 whole numbers"),
        (changed(ATOMS, "5,0,", "119,0,"), "line 1: 119 in column 1, expected 0 to 118"),
        (changed(ATOMS, "5,0,", "-1,0,"), "line 1: -1 in column 1, expected 0 to 118"),
        (lambda t: t | {ATOMS: t[ATOMS][: t[ATOMS].rindex("\n5,")]}, "lines, expected .* the sum"),
        (changed(ENDS, "0,1", "0,3"), "line 1: 0, 3; expected two atoms, 0 to 2, of molecule 0"),
        (changed(ENDS, "0,1", "0,0"), "line 1: 0, 0; expected two atoms"),
        (changed(ENDS, "0,1\n1,2", "0,1\n1,0"), "line 2: a bond occurs twice"),
        (changed("raw/edge-feat.csv", "0,0,0\n", ""), "edge-feat.csv: .* lines, expected"),
        (changed("raw/edge-feat.csv", "0,0,0\n", "0,6,0\n"), "6 in column 2, expected 0 to 5"),
        (changed(COUNTS, "3\n", "0\n"), "num-node-list.csv: line 1: 0, expected 1 to"),
        (changed(COUNTS, "3\n", "2\n"), "expected .*, the sum of raw/num-node-list.csv"),
        (changed(COUNTS, "3\n", ""), "num-node-list.csv: 59 lines, expected 60"),
        (changed("raw/graph-label.csv", "1\n", "2\n"), "line 1: 2 in column 1, expected 0 to 1"),
        (changed("raw/graph-label.csv", "1\n", "0\n"), "60 rows with other classes than the 60"),
        (changed("mapping/mol.csv", "smiles", "text"), "expected columns smiles and HIV_active"),
        (changed(VALID, "45\n", ""), "row 45 of mapping/mol.csv is in no split"),
    ],
)
def test_published_files_that_make_no_sense_are_refused(
    change: Callable[[dict[str, str]], dict[str, str]], message: str, tmp_path: Path
) -> None:
    source = written(tmp_path, change(published_files()))
    with pytest.raises(InputError, match=message):
        build("molhiv", root=tmp_path / "out", graphs=60, sources={"molhiv": source})
    assert not (tmp_path / "out" / "molhiv" / "seed-0").exists()


def test_without_its_files_it_says_where_to_get_them(
    tmp_path: Path, cli: Callable[..., Result]
) -> None:
    result = cli("build", "molhiv", "--root", tmp_path)
    assert result.exit_code == 2
    assert "get it from https://ogb.stanford.edu" in result.stderr
    assert "pass --source molhiv=DIR" in result.stderr


def test_more_molecules_than_the_source_has_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="60 graphs, 61 asked for"):
        source = written(tmp_path, files())
        build("molhiv", root=tmp_path, graphs=61, sources={"molhiv": source})


def test_a_model_learns_and_is_measured_as_ogb_measures(tmp_path: Path) -> None:
    source = written(tmp_path, files())
    build("molhiv", root=tmp_path, graphs=60, sources={"molhiv": source}, rings=False)
    dataset = GraphXAIDataset(tmp_path, "molhiv")
    _, card = train(dataset, "bcos-gine", out=tmp_path / "r", changes={"epochs": 1, "hidden": 4})
    assert 0 <= card.scores["test"]["roc_auc"] <= 1
    draws = np.random.default_rng(0)
    label = draws.integers(0, 2, 200)
    score = draws.normal(size=200).round(1)  # with ties
    theirs = Evaluator("ogbg-molhiv").eval({"y_true": label[:, None], "y_pred": score[:, None]})
    assert roc_auc(score, label) == pytest.approx(theirs["rocauc"], abs=1e-12)


@pytest.mark.skipif(RAW is None, reason="GRAPHXAI_DATA_RAW does not point at the raw files")
def test_the_real_files_give_the_pinned_digest(tmp_path: Path, cli: Callable[..., Result]) -> None:
    order = ["build", "molhiv", "--root", tmp_path, "--source", f"molhiv={RAW}/molhiv", "--json"]
    built = json.loads(cli(*order).stdout)
    assert built["reference"] == "matches data/digests.toml"
    assert built["statistics"]["class_splits"]["1"] == {"train": 1232, "valid": 81, "test": 130}
