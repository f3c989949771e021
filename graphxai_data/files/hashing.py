"""SHA-256 and CRC-32 of files and folders."""

import hashlib
import zlib
from pathlib import Path

from graphxai_data.files.raw import read_member


def folder_sha256(folder: Path, members: tuple[str, ...]) -> str:
    """Return the SHA-256 of names and contents of files in a folder or zip, gzipped or not."""
    digest = hashlib.sha256()
    for name in members:
        content = hashlib.sha256(read_member(folder, name)).hexdigest()
        digest.update(f"{content}  {name}\n".encode())
    return digest.hexdigest()


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def file_crc32(path: Path) -> int:
    """Return the CRC-32 of a file, read in pieces."""
    value = 0
    with path.open("rb") as file:
        while chunk := file.read(1 << 22):
            value = zlib.crc32(chunk, value)
    return value
