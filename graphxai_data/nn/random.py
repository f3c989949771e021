"""Torch's global random generators, which initial weights and dropout draw from."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from graphxai_data.seeds import rng_for


def torch_seed(seed: int, stream: str, index: int = 0) -> int:
    """Return a seed for torch's generators from one of our streams."""
    return int(rng_for(seed, stream, index).words(1)[0]) >> 1


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed torch's generators on all devices, and restore their state afterwards."""
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(seed)
        yield
