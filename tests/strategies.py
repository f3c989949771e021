"""Hypothesis strategies for graphs of any shape that the format allows."""

from typing import Any

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


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    """A schema with any form of label and rationale."""
    is_known, is_number = draw(st.booleans()), draw(st.booleans())
    forms = ("has_null", "has_alternatives", "has_weights")
    return Schema(
        draw(FEATURES),
        draw(st.none() | FEATURES),
        1 if is_number else draw(st.integers(1, 5)),
        draw(EXTRAS),
        has_rationale=is_known,
        task="graph" if is_number else draw(st.sampled_from(["graph", "node"])),
        label="number" if is_number else "class",
        **{form: is_known and draw(st.booleans()) for form in forms},
    )


SCHEMAS = schemas()
# Multiples of 1/8 are the same in float32; the sign of zero is kept too.
NUMBERS = st.integers(-80, 80).map(lambda eighths: eighths / 8) | st.just(-0.0)


def _rows(draw: st.DrawFn, count: int, feature: Feature) -> np.ndarray:
    if feature.encoding == "onehot":
        ids = draw(st.lists(st.integers(0, feature.width - 1), min_size=count, max_size=count))
        return np.eye(feature.width, dtype=np.float32)[np.array(ids, int)]
    if feature.encoding == "multihot":
        parts = [_rows(draw, count, Feature(width, "onehot")) for width in feature.widths]
        return np.concatenate(parts, axis=1)
    seed = draw(st.integers(0, 1000))
    return np.random.default_rng(seed).normal(size=(count, feature.width)).astype(np.float32)


def _rationale(draw: st.DrawFn, schema: Schema, nodes: int) -> dict[str, Any]:
    """Fields of the rationale of a record, but for `edge_mask`: in any form that a schema allows.

    It is not the whole graph, unless nodes have weights.
    """
    if not schema.has_rationale:
        return {"node_mask": None}
    truth: dict[str, Any] = {}
    marks = st.lists(st.booleans(), min_size=nodes, max_size=nodes)
    least = 0 if schema.has_null else 1
    if schema.has_alternatives:
        masks = st.lists(marks.filter(any), min_size=least, max_size=4)
        proper = masks.filter(lambda m: not np.any(m, axis=0).all())
        bits = sum((np.array(m, np.int64) << j for j, m in enumerate(draw(proper))), np.int64(0))
        truth["alternative_bits"] = np.zeros(nodes, np.int64) + bits
        truth["node_mask"] = truth["alternative_bits"] != 0
    if schema.has_weights:
        weights = draw(st.lists(NUMBERS, min_size=nodes, max_size=nodes))
        truth["node_weight"] = np.array(weights, np.float32)
        truth.setdefault("node_mask", truth["node_weight"] > 0)
    if not truth:
        proper = marks.filter(lambda m: least <= sum(m) < nodes)
        truth["node_mask"] = np.array(draw(proper))
    return truth


@st.composite
def records(draw: st.DrawFn, schema: Schema) -> GraphRecord:
    """A valid record: simple and undirected."""
    nodes = draw(st.integers(2, 9))
    pairs = [(u, v) for v in range(nodes) for u in range(v)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=12))
    both = sorted([*edges, *((v, u) for u, v in edges)])
    edge_index = np.array(both, np.int64).reshape(-1, 2).T
    truth = _rationale(draw, schema, nodes)
    if schema.has_rationale:
        sets = truth.get("alternative_bits", truth["node_mask"]).tolist()
        truth["edge_mask"] = np.array([bool(sets[u] & sets[v]) for u, v in both], bool)
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
        y=0 if has_node_classes else draw(NUMBERS if schema.label == "number" else classes),
        edge_mask=truth.pop("edge_mask", None),
        **truth,
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
