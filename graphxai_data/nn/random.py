"""Torch's own random generators, from which layers draw their weights and dropout its zeros."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from graphxai_data.seeds import rng_for


def torch_seed(seed: int, stream: str, index: int = 0) -> int:
    """A seed for torch's generators from a stream of ours."""
    return int(rng_for(seed, stream, index).words(1)[0]) >> 1


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Give torch's generators a seed, on all devices, and their state back afterwards."""
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(seed)
        yield
