"""The pages of the big table are what its results say."""

import json
from pathlib import Path

import pytest

from graphxai_data.errors import InputError
from graphxai_data.evaluation.benchmark.plan import Plan
from graphxai_data.evaluation.benchmark.store import Store
from graphxai_data.evaluation.benchmark.summary import Summary
from tests.conftest import CHECKOUT
from tools import results

NAMES = Store(results.RESULTS).names()


@pytest.fixture(scope="module")
def summaries() -> list[Summary]:
    return results.read_summaries()


def test_the_page_is_made_from_the_results(summaries: list[Summary]) -> None:
    assert results.PAGE.read_text(encoding="utf-8") == results.page(summaries)


def test_the_readme_has_the_overview(summaries: list[Summary]) -> None:
    text = results.README.read_text(encoding="utf-8")
    assert results.overview(summaries) in text
    assert results.with_overview(text, summaries) == text


def test_a_changed_score_changes_the_page(summaries: list[Summary], tmp_path: Path) -> None:
    for name in NAMES:
        content = Store(results.RESULTS).read(name)
        row = content["cells"][0]["rows"]["bcos"]
        row["jaccard"] = [1 - value for value in row["jaccard"]]
        Store(tmp_path).add(name, content["cells"], **{
            key: value for key, value in content.items() if key != "cells"
        })  # fmt: skip
    assert results.overview(results.read_summaries(tmp_path)) != results.overview(summaries)


@pytest.mark.parametrize("name", NAMES)
def test_results_are_of_the_pinned_builds(name: str) -> None:
    digests = (CHECKOUT / "data" / "digests.toml").read_text()
    cells = Store(results.RESULTS).read(name)["cells"]
    for digest in {cell["content_sha256"] for cell in cells}:
        assert digest in digests
    assert {cell["dataset"] for cell in cells} == set(Plan.load([name]).builds(name).values())


@pytest.mark.parametrize("name", NAMES)
def test_a_file_of_results_is_written_as_it_is_read(name: str, tmp_path: Path) -> None:
    path = Store(results.RESULTS).path(name)
    content = json.loads(path.read_text(encoding="utf-8"))
    cells = content.pop("cells")
    Store(tmp_path).add(name, cells, **content)
    assert Store(tmp_path).path(name).read_bytes() == path.read_bytes()


def test_results_of_too_few_trainings_make_no_page(tmp_path: Path) -> None:
    content = Store(results.RESULTS).read(NAMES[0])
    few = [cell for cell in content["cells"] if cell["seed"] < 2]
    Store(tmp_path).add(NAMES[0], few, graph_id=content["graph_id"])
    with pytest.raises(InputError, match="2 seeds have all models, expected at least 3"):
        results.read_summaries(tmp_path)
