import gzip
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphxai_data.errors import InputError
from graphxai_data.files import raw as raw_files
from graphxai_data.generators.molecule_pool import read_molecules

MOLECULES = ["CCO", "c1ccccc1", "CC(=O)N"]


@pytest.mark.parametrize(
    "text",
    [
        "CCO\nc1ccccc1\nCC(=O)N\n",
        "CCO\r\nc1ccccc1\r\n\r\nCC(=O)N",
        "# a comment\nCCO ethanol\nc1ccccc1\tbenzene\nCC(=O)N x y\n",
        "SMILES\nCCO\nc1ccccc1\nCC(=O)N\n",
        "id,smiles,logP\n1,CCO,0.1\n2,c1ccccc1,2\n3,CC(=O)N,-1\n",
        '"SMILES","SPLIT"\n"CCO","train"\n"c1ccccc1","test"\n"CC(=O)N","train"\n',
        "name\tSmiles\na\tCCO\nb\tc1ccccc1\nc\tCC(=O)N\n",
        "\ufeffsmiles\nCCO\nc1ccccc1\nCC(=O)N\n",
        "smiles zinc_id\nCCO Z1\nc1ccccc1 Z2\nCC(=O)N Z3\n",
        "zinc_id smiles\nZ1 CCO\nZ2 c1ccccc1\nZ3 CC(=O)N\n",
        'smiles,logP\n"CCO\n",0.1\n"c1ccccc1 benzene",2\n"CC(=O)N\n",-1\n',
    ],
)
@pytest.mark.parametrize("zipped", [False, True])
def test_every_common_form_is_read(tmp_path: Path, text: str, zipped: bool) -> None:
    path = tmp_path / "pool"
    path.write_bytes(gzip.compress(text.encode()) if zipped else text.encode())
    assert read_molecules(path) == MOLECULES


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no molecules in it"),
        (b"\n\n# nothing\n", "no molecules in it"),
        (b"id,logP\n1,2\n", "a CSV file without a column SMILES"),
        (b"CCO\nC\xff\xfeC\n", "line 2 is not UTF-8 text"),
        (b"\x1f\x8b\x08damaged", "a damaged gzip file"),
        (b'smiles,x\n"CCO,1\nCCN,2\n', "not valid CSV"),
        (b'smiles,x\n"CCO,1\n' + b"CCN,2\n" * 40000, "not valid CSV"),
        (gzip.compress(b"CCO\n" * 100, mtime=0)[:-9], "a damaged gzip file"),
    ],
)
def test_a_file_that_is_no_pool_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "pool.smi"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        read_molecules(path)
    assert str(path) in str(caught.value)


def test_a_gzip_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw_files, "MAX_BYTES", 2**20)
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b"C" * 2**22))
    with pytest.raises(InputError, match="more than 1 MiB; use a part"):
        read_molecules(path)


@given(st.binary(max_size=200))
def test_any_file_is_read_or_refused_with_an_input_error(content: bytes) -> None:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        path = Path(folder) / "pool"
        path.write_bytes(content)
        with suppress(InputError):
            assert all(isinstance(line, str) for line in read_molecules(path))
