"""Random draws that are the same on every machine and with every version of NumPy.

Every graph has its own streams, named by (seed, stream, index, attempt), so that order, shard size
and number of workers cannot change a draw. NumPy guarantees stable *bits* for `PCG64` and
`SeedSequence` (NEP 19) but not stable methods of `Generator`; all draws are therefore made from the
raw bits, as arrays, so that many graphs can be drawn at once.
"""

import hashlib
import math
from collections.abc import Sequence
from functools import lru_cache
from operator import index
from typing import Any

import numpy as np
import numpy.typing as npt

from graphxai_data.errors import InputError

MAX_SEED = 2**63 - 1
# The plan of a build (class, group, split) is held in memory: about 90 bytes per graph.
MAX_GRAPHS = 10**8

Words = npt.NDArray[np.uint64]
Size = int | tuple[int, ...] | None
_INTEGER = (int, np.integer)


class Draws:
    """The draws of one stream, made from its raw 64-bit words.

    The arguments of `integers`, `uniform`, `choice` and `permutation` mean what they mean in NumPy.
    A draw without `size` is a single value.
    """

    def __init__(self, bits: np.random.PCG64) -> None:
        self._bits = bits

    @property
    def seed(self) -> int:
        """The seed of the stream, for other streams of the same build."""
        return int(self._bits.seed_seq.entropy)  # type: ignore[attr-defined]

    def words(self, count: int) -> Words:
        """Return the next raw words [count]."""
        return self._bits.random_raw(count)

    def integers(self, low: int, high: int | None = None, size: Size = None) -> Any:
        """Return uniform integers from `low` to below `high`; from 0 to below `low` without it."""
        try:
            low, high = (0, index(low)) if high is None else (index(low), index(high))
        except TypeError:
            raise InputError(f"integers: expected whole numbers, got {low} and {high}") from None
        if not -(2**63) <= low < high <= 2**63:
            raise InputError(f"integers: expected low below high, got {low} and {high}")
        shape = _shape(size)
        offset = self.words(math.prod(shape)) % np.uint64(min(high - low, 2**64 - 1))
        # Unsigned, so that a range of more than 2**63 numbers wraps around to the right ones.
        values = (offset + np.uint64(low % 2**64)).astype(np.int64)
        return int(values[0]) if size is None else values.reshape(shape)

    def uniform(self, low: float = 0.0, high: float = 1.0, size: Size = None) -> Any:
        """Return uniform floats from `low` to below `high`."""
        shape = _shape(size)
        values = low + (high - low) * uniform(self.words(math.prod(shape)))
        return float(values[0]) if size is None else values.reshape(shape)

    def choice(
        self,
        options: int | Sequence[Any] | npt.NDArray[Any],
        size: Size = None,
        replace: bool = True,
    ) -> Any:
        """Return one of the options, or an array of `size` of them; an integer n is 0..n-1."""
        values = range(options) if isinstance(options, _INTEGER) else options
        count = int(np.prod(1 if size is None else size))
        if not len(values) or (count > len(values) and not replace):
            raise InputError(f"choice: expected {count} of the options, got {len(values)} options")
        if size is None:
            return values[self.integers(len(values))]
        if replace:
            return np.asarray(values)[self.integers(len(values), size=size)]
        selected = self.permutation(len(values))[:count]
        return np.asarray(values)[selected.reshape(size)]

    def permutation(self, values: int | Sequence[Any] | npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the values in uniformly random order; an integer n is 0..n-1."""
        length = values if isinstance(values, _INTEGER) else len(values)
        order = np.argsort(self.words(length), kind="stable").astype(np.int64)
        return order if isinstance(values, _INTEGER) else np.asarray(values)[order]


def _shape(size: Size) -> tuple[int, ...]:
    if size is None:
        return (1,)
    return (int(size),) if isinstance(size, _INTEGER) else tuple(size)


def uniform(words: Words) -> npt.NDArray[np.float64]:
    """Return each word as a uniform float in [0, 1) with 53 random bits."""
    fractions: npt.NDArray[np.float64] = (words >> np.uint64(11)).astype(np.float64)
    return fractions * 2.0**-53


def below(words: Words, bound: int | npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return each word as a uniform integer in [0, bound), with a bias below bound / 2**64."""
    return (words % np.asarray(bound, np.uint64)).astype(np.int64)


def spread(count: int, total: int, draws: Draws) -> npt.NDArray[np.int64]:
    """Return `count` of the numbers 0..total-1, ascending: a random one from each equal part.

    An evenly spaced sample without jitter would alias with a periodic class order.
    """
    count = min(count, total)
    bounds = np.arange(count + 1) * total // max(count, 1)
    return bounds[:-1] + below(draws.words(count), np.diff(bounds))


@lru_cache(maxsize=64)
def _stream_tag(stream: str) -> tuple[int, ...]:
    """Return 128 bits of SHA-256 as four words: a fixed number, so that keys never overlap."""
    digest = hashlib.sha256(stream.encode()).digest()
    return tuple(int.from_bytes(digest[i : i + 4], "little") for i in range(0, 16, 4))


def rng_for(seed: int, stream: str, index: int = 0, attempt: int = 0) -> Draws:
    """Return the draws of one graph or group for one purpose, such as "ba2motif/base".

    The seed is below 2**63; the index of the graph, and the attempt in generators that reject
    graphs, are below 2**32.
    """
    # spawn_key, not a list of entropy words: SeedSequence([s, t]) and SeedSequence([s, t, 0])
    # are the same sequence.
    key = (*_stream_tag(stream), index, attempt)
    return Draws(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))
