"""The table of benchmark ratios is complete, and its check notices a slowdown."""

import json

import pytest

import benchmarks.__main__ as table
from tests.conftest import CHECKOUT


@pytest.fixture(scope="module")
def results() -> dict:
    """The stored results."""
    return json.loads((CHECKOUT / "benchmarks" / "results.json").read_text())


def test_every_ratio_of_the_table_is_in_the_results(results: dict) -> None:
    assert set(results["ratios"]) == {row.id for row in table.ROWS}
    assert all(ratio > 0 for ratio in results["ratios"].values())


def test_the_page_shows_the_stored_results(results: dict) -> None:
    page = (CHECKOUT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert page == table.page(results)


def test_memory_and_time_per_graph_stay_bounded_up_to_a_million_graphs(results: dict) -> None:
    growth = results["growth"]
    assert growth["1,000,000 graphs"]["peak memory, times that of 10,000"] < 4
    assert growth["1,000,000 graphs"]["time per graph, times that of 10,000"] < 1.5


def test_the_check_names_a_ratio_that_is_much_worse_and_ignores_noise(results: dict) -> None:
    ratios = results["ratios"]
    assert table.worse(ratios, ratios) == []
    for row in table.ROWS:
        for factor, number_of_problems in ((1.4, 0), (1.6, 1)):
            value = ratios[row.id] / factor if row.higher else ratios[row.id] * factor
            problems = table.worse(ratios | {row.id: value}, ratios)
            assert len(problems) == number_of_problems, row
            better = ratios[row.id] * 3 if row.higher else ratios[row.id] / 3
            assert table.worse(ratios | {row.id: better}, ratios) == []


def test_ratios_are_read_from_the_output_of_the_benchmarks() -> None:
    printed = {
        "nci1": {"times faster than PyG": 20.5},
        "dihalo": {"generation, in units of RDKit": 2},
    }
    assert table.ratios_of(printed) == {
        "nci1/times faster than PyG": 20.5,
        "dihalo/generation, in units of RDKit": 2.0,
    }
