"""A class with Params, schema and make is a dataset; a wrong one is refused in one clear line."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphxai_data import Column, Feature, Generator, GraphRecord, Recipe, Schema, build, register
from graphxai_data.building.verify import verify
from graphxai_data.datasets.in_memory import GraphXAIDataset
from graphxai_data.errors import CheckFailedError, GraphXAIDataError, InputError
from graphxai_data.generators import PLUGINS
from graphxai_data.graphs.shards import ShardReader
from graphxai_data.manifest import Manifest
from tests.conftest import importing_environment
from tests.generators import toy
from tests.generators.toy import RECIPE, Toy


@pytest.fixture(autouse=True)
def no_plugins_left() -> Iterator[None]:
    yield
    PLUGINS.registered.clear()


def build_toy(cls: type[Generator], root: Path, **options: Any) -> Any:
    register("toy", cls)
    options = {"engine": "serial", "rings": False} | options
    return build(Recipe.from_dict(RECIPE), root=root, **options)


def test_a_class_with_make_is_built_verified_and_loaded(tmp_path: Path) -> None:
    manifest = build_toy(Toy, tmp_path)
    folder = tmp_path / "toy" / "seed-0"
    assert verify(folder, full=True) == []
    dataset = GraphXAIDataset.from_folder(folder)
    assert dataset.num_classes == 2
    assert manifest.statistics["classes"] == {"0": 20, "1": 20}
    assert all(int(data.node_mask.sum()) == 4 + int(data.y) for data in dataset)
    assert manifest.plugin.package == ""
    assert Recipe.from_dict(RECIPE).class_names == ["class 0", "class 1"]
    assert Recipe.from_dict(RECIPE).generator_object.node_values() == {"feature 0": ["0", "1", "2"]}


def test_shard_size_and_order_do_not_change_a_graph(tmp_path: Path) -> None:
    digests = {
        build_toy(Toy, tmp_path / str(size), shard_size=size).content_sha256 for size in (1, 7, 40)
    }
    assert len(digests) == 1


def test_nodes_are_shuffled_with_all_their_fields(tmp_path: Path) -> None:
    class Numbered(Toy):
        def schema(self) -> Schema:
            extras = (Column("name", "text"), Column("number", "node", "<i8"))
            return replace(super().schema(), extras=extras)

        def make(self, label: int, rng: Any, raw: Any = None) -> GraphRecord:
            record = super().make(label, rng)
            # The rationale has the highest numbers, which follow the nodes through the shuffle.
            return replace(record, meta={"number": np.arange(record.num_nodes), "name": "é"})

    class Ordered(Numbered):
        shuffle_nodes = False

    shuffled = build_toy(Numbered, tmp_path / "a")
    PLUGINS.registered.clear()
    ordered = build_toy(Ordered, tmp_path / "b")
    assert shuffled.content_sha256 != ordered.content_sha256
    one, other = (
        GraphXAIDataset.from_folder(tmp_path / name / "toy" / "seed-0") for name in ("a", "b")
    )
    moved = 0
    for mixed, plain in zip(one, other, strict=True):
        number = mixed.number
        moved += int((number != plain.number).any())
        assert (plain.node_mask[number] == mixed.node_mask).all()
        assert (plain.x[number] == mixed.x).all()
        edges = set(map(tuple, plain.edge_index.T.tolist()))
        assert set(map(tuple, number[mixed.edge_index].T.tolist())) == edges
        assert mixed.name == "é"
    assert moved > 35


class Unsorted(Toy):
    def make(self, label: int, rng: Any, raw: Any = None) -> GraphRecord:
        record = super().make(label, rng)
        return replace(record, edge_index=record.edge_index[:, ::-1].copy())


class ShortMask(Toy):
    def make(self, label: int, rng: Any, raw: Any = None) -> GraphRecord:
        record = super().make(label, rng)
        return replace(record, node_mask=record.rationale[1:])


class NotANumber(Toy):
    def schema(self) -> Schema:
        return Schema(Feature(3, "dense"), edge_features=None, num_classes=2)

    def make(self, label: int, rng: Any, raw: Any = None) -> GraphRecord:
        record = super().make(label, rng)
        return replace(record, x=np.full_like(record.x, np.nan))


class NotOneHot(Toy):
    def make(self, label: int, rng: Any, raw: Any = None) -> GraphRecord:
        record = super().make(label, rng)
        return replace(record, x=np.full_like(record.x, np.nan))


class Impure(Toy):
    calls = 0

    def make(self, label: int, rng: Any, raw: Any = None) -> GraphRecord:
        type(self).calls += 1
        rng.words(type(self).calls)
        return super().make(label, rng)


class AnotherClass(Toy):
    def make(self, label: int, rng: Any, raw: Any = None) -> GraphRecord:
        return super().make(1 - label, rng)


class NoRecord(Toy):
    def make(self, label: int, rng: Any, raw: Any = None) -> Any:
        return super().make(label, rng).x


class OneWay(Toy):
    def make(self, label: int, rng: Any, raw: Any = None) -> GraphRecord:
        record = super().make(label, rng)
        edges = record.edge_index[:, :-1]
        assert record.edge_mask is not None
        return replace(record, edge_index=edges, edge_mask=record.edge_mask[:-1])


class WholeGraph(Toy):
    def make(self, label: int, rng: Any, raw: Any = None) -> GraphRecord:
        record = super().make(label, rng)
        edges = np.ones(record.edge_index.shape[1], bool)
        return replace(record, node_mask=np.ones(record.num_nodes, bool), edge_mask=edges)


class Crashing(Toy):
    def make(self, label: int, rng: Any, raw: Any = None) -> GraphRecord:
        raise KeyError("carbon")


class WrongPlan(Toy):
    def plan(self, graphs: int) -> Any:
        return np.full(graphs, 2), np.arange(graphs)


class NoMeta(Toy):
    def schema(self) -> Schema:
        return replace(super().schema(), extras=(Column("pos", "node", "<f4", (2,)),))


class Undeclared(Toy):
    def make(self, label: int, rng: Any, raw: Any = None) -> GraphRecord:
        return replace(super().make(label, rng), meta={"pos": 1})


class Exits(Toy):
    def make(self, label: int, rng: Any, raw: Any = None) -> GraphRecord:
        raise SystemExit(3)


class ListField(Toy):
    def schema(self) -> Schema:
        return replace(super().schema(), extras=(Column("pos", "node", "<f4"),))

    def make(self, label: int, rng: Any, raw: Any = None) -> GraphRecord:
        return replace(super().make(label, rng), meta={"pos": 1.5})


class NegativeGroups(Toy):
    def plan(self, graphs: int) -> Any:
        return [0] * graphs, [-1] * graphs


class NoList(Toy):
    def check(self, columns: Any) -> Any:
        return None


class NoPicture(Toy):
    def picture(self, records: Any, sources: Any) -> Any:
        return b"<svg/>"


class WrongArrays(Toy):
    def generate(self, plan: Any, seed: int) -> Any:
        columns = super().generate(plan, seed)
        del columns["x"]
        return columns


@pytest.mark.parametrize(
    ("cls", "sentence"),
    [
        (Unsorted, "graph 0: edges are not sorted and distinct"),
        (ShortMask, "graph 0: node_mask is bool"),
        (NotANumber, "x has a value that is not finite"),
        (NotOneHot, "x is declared onehot, but row 0 of its shard is not"),
        (Impure, "graph 0: make returns another graph when it is called again"),
        (AnotherClass, "graph 0: make returned y = 1, expected the label it was given, 0"),
        (NoRecord, "graph 0: make returned ndarray, expected a GraphRecord"),
        (OneWay, "an edge lacks its reverse"),
        (WholeGraph, "the rationale is the whole graph"),
        (Crashing, "KeyError: 'carbon'"),
        (WrongPlan, "plan: classes 2 to 2, expected 0 to 1"),
        (NoMeta, "graph 0: has no pos in its meta"),
        (WrongArrays, "expected ['edge_index'"),
        (Undeclared, "graph 0: has 'pos' in its meta, which its schema does not list"),
        (ListField, "graph 0: pos has no rows, expected"),
        (NegativeGroups, "plan: group -1, expected whole numbers from 0"),
        (NoList, "check returned NoneType, expected a list of texts"),
        (NoPicture, "picture returned bytes, expected an SVG"),
        (Exits, "SystemExit: 3 (generators/test_base.py, line "),
    ],
)
def test_a_wrong_graph_stops_the_build_and_names_the_plugin(
    cls: type[Generator], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(CheckFailedError) as caught:
        build_toy(cls, tmp_path)
    message = str(caught.value)
    assert message.startswith("generator 'toy' (registered by a script): ")
    assert sentence in message
    assert "\n" not in message
    if cls is not NoPicture:  # its graphs are right
        assert not list(tmp_path.rglob("*.h5"))
    assert not (tmp_path / "toy" / "seed-0").exists()


class NoMake(Generator):
    def schema(self) -> Schema:
        return Schema(Feature(1, "dense"), edge_features=None, num_classes=2)


class NoSchema(Generator):
    def make(self, label: int, rng: Any, raw: Any = None) -> Any: ...


class Thawed(Toy):
    @dataclass
    class Params:
        graphs: int


class NoGraphs(Toy):
    @dataclass(frozen=True)
    class Params:
        size: int


class NoRead(Toy):
    sources = {"zinc": ()}  # noqa: RUF012


class ListOfSources(Toy):
    sources = ["zinc"]  # noqa: RUF012


class NotADataclass(Toy):
    class Params(Generator.Params):
        longest: int


@pytest.mark.parametrize(
    ("cls", "sentence"),
    [
        (NoMake, "NoMake has neither make nor generate"),
        (NoSchema, "NoSchema has no schema"),
        (Thawed, "Thawed.Params: expected a frozen dataclass with the field graphs"),
        (NoGraphs, "NoGraphs.Params: expected a frozen dataclass with the field graphs"),
        (NoRead, "NoRead has sources, but no read"),
        (ListOfSources, "ListOfSources.sources: expected a dict of names and tuples of files"),
        (NotADataclass, "NotADataclass.Params: not a dataclass; write @dataclass(frozen=True)"),
        (dict, "expected a subclass of graphxai_data.Generator, got <class 'dict'>"),
        (Toy(None), "expected a subclass of graphxai_data.Generator, got <"),
    ],
)
def test_an_incomplete_class_cannot_be_registered(cls: Any, sentence: str) -> None:
    with pytest.raises(InputError, match="^generator 'toy': ") as caught:
        register("toy", cls)
    assert sentence in str(caught.value)


def test_class_names_have_to_fit_the_classes(tmp_path: Path) -> None:
    class ThreeNames(Toy):
        def class_names(self) -> list[str]:
            return ["a", "b", "c"]

    with pytest.raises(GraphXAIDataError, match="class_names: expected 2 names, got 3"):
        build_toy(ThreeNames, tmp_path)


def test_a_plain_frozen_dataclass_is_enough_as_params(tmp_path: Path) -> None:
    class Plain(Toy):
        @dataclass(frozen=True)
        class Params:
            graphs: int
            longest: int = 5

    assert build_toy(Plain, tmp_path).graphs == 40


class FromLines(Toy):
    """Each graph is made from a line of a file."""

    sources = {"lines": ()}  # noqa: RUF012
    result: Any = None

    def read(self, sources: Any, group: Any, seed: int) -> Any:
        lines = sources["lines"].path.read_text().split()
        return type(self).result or (
            [lines[i % 3] for i in group],
            {"lines": {"empty": np.int64(2)}},
        )

    def make(self, label: int, rng: Any, raw: Any = None) -> GraphRecord:
        assert raw in ("a", "b", "c")
        return super().make(label, rng)


def lines_recipe(source: str = "my-lines") -> Recipe:
    return Recipe.from_dict({**RECIPE, "sources": {"lines": source}})


def test_what_read_returns_reaches_make(tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("a\nb\nc\n")
    register("toy", FromLines)
    sources = {"lines": tmp_path / "lines.txt"}
    manifest = build(lines_recipe(), root=tmp_path, engine="serial", rings=False, sources=sources)
    assert manifest.sources["lines"].rejected == {"empty": 2}
    assert verify(tmp_path / "toy" / "seed-0", full=True, sources=sources) == []
    with pytest.raises(InputError, match=r"unknown source id 'my-lines'.*--source lines=PATH"):
        build(lines_recipe(), root=tmp_path / "other", engine="serial")


@pytest.mark.parametrize(
    ("result", "sentence"),
    [
        (["a"] * 40, "read: expected (items, rejected), got something else"),
        ((["a"], {"lines": {}}), "read: 1 items for 40 graphs"),
        ((["a"] * 40, {}), "read: rejected: expected counts by source and reason"),
        ((["a"] * 40, {"reason": 3}), "read: rejected: expected counts by source and reason"),
        ((["a"] * 40, {"lines": 3}), "such as {'lines': {'reason': 0}}, got {'lines': 3}"),
        ((["a"] * 40, {"lines": {"x": "many"}}), "read: rejected: expected counts"),
    ],
)
def test_wrong_results_of_read_are_refused(result: Any, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "lines.txt").write_text("a\nb\nc\n")
    register("toy", type("FromLines", (FromLines,), {"result": result}))
    with pytest.raises(CheckFailedError) as caught:
        build(
            lines_recipe(), root=tmp_path, engine="serial",
            sources={"lines": tmp_path / "lines.txt"},
        )  # fmt: skip
    assert sentence in str(caught.value)
    assert "generator 'toy' (registered by a script): " in str(caught.value)


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (lambda record: None, "the prover fails on graph 0: problems returned NoneType"),
        (lambda record: record.nothing, "the prover fails on graph 0: AttributeError: "),
    ],
)
def test_a_prover_that_does_not_work_is_named(answer: Any, sentence: str, tmp_path: Path) -> None:
    class Proven(Toy):
        def prover(self, sources: Any) -> Any:
            return type("Prover", (), {"problems": lambda self, record: answer(record)})()

    build_toy(Proven, tmp_path)
    with pytest.raises(CheckFailedError) as caught:
        verify(tmp_path / "toy" / "seed-0")
    assert sentence in str(caught.value)


def test_a_dataset_is_loaded_by_its_recipe(tmp_path: Path) -> None:
    register("toy", Toy)
    assert len(GraphXAIDataset(tmp_path, Recipe.from_dict(RECIPE))) == 40


def test_a_recipe_of_a_plugin_cannot_take_a_shipped_name() -> None:
    register("toy", Toy)
    with pytest.raises(InputError, match="name 'ba2motif' is that of a shipped dataset"):
        Recipe.from_dict({**RECIPE, "name": "ba2motif"})


def test_a_misspelt_source_is_named() -> None:
    register("toy", FromLines)
    with pytest.raises(InputError, match="unknown key 'sources.line'; did you mean 'lines'"):
        Recipe.from_dict({**RECIPE, "sources": {"line": "x"}})
    PLUGINS.registered.clear()
    register("toy", Toy)
    with pytest.raises(InputError, match="unknown key 'sources.lines'; it takes none"):
        lines_recipe()


def test_lists_are_enough_as_own_fields_and_as_plan(tmp_path: Path) -> None:
    class Lists(ListField):
        def plan(self, graphs: int) -> Any:
            return [0, 1] * (graphs // 2), list(range(graphs))

        def make(self, label: int, rng: Any, raw: Any = None) -> GraphRecord:
            record = Toy.make(self, label, rng)
            return replace(record, meta={"pos": [0.5] * record.num_nodes})

    assert build_toy(Lists, tmp_path).graphs == 40


def test_no_shard_of_old_code_is_in_a_build(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    code = Path(toy.__file__).read_text(encoding="utf-8")
    new = code.replace("x = np.eye(3)[rng.integers(3, size=nodes)]", "x = np.eye(3)[[0] * nodes]")
    last = """
if __name__ == "__main__":
    import os, signal, sys
    from graphxai_data import Recipe, build, register, verify

    register("toy", Toy)

    def stop(done, total, what):
        if done == 10 and sys.argv[1] == "stop":
            os.kill(os.getpid(), signal.SIGKILL)

    options = {"engine": "serial", "rings": False, "shard_size": 10, "progress": stop}
    build(Recipe.from_dict(RECIPE), root="data", **options)
    print(verify("data/toy/seed-0", full=True))
"""
    for text, argument in ((code, "stop"), (new, "go")):
        script.write_text(text + last, encoding="utf-8")
        result = subprocess.run(
            [sys.executable, script, argument], cwd=tmp_path, capture_output=True, text=True,
            env=importing_environment(), timeout=120,
        )  # fmt: skip
    assert result.stdout == "[]\n", result.stderr
    dataset_shards = sorted((tmp_path / "data" / "toy" / "seed-0").glob("*.h5"))
    assert all((ShardReader(path).columns["x"] == 0).all() for path in dataset_shards)


def test_a_prover_is_an_object(tmp_path: Path) -> None:
    class NoProver(Toy):
        def prover(self, sources: Any) -> Any:
            return None

    build_toy(NoProver, tmp_path)
    with pytest.raises(CheckFailedError, match="prover returned None; return an object"):
        verify(tmp_path / "toy" / "seed-0")


def test_a_recipe_uses_the_class_that_was_registered_last(tmp_path: Path) -> None:
    def version(number: float) -> type[Generator]:
        class Again(NotANumber):
            def make(self, label: int, rng: Any, raw: Any = None) -> GraphRecord:
                record = Toy.make(self, label, rng)
                return replace(record, x=np.full_like(record.x, number))

        return Again

    register("toy", version(1.0))
    recipe = Recipe.from_dict(RECIPE)
    first = build(recipe, root=tmp_path / "1", engine="serial", rings=False)
    register("toy", version(2.0))
    second = build(recipe, root=tmp_path / "2", engine="serial", rings=False)
    assert first.content_sha256 != second.content_sha256


@pytest.mark.parametrize(
    ("name", "result", "sentence"),
    [
        ("schema", None, "schema: expected a Schema, got NoneType"),
        ("node_values", ["a"], "node_values: expected a dict of names"),
        ("node_values", {"a": "b"}, "node_values: expected a dict of names"),
        ("node_values", {"a": ["b"]}, "node_values: a: expected 3 options, got 1"),
        ("edge_values", {"a": ["b"]}, "edge_values: the schema has no such features"),
        ("class_names", "ab", "class_names: expected a list of texts, got str"),
        ("field_descriptions", None, "field_descriptions: expected a dict of fields"),
        ("field_descriptions", {"z": "a"}, "field_descriptions: 'z' is no field"),
    ],
)
def test_wrong_descriptions_are_refused(name: str, result: Any, sentence: str) -> None:
    register("toy", type("Described", (Toy,), {name: lambda self: result}))
    with pytest.raises(InputError, match=sentence):
        Recipe.from_dict(RECIPE).generator_object  # noqa: B018


def test_names_of_a_plugin_are_in_its_build_and_defaults_where_it_has_none(tmp_path: Path) -> None:
    class Described(Toy):
        def schema(self) -> Schema:
            extras = (Column("end", "node"), Column("other", "node"))
            return replace(super().schema(), edge_features=Feature(2, "dense"), extras=extras)

        def edge_values(self) -> dict[str, list[str] | None]:
            return {"length": None, "width": None}

        def field_descriptions(self) -> dict[str, str]:
            return {"end": "1 at the free end of the path"}

        def make(self, label: int, rng: Any, raw: Any = None) -> GraphRecord:
            record = super().make(label, rng)
            edges, end = record.edge_index.shape[1], np.arange(record.num_nodes) == 0
            meta = {"end": end, "other": end}
            return replace(record, edge_attr=np.ones((edges, 2), np.float32), meta=meta)

    manifest = build_toy(Described, tmp_path)
    folder = tmp_path / "toy" / "seed-0"
    assert verify(folder, full=True) == []
    assert ShardReader(folder / "shard-00000.h5").described == {
        "y": {"names": ["class 0", "class 1"]},
        "split": {"names": ["train", "valid", "test"]},
        "x": {"names": ["0", "1", "2"], "values": ["feature 0"]},
        "edge_attr": {"names": ["length", "width"]},
        "end": {"description": "1 at the free end of the path"},
    }
    assert manifest.meaning == Manifest.load(folder).meaning


def test_very_wide_features_have_no_names_in_a_build() -> None:
    class Wide(Toy):
        def schema(self) -> Schema:
            return Schema(Feature(2**20, "dense"), edge_features=None, num_classes=2)

    register("toy", Wide)
    meaning = Recipe.from_dict(RECIPE).meaning
    assert meaning.node_values == ()
    assert set(meaning.attributes(Recipe.from_dict(RECIPE).schema)) == {"y", "split"}


def test_params_that_crash_are_named() -> None:
    class Crashes(Toy):
        @dataclass(frozen=True)
        class Params(Generator.Params):
            longest: int

            def __post_init__(self) -> None:
                raise KeyError("carbon")

    register("toy", Crashes)
    with pytest.raises(CheckFailedError, match=r"generator 'toy' .*: KeyError: 'carbon'"):
        Recipe.from_dict(RECIPE)
