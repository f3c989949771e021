"""Meaning: names of classes, features and fields, for readers that have only the files of a build.

Shards have them as attributes of their arrays, the manifest as its table `meaning`. They describe
the arrays and are no part of them: no digest depends on them.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from graphxai_data.errors import nearest
from graphxai_data.graphs.record import SPLIT_NAMES
from graphxai_data.graphs.schema import Feature, Schema

# Attributes of an array: a line of text, or a list of names.
Attributes = dict[str, str | list[str]]
# What shards may say about an array; `Meaning.attributes` explains them.
ATTRIBUTES = ("description", "names", "values")
# What the arrays of rationales mean in every dataset that has them.
RATIONALE_DESCRIPTIONS = {
    "alternative_bits": "bit j is set if the node belongs to alternative j of the rationale, each "
    "of which is enough; 0 if it belongs to none",
    "node_weight": "signed contribution of the node to y",
}
# Features with more columns have no names in a build: no reader would look at so many.
MAX_NAMES = 10_000


@dataclass(frozen=True)
class Value:
    """A value that every node or edge has: its name, and its options, or None for a number."""

    name: str
    options: tuple[str, ...] | None


@dataclass(frozen=True)
class Meaning:
    """What the numbers in a build stand for, as its generator says.

    Attributes:
        class_names: of graphs, or of nodes where these have classes; where the label is a number,
            one line about it.
        node_values: in stored order; empty if features have more than `MAX_NAMES` columns.
        edge_values: the same for edges; empty if they have no features.
        field_descriptions: one line about each of the dataset's own fields, and about others.
    """

    class_names: tuple[str, ...]
    node_values: tuple[Value, ...] = ()
    edge_values: tuple[Value, ...] = ()
    field_descriptions: dict[str, str] = field(default_factory=dict)

    def problem(self, schema: Schema) -> str | None:
        """Return where the names do not fit a schema, or None."""
        if len(self.class_names) != schema.num_classes:
            return f"class_names: expected {schema.num_classes} names, got {len(self.class_names)}"
        for key, feature in _features(schema).items():
            values: tuple[Value, ...] = getattr(self, key)
            if values and (problem := _problem_of_values(values, feature)):
                return f"{key}: {problem}"
        fields = [column.name for column in schema.columns()]
        for name in self.field_descriptions:
            if name not in fields:
                return f"field_descriptions: '{name}' is no field; {nearest(name, fields)}"
        for text in self._texts():
            if not (isinstance(text, str) and text and text.isprintable()):
                return f"names and descriptions: expected one line of text each, got {text!r:.60}"
        return None

    def attributes(self, schema: Schema) -> dict[str, Attributes]:
        """Return the attributes of each array of a shard that has any.

        `names` are those of the codes in an array of classes or splits, and of the columns of a
        feature matrix, `width` of them. `values` names what a class id in x or edge_attr is.
        """
        attributes: dict[str, Attributes] = {"split": {"names": list(SPLIT_NAMES)}}
        if schema.label == "number":
            attributes["y"] = {"description": self.class_names[0]}
        else:
            label = "node_y" if schema.task == "node" else "y"
            attributes[label] = {"names": list(self.class_names)}
        for name, description in RATIONALE_DESCRIPTIONS.items():
            if name in [column.name for column in schema.columns()]:
                attributes[name] = {"description": description}
        for name, values in (("x", self.node_values), ("edge_attr", self.edge_values)):
            if values:
                attributes[name] = {"names": [n for v in values for n in v.options or (v.name,)]}
            if values and values[0].options is not None:
                attributes[name]["values"] = [value.name for value in values]
        for name, description in self.field_descriptions.items():
            attributes.setdefault(name, {})["description"] = description
        return attributes

    def _texts(self) -> Iterable[object]:
        yield from self.class_names
        for value in (*self.node_values, *self.edge_values):
            yield from (value.name, *(value.options or ()))
        yield from self.field_descriptions.values()


def _features(schema: Schema) -> dict[str, Feature | None]:
    return {"node_values": schema.node_features, "edge_values": schema.edge_features}


def _problem_of_values(values: tuple[Value, ...], feature: Feature | None) -> str | None:
    """Return where names of values do not fit the features, or None."""
    if feature is None:
        return "the schema has no such features"
    if feature.encoding == "dense":
        if len(values) != feature.width or any(value.options is not None for value in values):
            return f"expected {feature.width} names of numbers, without options"
        return None
    widths = feature.widths or (feature.width,)
    if len(values) != len(widths):
        return f"expected {len(widths)} names, each with its options, got {len(values)}"
    for value, width in zip(values, widths, strict=True):
        if value.options is None or len(value.options) != width:
            got = "none" if value.options is None else len(value.options)
            return f"{value.name}: expected {width} options, got {got}"
    return None
