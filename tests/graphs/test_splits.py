import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from graphxai_data.graphs.splits import assign_splits
from graphxai_data.seeds import rng_for

FRACTIONS = (0.7, 0.2, 0.1)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(-5, 12)), min_size=1, max_size=120),
    st.integers(0, 99),
)
def test_no_group_is_ever_divided(graphs: list[tuple[int, int]], seed: int) -> None:
    label, group = np.array(graphs).T
    split = assign_splits(label, group, FRACTIONS, rng_for(seed, "s"))
    for one in np.unique(group):
        assert len(set(split[group == one].tolist())) == 1


@given(st.lists(st.integers(0, 4), min_size=1, max_size=300), st.integers(0, 99))
def test_without_groups_every_class_has_its_share_to_within_one(
    labels: list[int], seed: int
) -> None:
    label = np.array(labels)
    split = assign_splits(label, np.arange(len(label)), FRACTIONS, rng_for(seed, "s"))
    for one in np.unique(label):
        counts = np.bincount(split[label == one], minlength=3)
        assert (np.abs(counts - np.array(FRACTIONS) * (label == one).sum()) <= 1).all()


def test_shares_are_exact_where_they_can_be() -> None:
    label = np.arange(1000) % 2
    split = assign_splits(label, np.arange(1000), FRACTIONS, rng_for(0, "s"))
    assert np.bincount(split[label == 0]).tolist() == [350, 100, 50]
    assert np.bincount(split[label == 1]).tolist() == [350, 100, 50]


@given(st.integers(50, 400), st.integers(1, 6), st.integers(0, 99))
def test_groups_of_mixed_sizes_keep_the_shares(groups: int, largest: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(groups), rng.integers(1, largest + 1, groups))
    label = rng.integers(0, 3, len(group))
    split = assign_splits(label, group, FRACTIONS, rng_for(seed, "s"))
    counts = np.bincount(split, minlength=3)
    assert (np.abs(counts - np.array(FRACTIONS) * len(group)) <= largest + 1).all()


@given(st.integers(1, 50), st.integers(0, 99))
def test_a_split_of_share_zero_stays_empty(graphs: int, seed: int) -> None:
    label = np.arange(graphs) % 3
    split = assign_splits(label, np.arange(graphs), (0.9, 0.1, 0.0), rng_for(seed, "s"))
    assert (split != 2).all()


@given(st.integers(1, 12), st.integers(1, 40), st.integers(0, 99))
def test_split_sizes_are_right_even_if_every_class_leaves_a_remainder(
    classes: int, each: int, seed: int
) -> None:
    label = np.arange(classes * each) % classes
    split = assign_splits(label, np.arange(len(label)), (0.8, 0.1, 0.1), rng_for(seed, "s"))
    counts = np.bincount(split, minlength=3)
    # The two splits of one share: their class-wise remainders are tied and must not add up.
    assert abs(counts[1] - counts[2]) <= 1


def test_the_draws_decide_which_groups_go_where() -> None:
    label = np.arange(100) % 2
    one = assign_splits(label, np.arange(100), FRACTIONS, rng_for(0, "s"))
    same = assign_splits(label, np.arange(100), FRACTIONS, rng_for(0, "s"))
    other = assign_splits(label, np.arange(100), FRACTIONS, rng_for(1, "s"))
    assert one.tolist() == same.tolist()
    assert one.tolist() != other.tolist()
