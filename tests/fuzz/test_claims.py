"""Files that claim, or unpack to, far more than they hold cost neither memory nor time."""

import gzip
import json
import os
import subprocess
import sys
import textwrap
import time
from typing import Any

import pytest

from graphxai_data.files.raw import gunzipped
from tests.fuzz.conftest import REPOSITORY, needs_proc

# Each makes a file in the folder `here`, and leaves `read`, which has to refuse it.
CLAIMS = {
    "an IDX file of billions of images": """
        for shape in ((2**32 - 1, 28, 28), (0, 2**32 - 1, 2**32 - 1), (2**32 - 1,) * 3):
            content = struct.pack(">4I", 0x803, *shape) + bytes(1000)
            (here / "train-images-idx3-ubyte").write_bytes(content)
            try:
                _read_idx(here, "train-images-idx3-ubyte", 3, 8)
                raise SystemExit("taken")
            except InputError:
                pass
        read = lambda: _read_idx(here, "none", 3, 8)
    """,
    "a gzip bomb": """
        member = gzip.compress(bytes(2**26))
        (here / "a.smi").write_bytes(member * 40)
        read = lambda: read_molecules(here / "a.smi")
    """,
    "a zip bomb": """
        with zipfile.ZipFile(here / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            with archive.open("NCI1_A.txt", "w", force_zip64=True) as file:
                for _ in range(10):
                    file.write(bytes(2**26))
        read = lambda: read_member(here / "a.zip", "NCI1_A.txt")
    """,
    "a dotted key of many parts": """
        (here / "a.toml").write_text("x = {" + ".".join(["a"] * 100_000) + " = 1}")
        read = lambda: read_toml(here / "a.toml")
    """,
    "a recipe of many megabytes": """
        (here / "a.toml").write_text("#" * 2**24)
        read = lambda: read_toml(here / "a.toml")
    """,
    "a plan of billions of graphs": """
        text = find("ba2motif").read_text().replace("graphs = 1000", f"graphs = {10**15}")
        (here / "a.toml").write_text(text)
        read = lambda: Recipe.load(here / "a.toml")
    """,
    "scores that are not stored": """
        entry = {"dtype": "F64", "shape": [10**12], "data_offsets": [0, 8 * 10**12]}
        header = json.dumps({"__metadata__": GOOD, "node_scores": entry}).encode()
        (here / "a").write_bytes(len(header).to_bytes(8, "little") + header)
        read = lambda: ScoreFile.load(here / "a")
    """,
    "scores of which most are not stored": """
        entry = {"dtype": "F64", "shape": [2**29], "data_offsets": [0, 2**32]}
        header = json.dumps({"__metadata__": GOOD, "node_scores": entry}).encode()
        (here / "a").write_bytes(len(header).to_bytes(8, "little") + header + bytes(2**20))
        read = lambda: ScoreFile.load(here / "a")
    """,
    "weights of many terabytes": """
        header = json.dumps({"a": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}})
        content = len(header).to_bytes(8, "little") + header.encode()
        (here / "training.safetensors").write_bytes(content)
        read = lambda: read_description(here)
    """,
    "a header of many terabytes": """
        (here / "training.safetensors").write_bytes((2**42).to_bytes(8, "little") + b"{}")
        read = lambda: read_description(here)
    """,
    "a packed file of tensors": """
        torch.save([[torch.zeros(10**7)], [], []], here / "a.pt")
        with zipfile.ZipFile(here / "a.pt") as old, zipfile.ZipFile(
            here / "b.pt", "w", zipfile.ZIP_DEFLATED
        ) as new:
            for name in old.namelist():
                new.writestr(name, old.read(name))
        read = lambda: read_lists(Source("", here / "b.pt", ""))
    """,
    "a molecule of a million atoms": """
        (here / "a.smi").write_text("C" * 10**6 + "\\n" + "C(" * 10**5)
        read = lambda: select_backgrounds(here / "a.smi", 1, rng_for(0, "x"), lambda m, c: None)
    """,
}

# One process that has imported everything forks another for each claim, and says how it ended.
SETTING = """
import gzip, json, os, signal, struct, sys, time, zipfile
from pathlib import Path
import torch
from graphxai_data.errors import DamagedError, InputError
from graphxai_data.explain.files import FORMAT, VERSION, ScoreFile
from graphxai_data.generators.mnist_images import _read_idx
from graphxai_data.generators.molecule_pool import read_molecules, select_backgrounds
from graphxai_data.generators.pattern_file import read_lists
from graphxai_data.files.raw import read_member
from graphxai_data.recipe import Recipe, find
from graphxai_data.files.toml import read_toml
from graphxai_data.seeds import rng_for
from graphxai_data.files.raw import Source
from graphxai_data.training.state import read_description
from tests.fuzz.runner import bound_memory
GOOD = {"format": FORMAT, "version": VERSION, "dataset": "d", "content_sha256": "0"}
GOOD["explainer"] = "e"

def tried(claim, code):
    here = Path(sys.argv[1]) / claim
    here.mkdir()
    space = globals() | {"here": here}
    exec(code, space)
    bound_memory()
    signal.alarm(60)
    begin = time.process_time()
    try:
        space["read"]()
        end = "taken"
    except (InputError, DamagedError) as error:
        end = f"refused: {error}"
    return {"claim": claim, "end": end, "seconds": time.process_time() - begin}

for claim, code in json.loads(sys.stdin.read()).items():
    if os.fork() == 0:
        print(json.dumps(tried(claim, code)), flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.fixture(scope="module")
def ends(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    codes = {claim: textwrap.dedent(code) for claim, code in CLAIMS.items()}
    path = os.pathsep.join([str(REPOSITORY), *sys.path])
    result = subprocess.run(
        [sys.executable, "-c", SETTING, str(tmp_path_factory.mktemp("claims"))],
        input=json.dumps(codes), capture_output=True, text=True, timeout=600, cwd=REPOSITORY,
        env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    found = [json.loads(line) for line in result.stdout.splitlines()]
    return {end["claim"]: end | {"stderr": result.stderr} for end in found}


@needs_proc
@pytest.mark.parametrize("claim", CLAIMS)
def test_a_claim_is_refused_within_memory_and_time(
    claim: str, ends: dict[str, dict[str, Any]]
) -> None:
    assert claim in ends, "it ended the process"
    assert ends[claim]["end"].startswith("refused"), ends[claim]
    assert ends[claim]["seconds"] < 10


@needs_proc
def test_a_gzip_file_of_many_members_takes_time_in_proportion() -> None:
    def seconds(count: int) -> float:
        content = gzip.compress(b"C") * count
        begin = time.process_time()
        assert len(gunzipped(content, "file")) == count
        return time.process_time() - begin

    # In quadratic time the ratio would be 64.
    assert min(seconds(64_000) for _ in range(2)) < 30 * min(seconds(8_000) for _ in range(3))
