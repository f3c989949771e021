import hashlib
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphxai_data.seeds import MAX_SEED, Draws, below, rng_for, spread, uniform

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


def test_draws_never_change() -> None:
    # By hand from the raw words: remainders, the top 53 bits, and the order of the words.
    words = [int(word) for word in rng_for(5, "draws").words(40)]
    rng = rng_for(5, "draws")
    assert rng.integers(10) == words[0] % 10
    assert rng.integers(-3, 4) == words[1] % 7 - 3
    assert rng.integers(6, size=(2, 2)).tolist() == [
        [words[2] % 6, words[3] % 6], [words[4] % 6, words[5] % 6],
    ]  # fmt: skip
    assert rng.uniform() == (words[6] >> 11) / 2**53
    assert rng.uniform(2.0, 6.0, size=2).tolist() == [
        2 + 4 * ((word >> 11) / 2**53) for word in words[7:9]
    ]
    assert rng.choice(["a", "b", "c"]) == "abc"[words[9] % 3]
    assert rng.choice([(0, 1), (2, 3)]) == [(0, 1), (2, 3)][words[10] % 2]
    assert rng.choice(5, size=3).tolist() == [word % 5 for word in words[11:14]]
    order = sorted(range(5), key=lambda i: words[14 + i])
    assert rng.choice(["v", "w", "x", "y", "z"], size=3, replace=False).tolist() == [
        "vwxyz"[i] for i in order[:3]
    ]
    order = sorted(range(4), key=lambda i: words[19 + i])
    assert rng.permutation(["p", "q", "r", "s"]).tolist() == ["pqrs"[i] for i in order]
    assert rng.integers(np.int64(9)) == words[23] % 9


@given(st.integers(-(2**63), 2**63 - 1), st.integers(1, 2**64), st.integers(0, 2**32))
def test_integers_are_within_their_bounds(low: int, span: int, seed: int) -> None:
    high = min(low + span, 2**63)
    values = rng_for(seed, "bounds").integers(low, high, size=20)
    assert values.dtype == np.int64
    assert all(low <= int(value) < high for value in values)


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda rng: rng.integers(0), "expected low below high, got 0 and 0"),
        (lambda rng: rng.integers(5, 3), "expected low below high, got 5 and 3"),
        (lambda rng: rng.choice([]), "expected 1 of the options, got 0 options"),
        (lambda rng: rng.choice(3, size=4, replace=False), "expected 4 of the options, got 3"),
    ],
)
def test_impossible_draws_are_refused(draw: Callable[[Draws], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        draw(rng_for(0, "bad"))
