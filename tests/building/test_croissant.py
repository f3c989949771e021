import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import SharedBuilds


@pytest.mark.parametrize("name", ["ba2motif", "dihalo"])
def test_mlcroissant_accepts_the_description_of_a_build(
    name: str, builds: SharedBuilds, tmp_path: Path
) -> None:
    path = builds.folder(name, rings=True) / "croissant.json"
    validate = [Path(sys.executable).with_name("mlcroissant"), "validate", "--jsonld"]
    accepted = subprocess.run([*validate, path], capture_output=True, text=True)
    assert accepted.returncode == 0, accepted.stderr
    wrong = tmp_path / "croissant.json"
    wrong.write_text(path.read_text().replace('"sha256"', '"checksum"'))
    assert subprocess.run([*validate, wrong], capture_output=True).returncode != 0


@pytest.mark.parametrize("name", ["ba2motif", "dihalo"])
def test_every_file_is_listed_with_its_hash_and_size(name: str, builds: SharedBuilds) -> None:
    folder = builds.folder(name, rings=True)
    files = json.loads((folder / "croissant.json").read_text())["distribution"]
    listed = {file["contentUrl"]: file for file in files}
    assert listed.keys() == {path.name for path in folder.iterdir()} - {"croissant.json"}
    for path in folder.iterdir():
        if path.name in listed:
            assert listed[path.name]["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
            assert listed[path.name]["contentSize"] == f"{path.stat().st_size} B"
