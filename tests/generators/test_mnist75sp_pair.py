from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from graphxai_data import MNIST75sp
from graphxai_data.building.build import build
from graphxai_data.building.plan import make_plan, read_sources
from graphxai_data.building.verify import verify
from graphxai_data.drawing.terminal import graph_text
from graphxai_data.errors import CheckFailedError, InputError
from graphxai_data.generators.mnist75sp_pair_proof import MNIST75spPairProver
from graphxai_data.graphs.columns import Columns, unpack
from graphxai_data.graphs.record import GraphRecord, Plan
from graphxai_data.graphs.union import Graphs
from graphxai_data.recipe import Recipe
from graphxai_data.sources import find_sources
from tests.conftest import SharedBuilds

NAMES = [f"mnist75sp-pair-{cause}" for cause in ("a", "b", "both")]
A, B, BOTH = NAMES
# What differs between the recipes of a pair.
TRUTH = {"y", "node_mask", "edge_mask"}


def _plan(name: str, graphs: int, seed: int = 0) -> Plan:
    recipe = Recipe.load(name)
    sources = find_sources(recipe)
    return read_sources(make_plan(recipe, seed, graphs, sources), recipe, sources, seed)[0]


def _columns(name: str, graphs: int, seed: int = 0) -> Columns:
    return Recipe.load(name).generator_object.generate(_plan(name, graphs, seed), seed)


def _records(columns: Columns) -> list[GraphRecord]:
    schema = Recipe.load(A).schema
    return [unpack(columns, schema, i) for i in range(len(columns["y"]))]


def _images(plan: Plan) -> np.ndarray:
    """Ids [g, 2] of the left and right images."""
    return np.stack([plan.group // 2**30, plan.group % 2**30], axis=1)


@pytest.mark.parametrize("seed", [0, 5])
def test_a_and_b_are_the_same_graphs_with_another_truth(seed: int) -> None:
    a, b = (_columns(name, 130, seed) for name in (A, B))
    assert a.keys() == b.keys()
    for name in a.keys() - TRUTH:
        assert a[name].dtype == b[name].dtype
        np.testing.assert_array_equal(a[name], b[name], err_msg=name)
    for columns, cause in ((a, 1), (b, 2)):
        np.testing.assert_array_equal(columns["y"], columns["cause_y"][:, cause - 1])
        np.testing.assert_array_equal(columns["node_mask"], columns["cause"] == cause)
    assert (a["y"] != b["y"]).mean() > 0.7


def test_in_both_the_digits_agree_and_both_are_the_rationale() -> None:
    a, both = _columns(A, 260), _columns(BOTH, 260)
    np.testing.assert_array_equal(both["cause_y"][:, 0], both["cause_y"][:, 1])
    np.testing.assert_array_equal(both["node_mask"], both["cause"] > 0)
    for name in ("split", "y"):
        np.testing.assert_array_equal(a[name], both[name])
    np.testing.assert_array_equal(a["image_id"][:, 0], both["image_id"][:, 0])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", [0, 3])
def test_every_image_is_once_on_each_side_within_one_split(name: str, seed: int) -> None:
    recipe = Recipe.load(name)
    sources = find_sources(recipe)
    plan = make_plan(recipe, seed, 26_000, sources)
    alone = make_plan(Recipe.load("mnist75sp-r23"), seed, 26_000, sources)
    assert np.bincount(plan.split).tolist() == [20_000, 5_000, 1_000]
    left, right = _images(plan).T
    assert (left != right).all()
    for part in range(3):
        images = np.sort(alone.group[alone.split == part])
        for side in (left, right):
            np.testing.assert_array_equal(np.sort(side[plan.split == part]), images)
    np.testing.assert_array_equal(plan.split == 2, right >= 60_000)


def test_the_digits_of_a_pair_are_independent() -> None:
    """Chi-squared of 81 degrees of freedom: 99.9 % of draws are below 126."""
    labels = np.asarray(_plan(A, 26_000).raw)["label"]
    counts = np.zeros((10, 10))
    np.add.at(counts, tuple(labels.T), 1)
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / counts.sum()
    assert 40 < ((counts - expected) ** 2 / expected).sum() < 126


def _digit(record: GraphRecord, nodes: np.ndarray, shift: float = 0.0) -> tuple[Counter, set]:
    """Nodes of a digit by intensity and place, whether they have ink, and the edges between."""
    place = record.meta["pos"].astype(float) - [shift, 0]
    ink = record.meta["cause"] > 0 if "cause" in record.meta else record.rationale
    keys = {
        int(n): (*record.x[n, :2].tolist(), *place[n].round(5).tolist(), bool(ink[n]))
        for n in nodes
    }
    edges = {(keys[i], keys[j]) for i, j in record.edge_index.T.tolist() if i in keys and j in keys}
    return Counter(keys.values()), edges


def test_each_half_is_the_graph_of_its_image() -> None:
    alone = {r.group: r for r in _records_alone(130)}
    seam = 0
    for record in _records(_columns(A, 130)):
        on_right = record.meta["pos"][:, 0] >= 1
        for side, nodes in enumerate((~on_right, on_right)):
            image = alone[int(record.meta["image_id"][side])]
            expected = _digit(image, np.arange(image.num_nodes))
            assert _digit(record, np.flatnonzero(nodes), float(side)) == expected
            inside = np.unique(record.meta["segments"][:, 28 * side : 28 * (side + 1)])
            assert inside.tolist() == np.flatnonzero(nodes).tolist()
        # The feature x is over the whole width.
        np.testing.assert_allclose(record.x[:, 2], record.meta["pos"][:, 0] / 2, atol=1e-7)
        np.testing.assert_array_equal(record.x[:, 3], record.meta["pos"][:, 1])
        seam += int((on_right[record.edge_index[0]] != on_right[record.edge_index[1]]).sum())
    assert seam > 130 * 10


def _records_alone(graphs: int) -> list[GraphRecord]:
    recipe = Recipe.load("mnist75sp-r23")
    columns = recipe.generator_object.generate(_plan("mnist75sp-r23", graphs), 0)
    return [unpack(columns, recipe.schema, i) for i in range(graphs)]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("changed", ["a", "b"])
def test_an_intervention_changes_one_digit_and_nothing_else(name: str, changed: str) -> None:
    recipe, plan = Recipe.load(name), _plan(name, 130)
    generator, side = recipe.generator_object, "ab".index(changed)
    before = _records(generator.generate(plan, 0))
    columns = generator.intervene(plan, 0, changed)
    after = _records(columns)
    split_of_image = dict(zip(_images(plan)[:, side].tolist(), plan.split.tolist(), strict=True))
    again = generator.intervene(plan, 0, changed)
    assert all(np.array_equal(again[key], columns[key]) for key in columns)
    for one, other in zip(before, after, strict=True):
        assert one.meta["cause_y"][side] != other.meta["cause_y"][side]
        assert one.meta["cause_y"][1 - side] == other.meta["cause_y"][1 - side]
        assert other.y == other.meta["cause_y"][1 if name == B else 0]
        assert split_of_image[int(other.meta["image_id"][side])] == one.meta["split"]
        kept = [np.flatnonzero((r.meta["pos"][:, 0] >= 1) != (side == 1)) for r in (one, other)]
        # in the same order
        for of in (lambda r: r.x, lambda r: r.meta["pos"], lambda r: r.meta["cause"]):
            np.testing.assert_array_equal(of(one)[kept[0]], of(other)[kept[1]])
        assert _digit(one, kept[0]) == _digit(other, kept[1])
    # Every graph by a prover of its own: an image may take the place of several others.
    proven_as = replace(recipe.params, cause="a")  # in which digits may differ
    for other in after[::25]:
        prover = MNIST75spPairProver(proven_as, find_sources(recipe))
        mask = other.meta["cause"] == 1
        record = replace(other, y=int(other.meta["cause_y"][0]), node_mask=mask)
        assert prover.problems(record) == []


def test_an_intervention_needs_other_digits() -> None:
    plan = _plan(A, 130)
    generator = Recipe.load(A).generator_object
    message = "no other digit on the right of the 1 train graphs to take the place of one; give"
    with pytest.raises(InputError, match=message):
        generator.intervene(plan.cut(int(np.argmin(plan.split)), 1), 0, "b")
    with pytest.raises(InputError, match="come with its images"):
        generator.cause_classes(plan.index)


@pytest.mark.parametrize("name", NAMES)
def test_a_small_build_is_proven_in_full(name: str, tmp_path: Path) -> None:
    build(name, seed=3, root=tmp_path, graphs=130)
    assert verify(tmp_path / name / "seed-3", full=True) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_reference_build_is_proven_in_full(name: str, builds: SharedBuilds) -> None:
    assert verify(builds.folder(name, rings=True), full=True) == []


@pytest.mark.parametrize("graphs", [1, 2, 3, 20])
def test_any_number_of_graphs_can_be_built(graphs: int, tmp_path: Path) -> None:
    assert build(BOTH, root=tmp_path, graphs=graphs).graphs == graphs


def test_node_numbers_tell_neither_digit_nor_place() -> None:
    records = _records(_columns(A, 300))
    for axis in (0, 1):
        correlation = [
            np.corrcoef(r.meta["pos"][:, axis], np.arange(r.num_nodes))[0, 1] for r in records
        ]
        assert abs(np.mean(correlation)) < 0.03


def test_the_check_finds_what_does_not_follow_from_the_superpixels() -> None:
    generator = Recipe.load(A).generator_object
    columns = _columns(A, 5)

    def problems(**changes: np.ndarray) -> str:
        return " ".join(generator.check(columns | changes))

    assert problems() == ""
    segments = columns["segments"].copy()
    segments[1, 3, 40] = segments[1, 3, 3]
    assert "graph 1: a node is in both digits" in problems(segments=segments)
    segments[1, 3, 40] = 250
    assert "graph 1: a pixel belongs to no node" in problems(segments=segments)
    assert "pos is not the centre" in problems(pos=columns["pos"] + np.float32(0.01))
    assert "a feature is not from 0 to 1" in problems(x=columns["x"] + np.float32(0.9))
    edges = columns["edge_index"].copy()
    edges[:, 0] = edges[:, 1]
    assert "not those between near superpixels" in problems(edge_index=edges)
    assert "its group is not its two images" in problems(image_id=columns["image_id"][:, ::-1])
    swapped = np.array([0, 2, 1], np.uint8)[columns["cause"]]
    assert "a cause is not in its digit" in problems(cause=swapped)
    none = np.zeros_like(columns["cause"])
    assert "the causes are not the superpixels with ink" in problems(cause=none)
    assert "the rationale is not the cause" in problems(node_mask=~columns["node_mask"])
    assert "the label is not its cause's class" in problems(y=(columns["y"] + 1) % 10)


def test_the_proof_finds_every_kind_of_error() -> None:
    recipe = Recipe.load(A)
    record, another = _records(_columns(A, 3))[:2]
    sources = find_sources(recipe)

    def problems(cause: str = "a", **changes: object) -> str:
        prover = MNIST75spPairProver(replace(recipe.params, cause=cause), sources)
        meta = {**record.meta, **changes.pop("meta", {})}
        return " ".join(prover.problems(replace(record, meta=meta, **changes)))

    ids, y = record.meta["image_id"], record.meta["cause_y"]
    assert problems() == ""
    assert "labelled" in problems(y=(record.y + 1) % 10)
    assert "cause_y is" in problems(meta={"cause_y": (y + 1) % 10})
    assert "the rationale is not" in problems("b", y=int(y[1]))
    assert "A and B are different digits" in problems("both")
    assert "its superpixels are not" in problems(meta={"segments": another.meta["segments"]})
    assert "its superpixels are not" in problems(meta={"image_id": ids[::-1]})
    assert "image 70001 is not in the source" in problems(meta={"image_id": ids * 0 + 70_001})
    assert "cannot be in the split test" in problems(meta={"split": 2})
    assert "a feature does not follow" in problems(x=record.x + np.float32(0.01))
    assert "a position does not follow" in problems(meta={"pos": record.meta["pos"][::-1]})
    swapped = np.array([0, 2, 1])[record.meta["cause"]]
    assert "the causes are not" in problems(meta={"cause": swapped})
    assert "the rationale is not" in problems(node_mask=~record.node_mask)
    assert "the edges are not" in problems(edge_index=record.edge_index[:, 1:])
    on_left = np.isin(record.meta["segments"], record.meta["segments"][:, :28])
    merged = np.where(on_left, 0, record.meta["segments"])
    assert "its superpixels are not" in problems(meta={"segments": merged})
    prover = MNIST75spPairProver(recipe.params, sources)
    prover.problems(record)
    assert "is on the left of two graphs" in prover.problems(record)[0]
    mixed = {**another.meta, "image_id": [another.meta["image_id"][0], ids[1]]}
    assert "is on the right of two graphs" in prover.problems(replace(another, meta=mixed))[0]
    mixed = {**another.meta, "image_id": ids[::-1], "split": 1 - record.meta["split"]}
    assert "is in two splits" in prover.problems(replace(another, meta=mixed))[0]


def test_the_intensity_is_a_rule_that_finds_both_digits() -> None:
    columns = _columns(A, 20)
    nodes = Graphs(columns["x"], np.zeros((2, 0), np.int64), None, columns["node_ptr"])
    (rule,) = Recipe.load(A).generator_object.rules()
    assert (rule.name, rule.is_definition) == ("intensity", False)
    assert "function of it and of the side" in rule.what
    np.testing.assert_array_equal(rule.score(nodes) > 0, columns["cause"] > 0)


def test_pictures_are_two_images_wide(builds: SharedBuilds) -> None:
    picture = (builds.folder(A, 500) / "classes.svg").read_text()
    # ten graphs, each with three pictures of pixels and one of nodes
    assert picture.count('<image width="224" height="112"') == 30
    assert picture.count('<rect width="224" height="112"') == 10
    dataset = MNIST75sp(builds.root(A, 500), variant="pair-a", graphs=500)
    graph = dataset[7]
    assert graph.segments.shape == (1, 28, 56)
    assert graph.image_id.shape == graph.cause_y.shape == (1, 2)
    (axes,) = dataset.draw(7).axes
    assert axes.images[0].get_array().shape == (28, 56)
    text = graph_text(_records(_columns(A, 1))[0]).plain
    assert {len(line) for line in text.splitlines()} == {56}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('cause = "a"', 'cause = "c"', "cause: expected one of 'a', 'b', 'both', got 'c'"),
        ("most_segments = 75", "most_segments = 129", "most_segments must be at most 128, since"),
        ("radius = 0.2273", "radius = 0.0", "radius: expected a finite number from 0 to 2, but"),
        ("radius = 0.2273", "neighbours = 8", "unknown key 'params.neighbours'"),
    ],
)
def test_recipes_that_make_no_sense_are_refused(
    old: str, new: str, message: str, recipe_file: object
) -> None:
    with pytest.raises(InputError, match=message):
        Recipe.load(recipe_file((old, new), name=A))


def test_a_digit_without_rationale_fails_the_build(recipe_file: object, tmp_path: Path) -> None:
    path = recipe_file(("rationale_above = 0.0", "rationale_above = 0.999"), name=A)
    with pytest.raises(CheckFailedError, match=r"image \d+: no superpixel is brighter than 0.999"):
        build(path, root=tmp_path, graphs=200, engine="serial")
