"""The same recipe and seed give the same graphs: digests pinned in the checkout."""

from pathlib import Path

import pytest

from graphxai_data.files.shipped import shipped
from graphxai_data.files.toml import read_toml
from graphxai_data.manifest import Manifest
from graphxai_data.recipe import Recipe
from tests.conftest import SharedBuilds, offline_names, reference_names

REFERENCE = read_toml(shipped("data") / "digests.toml")
SMALL = read_toml(Path(__file__).parents[1] / "golden" / "small_digests.toml")


def test_every_recipe_has_a_small_digest() -> None:
    assert sorted(SMALL) == offline_names()


@pytest.mark.parametrize("name", sorted(REFERENCE))
def test_the_digest_of_a_recipe_is_that_of_its_reference_build(name: str) -> None:
    """A new optional key of a generator must not change the recipes that do not use it."""
    assert Recipe.load(name).sha256 == REFERENCE[name]["recipe_sha256"]


@pytest.mark.parametrize("name", offline_names())
def test_a_build_of_500_graphs_has_its_pinned_digest(name: str, builds: SharedBuilds) -> None:
    assert Manifest.load(builds.folder(name, 500)).content_sha256 == SMALL[name]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.reference if name in reference_names() else ())
        for name in offline_names()
    ],
)
def test_the_reference_build_has_its_pinned_digest(name: str, builds: SharedBuilds) -> None:
    manifest = Manifest.load(builds.folder(name, rings=True))
    assert manifest.content_sha256 == REFERENCE[name]["content_sha256"]
    assert manifest.recipe_sha256 == REFERENCE[name]["recipe_sha256"]
    assert manifest.graphs == REFERENCE[name]["graphs"]
