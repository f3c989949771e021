import json
from collections.abc import Callable
from pathlib import Path

import pytest

from graphxai_data.building.verify import verify
from graphxai_data.errors import DamagedError, InputError
from graphxai_data.rings import judge
from graphxai_data.rings.verdict import Measurement, Verdict


def _runs(mean: float, count: int = 8) -> list[float]:
    return [mean + i / 1000 for i in range(count)]


def test_a_rival_that_collapsed_once_is_not_beaten() -> None:
    scores = {"original": _runs(0.94), "shuffled_labels": _runs(0.5)}
    rival = [*_runs(0.95, 7), 0.5]
    verdicts, _ = judge({**scores, "empty_graph": rival})
    assert verdicts["p1"].verdict != "pass"
    assert judge({**scores, "empty_graph": _runs(0.6)})[0]["p1"].verdict == "pass"
    assert judge({**scores, "empty_graph": _runs(0.935)})[0]["p1"].verdict == "fail"


def test_a_shortcut_that_solves_what_the_original_does_not_is_a_fail() -> None:
    scores = {"original": _runs(0.5), "shuffled_labels": _runs(0.5), "sizes": _runs(0.98)}
    verdicts, _ = judge({**scores, "empty_graph": _runs(0.5), "empty_features": _runs(0.5)})
    assert verdicts["p1"].verdict == "fail"
    assert "sizes solves it with 0.98" in verdicts["p1"].reason
    assert verdicts["p2"].verdict == "inconclusive"
    with pytest.raises(InputError, match="no scores of 'shuffled_labels'"):
        judge({"original": _runs(0.5)})


def test_a_damaged_measurement_is_named(small_build: Path, cli: Callable) -> None:
    (small_build / "rings.json").write_text('{"depth": "quick"}')
    with pytest.raises(DamagedError, match="rings.json: not a RINGS measurement"):
        Measurement.load(small_build)
    assert "not a RINGS measurement" in verify(small_build)[0]
    other = Measurement("quick", {k: Verdict("pass", "") for k in ("p1", "p2")})
    other.save(small_build)
    assert "measured on other graphs" in verify(small_build)[0]
    unclaimed = {k: v for k, v in json.loads(other.to_json()).items() if k != "claimed"}
    (small_build / "rings.json").write_text(json.dumps(unclaimed))
    with pytest.raises(DamagedError, match="rings.json: not a RINGS measurement"):
        Measurement.load(small_build)
    (small_build / "rings.json").write_text(
        other.to_json().replace('"p1": null', '"p1": "banana"', 1)
    )
    assert cli("info", small_build).exit_code == 1


def test_inconclusive_measurements_survive_the_disk(tmp_path: Path) -> None:
    verdict = Verdict("inconclusive", "why")
    measurement = Measurement("quick", {"p1": verdict, "p2": verdict}, graphs=3)
    measurement.save(tmp_path)
    assert Measurement.load(tmp_path) == measurement
