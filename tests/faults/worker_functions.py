"""Functions for worker processes, which import this module: it must import little."""


def raise_memory_error(number: int) -> int:
    """Fail as NumPy does when an array is too large."""
    raise MemoryError


def allocate_too_much(number: int) -> int:
    """Allocate 8 GiB in a process that may have 2."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31))
    return len(bytearray(2**33))
