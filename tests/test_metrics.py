import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, f1_score

from graphxai_data.metrics import accuracy, macro_f1

PAIRS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=30)


@given(PAIRS)
def test_accuracy_and_f1_are_those_of_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    predicted, label = np.array(pairs, np.int64).T
    assert np.isclose(accuracy(predicted, label), accuracy_score(label, predicted))
    expected = f1_score(label, predicted, average="macro", zero_division=0.0)
    assert np.isclose(macro_f1(predicted, label), expected)
