"""Files that claim, or unpack to, far more than they hold are refused at little cost."""

import gzip
import json
import textwrap
import time
from typing import Any

import pytest

from graphxai_data.files.raw import gunzipped
from tests.conftest import needs_proc, run_python

# The code writes a file into `folder`, and defines `read`, which has to refuse it.
CLAIMS = {
    "an IDX file of billions of images": """
        for shape in ((2**32 - 1, 28, 28), (0, 2**32 - 1, 2**32 - 1), (2**32 - 1,) * 3):
            content = struct.pack(">4I", 0x803, *shape) + bytes(1000)
            (folder / "train-images-idx3-ubyte").write_bytes(content)
            try:
                _read_idx(folder, "train-images-idx3-ubyte", 3, 8)
                raise SystemExit("accepted")
            except InputError:
                pass
        read = lambda: _read_idx(folder, "none", 3, 8)
    """,
    "a gzip bomb": """
        member = gzip.compress(bytes(2**26), 1)
        (folder / "a.smi").write_bytes(member * 40)
        read = lambda: read_molecules(folder / "a.smi")
    """,
    "a zip bomb": """
        with zipfile.ZipFile(
            folder / "a.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1
        ) as archive:
            with archive.open("NCI1_A.txt", "w", force_zip64=True) as file:
                for _ in range(10):
                    file.write(bytes(2**26))
        read = lambda: read_member(folder / "a.zip", "NCI1_A.txt")
    """,
    "a dotted key of many parts": """
        (folder / "a.toml").write_text("x = {" + ".".join(["a"] * 100_000) + " = 1}")
        read = lambda: read_toml(folder / "a.toml")
    """,
    "a recipe of many megabytes": """
        (folder / "a.toml").write_text("#" * 2**24)
        read = lambda: read_toml(folder / "a.toml")
    """,
    "a plan of billions of graphs": """
        text = find("ba2motif").read_text().replace("graphs = 1000", f"graphs = {10**15}")
        (folder / "a.toml").write_text(text)
        read = lambda: Recipe.load(folder / "a.toml")
    """,
    "scores that are not stored": """
        entry = {"dtype": "F64", "shape": [10**12], "data_offsets": [0, 8 * 10**12]}
        header = json.dumps({"__metadata__": GOOD, "node_scores": entry}).encode()
        (folder / "a").write_bytes(len(header).to_bytes(8, "little") + header)
        read = lambda: ScoreFile.load(folder / "a")
    """,
    "scores of which most are not stored": """
        entry = {"dtype": "F64", "shape": [2**29], "data_offsets": [0, 2**32]}
        header = json.dumps({"__metadata__": GOOD, "node_scores": entry}).encode()
        (folder / "a").write_bytes(len(header).to_bytes(8, "little") + header + bytes(2**20))
        read = lambda: ScoreFile.load(folder / "a")
    """,
    "weights of many terabytes": """
        header = json.dumps({"a": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}})
        content = len(header).to_bytes(8, "little") + header.encode()
        (folder / "training.safetensors").write_bytes(content)
        read = lambda: read_description(folder)
    """,
    "a header of many terabytes": """
        (folder / "training.safetensors").write_bytes((2**42).to_bytes(8, "little") + b"{}")
        read = lambda: read_description(folder)
    """,
    "a packed file of tensors": """
        torch.save([[torch.zeros(10**7)], [], []], folder / "a.pt")
        with zipfile.ZipFile(folder / "a.pt") as old, zipfile.ZipFile(
            folder / "b.pt", "w", zipfile.ZIP_DEFLATED
        ) as new:
            for name in old.namelist():
                new.writestr(name, old.read(name))
        read = lambda: read_lists(Source("", folder / "b.pt", ""))
    """,
    "a molecule of a million atoms": """
        (folder / "a.smi").write_text("C" * 10**6 + "\\n" + "C(" * 10**5)
        read = lambda: select_backgrounds(folder / "a.smi", 1, rng_for(0, "x"), lambda m, c: None)
    """,
}

# A process that has imported everything forks a child for each claim, which prints the outcome.
READ_EACH = """
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
from tests.fuzz.runner import limit_memory
GOOD = {"format": FORMAT, "version": VERSION, "dataset": "d", "content_sha256": "0"}
GOOD["explainer"] = "e"

def try_to_read(claim, code):
    folder = Path(sys.argv[1]) / claim
    folder.mkdir()
    namespace = globals() | {"folder": folder}
    exec(code, namespace)
    limit_memory()
    signal.alarm(60)
    start = time.process_time()
    try:
        namespace["read"]()
        outcome = "accepted"
    except (InputError, DamagedError) as error:
        outcome = f"refused: {error}"
    return {"claim": claim, "outcome": outcome, "seconds": time.process_time() - start}

for claim, code in json.loads(sys.stdin.read()).items():
    if os.fork() == 0:
        print(json.dumps(try_to_read(claim, code)), flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What became of each claim."""
    codes = {claim: textwrap.dedent(code) for claim, code in CLAIMS.items()}
    folder = tmp_path_factory.mktemp("claims")
    result = run_python(READ_EACH, folder, input=json.dumps(codes), timeout=600)
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    return {answer["claim"]: answer | {"stderr": result.stderr} for answer in answers}


@needs_proc
@pytest.mark.parametrize("claim", CLAIMS)
def test_a_file_with_a_false_claim_is_refused_within_memory_and_time(
    claim: str, outcomes: dict[str, dict[str, Any]]
) -> None:
    assert claim in outcomes, "it ended the process"
    assert outcomes[claim]["outcome"].startswith("refused"), outcomes[claim]
    assert outcomes[claim]["seconds"] < 10


@needs_proc
def test_reading_a_gzip_file_takes_time_in_proportion_to_its_members() -> None:
    def seconds(count: int) -> float:
        content = gzip.compress(b"C") * count
        start = time.process_time()
        assert len(gunzipped(content, "file")) == count
        return time.process_time() - start

    # In quadratic time the ratio would be 64.
    assert min(seconds(64_000) for _ in range(2)) < 30 * min(seconds(8_000) for _ in range(3))
