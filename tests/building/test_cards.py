import re
from dataclasses import replace
from pathlib import Path

import pytest

from graphxai_data.building.build import build
from graphxai_data.building.cards import mode_rows, own_sections
from graphxai_data.errors import CheckFailedError
from graphxai_data.generators.ba2motif import BA2MotifGenerator
from graphxai_data.manifest import Manifest
from graphxai_data.rings.verdict import inconclusive
from tests.conftest import SharedBuilds


def test_the_card_shows_what_was_built_next_to_the_paper(builds: SharedBuilds) -> None:
    card = (builds.folder("dihalo", rings=True) / "README.md").read_text()
    assert "| nodes per graph, mean | 51.56 | 51.65 (paper) | ± 0.5 |" in card
    assert "| 0: Cl ortho | 800 | 100 | 100 | 1000 |" in card
    assert "(classes.svg)" in card
    assert "zinc-clean-leads.smi.gz" in card
    assert "| P1, structural necessity | holds | pass (quick) | separably above" in card


def test_the_card_of_a_build_from_a_users_file_says_that_the_file_is_needed(tmp_path: Path) -> None:
    molecules = [f"{'C' * i}NC(=O)c1ccc(OC)c(C(=O)NCCCC)c1" for i in range(1, 12)]
    pool = tmp_path / "mine.smi"
    pool.write_text("\n".join([*molecules, *["not a molecule"] * 300]))
    build("dihalo", root=tmp_path, graphs=9, sources={"zinc": pool}, engine="serial")
    card = (tmp_path / "dihalo/seed-0/README.md").read_text()
    assert "mine.smi" in card
    assert "rejected: SMILES does not parse" in card
    assert "and the file above as `--source`" in card


def test_the_card_of_molecules_compares_them_with_their_backgrounds(builds: SharedBuilds) -> None:
    folder = builds.folder("dihalo-decoy", 500)
    card = (folder / "README.md").read_text()
    row = r"\| {} \| ([\d.]+)%? \| ([\d.]+)%? \|"
    values = {
        name: tuple(map(float, re.search(row.format(name), card).groups()))
        for name in (
            "weight, mean", "logP, mean", "QED, mean", "with a PAINS or Brenk alert",
            "stereo centres, mean", "with a stereo centre that is not assigned",
        )
    }  # fmt: skip
    assert 250 < values["weight, mean"][1] < 350 < values["weight, mean"][0]
    assert values["logP, mean"][0] > values["logP, mean"][1]
    assert 0 < values["QED, mean"][0] < values["QED, mean"][1] < 1
    # The grafts add no stereo centre.
    for name in ("stereo centres, mean", "with a stereo centre that is not assigned"):
        assert values[name][0] == values[name][1]
    assert "A sample of 200 graphs" in card
    assert "`data.canonical_smiles`" in card
    manifest = Manifest.load(folder)
    assert all(text in card for text in own_sections(folder, manifest, manifest.load_recipe()))


def test_other_cards_have_no_such_section(small_build: Path) -> None:
    assert "## Molecules" not in (small_build / "README.md").read_text()


def test_what_card_sections_returns_is_checked(
    small_build: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(BA2MotifGenerator, "card_sections", lambda self, records: "text")
    manifest = Manifest.load(small_build)
    with pytest.raises(CheckFailedError, match="card_sections returned str, expected a list"):
        own_sections(small_build, manifest, manifest.load_recipe())
    monkeypatch.setattr(BA2MotifGenerator, "card_sections", lambda self, rs: [f"{len(rs)} graphs"])
    assert own_sections(small_build, manifest, manifest.load_recipe()) == ["40 graphs"]


def test_the_card_has_mean_and_deviation_of_every_mode() -> None:
    scores = {"original": (0.9, 0.8, 0.7), "empty_graph": (0.5,)}
    measurement = replace(inconclusive("quick", "too few graphs", 4), scores=scores)
    assert [row[2:] for row in mode_rows(measurement)] == [["0.800", "0.082"], ["0.500", "0.000"]]
