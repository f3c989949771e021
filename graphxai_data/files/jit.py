"""Machine code of small loops, by numba."""

import logging
from collections.abc import Callable
from typing import Any

import numba

log = logging.getLogger(__name__)


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Machine code of a function, kept on disk where there is a place for it."""
    try:
        kept: Callable[..., Any] = numba.njit(cache=True)(function)
        return kept
    except RuntimeError as error:  # nothing that numba would write to can be written to
        log.info("compiled anew in every process: %s", error)
        anew: Callable[..., Any] = numba.njit(function)
        return anew
