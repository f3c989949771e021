"""Timing for the benchmarks: contestants take turns, and the best time of each counts."""

import time
from collections.abc import Callable
from typing import Any


def best_seconds(contestants: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Return the shortest time of each contestant; in turns, so a noisy moment hits all alike."""
    best = dict.fromkeys(contestants, float("inf"))
    for _ in range(rounds):
        for name, run in contestants.items():
            start = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - start)
    return best
