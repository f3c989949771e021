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
from ogb.utils.mol import smiles2graph

from graphxai_data import GraphXAIDataset, build
from graphxai_data.errors import InputError
from graphxai_data.generators.molhiv import ATOM_WIDTHS, BOND_WIDTHS, Prover
from graphxai_data.metrics import roc_auc
from graphxai_data.shards import ShardReader
from graphxai_data.sources import Source
from graphxai_data.train import train
from graphxai_data.verify import verify

RAW = os.environ.get("GRAPHXAI_DATA_RAW")
SMILES = [
    "CCO", "c1ccccc1", "C[C@H](N)C(=O)O", "F/C=C/F", "F/C=C\\F", "[Na+].[Cl-]", "C#N",
    "[O-][N+](=O)c1ccccc1", "CC(C)(C)[Si]", "[CH3]", "O=S(=O)(O)c1ccc2ccccc2c1", "[Fe+2]",
    "C1CC1", "N#Cc1ccncc1", "[2H]C", "CCBr", "C[N+](C)(C)C", "P(c1ccccc1)(c1ccccc1)c1ccccc1",
    "[U]", "OO",
]  # fmt: skip
# RDKit's full sanitisation refuses its valences, as it does seven rows of the real table.
UNUSUAL = "CN(C)(C)(C)C"


def files(rows: int = 60) -> dict[str, str]:
    smiles = [*(SMILES * rows)[: rows - 1], UNUSUAL]
    table = ["smiles,HIV_active", *(f"{s},{int(i % 5 == 0)}" for i, s in enumerate(smiles))]
    parts = {"train": range(0, rows - 20), "valid": range(rows - 20, rows - 10),
             "test": range(rows - 10, rows)}  # fmt: skip
    splits = {f"split/scaffold/{k}.csv": "".join(f"{i}\n" for i in v) for k, v in parts.items()}
    return {"hiv.csv": "\n".join(table) + "\n", **splits}


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


def test_a_wrong_graph_is_found(tmp_path: Path) -> None:
    source = written(tmp_path, files())
    build("molhiv", root=tmp_path, graphs=60, sources={"molhiv": source}, rings=False)
    shard = ShardReader(tmp_path / "molhiv" / "seed-0" / "shard-00000.h5")
    prover = Prover(None, {"molhiv": Source("user's file", source, "")})
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
        (changed(VALID, "45\n", "999\n"), "'999'; expected rows of hiv.csv, 0 to 59"),
        (changed(VALID, "45\n", "x\n"), "'x'; expected rows of hiv.csv"),
        (changed(VALID, "45\n", "46\n"), "row 46 is there twice"),
        (changed(VALID, "45\n", "5\n"), "row 5 is there twice, or in another split"),
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


def test_without_its_files_it_says_where_to_get_them(
    tmp_path: Path, cli: Callable[..., Result]
) -> None:
    result = cli("build", "molhiv", "--root", tmp_path)
    assert result.exit_code == 2
    assert "get it from https://ogb.stanford.edu" in result.stderr
    assert "pass --source molhiv=DIR" in result.stderr


def test_more_molecules_than_there_are_cannot_be_had(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="60 molecules, 61 asked for"):
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
