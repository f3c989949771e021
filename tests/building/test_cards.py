from dataclasses import replace
from pathlib import Path

from graphxai_data.building.build import build
from graphxai_data.building.cards import mode_rows
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


def test_the_card_has_mean_and_deviation_of_every_mode() -> None:
    scores = {"original": (0.9, 0.8, 0.7), "empty_graph": (0.5,)}
    measurement = replace(inconclusive("quick", "too few graphs", 4), scores=scores)
    assert [row[2:] for row in mode_rows(measurement)] == [["0.800", "0.082"], ["0.500", "0.000"]]
