"""Time per graph and peak memory of builds from 1,000 to a million graphs, with one and two jobs.

Run with `python -m benchmarks.growth [--most 1000000]`. Every build runs in its own process, as a
user starts it. Memory is that of the process and all its workers together.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from typing import Any

import psutil

_SECONDS_BETWEEN_SAMPLES = 0.05


def measured_build(graphs: int, jobs: int) -> dict[str, float]:
    """Return seconds and peak memory in MiB of one build without RINGS."""
    with tempfile.TemporaryDirectory() as root:
        command = [sys.executable, "-m", "graphxai_data.cli", "build", "ba2motif", "--no-rings"]
        options = ["--graphs", str(graphs), "--jobs", str(jobs), "--root", root, "--json"]
        start = time.perf_counter()
        process = subprocess.Popen([*command, *options], stdout=subprocess.DEVNULL)
        peak = 0
        while process.poll() is None:
            peak = max(peak, _memory_of(process.pid))
            time.sleep(_SECONDS_BETWEEN_SAMPLES)
        seconds = time.perf_counter() - start
    if process.returncode:
        raise SystemExit(f"the build of {graphs} graphs failed")
    return {"seconds": seconds, "MiB": peak / 2**20}


def _memory_of(pid: int) -> int:
    """Return the resident bytes of a process and its children; shared pages count for each."""
    try:
        parent = psutil.Process(pid)
        family = [parent, *parent.children(recursive=True)]
        return sum(member.memory_info().rss for member in family)
    except psutil.NoSuchProcess:  # the process ended while we measured it
        return 0


def grown(most: int) -> dict[str, Any]:
    """Return time per graph and memory for 1,000, 10,000, … graphs, relative to 10,000 graphs."""
    measured_build(100, 1)  # fills the cache of compiled functions
    sizes = [10**power for power in range(3, 10) if 10**power <= most]
    runs = {size: measured_build(size, 1) for size in sizes}
    reference = runs[10_000]
    result: dict[str, Any] = {
        f"{size:,} graphs": {
            "time per graph, times that of 10,000": round(
                (run["seconds"] / size) / (reference["seconds"] / 10_000), 2
            ),
            "peak memory, times that of 10,000": round(run["MiB"] / reference["MiB"], 2),
            "peak memory, MiB": round(run["MiB"]),
        }
        for size, run in runs.items()
    }
    many = min(most, 100_000)
    two = measured_build(many, 2)
    result[f"{many:,} graphs, two jobs"] = {
        "times as fast as one": round(runs[many]["seconds"] / two["seconds"], 2),
        "peak memory, MiB": round(two["MiB"]),
    }
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--most", type=int, default=10**6, help="graphs of the largest build")
    print(json.dumps(grown(max(parser.parse_args().most, 10_000)), indent=2))


if __name__ == "__main__":
    main()
