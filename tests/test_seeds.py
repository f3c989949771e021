import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphxai_data.seeds import MAX_SEED, below, rng_for, spread, uniform

MAX_INDEX = 2**32 - 1

KEYS = st.tuples(
    st.integers(0, MAX_SEED),
    st.sampled_from(["a", "b", "ba2motif"]),
    st.integers(0, MAX_INDEX),
    st.integers(0, MAX_INDEX),
)


def test_words_are_those_of_a_documented_seed_sequence() -> None:
    digest = hashlib.sha256(b"ba2motif").digest()
    tag = np.frombuffer(digest[:16], "<u4").tolist()
    expected = np.random.SeedSequence(7, spawn_key=(*tag, 3, 1))
    raw = np.random.PCG64(expected).random_raw(4)
    assert rng_for(7, "ba2motif", 3, 1).words(4).tolist() == raw.tolist()


def test_words_never_change() -> None:
    # Printed once, on x86-64 with NumPy 2.4; a change here would change every dataset.
    assert rng_for(0, "ba2motif", 0).words(2).tolist() == [
        2036410430824691515,
        13853169261265771107,
    ]


@given(KEYS, KEYS)
def test_different_keys_give_different_streams(one: tuple, other: tuple) -> None:
    same_words = (rng_for(*one).words(4) == rng_for(*other).words(4)).all()
    assert same_words == (one == other)


def test_a_trailing_zero_makes_another_stream() -> None:
    # SeedSequence([s, t]) and SeedSequence([s, t, 0]) are the same; spawn keys are not.
    assert rng_for(1, "a", 5, 0).words(1) != rng_for(1, "a", 5, 1).words(1)
    assert rng_for(1, "a", 0, 0).words(1) != rng_for(1, "a", 1, 0).words(1)


@given(st.integers(0, 2**32), st.integers(0, 500))
def test_permutation_holds_every_number_once(seed: int, length: int) -> None:
    assert sorted(rng_for(seed, "p").permutation(length).tolist()) == list(range(length))


def test_permutations_of_three_are_equally_likely() -> None:
    seen = [tuple(rng_for(i, "p").permutation(3).tolist()) for i in range(6000)]
    counts = np.unique(np.array(seen), axis=0, return_counts=True)[1]
    chi_square = ((counts - 1000) ** 2 / 1000).sum()
    assert len(counts) == 6
    assert chi_square < 20.5  # 99.9 % quantile with 5 degrees of freedom


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1), st.integers(1, 2**40))
def test_draws_stay_in_range(words: list[int], bound: int) -> None:
    array = np.array(words, np.uint64)
    assert ((uniform(array) >= 0) & (uniform(array) < 1)).all()
    assert below(array, bound).tolist() == [word % bound for word in words]


@pytest.mark.parametrize("index", [0, MAX_INDEX])
def test_the_largest_seed_and_index_work(index: int) -> None:
    assert len(rng_for(MAX_SEED, "a", index).words(3)) == 3


@given(st.integers(1, 300), st.integers(1, 1000))
def test_a_spread_takes_one_number_from_every_part(count: int, total: int) -> None:
    sample = spread(count, total, rng_for(3, "spread"))
    assert len(sample) == min(count, total)
    assert (np.diff(sample) > 0).all()
    assert 0 <= sample[0] <= sample[-1] < total
    part = sample * len(sample) // total
    assert (abs(part - np.arange(len(sample))) <= 1).all()


def test_a_spread_does_not_alias_with_alternating_classes() -> None:
    sample = spread(10_000, 20_000, rng_for(0, "spread"))
    assert 4_500 < (sample % 2).sum() < 5_500
