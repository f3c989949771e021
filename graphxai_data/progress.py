"""Progress: one callback for everything that takes long."""

import math
import time
from collections.abc import Callable, Sequence

# Called with how much is done, how much there is in all, and what is being done.
Progress = Callable[[int, int, str], None]


def no_progress(done: int, total: int, what: str) -> None:
    """Report nothing."""


def with_time_left(progress: Progress, costs: Sequence[float]) -> Progress:
    """Return a progress function that adds a guess of the time left to what is being done.

    `costs` says how long each step takes in comparison with the others.
    """
    step, begin, seconds, cost = 0, time.monotonic(), 0.0, 0.0

    def report(done: int, total: int, what: str) -> None:
        nonlocal step, begin, seconds, cost
        if done != step:
            now = time.monotonic()
            if now - begin > 1:  # a faster step was finished earlier: its time means nothing
                seconds += now - begin
                cost += sum(costs[step:done])
            step, begin = done, now
        if cost:
            minutes = math.ceil(seconds / cost * sum(costs[done:]) / 60)
            what += f", about {minutes} min left"
        progress(done, total, what)

    return report
