import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphxai_data.errors import InputError
from graphxai_data.nn.sums import TARGET, Edges, Members, sum_per_graph


@st.composite
def edge_lists(draw: st.DrawFn) -> tuple[torch.Tensor, int]:
    """Draw any edges: unsorted, repeated, directed, loops, nodes without edges."""
    nodes = draw(st.integers(1, 7))
    ends = st.tuples(st.integers(0, nodes - 1), st.integers(0, nodes - 1))
    pairs = draw(st.lists(ends, max_size=20))
    return torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T, nodes


@settings(max_examples=100, deadline=None)
@given(edge_lists(), st.integers(0, 3), st.integers(0, 2**32))
def test_sums_and_their_gradients_are_those_of_plain_loops(
    graph: tuple[torch.Tensor, int], width: int, seed: int
) -> None:
    edge_index, nodes = graph
    draws = np.random.default_rng(seed)
    h = torch.from_numpy(draws.normal(size=(nodes, width))).requires_grad_()
    messages = torch.from_numpy(draws.normal(size=(edge_index.shape[1], width))).requires_grad_()
    neighbour_sum, message_sum = np.zeros((nodes, width)), np.zeros((nodes, width))
    for k, (source, target) in enumerate(edge_index.T.tolist()):
        neighbour_sum[target] += h[source].detach().numpy()
        message_sum[target] += messages[k].detach().numpy()
    edges = Edges(edge_index, nodes)
    own_weight = torch.tensor(draws.normal(), dtype=torch.float64).requires_grad_()
    for weight in (own_weight, 1.0):
        total = edges.sum_with_neighbours(h, weight).detach()
        expected = neighbour_sum + torch.as_tensor(weight).item() * h.detach().numpy()
        np.testing.assert_allclose(total, expected, atol=1e-12)
    np.testing.assert_allclose(edges.sum_at_targets(messages).detach(), message_sum, atol=1e-12)
    assert torch.equal(edges.at_sources(h), h[edge_index[0]])
    assert torch.equal(edges.at_targets(h), h[edge_index[1]])
    if width and len(messages):
        assert torch.autograd.gradcheck(edges.sum_with_neighbours, (h,))
        assert torch.autograd.gradcheck(edges.sum_with_neighbours, (h, own_weight))
        assert torch.autograd.gradgradcheck(edges.sum_with_neighbours, (h, own_weight))
        assert torch.autograd.gradcheck(edges.at_sources, (h,))
        assert torch.autograd.gradcheck(edges.at_targets, (h,))
        assert torch.autograd.gradcheck(edges.sum_at_targets, (messages,))


@given(st.lists(st.integers(0, 4), max_size=20))
def test_members_are_in_rising_order(owner: list[int]) -> None:
    members = Members.of(torch.tensor(owner, dtype=torch.int64), 5)
    for i in range(5):
        rows = members.rows[members.ptr[i] : members.ptr[i + 1]].tolist()
        assert rows == [row for row, of in enumerate(owner) if of == i]


def test_graphs_without_nodes_have_the_sum_zero() -> None:
    rows = torch.tensor([[1.0], [2.0], [4.0]])
    batch = torch.tensor([1, 1, 3])
    assert sum_per_graph(rows, batch, 6).flatten().tolist() == [0, 3, 0, 4, 0, 0]
    assert sum_per_graph(rows, batch, None).flatten().tolist() == [0, 3, 0, 4]
    assert sum_per_graph(rows, None, None).tolist() == [[7]]
    assert sum_per_graph(rows[:0], batch[:0], 2).tolist() == [[0], [0]]
    assert sum_per_graph(rows[:0], batch[:0], None).tolist() == [[0]]


@pytest.mark.parametrize("edge_index", [[[0, 3], [1, 1]], [[0, 1], [1, -1]]])
def test_edges_to_missing_nodes_are_refused(edge_index: list[list[int]]) -> None:
    with pytest.raises(InputError, match="edge_index: expected nodes 0 to 2, got"):
        Edges(torch.tensor(edge_index), 3)


def test_edges_of_another_shape_are_refused() -> None:
    with pytest.raises(InputError, match=r"edge_index: expected \[2, edges\], got \[3, 1\]"):
        Edges(torch.zeros((3, 1), dtype=torch.int64), 3)


def test_edges_with_other_weights_share_what_was_computed() -> None:
    edges = Edges(torch.tensor([[0, 1, 1], [1, 0, 2]]), 3)
    weighted = edges.with_weight(torch.tensor([2.0, 3.0, 5.0]))
    h = torch.tensor([[1.0], [10.0], [100.0]])
    assert weighted.sum_with_neighbours(h, 0.0).flatten().tolist() == [30, 2, 50]
    assert edges.sum_with_neighbours(h, 0.0).flatten().tolist() == [10, 1, 10]
    assert edges.edges_by(TARGET) is weighted.edges_by(TARGET)
    assert edges.neighbours_at(TARGET) is weighted.neighbours_at(TARGET)
