from dataclasses import asdict, replace
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.loader import DataLoader

from graphxai_data import MNIST75sp
from graphxai_data.building.build import build
from graphxai_data.building.plan import make_plan, read_sources
from graphxai_data.building.survey import shard_entry
from graphxai_data.building.verify import verify
from graphxai_data.errors import CheckFailedError, InputError
from graphxai_data.files.shipped import shipped
from graphxai_data.generators import mnist75sp
from graphxai_data.generators.mnist75sp_proof import MNIST75spProver
from graphxai_data.generators.mnist_images import read_digits
from graphxai_data.graphs.columns import Columns, unpack
from graphxai_data.graphs.record import GraphRecord, Plan
from graphxai_data.graphs.shards import ShardReader, shard_bytes
from graphxai_data.graphs.union import Graphs
from graphxai_data.manifest import Manifest
from graphxai_data.recipe import Recipe
from graphxai_data.sources import find_sources
from tests.conftest import SharedBuilds, edit_manifest

VARIANTS = ["mnist75sp", *(f"mnist75sp-{v}" for v in ("r23", "knn", "nopos", "gated", "strokes"))]


def _plan(recipe: Recipe, graphs: int, seed: int = 0) -> Plan:
    sources = find_sources(recipe)
    return read_sources(make_plan(recipe, seed, graphs, sources), recipe, sources, seed)[0]


def _records(name: str, graphs: int = 60) -> tuple[Recipe, list[GraphRecord]]:
    recipe = Recipe.load(name)
    columns = recipe.generator_object.generate(_plan(recipe, graphs), 0)
    schema = recipe.schema
    return recipe, [unpack(columns, schema, i) for i in range(graphs)]


@pytest.fixture(scope="module")
def images() -> dict[int, np.ndarray]:
    digits = read_digits(find_sources(Recipe.load("mnist75sp"))["mnist"])
    return {
        i: p for part in digits for i, p in zip(part.image_id.tolist(), part.pixels, strict=True)
    }


@pytest.mark.parametrize("name", VARIANTS)
def test_features_follow_from_image_and_superpixels(name: str, images: dict) -> None:
    for record in _records(name, 20)[1]:
        pixels = images[int(record.meta["image_id"])]
        for node in range(record.num_nodes):
            rows, columns = np.nonzero(record.meta["segments"] == node)
            s = pixels[rows, columns].mean() / 255
            x, y = columns.mean() / 28, rows.mean() / 28
            expected = {
                "mnist75sp-nopos": [s, 1 - s],
                "mnist75sp-gated": [s, s * x, s * y, s * (1 - x), s * (1 - y)],
            }.get(name, [s, 1 - s, x, y])
            np.testing.assert_allclose(record.x[node], expected, atol=1e-6)
            np.testing.assert_allclose(record.meta["pos"][node], [x, y], atol=1e-6)
            strokes = name == "mnist75sp-strokes"
            assert record.node_mask[node] == (s >= 0.2 if strokes else s > 0)


@pytest.mark.parametrize(("name", "radius"), [("mnist75sp", 0.1), ("mnist75sp-r23", 0.2273)])
def test_edges_join_exactly_the_near_superpixels(name: str, radius: float) -> None:
    _, records = _records(name)
    for record in records:
        place = record.meta["pos"].astype(float)
        distance = np.linalg.norm(place[:, None] - place[None], axis=2)
        np.fill_diagonal(distance, 1)
        surely, maybe = distance < radius - 1e-6, distance < radius + 1e-6
        joined = np.zeros(distance.shape, bool)
        joined[tuple(record.edge_index)] = True
        assert (joined >= surely).all()
        assert (joined <= maybe).all()


def test_superpixels_exactly_one_radius_apart_are_joined() -> None:
    """Two groups of five pixels whose centres are 2.8 pixels apart, a tenth of the image."""
    segments = np.full((1, 28, 28), 2, np.uint8)
    segments[0, 0, [0, 1, 2, 7, 8]] = 0
    segments[0, 0, [3, 4, 5, 9, 11]] = 1
    regions = mnist75sp.Regions(segments, np.array([3]))
    assert (regions.centre[:2, 0] * 28).tolist() == pytest.approx([3.6, 6.4])
    for radius, joined in ((0.1, True), (0.0999999, False), (0.1000001, True)):
        edges = regions.edges(radius, 0)["edge_index"].T.tolist()
        assert ([0, 1] in edges) == ([1, 0] in edges) == joined


def test_each_superpixel_is_joined_to_its_eight_nearest() -> None:
    _, records = _records("mnist75sp-knn")
    for record in records:
        place = record.meta["pos"].astype(float)
        distance = np.linalg.norm(place[:, None] - place[None], axis=2)
        np.fill_diagonal(distance, np.inf)
        eighth = np.sort(distance, axis=1)[:, 7]
        source, target = record.edge_index
        assert np.bincount(source, minlength=record.num_nodes).min() >= 8
        # an edge exists if at least one of its ends selects it
        reach = np.maximum(eighth[source], eighth[target])
        assert (distance[source, target] <= reach + 1e-6).all()
        joined = np.zeros(distance.shape, bool)
        joined[source, target] = True
        assert joined[distance < eighth[:, None] - 1e-6].all()


@pytest.mark.parametrize("name", VARIANTS)
def test_a_small_build_is_proven_in_full(name: str, tmp_path: Path) -> None:
    build(name, seed=3, root=tmp_path, graphs=130)
    assert verify(tmp_path / name / "seed-3", full=True) == []


@pytest.mark.slow
@pytest.mark.reference
def test_a_sample_of_the_reference_build_is_proven(builds: SharedBuilds) -> None:
    assert verify(builds.folder("mnist75sp-r23", rings=True)) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", VARIANTS)
def test_the_reference_build_is_proven_in_full(name: str, builds: SharedBuilds) -> None:
    assert verify(builds.folder(name, rings=True), full=True) == []


@pytest.mark.parametrize("name", VARIANTS)
def test_the_splits_are_the_papers(name: str) -> None:
    recipe = Recipe.load(name)
    plan = make_plan(recipe, 0, recipe.params.graphs, find_sources(recipe))
    assert np.bincount(plan.split).tolist() == [20_000, 5_000, 1_000]
    for label in range(10):
        train, valid, _ = np.bincount(plan.split[plan.label == label])
        assert train == pytest.approx(4 * valid, abs=5)


def test_test_graphs_are_test_images_and_seeds_change_train_and_valid_only() -> None:
    recipe = Recipe.load("mnist75sp")
    sources = find_sources(recipe)
    one, other = (make_plan(recipe, seed, 2600, sources) for seed in (0, 1))
    np.testing.assert_array_equal(one.group, other.group)
    for plan in (one, other):
        np.testing.assert_array_equal(plan.split == 2, plan.group >= 60_000)
        assert np.bincount(plan.split).tolist() == [2000, 500, 100]
    assert (one.split != other.split).any()


@pytest.mark.parametrize("seed", [0, 4])
def test_variants_of_r23_have_the_same_splits(seed: int) -> None:
    plans = [
        make_plan(Recipe.load(name), seed, 26_000, find_sources(Recipe.load(name)))
        for name in VARIANTS
    ]
    literal, r23, *others = plans
    for plan in others:
        np.testing.assert_array_equal(plan.split, r23.split)
        np.testing.assert_array_equal(plan.group, r23.group)
    # The paper's reading has a division of its own, but no other test images.
    np.testing.assert_array_equal(literal.group, r23.group)
    np.testing.assert_array_equal(literal.split == 2, r23.split == 2)


def test_strokes_have_the_graphs_of_r23() -> None:
    (recipe, strokes), (_, r23) = (_records(f"mnist75sp-{v}") for v in ("strokes", "r23"))
    assert recipe.params.rationale_from == 0.2
    for one, other in zip(strokes, r23, strict=True):
        np.testing.assert_array_equal(one.x, other.x)
        np.testing.assert_array_equal(one.edge_index, other.edge_index)
        assert (one.rationale <= other.rationale).all()
        assert one.rationale.sum() < other.rationale.sum()


def test_the_intensity_is_a_rule_where_it_is_a_channel() -> None:
    for name in VARIANTS:
        recipe, records = _records(name, 3)
        (rule,) = recipe.generator_object.rules()
        assert (rule.name, rule.is_definition) == ("intensity", False)
        assert "the rationale is a function of it" in rule.what
        for record in records:
            nodes = np.array([0, record.num_nodes])
            scores = rule.score(Graphs(record.x, record.edge_index, None, nodes))
            assert scores[record.rationale].min() > scores[~record.rationale].max()
    params = replace(recipe.params, channels=("x", "y"))
    assert mnist75sp.MNIST75spGenerator(params).rules() == ()


def test_no_bytes_depend_on_shards_workers_or_other_graphs(tmp_path: Path) -> None:
    digests = {
        build("mnist75sp-r23", root=tmp_path / str(i), graphs=90, **options).content_sha256
        for i, options in enumerate(
            (
                {"engine": "serial", "shard_size": 90},
                {"engine": "serial", "shard_size": 7},
                {"engine": "processes", "jobs": 2, "shard_size": 20},
                {"engine": "dask", "jobs": 2, "shard_size": 30},
            )
        )
    }
    assert len(digests) == 1
    recipe = Recipe.load("mnist75sp-r23")
    plan = _plan(recipe, 90)
    alone = recipe.generator_object.generate(plan.cut(40, 1), 0)
    shard = ShardReader(tmp_path / "0" / "mnist75sp-r23" / "seed-0" / "shard-00000.h5")
    np.testing.assert_array_equal(alone["segments"][0], shard[40].meta["segments"])


def test_the_number_of_a_node_does_not_tell_its_place() -> None:
    """Superpixels are numbered from the top left; nodes are not."""
    _, records = _records("mnist75sp-r23", 200)
    correlation = [np.corrcoef(r.meta["pos"][:, 1], np.arange(r.num_nodes))[0, 1] for r in records]
    assert abs(np.mean(correlation)) < 0.05


def test_one_reading_of_tau_isolates_nodes_and_the_other_connects_them(
    builds: SharedBuilds,
) -> None:
    literal, weighted = (
        Manifest.load(builds.folder(name, 500)).statistics
        for name in ("mnist75sp", "mnist75sp-r23")
    )
    assert literal["isolated_nodes_mean"] / literal["nodes_mean"] > 0.8
    assert weighted["isolated_nodes_mean"] == 0
    assert weighted["components_mean"] == 1
    for name, other in (("mnist75sp", "mnist75sp-r23"), ("mnist75sp-r23", "mnist75sp")):
        card = (builds.folder(name, 500) / "README.md").read_text()
        assert f"`{other}`" in card
        for fact in ("isolated nodes", "connected components", "degree", "in the rationale"):
            assert fact in card


def test_statistics_of_components_are_those_of_networkx() -> None:
    _, records = _records("mnist75sp", 20)
    from graphxai_data.graphs.summary import Statistics

    recipe = Recipe.load("mnist75sp")
    statistics = Statistics()
    statistics.update(recipe.generator_object.generate(_plan(recipe, 20), 0))
    graphs = []
    for record in records:
        graph = nx.Graph(record.edge_index.T.tolist())
        graph.add_nodes_from(range(record.num_nodes))
        graphs.append(graph)
    summary = statistics.to_dict()
    assert summary["components_mean"] == np.mean(
        [nx.number_connected_components(g) for g in graphs]
    )
    assert summary["isolated_nodes_mean"] == np.mean([nx.number_of_isolates(g) for g in graphs])


def _tamper(columns: Columns, **changes: np.ndarray) -> list[str]:
    return Recipe.load("mnist75sp-r23").generator_object.check(columns | changes)


def test_the_check_finds_what_does_not_follow_from_the_superpixels() -> None:
    recipe = Recipe.load("mnist75sp-r23")
    columns = recipe.generator_object.generate(_plan(recipe, 5), 0)
    assert recipe.generator_object.check(columns) == []
    segments = columns["segments"].copy()
    segments[2, 5, 5] = 200
    assert "graph 2: a pixel belongs to no node" in _tamper(columns, segments=segments)
    segments[2] = 0
    assert "graph 2: a node has no pixels" in _tamper(columns, segments=segments)
    pos = columns["pos"].copy()
    pos[0] += 0.01
    assert "graph 0: pos is not the centre" in _tamper(columns, pos=pos)[0]
    mask = ~columns["node_mask"]
    assert "the rationale is not the superpixels with ink" in _tamper(columns, node_mask=mask)[0]
    x = columns["x"].copy()
    x[0, 1] = 2
    assert "a feature is not from 0 to 1" in _tamper(columns, x=x)[0]
    edges = columns["edge_index"].copy()
    edges[:, 0] = edges[:, 1]
    assert "not those between near superpixels" in _tamper(columns, edge_index=edges)[0]
    other = columns["image_id"] + 1
    assert "its group is not its image" in _tamper(columns, image_id=other)[0]


@pytest.mark.parametrize("name", ["mnist75sp-r23", "mnist75sp-knn"])
def test_the_proof_finds_every_kind_of_error(name: str) -> None:
    recipe, records = _records(name, 3)
    record, another = records[0], records[1]

    def problems(**changes: object) -> str:
        prover = MNIST75spProver(recipe.params, find_sources(recipe))
        meta = {**record.meta, **changes.pop("meta", {})}
        return " ".join(prover.problems(replace(record, meta=meta, **changes)))

    assert problems() == ""
    assert "labelled" in problems(y=(record.y + 1) % 10)
    assert "its superpixels are not" in problems(meta={"segments": another.meta["segments"]})
    assert "its superpixels are not" in problems(meta={"image_id": another.meta["image_id"]})
    assert "image 70001 is not in the source" in problems(meta={"image_id": 70_001})
    assert "a feature does not follow" in problems(x=record.x + np.float32(0.01))
    assert "a position does not follow" in problems(meta={"pos": record.meta["pos"][::-1]})
    assert "the rationale is not" in problems(node_mask=~record.node_mask)
    fewer = record.edge_index[:, 1:]
    assert "the edges are not" in problems(edge_index=fewer)
    prover = MNIST75spProver(recipe.params, find_sources(recipe))
    prover.problems(record)
    assert "is in two graphs" in prover.problems(record)[0]


def test_a_build_from_a_users_archive_needs_it_to_be_verified(tmp_path: Path) -> None:
    archive = tmp_path / "mine.zip"
    archive.write_bytes((shipped("data") / "sources" / "mnist-26k.zip").read_bytes())
    build("mnist75sp", root=tmp_path, graphs=26, sources={"mnist": archive})
    folder = tmp_path / "mnist75sp" / "seed-0"
    assert "pass --source mnist=PATH (mine.zip, SHA-256" in verify(folder)[0]
    assert verify(folder, sources={"mnist": archive}) == []
    # an existing whole build is kept
    again = build("mnist75sp", root=tmp_path, graphs=26, sources={"mnist": archive})
    assert again == Manifest.load(folder)


def test_damage_is_found_without_the_source(tmp_path: Path) -> None:
    archive = tmp_path / "mine.zip"
    archive.write_bytes((shipped("data") / "sources" / "mnist-26k.zip").read_bytes())
    build("mnist75sp", root=tmp_path, graphs=26, sources={"mnist": archive})
    shard = tmp_path / "mnist75sp" / "seed-0" / "shard-00000.h5"
    raw = bytearray(shard.read_bytes())
    raw[len(raw) // 2] ^= 1
    shard.write_bytes(raw)
    assert "not the file that manifest.json lists" in verify(shard.parent)[0]


def test_a_label_that_is_not_the_images_is_found(tmp_path: Path) -> None:
    """The shard is whole and agrees with its manifest; only the source has another label."""
    build("mnist75sp", root=tmp_path, graphs=26, engine="serial")
    folder = tmp_path / "mnist75sp" / "seed-0"
    shard = ShardReader(folder / "shard-00000.h5")
    wrong = shard.columns | {"y": np.roll(shard.columns["y"], 1)}
    content = shard_bytes(wrong, shard.schema, **shard.identity)
    (folder / "shard-00000.h5").write_bytes(content)
    entry = asdict(shard_entry(ShardReader(folder / "shard-00000.h5")))
    edit_manifest(folder, shards=[entry])
    assert any("its class is not the plan's" in problem for problem in verify(folder))


@pytest.mark.parametrize("threshold", ["0.05", "0.06", "0.5"])
def test_any_threshold_of_the_rationale_builds_and_is_proven(
    threshold: str, recipe_file: object, tmp_path: Path
) -> None:
    """In all images, hundreds of superpixels have a mean of exactly 0.05 or 0.06."""
    replacement = ("rationale_above = 0.0", f"rationale_above = {threshold}")
    path = recipe_file(replacement, name="mnist75sp")
    above = build(path, root=tmp_path, graphs=400)
    assert verify(tmp_path / "mnist75sp" / "seed-0") == []
    replacement = ("rationale_above = 0.0", f"rationale_from = {threshold}")
    path = recipe_file(replacement, name="mnist75sp")
    at_least = build(path, root=tmp_path / "from", graphs=400)
    assert verify(tmp_path / "from" / "mnist75sp" / "seed-0") == []
    shard = ShardReader(tmp_path / "mnist75sp" / "seed-0" / "shard-00000.h5")
    exactly = int((shard.columns["x"][:, 0] == np.float32(threshold)).sum())
    sizes = [400 * m.statistics["rationale_nodes_mean"] for m in (above, at_least)]
    assert sizes[1] - sizes[0] == pytest.approx(exactly, abs=1e-6)
    assert exactly > 0 or threshold != "0.05"


@pytest.mark.parametrize("graphs", [1, 2, 3, 20, 1700])
def test_any_number_of_graphs_can_be_built(graphs: int, tmp_path: Path) -> None:
    assert build("mnist75sp-r23", root=tmp_path, graphs=graphs).graphs == graphs


def test_the_dataset_gives_what_overlays_need(tmp_path: Path) -> None:
    build("mnist75sp-r23", root=tmp_path, graphs=52)
    dataset = MNIST75sp(tmp_path, variant="r23")
    graph = dataset[7]
    assert graph.x.shape == (graph.num_nodes, 4)
    assert graph.pos.shape == (graph.num_nodes, 2)
    assert graph.segments.shape == (1, 28, 28)
    overlay = graph.node_mask[graph.segments[0].long()]
    assert overlay.shape == (28, 28)
    assert torch.equal(graph.pos, graph.x[:, 2:])
    with torch.random.fork_rng():
        batch = next(iter(DataLoader(dataset, batch_size=5)))
    assert batch.segments.shape == (5, 28, 28)
    assert batch.image_id.shape == (5,)
    assert len(MNIST75sp(tmp_path, variant="r23", split="test")) == 2


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"1-s"', '"t"', "channels: expected different names of s, 1-s, x"),
        ('"1-s"', '"s"', "channels: expected different names of s, 1-s"),
        ("rationale_above = 0.0", "rationale_above = 1.0", "number from 0 to 1, but not 1, got"),
        ("rationale_above = 0.0", "", "give one of rationale_above and rationale_from; got None"),
        (
            "rationale_above = 0.0",
            "rationale_above = 0.0\nrationale_from = 0.2",
            "give one of rationale_above and rationale_from; got 0.0 and 0.2",
        ),
        ("rationale_above = 0.0", "rationale_from = 0.0", "number from 0 to 1, but not 0, got"),
        ("radius = 0.1", "", "one of radius and neighbours must be above 0"),
        ("radius = 0.1", "radius = 0.1\nneighbours = 3", "one of radius and neighbours"),
        ("radius = 0.1", "radius = -1.0", "radius: expected a finite number from 0 to 2"),
        ("radius = 0.1", "radius = 1e300", "radius: expected a finite number from 0 to 2, got"),
        (
            "most_segments = 75",
            "most_segments = 1",
            "slic.most_segments: expected a whole number from 2",
        ),
        ("n_segments = 95", "n_segments = 0", "n_segments: expected a whole number from 1 to 784"),
        ("compactness = 0.25", "compactness = 0", r"from 0 to 1e\+06, but not 0, got 0.0"),
        (
            "max_num_iter = 10",
            "max_num_iter = 0",
            "max_num_iter: expected a whole number from 1 to 1000",
        ),
        (
            "min_size_factor = 0.5",
            "min_size_factor = 2",
            "min_size_factor: expected a finite number from 0",
        ),
        ("graphs = 26000", "graphs = 0", "graphs: expected a whole number from 1"),
        ("train = 20000", "train = 20001", "are 26001 graphs, but params.graphs is 26000"),
        ("train = 20000", "train = 20000.5", "must be 1, got 26000.5"),
    ],
)
def test_recipes_that_make_no_sense_are_refused(
    old: str, new: str, message: str, recipe_file: object
) -> None:
    with pytest.raises(InputError, match=message):
        Recipe.load(recipe_file((old, new), name="mnist75sp"))


def test_a_rationale_that_is_empty_fails_the_build(recipe_file: object, tmp_path: Path) -> None:
    path = recipe_file(("rationale_above = 0.0", "rationale_above = 0.999"), name="mnist75sp")
    with pytest.raises(CheckFailedError, match=r"image \d+: no superpixel is brighter than 0.999"):
        build(path, root=tmp_path, graphs=200, engine="serial")
    path = recipe_file(("rationale_above = 0.0", "rationale_from = 0.999"), name="mnist75sp")
    message = (
        r"image \d+: no superpixel has an intensity of at least 0.999: .* change rationale_from"
    )
    with pytest.raises(CheckFailedError, match=message):
        build(path, root=tmp_path, graphs=200, engine="serial")
