"""Progress: one callback for everything that takes long."""

from collections.abc import Callable

# Called with how much is done, how much there is in all, and what is being done.
Progress = Callable[[int, int, str], None]


def no_progress(done: int, total: int, what: str) -> None:
    """Report nothing."""
