"""Processor time and bytes per graph, and the resulting cost of 10^9 graphs.

Each dataset is built in two sizes, with one process and without RINGS. The difference does not
contain the cost of starting. We use processor time, so other work on the machine does not count.

    python -m benchmarks.cost [--graphs N] [DATASET ...]
"""

import argparse
import json
import subprocess
import sys
import tempfile

# Limited by the shipped sources, or to about a minute.
GRAPHS = {"ba2motif": 40_000, "dihalo": 9_000, "mnist75sp": 8_000, "pattern": 2_000}
BILLION = 10**9

# Prints processor seconds of the whole build, those after the last shard, and bytes of the shards.
BUILD = """
import json, sys, time
from pathlib import Path
from graphxai_data.building.build import build
ticks = [time.process_time()]
build(sys.argv[1], graphs=int(sys.argv[2]), root=sys.argv[3], jobs=1, rings=False,
      progress=lambda *_: ticks.append(time.process_time()))
end = time.process_time()
size = sum(path.stat().st_size for path in Path(sys.argv[3]).rglob("*.h5"))
print(json.dumps([end - ticks[0], end - ticks[-1], size]))
"""


def measure_build(dataset: str, graphs: int) -> list[float]:
    with tempfile.TemporaryDirectory() as root:
        command = [sys.executable, "-c", BUILD, dataset, str(graphs), root]
        process = subprocess.run(command, check=True, stdout=subprocess.PIPE)
        return list(json.loads(process.stdout))


def cost(dataset: str, graphs: int) -> tuple[float, float, float]:
    """Return graphs per second and core, the share of work outside workers, and bytes per graph."""
    few = graphs // 4
    small, large = measure_build(dataset, few), measure_build(dataset, graphs)
    total, head, size = (b - a for a, b in zip(small, large, strict=True))
    return (graphs - few) / total, head / total, size / (graphs - few)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("datasets", nargs="*", default=list(GRAPHS))
    parser.add_argument("--graphs", type=int)
    options = parser.parse_args()
    print("| dataset | graphs/s/core | head | bytes/graph | 10^9: core hours | 10^9: TB |")
    print("| --- | --- | --- | --- | --- | --- |")
    for dataset in options.datasets:
        rate, head, size = cost(dataset, options.graphs or GRAPHS.get(dataset, 4_000))
        hours, terabytes = BILLION / rate / 3600, BILLION * size / 1e12
        cells = (f"`{dataset}`", f"{rate:,.0f}", f"{head:.0%}", f"{size:,.0f}", f"{hours:,.0f}")
        print(f"| {' | '.join(cells)} | {terabytes:.2f} |")


if __name__ == "__main__":
    main()
