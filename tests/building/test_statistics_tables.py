"""Cards, `verify` and `info` of builds with null rationales, alternatives, weights and numbers."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

from graphxai_data import GraphXAIDataset, ShardReader, verify
from graphxai_data.building.finish import _drawn
from graphxai_data.building.statistics_tables import statistics_rows
from graphxai_data.cli.info import _facts
from graphxai_data.manifest import Manifest
from graphxai_data.recipe import Recipe
from tests.conftest import SharedBuilds
from tests.generators.toy_forms import RedPairs, Sums, built

Cli = Callable[..., Result]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    with built(tmp_path_factory.mktemp("forms")) as folders:
        yield folders


def test_the_builds_are_verified_in_full(folders: tuple[Path, Path]) -> None:
    assert [verify(folder, full=True) for folder in folders] == [[], []]


@pytest.mark.parametrize("name", ["alternative_bits", "node_weight"])
def test_verify_finds_a_changed_rationale(
    folders: tuple[Path, Path], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A generator that now gives another rationale is noticed, though files are whole."""
    cls, folder = (RedPairs, folders[0]) if name == "alternative_bits" else (Sums, folders[1])
    generate = cls.generate

    def other(self: object, plan: object, seed: int) -> dict[str, np.ndarray]:
        columns = generate(self, plan, seed)  # type: ignore[arg-type]
        return columns | {name: columns[name] * 2}

    monkeypatch.setattr(cls, "generate", other)
    assert any(f"'{name}' is not what recipe and seed give" in p for p in verify(folder, full=True))


def test_a_card_counts_null_rationales_and_alternatives(folders: tuple[Path, Path]) -> None:
    card = (folders[0] / "README.md").read_text()
    graphs = GraphXAIDataset.from_folder(folders[0])
    counts = np.array([len(graph.alternatives) for graph in graphs])
    assert f"| graphs with a null rationale | {(counts == 0).sum()} (50.0%) |" in card
    mean = counts[counts > 0].mean()
    assert f"| alternatives per graph with a rationale, mean | {mean:.2f} |" in card
    sizes = np.array([int(graph.node_mask.sum()) for graph in graphs])
    row = "| nodes in the rationale, mean over graphs that have one |"
    assert f"{row} {sizes[sizes > 0].mean():.2f} |" in card
    assert "nothing in the graph makes its label" in card
    assert "null in some graphs, alternatives" in (folders[0] / "croissant.json").read_text()


def test_a_card_describes_labels_that_are_numbers(folders: tuple[Path, Path]) -> None:
    card = (folders[1] / "README.md").read_text()
    y = GraphXAIDataset.from_folder(folders[1]).y.double().numpy()
    assert f"| label, mean | {y.mean():.3f} |" in card
    assert f"| label, standard deviation | {y.std():.3f} |" in card
    assert "## Labels and splits\n\nThe label is a number: sum of the weights." in card
    assert "| graphs | 32 | 4 | 4 | 40 |" in card
    assert "Nodes have signed weights" in card
    assert "class" not in card


def test_info_shows_both_builds(folders: tuple[Path, Path], cli: Cli) -> None:
    pairs, sums = (cli("info", folder).output for folder in folders)
    assert "graphs with a null rationale" in pairs
    assert "1: red pair" in pairs
    assert "label, standard deviation" in sums
    assert "graphs   32" in sums


def test_info_shows_each_rationale_of_a_graph(folders: tuple[Path, Path], cli: Cli) -> None:
    graphs = list(GraphXAIDataset.from_folder(folders[0]))
    counts = [len(graph.alternatives) for graph in graphs]
    null, one, two = (counts.index(count) for count in range(3))
    assert cli("info", folders[0], "--graph", null).output.endswith("no rationale (null)\n")
    assert "\nrationale 2 nodes: " in cli("info", folders[0], "--graph", one).output
    lines = cli("info", folders[0], "--graph", two).output.splitlines()
    expected = [mask.nonzero().flatten().tolist() for mask in graphs[two].alternatives]
    for number, nodes in enumerate(expected, 1):
        assert f"rationale {number} 2 nodes: {nodes[0]}, {nodes[1]}" in lines
    facts = json.loads(cli("info", folders[0], "--graph", two, "--json").output)
    assert facts["alternatives"] == expected
    assert facts["node_weight"] is None


def test_info_shows_weights_and_the_number(folders: tuple[Path, Path], cli: Cli) -> None:
    graph = GraphXAIDataset.from_folder(folders[1])[5]
    text = cli("info", folders[1], "--graph", 5).output
    label = float(text.partition("label ")[2].split()[0])
    assert np.float32(label) == graph.y.item()
    weights = enumerate(graph.node_weight.tolist())
    assert f"weights   {', '.join(f'{i}: {w:+.3g}' for i, w in weights if w)}" in text
    facts = json.loads(cli("info", folders[1], "--graph", 5, "--json").output)
    assert (facts["class"], facts["label"]) == (None, label)
    assert facts["node_weight"] == graph.node_weight.tolist()


def test_a_label_has_only_the_digits_that_it_needs_as_float32(
    folders: tuple[Path, Path], cli: Cli
) -> None:
    graphs = GraphXAIDataset.from_folder(folders[1])
    record = next(iter(ShardReader(folders[1] / "shard-00000.h5")))
    label = float(np.float32(2.1717))
    assert str(label) == "2.1717000007629395"
    facts = _facts(replace(record, y=label), graphs.manifest.load_recipe())
    assert str(facts["label"]) == "2.1717"


def test_the_tolerance_is_the_one_that_is_applied_to_so_many_graphs(builds: SharedBuilds) -> None:
    manifest = Manifest.load(builds.folder("ba2motif", 500))
    rows = {row[0]: row for row in statistics_rows(manifest)}
    tolerance = Recipe.load("ba2motif").expected["nodes_mean"].tolerance
    assert rows["nodes per graph, mean"][3] == f"± {tolerance * 2**0.5:.3g}"  # half of 1000
    card = (builds.folder("ba2motif", 500) / "README.md").read_text()
    assert f"| ± {tolerance * 2**0.5:.3g} |" in card


def test_pictures_show_one_graph_per_class_with_a_rationale_if_any_has(
    folders: tuple[Path, Path],
) -> None:
    paths = [folders[0] / entry.name for entry in Manifest.load(folders[0]).shards]
    schema = ShardReader(paths[0]).schema
    records = [record for path in paths for record in ShardReader(path)]
    shown = [records[i] for i in _drawn(paths, schema)]
    assert [record.y for record in shown] == [0, 1]
    assert [bool(record.rationale.any()) for record in shown] == [False, True]
    assert _drawn(paths, schema)[0] == 0  # all of class 0 are null: the first one


def test_pictures_of_numbers_show_the_lowest_the_middle_and_the_highest(
    folders: tuple[Path, Path],
) -> None:
    paths = [folders[1] / entry.name for entry in Manifest.load(folders[1]).shards]
    y = np.concatenate([ShardReader(path).columns["y"] for path in paths])
    drawn = y[_drawn(paths, ShardReader(paths[0]).schema)]
    assert drawn.tolist() == [y.min(), np.sort(y)[20], y.max()]
