"""No name leads out of its folder, and no file can make the package run code."""

import ast
import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import Result

import graphxai_data
from graphxai_data.building.build import build
from graphxai_data.building.verify import verify
from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.errors import GraphXAIDataError, InputError
from graphxai_data.explain.files import ScoreFile
from graphxai_data.files.raw import Source, read_member
from graphxai_data.generators.pattern_file import read_lists
from graphxai_data.recipe import Recipe, find
from graphxai_data.training.train import train

PACKAGE = Path(graphxai_data.__file__).parent
EVIL = ["../evil", "/tmp/evil", "a/../../evil", "..", ".", "a\\..\\evil", "evil\0", "~/evil", ""]  # noqa: S108


def _all_paths(folder: Path) -> set[Path]:
    return set(folder.rglob("*"))


@pytest.mark.parametrize("name", EVIL)
def test_the_name_of_a_recipe_does_not_lead_out_of_the_root(
    tmp_path: Path, name: str, cli: Callable[..., Result]
) -> None:
    text = find("ba2motif").read_text(encoding="utf-8")
    path = tmp_path / "r.toml"
    escaped = name.replace("\\", "\\\\").replace("\0", "\\u0000")
    path.write_text(text.replace('name = "ba2motif"', f'name = "{escaped}"'))
    before = _all_paths(tmp_path)
    with pytest.raises(InputError):
        build(path, root=tmp_path / "deep" / "root", graphs=10)
    assert _all_paths(tmp_path) == before


@pytest.mark.parametrize("name", EVIL)
def test_names_of_datasets_models_and_explainers_do_not_lead_out_of_their_folders(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "deep" / "root"
    build("ba2motif", root=root, graphs=20, engine="serial", rings=False)
    monkeypatch.chdir(root)
    before = _all_paths(tmp_path)
    dataset = GraphXAIDataset(root, "ba2motif")
    for call in (
        lambda: build(name, root=root, graphs=10),
        lambda: GraphXAIDataset(root, name),
        lambda: train(dataset, name, out=root / "runs"),
        lambda: train(dataset, "gin", name, out=root / "runs"),
        lambda: graphxai_data.load_model(name),
        lambda: graphxai_data.evaluate(dataset, [name]),
    ):
        with pytest.raises((GraphXAIDataError, ValueError)):
            call()
    assert _all_paths(tmp_path) == before


def test_members_of_an_archive_with_paths_out_of_its_folder_are_never_unpacked(
    tmp_path: Path,
) -> None:
    path = tmp_path / "deep" / "a.zip"
    path.parent.mkdir()
    link = zipfile.ZipInfo("NCI1_A.txt")
    link.external_attr = 0o120777 << 16  # a symbolic link on Unix
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("../evil.txt", "/evil.txt", "..\\evil.txt", "x/../../evil.txt"):
            archive.writestr(name, "evil")
        archive.writestr(link, "/etc/passwd")
    before = _all_paths(tmp_path)
    # The text of the link, not the file it points to.
    assert read_member(path, "NCI1_A.txt") == b"/etc/passwd"
    with pytest.raises(InputError, match="no file NCI1_graph_labels.txt"):
        read_member(path, "NCI1_graph_labels.txt")
    assert _all_paths(tmp_path) == before


@pytest.mark.parametrize(
    "claim",
    [
        {"data_offsets": [0, 8]},
        {"data_offsets": [40, 16]},
        {"data_offsets": [2**62, 2**62 + 16]},
        {"data_offsets": [40, 2**40], "shape": [2**37]},
        {"shape": [2**61, 8]},
        {"dtype": "F128"},
        {"dtype": "F4", "shape": [32]},
        {"dtype": "BF16", "shape": [8]},
        {"shape": [2, 1]},
        {"shape": []},
        {"shape": ["a"]},
    ],
)
def test_an_explanation_file_that_claims_arrays_it_does_not_hold_is_refused(
    tmp_path: Path, claim: dict[str, Any]
) -> None:
    _check_header_is_refused(tmp_path / "a.safetensors", "node_scores", claim)


def test_an_explanation_file_with_an_array_in_place_of_a_text_is_refused(tmp_path: Path) -> None:
    _check_header_is_refused(tmp_path / "a.safetensors", "__metadata__", {"dataset": [0] * 1000})


def _check_header_is_refused(path: Path, key: str, change: dict[str, Any]) -> None:
    ScoreFile("d", "0" * 64, "../../evil", np.arange(2), np.arange(3), np.ones(2)).save(path)
    content = path.read_bytes()
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    assert header["node_scores"]["data_offsets"] == [40, 56]
    header[key] |= change
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[end:])
    with pytest.raises(InputError, match="a.safetensors: "):
        ScoreFile.load(path)


def test_shards_may_be_links_and_verify_reads_the_files_they_point_to(tmp_path: Path) -> None:
    build("ba2motif", root=tmp_path, graphs=20, shard_size=10, engine="serial", rings=False)
    folder = tmp_path / "ba2motif" / "seed-0"
    shard = folder / "shard-00001.h5"
    shard.rename(tmp_path / "elsewhere.h5")
    shard.symlink_to(tmp_path / "elsewhere.h5")
    assert verify(folder) == []
    shard.unlink()
    shard.symlink_to("/etc/passwd")
    assert any("shard-00001.h5" in problem for problem in verify(folder))
    shard.unlink()
    shard.symlink_to("/dev/zero")  # it never ends
    assert any("shard-00001.h5" in problem for problem in verify(folder))


class Hostile:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("zipped", [True, False])
def test_a_file_of_tensors_cannot_run_code(tmp_path: Path, zipped: bool) -> None:
    path = tmp_path / "a.pt"
    torch.save([Hostile(tmp_path / "evil"), [], []], path, _use_new_zipfile_serialization=zipped)
    with pytest.raises(InputError, match="cannot be read"):
        read_lists(Source("", path, ""))
    assert not (tmp_path / "evil").exists()


FORBIDDEN_MODULES = {
    "pickle", "cPickle", "_pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "yaml",
    "tarfile", "code", "runpy",
}  # fmt: skip
FORBIDDEN_CALLS = {
    "eval", "exec", "compile", "__import__", "extractall", "extract", "unpack_archive", "system",
    "popen", "read_pickle", "to_pickle",
}  # fmt: skip
UNSAFE_TORCH_CALLS = {"save", "load", "jit"}


def _unsafe_names(code: str) -> list[str]:
    """Return the imports and calls in some code that could run or unpack a file."""
    names = []
    for node in ast.walk(ast.parse(code)):
        modules = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = [node.module or ""]
        names += [name for name in modules if name.split(".")[0] in FORBIDDEN_MODULES]
        if not isinstance(node, ast.Call):
            continue
        function, keywords = node.func, {k.arg: k.value for k in node.keywords}
        if "allow_pickle" in keywords:
            names.append("allow_pickle")
        if isinstance(function, ast.Name) and function.id in FORBIDDEN_CALLS:
            names.append(function.id)
        if not isinstance(function, ast.Attribute):
            continue
        owner = function.value.id if isinstance(function.value, ast.Name) else ""
        if function.attr in FORBIDDEN_CALLS and owner not in ("re", "nn"):
            names.append(function.attr)
        if owner == "torch" and function.attr in UNSAFE_TORCH_CALLS:
            safe = keywords.get("weights_only")
            if function.attr != "load" or not (
                isinstance(safe, ast.Constant) and safe.value is True
            ):
                names.append(f"torch.{function.attr}")
        if owner in ("np", "numpy") and function.attr == "load":
            names.append("numpy.load")
    return names


def test_no_code_of_the_package_runs_or_unpacks_a_file() -> None:
    paths = list(PACKAGE.rglob("*.py"))
    assert len(paths) > 100
    for path in paths:
        assert _unsafe_names(path.read_text(encoding="utf-8")) == [], path.name


@pytest.mark.parametrize(
    "code",
    [
        "import pickle", "from joblib import load", "eval('1')", "torch.load(p)",
        "torch.load(p, weights_only=False)", "np.load(p)", "archive.extractall()",
        "np.savez(p, allow_pickle=True)", "torch.save(a, b)", "os.system('x')",
    ],
)  # fmt: skip
def test_the_search_finds_each_unsafe_call(code: str) -> None:
    assert _unsafe_names(code)
    assert _unsafe_names("torch.load(p, weights_only=True); re.compile('x')") == []


def test_a_recipe_must_be_a_regular_file(tmp_path: Path) -> None:
    for path in ("/dev/zero", str(tmp_path), "/proc/self/mem"):
        with pytest.raises(InputError):
            Recipe.load(Path(path))
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(InputError, match="no such recipe file"):
        Recipe.load(tmp_path / "pipe.toml")
