from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def weights_from_a_seed() -> Iterator[None]:
    """New layers draw their weights from torch's own generator: it gets a seed, and is put back."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield
