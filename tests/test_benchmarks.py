"""The table of ratios: that it is whole, and that a check of it can fail."""

import json
from pathlib import Path

import pytest

import benchmarks.__main__ as table

CHECKOUT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def written() -> dict:
    return json.loads((CHECKOUT / "benchmarks" / "results.json").read_text())


def test_every_ratio_of_the_table_was_measured(written: dict) -> None:
    assert set(written["ratios"]) == {row.id for row in table.ROWS}
    assert all(ratio > 0 for ratio in written["ratios"].values())


def test_the_page_is_what_the_results_give(written: dict) -> None:
    page = (CHECKOUT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert page == table.page(written)


def test_growth_reaches_a_million_graphs_with_flat_memory(written: dict) -> None:
    growth = written["growth"]
    assert growth["1,000,000 graphs"]["peak memory, times that of 10,000"] < 4
    assert growth["1,000,000 graphs"]["time per graph, times that of 10,000"] < 1.5


def test_a_ratio_that_is_much_worse_is_named_and_noise_is_not(written: dict) -> None:
    ratios = written["ratios"]
    assert table.worse(ratios, ratios) == []
    for row in table.ROWS:
        for factor, problems in ((1.4, 0), (1.6, 1)):
            value = ratios[row.id] / factor if row.higher else ratios[row.id] * factor
            found = table.worse(ratios | {row.id: value}, ratios)
            assert len(found) == problems, row
            better = ratios[row.id] * 3 if row.higher else ratios[row.id] / 3
            assert table.worse(ratios | {row.id: better}, ratios) == []


def test_ratios_are_found_in_what_the_modules_print() -> None:
    printed = {
        "nci1": {"times faster than PyG": 20.5},
        "dihalo": {"generation, in units of RDKit": 2},
    }
    assert table.ratios_of(printed) == {
        "nci1/times faster than PyG": 20.5,
        "dihalo/generation, in units of RDKit": 2.0,
    }
