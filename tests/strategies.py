"""Hypothesis strategies for graphs of any shape that the format allows."""

import numpy as np
from hypothesis import strategies as st

from graphxai_data.graphs.record import GraphRecord
from graphxai_data.graphs.schema import Column, Feature, Schema

FEATURES = st.one_of(
    st.builds(Feature, st.integers(1, 7), st.sampled_from(["onehot", "dense"])),
    st.lists(st.integers(1, 5), min_size=1, max_size=3).map(Feature.multihot),
)
EXTRAS = st.lists(
    st.sampled_from(
        [
            Column("a_text", "text"),
            Column("per_edge", "edge", "<i2"),
            Column("per_graph", "graph"),
            Column("per_node", "node", "<f4", (2,)),
        ]
    ),
    unique=True,
).map(lambda extras: tuple(sorted(extras, key=lambda extra: extra.name)))
SCHEMAS = st.builds(
    Schema,
    FEATURES,
    st.none() | FEATURES,
    st.integers(1, 5),
    EXTRAS,
    has_rationale=st.booleans(),
    task=st.sampled_from(["graph", "node"]),
)


def _rows(draw: st.DrawFn, count: int, feature: Feature) -> np.ndarray:
    if feature.encoding == "onehot":
        ids = draw(st.lists(st.integers(0, feature.width - 1), min_size=count, max_size=count))
        return np.eye(feature.width, dtype=np.float32)[np.array(ids, int)]
    if feature.encoding == "multihot":
        parts = [_rows(draw, count, Feature(width, "onehot")) for width in feature.widths]
        return np.concatenate(parts, axis=1)
    seed = draw(st.integers(0, 1000))
    return np.random.default_rng(seed).normal(size=(count, feature.width)).astype(np.float32)


@st.composite
def records(draw: st.DrawFn, schema: Schema) -> GraphRecord:
    """A valid record: simple and undirected; a rationale is neither empty nor the whole graph."""
    nodes = draw(st.integers(2, 9))
    pairs = [(u, v) for v in range(nodes) for u in range(v)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=12))
    both = sorted([*edges, *((v, u) for u, v in edges)])
    edge_index = np.array(both, np.int64).reshape(-1, 2).T
    marked = draw(st.integers(1, nodes - 1))
    node_mask = np.arange(nodes) < marked
    edge_attr = None
    if schema.edge_features is not None:
        one_way = _rows(draw, len(edges), schema.edge_features)
        row_of_edge = {edge: i for i, edge in enumerate(edges)}
        rows = [row_of_edge[min(e, e[::-1])] for e in both]
        edge_attr = one_way[np.array(rows, int)]
    classes = st.integers(0, schema.num_classes - 1)
    has_node_classes = schema.task == "node"
    node_y = draw(st.lists(classes, min_size=nodes, max_size=nodes)) if has_node_classes else None
    return GraphRecord(
        x=_rows(draw, nodes, schema.node_features),
        edge_index=edge_index,
        y=0 if has_node_classes else draw(classes),
        node_mask=node_mask if schema.has_rationale else None,
        edge_mask=node_mask[edge_index].all(axis=0) if schema.has_rationale else None,
        node_y=None if node_y is None else np.array(node_y, np.uint8),
        group=draw(st.integers(0, 2**62)),
        edge_attr=edge_attr,
        meta={
            "a_text": draw(st.text(max_size=5)),
            "per_edge": np.arange(len(both)),
            "per_node": np.arange(2 * nodes, dtype=np.float32).reshape(nodes, 2),
            "per_graph": draw(st.integers(0, 255)),
        },
    )


@st.composite
def datasets(draw: st.DrawFn, most: int = 8) -> tuple[Schema, list[GraphRecord]]:
    """A schema and some records of it."""
    schema = draw(SCHEMAS)
    return schema, draw(st.lists(records(schema), min_size=1, max_size=most))
