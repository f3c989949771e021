"""Just-in-time compilation of loops with numba."""

import logging
from collections.abc import Callable
from typing import Any

import numba

log = logging.getLogger(__name__)


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function compiled by numba, cached on disk if there is a writable cache."""
    machine_code: Callable[..., Any]
    try:
        machine_code = numba.njit(cache=True)(function)
    except RuntimeError as error:  # no writable cache directory
        log.info("compiled again in every process: %s", error)
        machine_code = numba.njit(function)
    return machine_code
