"""Random draws that give the same values for ever, on every machine.

Every graph owns its streams, named by (seed, stream, index, attempt), so neither order nor shard
size nor worker count can change a draw. NumPy promises stable *bits* for `PCG64` and
`SeedSequence` (NEP 19) but not stable methods of `Generator`; the few draws needed here are
therefore made from the raw bits, as arrays, so that many graphs can be drawn at once.
"""

import hashlib
from functools import lru_cache

import numpy as np
import numpy.typing as npt

MAX_SEED = 2**63 - 1
# The plan of a build (class, group, split) lies in memory: some 90 bytes a graph while it is made.
MAX_GRAPHS = 10**8

Words = npt.NDArray[np.uint64]


class Draws:
    """The draws of one stream, made from its raw 64-bit words."""

    def __init__(self, bits: np.random.PCG64) -> None:
        self._bits = bits

    def words(self, count: int) -> Words:
        """[count] the next raw words."""
        return self._bits.random_raw(count)

    def permutation(self, length: int) -> npt.NDArray[np.int64]:
        """[length] a uniform permutation of 0..length-1: the order of as many fresh words."""
        return np.argsort(self.words(length), kind="stable").astype(np.int64)


def uniform(words: Words) -> npt.NDArray[np.float64]:
    """Each word as a uniform float in [0, 1) with 53 random bits."""
    fractions: npt.NDArray[np.float64] = (words >> np.uint64(11)).astype(np.float64)
    return fractions * 2.0**-53


def below(words: Words, bound: int | npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Each word as a uniform integer in [0, bound); its bias is less than bound / 2**64."""
    return (words % np.asarray(bound, np.uint64)).astype(np.int64)


def spread(count: int, total: int, draws: Draws) -> npt.NDArray[np.int64]:
    """`count` of the numbers 0..total-1, rising: one at random from each of as many equal parts.

    An even spread without jitter would fall in step with whatever repeats, such as classes in turn.
    """
    count = min(count, total)
    bounds = np.arange(count + 1) * total // max(count, 1)
    return bounds[:-1] + below(draws.words(count), np.diff(bounds))


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
        index: the graph (or group) the draws belong to, below 2**32.
        attempt: counts the retries of a generator that rejects, below 2**32.
    """
    # spawn_key, not a list of entropy words: SeedSequence([s, t]) and SeedSequence([s, t, 0])
    # are the same sequence.
    key = (*_stream_tag(stream), index, attempt)
    return Draws(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))
