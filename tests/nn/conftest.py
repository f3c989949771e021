from collections.abc import Iterator

import pytest
import torch


@pytest.fixture(autouse=True)
def weights_from_a_seed() -> Iterator[None]:
    """Seed torch's generator, which initial weights come from, and restore it afterwards."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        yield
