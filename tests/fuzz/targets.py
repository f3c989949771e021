"""The kinds of files that are fuzzed.

Each target writes valid files into a folder, and returns their paths and a function that reads one.
"""

import dataclasses
import gzip
import hashlib
import json
import re
import shutil
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from graphxai_data.building.build import build
from graphxai_data.building.plan import make_plan, read_sources
from graphxai_data.recipe import Recipe, find, shipped_names
from graphxai_data.sources import find_sources

Target = tuple[list[Path], Callable[[Path], Any]]
SMILES = ("CCO", "c1ccccc1CC", "CC(=O)Nc1ccc(O)cc1", "C[C@H](N)C(=O)OCC", "CCN1CCC(CC1)C(C)=O")


def recipes(folder: Path) -> Target:
    paths = []
    for name in shipped_names():
        shutil.copy(find(name), folder / f"{name}.toml")
        paths.append(folder / f"{name}.toml")
    return paths, Recipe.load


def smiles(folder: Path) -> Target:
    from graphxai_data.generators.molecule_pool import select_backgrounds
    from graphxai_data.seeds import rng_for

    plain, table, compressed = folder / "a.smi", folder / "b.csv", folder / "c.smi.gz"
    plain.write_text("\n".join(f"{s} name{i}" for i, s in enumerate(SMILES)))
    table.write_text("id,SMILES\n" + "".join(f'{i},"{s}"\n' for i, s in enumerate(SMILES)))
    compressed.write_bytes(gzip.compress(plain.read_bytes()))
    return [plain, table, compressed], lambda path: select_backgrounds(
        path, 5, rng_for(0, "fuzz"), lambda molecule, candidate: None
    )


def _read_source(name: str, source: str, path: Path, graphs: int) -> None:
    """Read a source as a build does, and generate graphs from it."""
    from graphxai_data.building.build import ShardTask, make_shard

    recipe = Recipe.load(name)
    sources = find_sources(recipe, {source: path})
    plan, _ = read_sources(make_plan(recipe, 0, graphs, sources), recipe, sources, 0)
    make_shard(ShardTask("s", recipe, 0, plan))


def grafts(folder: Path) -> Target:
    from graphxai_data.generators.molecule_pool import read_molecules

    shipped = find_sources(Recipe.load("dihalo"))["zinc"].path
    path = folder / "pool.smi"
    path.write_text("\n".join(read_molecules(shipped)[:40]))
    return [path], lambda path: _read_source("dihalo", "zinc", path, 3)


def idx(folder: Path) -> Target:
    draws = np.random.default_rng(0)
    paths = []
    for part, count in (("train", 30), ("t10k", 10)):
        images = draws.integers(0, 256, (count, 28, 28), np.uint8) * (draws.random((28, 28)) < 0.3)
        labels = (np.arange(count) % 10).astype(np.uint8)
        for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
            paths.append(folder / f"{part}-{kind}-ubyte")
            header = struct.pack(f">I{array.ndim}I", 0x0800 | array.ndim, *array.shape)
            paths[-1].write_bytes(header + array.astype(np.uint8).tobytes())
    return paths, lambda path: _read_source("mnist75sp", "mnist", path.parent, 4)


def tu(folder: Path) -> Target:
    from tests.generators.test_nci1 import tu_files

    for name, text in tu_files(20).items():
        (folder / name).write_text(text)
    return sorted(folder.iterdir()), lambda path: _read_source("nci1", "nci1", path.parent, 10)


def tu_zip(folder: Path) -> Target:
    from tests.generators.test_nci1 import tu_files

    with zipfile.ZipFile(folder / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in tu_files(10).items():
            archive.writestr(f"NCI1/{name}", text)
    return [folder / "a.zip"], lambda path: _read_source("nci1", "nci1", path, 5)


def ogb(folder: Path) -> Target:
    from tests.generators.test_molhiv import published_files, written

    written(folder, published_files(40))
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return paths, lambda path: _read_source("molhiv", "molhiv", folder, 10)


def ogb_table(folder: Path) -> Target:
    from tests.generators.test_molhiv import files, written

    written(folder, files(40))
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return paths, lambda path: _read_source("molhiv", "molhiv", folder, 10)


def pattern(folder: Path) -> Target:
    from tests.generators.test_pattern_published import published, written

    path = written(folder, published(7))
    return [path], lambda path: _read_source("pattern-published", "pattern", path, 7)


def shards(folder: Path) -> Target:
    from graphxai_data.graphs.shards import ShardReader

    build("dihalo", root=folder, graphs=9, engine="serial", rings=False)

    def read(path: Path) -> None:
        shard = ShardReader(path)
        shard.check()
        for record in shard:
            assert record.num_nodes >= 0

    return [folder / "dihalo" / "seed-0" / "shard-00000.h5"], read


def builds(folder: Path) -> Target:
    from graphxai_data.building.verify import verify
    from graphxai_data.datasets.in_memory import GraphXAIDataset

    build("ba2motif", root=folder, graphs=20, engine="serial")
    build_folder = folder / "ba2motif" / "seed-0"

    def read(path: Path) -> None:
        assert all(isinstance(problem, str) for problem in verify(build_folder))
        GraphXAIDataset.from_folder(build_folder)

    return [build_folder / name for name in ("manifest.json", "rings.json")], read


def _save_model(folder: Path) -> tuple[Any, Any]:
    """Save a checkpoint of an untrained model; return the model and its card."""
    import torch

    from graphxai_data.nn.zoo import Settings, make_model
    from graphxai_data.training.checkpoint import Card, Shape, TrainingData, save_checkpoint

    shape = Shape(in_features=5, edge_features=0, classes=2)
    settings = Settings.named("bcos-gin", "ba2motif", changes={"hidden": 8})
    with torch.random.fork_rng():
        model = make_model("bcos-gin", settings.architecture, **dataclasses.asdict(shape))
    data = TrainingData("ba2motif", 0, "0" * 64, "1" * 64)
    card = Card("bcos-gin", "default", 0, True, shape, settings.architecture, settings.training,
                data, {"test": {"f1": 0.5}})  # fmt: skip
    return model, save_checkpoint(folder, model.state_dict(), card)


def checkpoints(folder: Path) -> Target:
    """Checkpoints of an attacker: the digest in the card always fits the weights."""
    from graphxai_data.training.checkpoint import CARD, WEIGHTS, load_checkpoint

    _save_model(folder)

    def read(path: Path) -> None:
        if path.name == WEIGHTS:
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            text = (folder / CARD).read_text()
            text = re.sub(r'weights_sha256 = ".*?"', f'weights_sha256 = "{digest}"', text)
            (folder / CARD).write_text(text)
        load_checkpoint(folder)

    return [folder / WEIGHTS, folder / CARD], read


def states(folder: Path) -> Target:
    """States of a stopped training from an attacker: the digest always fits."""
    import safetensors.torch

    from graphxai_data.training import state as training_state
    from graphxai_data.training.state import STATE, Epoch, TrainingState, read_description

    model, card = _save_model(folder)
    state = TrainingState.new(model, 0.01)
    for parameter in model.parameters():
        parameter.grad = parameter.detach().clone()
    state.optimiser.step()
    state.history = [Epoch(0.5, {"loss": 0.5, "accuracy": 0.5}, 0.01, 1.0)]
    state.save(folder, card, {"threads": 1})
    with safetensors.safe_open(folder / STATE, "pt") as file:
        about = file.metadata()["about"]
    (folder / "about.json").write_text(about)
    tensors = safetensors.torch.load_file(folder / STATE)

    def read(path: Path) -> None:
        if path.name == "about.json":
            text = path.read_bytes().decode(errors="replace")
            metadata = {"about": text, "sha256": training_state._digest(text, tensors)}
            (folder / STATE).write_bytes(safetensors.torch.save(tensors, metadata))
        read_description(folder)
        TrainingState.new(model, 0.01).load(folder)

    return [folder / STATE, folder / "about.json"], read


def scores(folder: Path) -> Target:
    from graphxai_data.explain.files import ScoreFile

    path = folder / "scores.safetensors"
    ScoreFile(
        "ba2motif", "0" * 64, "theirs", np.arange(5), np.arange(6) * 3, np.linspace(0, 1, 15),
        np.arange(6) * 2, np.linspace(0, 1, 10),
    ).save(path)  # fmt: skip
    return [path], ScoreFile.load


def evaluations(folder: Path) -> Target:
    """Saved evaluations of a model: if damaged, it is evaluated again."""
    from types import SimpleNamespace

    from graphxai_data.evaluation.study import SavedRows

    manifest = SimpleNamespace(content_sha256="1" * 64)
    dataset, card = SimpleNamespace(manifest=manifest), SimpleNamespace(weights_sha256="2" * 64)
    path = folder / "evaluation.json"
    saved = SavedRows(path, dataset, card, "test", force=False)  # type: ignore[arg-type]
    saved.write({"bcos": {"jaccard": 0.5, "auroc": None, "curves": {"a": [0.1]}}})

    def read(path: Path) -> None:
        saved = SavedRows(path, dataset, card, "test", force=False)  # type: ignore[arg-type]
        assert isinstance(saved.rows, dict)
        assert all(isinstance(row, dict) for row in saved.rows.values())
        json.dumps(saved.rows)

    return [path], read


TARGETS: dict[str, Callable[[Path], Target]] = {
    "recipes": recipes, "smiles": smiles, "grafts": grafts, "idx": idx, "tu": tu,
    "tu_zip": tu_zip, "ogb": ogb, "ogb_table": ogb_table, "pattern": pattern, "shards": shards,
    "builds": builds, "checkpoints": checkpoints, "states": states, "scores": scores,
    "evaluations": evaluations,
}  # fmt: skip
