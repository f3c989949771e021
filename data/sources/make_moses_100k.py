"""Make `moses-100k.smi.gz`, the pinned pool of molecules for rules on real molecules.

    pip download --no-deps molsets==0.3.1 && unzip molsets-0.3.1-*.whl
    python data/sources/make_moses_100k.py moses/dataset/data/train.csv.gz

From the 1.58 million ZINC Clean Leads of MOSES (Polykovskiy et al. 2020, MIT licence), keep the
molecules with at least 15 heavy atoms; MOSES has none with more than 27. Halogens stay, so that
rules about them have matches. Among those, take the 100,000 with the smallest SHA-256 of "rules "
and their SMILES: a random sample without a random generator, and another one than that of
`zinc-clean-leads`. Write one SMILES per line, sorted.
"""

import argparse
import gzip
import hashlib
import re
from pathlib import Path

MOLECULES = 100_000
MIN_HEAVY_ATOMS = 15
ATOM = re.compile(r"\[[^\]]+\]|Br|Cl|[BCNOPSFIbcnops]")


def is_large_enough(smiles: str) -> bool:
    """Return whether a molecule has enough atoms."""
    return len(ATOM.findall(smiles)) >= MIN_HEAVY_ATOMS


def select(lines: list[str], count: int) -> list[str]:
    """Return the `count` molecules with the smallest hashes, sorted."""
    pool = sorted(
        set(filter(is_large_enough, lines)),
        key=lambda smiles: hashlib.sha256(f"rules {smiles}".encode()).digest(),
    )
    return sorted(pool[:count])


def main() -> None:
    """Read the CSV file named on the command line, write the pool next to this script."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("csv", type=Path, help="train.csv.gz of the package molsets 0.3.1")
    header, *lines = gzip.decompress(parser.parse_args().csv.read_bytes()).decode().splitlines()
    if header.split(",")[0] != "SMILES":
        raise SystemExit(f"expected a column SMILES, got {header!r}")
    text = "\n".join(select([line.split(",")[0] for line in lines], MOLECULES)) + "\n"
    target = Path(__file__).with_name("moses-100k.smi.gz")
    target.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    print(f"bytes = {target.stat().st_size}")
    print(f'sha256 = "{hashlib.sha256(target.read_bytes()).hexdigest()}"')
    print(f'text_sha256 = "{hashlib.sha256(text.encode()).hexdigest()}"')


if __name__ == "__main__":
    main()
