"""Generator: the base class of all datasets; and Prover, the independent evidence for one.

A dataset is a subclass with `Params`, `schema` and `make`, which returns one graph. Everything else
has a default. `generate` makes many graphs at once, for datasets that need the speed.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
import numpy.typing as npt

from graphxai_data.errors import CheckFailedError, InputError
from graphxai_data.files.plugins import described
from graphxai_data.files.raw import Source
from graphxai_data.files.toml import Between, Checked
from graphxai_data.graphs.columns import Columns, Ints, pack
from graphxai_data.graphs.invariants import wrong_shape
from graphxai_data.graphs.meaning import MAX_NAMES, Meaning, Value
from graphxai_data.graphs.record import GraphRecord, Plan
from graphxai_data.graphs.schema import DRAWN_DESCRIPTIONS, Feature, Schema
from graphxai_data.graphs.union import Graphs
from graphxai_data.seeds import MAX_GRAPHS, Draws, rng_for

Values = npt.NDArray[np.uint8]
Sources = Mapping[str, Source]
# Class, group and split [g] of every graph.
Planned = tuple[Ints, Ints, Values]
# How many items of each source were rejected, by reason.
Rejected = dict[str, dict[str, int]]


@dataclass(frozen=True)
class BaseParams(Checked):
    """Base of a generator's `Params`; `graphs` is the size of the reference build."""

    graphs: Annotated[int, Between(1, MAX_GRAPHS)]


@dataclass(frozen=True)
class Rule:
    """A score of nodes that looks at no model: a floor that explainers have to beat.

    Attributes:
        name: of its row in tables.
        what: one line that says what it does.
        score: returns [N] scores of the nodes of many graphs, higher for nodes that count more. In
            `Graphs`, one-hot features are class ids [N]; dense ones are [N, p].
        is_definition: whether it repeats how the dataset defines its rationale.
    """

    name: str
    what: str
    score: Callable[[Graphs], npt.NDArray[np.float64]]
    is_definition: bool = False


class Prover(ABC):
    """Proves labels and masks of graphs by code that is independent of their generator.

    A prover sees one graph after the other, and may remember what must not repeat.
    """

    @abstractmethod
    def problems(self, record: GraphRecord) -> list[str]:
        """Return what contradicts the claims about a graph; empty when all is proven."""


class Generator:
    """A dataset: makes graphs with their ground truth from the numbers of a recipe.

    A graph depends only on the params, the seed, and its own row of the plan. All randomness comes
    from `rng`, or from `rng_for(seed, …)`.

    Attributes:
        params: an instance of `Params` with the recipe's `[params]`.
        name: the name in recipes; random streams depend on it.
    """

    # Frozen dataclass of the recipe's `[params]`; it has `graphs`.
    Params: ClassVar[type[Any]] = BaseParams
    # The raw inputs, by name; for a folder, the names of its files.
    sources: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    # Other files that such a folder may hold instead; used if the first of them exists.
    other_files: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    # Graphs are published, not drawn: statistics of a part of them are not compared with the
    # recipe's expectations.
    is_published: ClassVar[bool] = False
    # Put the nodes of what `make` returns in random order, so that no index gives the rationale
    # away. Set it to False if fields of your own contain node numbers, and shuffle in `make`.
    shuffle_nodes: ClassVar[bool] = True
    # Use `strata` only where every split can have its exact share of each; else the class.
    needs_exact_strata: ClassVar[bool] = True
    # How many graphs `verify` proves unless it is asked for all.
    proof_sample: ClassVar[int] = 10_000

    params: Any
    name: str

    def __init__(self, params: Any) -> None:
        self.params = params
        self.name = type(self).__name__

    def schema(self) -> Schema:
        """Return what all graphs have in common: features, number of classes, own fields."""
        raise NotImplementedError

    def make(self, label: int, rng: Draws, raw: Any = None) -> GraphRecord:
        """Return one graph.

        Args:
            label: the class that the graph has to have; 0 where the label is a number.
            rng: the graph's own random stream: `integers`, `uniform`, `choice`, `permutation`.
            raw: what `read` returned for the graph, for datasets with sources.
        """
        raise NotImplementedError

    def generate(self, plan: Plan, seed: int) -> Columns:
        """Return the planned graphs, by default those of `make`, one after the other."""
        schema = self.schema()
        rows = range(len(plan.index))
        records = [self._record(plan, row, seed, schema) for row in rows]
        if records and not self._record(plan, 0, seed, schema).equals(records[0]):
            raise CheckFailedError(
                f"graph {plan.index[0]}: make returns another graph when it is called again with "
                "the same random stream; draw from rng only, and keep nothing between calls"
            )
        return pack(records, schema, plan.index, plan.split)

    def class_names(self) -> list[str]:
        """Return the names of the classes; one line about the label where it is a number."""
        if self.schema().label == "number":
            return ["label"]
        return [f"class {label}" for label in range(self.schema().num_classes)]

    def node_values(self) -> dict[str, list[str] | None]:
        """Return the values of a node, in stored order: names of options, or None for a number."""
        return _numbered(self.schema().node_features)

    def edge_values(self) -> dict[str, list[str] | None]:
        """Return the values of an edge, as `node_values` does; none where edges have none."""
        feature = self.schema().edge_features
        return {} if feature is None else _numbered(feature)

    def field_descriptions(self) -> dict[str, str]:
        """Return one line about each of the schema's own fields: what it is, and how to read it.

        Also about others, such as x, if names do not say enough. Fields that pictures are drawn
        from mean the same in all datasets, so they have a default.
        """
        names = [extra.name for extra in self.schema().extras]
        return {name: DRAWN_DESCRIPTIONS[name] for name in names if name in DRAWN_DESCRIPTIONS}

    def plan(self, graphs: int) -> tuple[Ints, Ints]:
        """Return class and group [g] of every graph; by default classes in turn, no groups."""
        index = np.arange(graphs, dtype=np.int64)
        classes = self.schema().num_classes if self.schema().task == "graph" else 1
        return index % classes, index

    def plan_from_sources(
        self, fractions: Sequence[float], graphs: int, sources: Sources, draws: Draws
    ) -> Planned:
        """Return class, group and split, instead of `plan`, if classes come with a source."""
        raise NotImplementedError

    def strata(self, graphs: int) -> Ints | None:
        """Return [g] what every split has its exact share of; None for the class."""
        return None

    def read(self, sources: Sources, group: Ints, seed: int) -> tuple[Any, Rejected]:
        """Return a sequence [g] of what each graph is made from, and what was rejected, and why."""
        raise NotImplementedError

    def check(self, columns: Columns) -> list[str]:
        """Return problems with the arrays of many graphs at once, beyond the general invariants."""
        return []

    def prover(self, sources: Sources) -> Prover | None:
        """Return the independent proof of labels and masks; None if there is none."""
        return None

    def rules(self) -> tuple[Rule, ...]:
        """Return simple rules of this dataset that score nodes without looking at a model.

        Every build measures how well they find the rationale, next to rules for all datasets.
        """
        return ()

    def sufficient(self, graphs: Graphs, mask: npt.NDArray[np.bool_]) -> Ints | None:
        """Return the smallest parts of rationales that decide the label; None if not known.

        A true explanation may leave out the rest of the rationale. A graph may have several such
        parts, of which each is enough.

        Args:
            graphs: as a `Rule` gets them.
            mask: [N] their rationales.

        Returns:
            [N] bit j for the nodes of part j of their graph. Parts are inside the rationale, and
            every graph with a rationale has one.
        """
        return None

    def picture(self, records: Sequence[GraphRecord], sources: Sources) -> str | None:
        """Return an SVG of graphs, one of each class; None for no picture."""
        return None

    def meaning(self) -> Meaning:
        """Return all names and descriptions, as shards and manifest have them."""
        schema = self.schema()
        return Meaning(
            tuple(self.class_names()),
            _named(self.node_values(), schema.node_features),
            _named(self.edge_values(), schema.edge_features),
            dict(sorted(self.field_descriptions().items())),
        )

    def card_sections(self, records: Sequence[GraphRecord]) -> list[str]:
        """Return paragraphs of Markdown for the data card, from a random sample of graphs."""
        return []

    @property
    def has_prover(self) -> bool:
        """Whether labels and masks can be proven by independent code."""
        return type(self).prover is not Generator.prover

    @property
    def knows_sufficient(self) -> bool:
        """Whether the smallest parts of rationales that decide the label are known."""
        return type(self).sufficient is not Generator.sufficient

    @property
    def plans_from_sources(self) -> bool:
        """Whether classes come with a source, so that no plan can be made without it."""
        return type(self).plan_from_sources is not Generator.plan_from_sources

    def _record(self, plan: Plan, row: int, seed: int, schema: Schema) -> GraphRecord:
        """Return the graph in one row of a plan, made by `make`, checked and shuffled."""
        index, label = int(plan.index[row]), int(plan.label[row])
        raw = None if plan.raw is None else plan.raw[row]
        try:
            record = self.make(label, rng_for(seed, f"{self.name}/make", index), raw)
            record = record.fitted(schema) if isinstance(record, GraphRecord) else record
        except Exception as error:  # whatever `make` raises
            raise CheckFailedError(f"graph {index}: {described(error)}") from error
        if problem := _problem(record, label, schema):
            raise CheckFailedError(f"graph {index}: {problem}")
        own = {c.name: np.asarray(record.meta[c.name]) for c in schema.extras if c.level in _ROWS}
        meta = {**record.meta, **own}
        y = record.y if schema.label == "number" else label
        record = replace(record, y=y, group=int(plan.group[row]), meta=meta)
        if self.shuffle_nodes:
            order = rng_for(seed, f"{self.name}/nodes", index).permutation(record.num_nodes)
            record = record.reordered(order, schema)
        return record


def _numbered(feature: Feature) -> dict[str, list[str] | None]:
    """Return numbers as the names of values and options."""
    if feature.encoding == "dense":
        return {f"feature {i}": None for i in range(feature.width)}
    widths = feature.widths or (feature.width,)
    return {f"feature {i}": [str(v) for v in range(w)] for i, w in enumerate(widths)}


def _named(values: Mapping[str, list[str] | None], feature: Feature | None) -> tuple[Value, ...]:
    """Return values with their options, or none if there are too many columns to name."""
    if feature is not None and feature.width > MAX_NAMES:
        return ()
    return tuple(
        Value(name, None if options is None else tuple(options)) for name, options in values.items()
    )


# Levels of fields with a row per node or edge.
_ROWS = ("node", "edge")


def _problem(record: Any, label: int, schema: Schema) -> str | None:
    """Return why a graph does not fit its class and schema, or None."""
    if not isinstance(record, GraphRecord):
        return f"make returned {type(record).__name__}, expected a GraphRecord"
    if schema.label == "number":
        if type(record.y) is bool or np.ndim(record.y) or not np.isfinite(record.y):
            return f"make returned y = {record.y!r}, expected a finite number"
    elif type(record.y) is bool or np.ndim(record.y) or record.y != label:
        return f"make returned y = {record.y!r}, expected the label it was given, {label}"
    if problem := wrong_shape(record, schema):
        return problem
    rows = {"node": record.num_nodes, "edge": record.edge_index.shape[1]}
    if unknown := sorted(set(record.meta) - {extra.name for extra in schema.extras}):
        return f"has '{unknown[0]}' in its meta, which its schema does not list; add it to extras"
    for extra in schema.extras:
        if extra.name not in record.meta:
            return f"has no {extra.name} in its meta, but its schema says that all have"
        shape = np.shape(record.meta[extra.name])
        if extra.level in rows and shape[:1] != (rows[extra.level],):
            got = shape[0] if shape else "no"
            return (
                f"{extra.name} has {got} rows, expected {rows[extra.level]}, one per {extra.level}"
            )
    ends = record.edge_index
    if ends.size and not 0 <= ends.min() <= ends.max() < record.num_nodes:
        return "an edge ends outside the graph"
    if (np.diff(ends[0] * record.num_nodes + ends[1]) <= 0).any():
        return "edges are not sorted and distinct; GraphRecord.from_edges sorts them"
    return None


def check_class(cls: Any) -> None:
    """Raise an `InputError` unless a class is a complete generator."""
    if not (isinstance(cls, type) and issubclass(cls, Generator)):
        raise InputError(f"expected a subclass of graphxai_data.Generator, got {cls!r}")
    if cls.schema is Generator.schema:
        raise InputError(f"{cls.__name__} has no schema; write the method schema()")
    if cls.make is Generator.make and cls.generate is Generator.generate:
        raise InputError(
            f"{cls.__name__} has neither make nor generate; write make(label, rng, raw=None)"
        )
    by_name = isinstance(cls.sources, Mapping) and isinstance(cls.other_files, Mapping)
    members = [*cls.sources.values(), *cls.other_files.values()] if by_name else [None]
    if not all(isinstance(files, tuple) for files in members):
        raise InputError(
            f"{cls.__name__}.sources: expected a dict of names and tuples of files, such as "
            f"{{'zinc': ()}}, got {cls.sources!r}"
        )
    if cls.sources and cls.read is Generator.read:
        raise InputError(f"{cls.__name__} has sources, but no read; write the method read")
    own = vars(cls.Params) if isinstance(cls.Params, type) else {}
    if own.get("__annotations__") and "__dataclass_fields__" not in own:
        raise InputError(
            f"{cls.__name__}.Params: not a dataclass; write @dataclass(frozen=True) above it"
        )
    fields = getattr(cls.Params, "__dataclass_fields__", {})
    frozen = getattr(getattr(cls.Params, "__dataclass_params__", None), "frozen", False)
    if "graphs" not in fields or not frozen:
        raise InputError(
            f"{cls.__name__}.Params: expected a frozen dataclass with the field graphs; "
            "derive it from Generator.Params"
        )
