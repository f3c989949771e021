"""How a build grows: time a graph and peak memory from 1,000 to a million graphs, one job and two.

Run with `python -m benchmarks.growth [--most 1000000]`. Every build is a process of its own, as a
user starts it; memory is that of the process and all its workers together.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from typing import Any

import psutil

_SECONDS_BETWEEN_LOOKS = 0.05


def measured_build(graphs: int, jobs: int) -> dict[str, float]:
    """Seconds, and the most memory at any time in MiB, of one build without RINGS."""
    with tempfile.TemporaryDirectory() as root:
        command = [sys.executable, "-m", "graphxai_data.cli", "build", "ba2motif", "--no-rings"]
        options = ["--graphs", str(graphs), "--jobs", str(jobs), "--root", root, "--json"]
        start = time.perf_counter()
        process = subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL)
        most = 0
        while process.poll() is None:
            most = max(most, _memory_of(process.pid))
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        seconds = time.perf_counter() - start
    if process.returncode:
        raise SystemExit(f"the build of {graphs} graphs failed")
    return {"seconds": seconds, "MiB": most / 2**20}


def _memory_of(pid: int) -> int:
    """Bytes that a process and its children have in memory; shared pages count for each."""
    try:
        parent = psutil.Process(pid)
        family = [parent, *parent.children(recursive=True)]
        return sum(member.memory_info().rss for member in family)
    except psutil.NoSuchProcess:  # it ended while it was looked at
        return 0


def grown(most: int) -> dict[str, Any]:
    """For 1,000, 10,000, … graphs: seconds a graph and memory, relative to 10,000 graphs."""
    measured_build(100, 1)  # compiles what is compiled
    sizes = [10**power for power in range(3, 10) if 10**power <= most]
    found = {size: measured_build(size, 1) for size in sizes}
    usual = found[10_000]
    result: dict[str, Any] = {
        f"{size:,} graphs": {
            "time a graph, times that of 10,000": round(
                (run["seconds"] / size) / (usual["seconds"] / 10_000), 2
            ),
            "peak memory, times that of 10,000": round(run["MiB"] / usual["MiB"], 2),
            "peak memory, MiB": round(run["MiB"]),
        }
        for size, run in found.items()
    }
    many = min(most, 100_000)
    two = measured_build(many, 2)
    result[f"{many:,} graphs, two jobs"] = {
        "times faster than one": round(found[many]["seconds"] / two["seconds"], 2),
        "peak memory, MiB": round(two["MiB"]),
    }
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=10**6, help="graphs of the largest build")
    print(json.dumps(grown(max(parser.parse_args().most, 10_000)), indent=2))


if __name__ == "__main__":
    main()
