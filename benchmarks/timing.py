"""Timing shared by the benchmarks: alternate the contestants, take each one's best."""

import time
from collections.abc import Callable
from typing import Any


def best_seconds(contestants: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Shortest time of each, measured in turns so that a noisy moment hits all alike."""
    best = dict.fromkeys(contestants, float("inf"))
    for _ in range(rounds):
        for name, run in contestants.items():
            start = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - start)
    return best
