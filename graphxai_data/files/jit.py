"""Just-in-time compilation of loops with numba."""

import logging
from collections.abc import Callable
from typing import Any

import numba

log = logging.getLogger(__name__)


def compiled(function: Callable[..., Any]) -> Any:
    """Return a function compiled by numba, cached on disk if there is a writable cache."""
    try:
        return numba.njit(cache=True)(function)
    except RuntimeError as error:  # no writable cache directory
        log.info("compiled again in every process: %s", error)
        return numba.njit(function)
