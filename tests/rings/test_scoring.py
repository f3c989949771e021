"""Which graphs each metric is a mean over, against a loop over graphs with all forms mixed."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from graphxai_data import jaccard_at_k, node_auroc
from graphxai_data.errors import InputError
from graphxai_data.graphs.rationale import alternatives_of
from graphxai_data.rings.rationale_metrics import best_auroc, best_jaccard_at_k
from graphxai_data.rings.scoring import Rationales

Array = npt.NDArray[Any]


@st.composite
def mixed(draw: st.DrawFn, weights: bool) -> tuple[list[Array], list[Array]]:
    """Scores and bits, or weights, of graphs; some are null, one at least can be ranked."""
    sizes = draw(st.lists(st.integers(2, 7), min_size=1, max_size=6))
    value = st.integers(-2, 2).map(float) if weights else st.integers(0, 3)
    truth = [np.array(draw(st.lists(value, min_size=n, max_size=n))) for n in sizes]
    for array in truth[: 1 if weights else None]:
        array[-1] = 0  # alternatives never cover a whole graph
    truth[0][0] = 1
    scores = [np.array(draw(st.lists(st.integers(-3, 3), min_size=n, max_size=n))) for n in sizes]
    return [s.astype(float) for s in scores], truth


def joined(graphs: list[Array]) -> tuple[Array, Array]:
    return np.concatenate(graphs), np.cumsum([0] + [len(graph) for graph in graphs])


@given(mixed(weights=False))
def test_null_graphs_enter_their_own_columns_only(graphs: tuple[list[Array], list[Array]]) -> None:
    (scores, ptr), (bits, _) = (joined(part) for part in graphs)
    rationales = Rationales(ptr, bits != 0, bits)
    known = [(s, b) for s, b in zip(*graphs, strict=True) if b.any()]
    masks = [[m for m in alternatives_of(b) if m.any()] for _, b in known]
    expected = [best_jaccard_at_k(s, m) for (s, _), m in zip(known, masks, strict=True)]
    assert rationales.jaccard(scores).tolist() == expected
    expected = [best_auroc(s, m) for (s, _), m in zip(known, masks, strict=True)]
    assert rationales.auroc(scores).tolist() == expected
    union = rationales.union_columns(scores)
    assert union["jaccard_union"] == pytest.approx(
        np.mean([jaccard_at_k(s, b != 0) for s, b in known])
    )
    assert union["auroc_union"] == pytest.approx(np.mean([node_auroc(s, b != 0) for s, b in known]))
    null = [s for s, b in zip(*graphs, strict=True) if not b.any()]
    columns = rationales.null_columns(scores)
    assert columns.get("null_graphs", 0) == len(null)
    if null:
        fences = [np.quantile(s, 0.75) * 2.5 - np.quantile(s, 0.25) * 1.5 for s in null]
        stands_out = [s.max() > fence for s, fence in zip(null, fences, strict=True)]
        assert columns["null_outliers"] == pytest.approx(np.mean(stands_out))
    everything = np.concatenate([s for s, _ in known]), np.concatenate([b != 0 for _, b in known])
    pooled = rationales.pooled_auroc(scores, "average")
    assert pooled == pytest.approx(roc_auc_score(everything[1], everything[0]))


@given(mixed(weights=True))
def test_metrics_of_weights_are_means_over_graphs_in_which_they_exist(
    graphs: tuple[list[Array], list[Array]],
) -> None:
    (scores, ptr), (weight, _) = (joined(part) for part in graphs)
    rationales = Rationales(ptr, weight > 0, weight=weight)
    columns = rationales.signed_columns(scores)
    pairs = list(zip(*graphs, strict=True))
    for name, sign in (("positive", 1), ("negative", -1)):
        inside = [(sign * s, sign * w > 0) for s, w in pairs]
        inside = [(s, m) for s, m in inside if 0 < m.sum() < len(m)]
        if not inside:
            assert math.isnan(columns[f"auroc_{name}"])
            assert math.isnan(columns[f"top_{name}"])
            continue
        expected = np.mean([roc_auc_score(m, s) for s, m in inside])
        assert columns[f"auroc_{name}"] == pytest.approx(expected)
        hits = [m[np.argsort(-s, kind="stable")[: m.sum()]].sum() for s, m in inside]
        assert columns[f"top_{name}"] == pytest.approx(sum(hits) / sum(m.sum() for _, m in inside))
    null = [not w.any() for _, w in pairs]
    ranked = [0 < (w > 0).sum() < len(w) for _, w in pairs]
    assert rationales.null.tolist() == null
    assert rationales.ranked.tolist() == ranked
    assert columns["unranked_graphs"] == sum(
        not r and not n for r, n in zip(ranked, null, strict=True)
    )


def test_without_alternatives_null_graphs_and_weights_there_are_no_further_columns() -> None:
    rationales = Rationales(np.array([0, 3]), np.array([True, False, False]))
    scores = np.array([3.0, 2.0, 1.0])
    assert rationales.union_columns(scores) == {}
    assert rationales.null_columns(scores) == {}
    assert rationales.signed_columns(scores) == {}
    assert rationales.spearman(scores) is None
    rationales.check()


def test_weights_that_rank_nothing_give_nan() -> None:
    weight = np.array([2.0, 2.0, 0.0, 0.0])
    rationales = Rationales(np.array([0, 2, 4]), weight > 0, weight=weight)
    columns = rationales.signed_columns(np.array([1.0, -1.0, 1.0, 2.0]))
    for name in ("spearman", "auroc_positive", "auroc_negative", "top_positive", "top_negative"):
        assert math.isnan(columns[name])
    assert (columns["sign_accuracy"], columns["unranked_graphs"]) == (0.5, 1)
    assert rationales.null_columns(np.zeros(4))["null_graphs"] == 1


@pytest.mark.parametrize(
    ("mask", "weight", "message"),
    [
        ([0, 0, 0, 0], None, "each of the 2 graphs is null: nothing .* choose a split or"),
        ([1, 0, 1, 1], None, "mask: 2 of the 2 in graph 1; .* leave such graphs out"),
        ([1, 1, 0, 0], [1, 1, -1, -1], "each of the 2 graphs has no positive weight, or only"),
    ],
)
def test_graphs_without_anything_to_rank_are_refused(
    mask: list[int], weight: list[float] | None, message: str
) -> None:
    weights = None if weight is None else np.array(weight, float)
    rationales = Rationales(np.array([0, 2, 4]), np.array(mask, bool), weight=weights)
    with pytest.raises(InputError, match=message):
        rationales.check()
