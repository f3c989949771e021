from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

from graphxai_data.datasets.records import Graphs
from graphxai_data.drawing.terminal import bar, graph_text, sparkline
from graphxai_data.manifest import Manifest
from tests.conftest import SharedBuilds

Cli = Callable[..., Result]


def test_bars_are_as_long_as_their_share() -> None:
    assert bar(0.0) == ""
    assert bar(1.0, 10) == "█" * 10
    assert bar(0.55, 10) == "█" * 5 + "▌"


def test_sparklines_are_as_high_as_counts() -> None:
    assert sparkline(np.array([0, 1, 4, 8])) == " ▁▄█"
    assert len(sparkline(np.arange(1000), 60)) <= 60


def graphs_of(folder: Path) -> Graphs:
    return Graphs(folder, Manifest.load(folder))


def test_a_digit_shows_its_ink_and_its_rationale(builds: SharedBuilds) -> None:
    record = graphs_of(builds.folder("mnist75sp-r23", 500))[7]
    lines = graph_text(record).plain.rstrip("\n").split("\n")
    assert len(lines) == 28
    assert {len(line) for line in lines} == {56}
    inside = record.rationale[record.meta["segments"]]
    drawn = np.array([[line[2 * i] != " " for i in range(28)] for line in lines])
    assert (drawn | ~inside).all()  # all of the rationale is seen


def test_a_molecule_shows_its_halogens(builds: SharedBuilds) -> None:
    record = graphs_of(builds.folder("dihalo", 500))[18]
    text = graph_text(record)
    assert text.plain.count("Cl") == 2
    orange = [text.plain[s.start : s.end] for s in text.spans if "orange" in str(s.style)]
    assert sorted(orange) == ["C"] * 6 + ["Cl"] * 2


def test_without_colours_atoms_of_the_rationale_have_a_star(builds: SharedBuilds) -> None:
    record = graphs_of(builds.folder("dihalo", 500))[18]
    assert graph_text(record, colours=False).plain.count("*") == 8
    assert max(map(len, graph_text(record, 40).plain.split("\n"))) <= 40


def test_filled_circles_are_the_rationale(small_build: Path) -> None:
    record = graphs_of(small_build)[3]
    plain = graph_text(record).plain
    assert plain.count("●") == 5
    assert plain.count("○") == record.num_nodes - 5


def test_info_draws_one_graph_and_says_what_it_is(cli: Cli, small_build: Path) -> None:
    result = cli("info", small_build, "--graph", 3)
    assert result.exit_code == 0
    record = graphs_of(small_build)[3]
    assert f"graph 3: {record.num_nodes} nodes" in result.stdout
    assert ", ".join(map(str, np.flatnonzero(record.rationale))) in result.stdout


def test_info_gives_one_graph_to_machines(cli: Cli, small_build: Path) -> None:
    import json

    shown = json.loads(cli("info", small_build, "--graph", 3, "--json").stdout)
    record = graphs_of(small_build)[3]
    assert shown["edge_index"] == record.edge_index.tolist()
    assert shown["rationale"] == np.flatnonzero(record.rationale).tolist()
    assert shown["class"] in ("house", "cycle")


@pytest.mark.parametrize("graph", [-1, 40])
def test_info_refuses_a_graph_that_does_not_exist(cli: Cli, small_build: Path, graph: int) -> None:
    result = cli("info", small_build, f"--graph={graph}")
    assert result.exit_code == 2
    assert f"--graph: expected a whole number from 0 to 39, got {graph}" in result.stderr


def test_info_shows_sizes_and_degrees(cli: Cli, small_build: Path) -> None:
    lines = cli("info", small_build).stdout.splitlines()
    nodes = [line for line in lines if line.startswith("nodes per graph ")]
    sizes = [graphs_of(small_build)[i].num_nodes for i in range(40)]
    assert nodes[0].split()[3] == str(min(sizes))
    assert nodes[0].split()[-1] == str(max(sizes))
    assert any(line.startswith("degrees") for line in lines)
