"""Random draws that give the same values for ever, on every machine.

Every graph owns its streams, named by (seed, stream, index, attempt), so neither order nor shard
size nor worker count can change a draw. NumPy promises stable *bits* for `PCG64` and
`SeedSequence` (NEP 19) but not stable methods of `Generator`; the few draws needed here are
therefore made from the raw bits.
"""

import hashlib
from collections.abc import Sequence
from functools import lru_cache
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from graphxai_data.errors import InputError

MAX_SEED = 2**63 - 1
MAX_INDEX = 2**32 - 1
_BLOCK = 64

T = TypeVar("T")


class Draws:
    """Exact, version-independent draws from the raw 64-bit words of one PCG64 stream."""

    def __init__(self, bits: np.random.PCG64) -> None:
        self._bits = bits
        self._words: list[int] = []

    def _word(self) -> int:
        if not self._words:
            self._words = self._bits.random_raw(_BLOCK).tolist()[::-1]
        return self._words.pop()

    def below(self, bound: int) -> int:
        """Uniform integer in [0, bound), without modulo bias."""
        unbiased = 2**64 - 2**64 % bound
        word = self._word()
        while word >= unbiased:
            word = self._word()
        return word % bound

    def uniform(self) -> float:
        """Uniform float in [0, 1) with 53 random bits."""
        return (self._word() >> 11) * 2.0**-53

    def choice(self, options: Sequence[T]) -> T:
        """One of the options, each equally likely."""
        return options[self.below(len(options))]

    def permutation(self, length: int) -> npt.NDArray[np.int64]:
        """Uniform permutation of 0..length-1: the order of `length` fresh 64-bit keys."""
        return np.argsort(self._bits.random_raw(length), kind="stable").astype(np.int64)


@lru_cache(maxsize=64)
def _stream_tag(stream: str) -> tuple[int, ...]:
    """128 bits of SHA-256 as four words: a fixed count of words, so that keys never overlap."""
    digest = hashlib.sha256(stream.encode()).digest()
    return tuple(int.from_bytes(digest[i : i + 4], "little") for i in range(0, 16, 4))


def rng_for(seed: int, stream: str, index: int = 0, attempt: int = 0) -> Draws:
    """The stream of draws that belongs to one purpose of one graph.

    Args:
        seed: the build's seed, 0 <= seed < 2**63.
        stream: what the draws are for, such as "ba2motif/base".
        index: the graph (or group) the draws belong to.
        attempt: counts the retries of a generator that rejects.
    """
    # spawn_key, not a list of entropy words: SeedSequence([s, t]) and SeedSequence([s, t, 0])
    # are the same sequence.
    key = (*_stream_tag(stream), index, attempt)
    return Draws(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))


def check_seed(seed: int) -> int:
    """The seed itself, or an `InputError` where it cannot name a build."""
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= MAX_SEED:
        raise InputError(f"seed: expected a whole number from 0 to {MAX_SEED}, got {seed!r}")
    return seed
