import re

import numpy as np
import pytest
from scipy.stats import ks_2samp

from graphxai_data.errors import InputError
from graphxai_data.rings.calibration import separability_rates
from tests.conftest import CHECKOUT


def exact_level(runs: int, alpha: float) -> float:
    """The largest p-value of the exact test that is below alpha: its true level."""
    base = np.arange(runs)
    shifts = [base + k - 0.5 for k in range(1, runs + 1)]
    p_values = [ks_2samp(base, shifted, method="exact").pvalue for shifted in shifts]
    return float(max(p for p in p_values if p < alpha))


@pytest.mark.parametrize(("runs", "expected"), [(6, 0.026), (8, 0.0186)])
def test_false_positives_are_as_rare_as_in_the_exact_test(runs: int, expected: float) -> None:
    level = exact_level(runs, 0.05)
    assert level == pytest.approx(expected, abs=1e-3)
    rates = separability_rates(runs, permutations=999, trials=1500)
    deviation = np.sqrt(level * (1 - level) / 1500)
    assert rates.each == pytest.approx(level, abs=4 * deviation)
    assert rates.each == rates.any


def test_a_whole_study_has_few_false_positives() -> None:
    rates = separability_rates(8, comparisons=12, permutations=999, trials=300)
    assert rates.any <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 300)
    assert rates.each <= rates.any <= 12 * rates.each + 1e-12


def test_power_grows_with_the_difference_and_with_the_runs() -> None:
    power = [
        separability_rates(8, shift, 12, permutations=999, trials=40).each for shift in (1, 2, 4)
    ]
    assert power == sorted(power)
    assert power[0] < 0.3
    assert power[-1] > 0.9
    more_runs = separability_rates(16, 2, 12, permutations=999, trials=40)
    assert more_runs.each > power[1] + 0.1


def test_the_same_seed_gives_the_same_rates() -> None:
    first, second, other = (
        separability_rates(6, 1.5, permutations=99, trials=60, seed=seed) for seed in (1, 1, 2)
    )
    assert first == second != other


def test_impossible_studies_are_refused() -> None:
    for options in ({"runs": 1}, {"runs": 8, "comparisons": 0}, {"runs": 8, "trials": 0}):
        with pytest.raises(InputError, match="expected a whole number"):
            separability_rates(**options)
    with pytest.raises(InputError, match="shift: expected a finite number"):
        separability_rates(8, shift=float("nan"))


ROW = re.compile(r"^\| (\d+) \| (0\.\d{3}) \| (0\.\d{3}) \|((?: [01]\.\d\d \|){4})$", re.MULTILINE)


def rows_of_the_page() -> list[tuple[str, ...]]:
    return ROW.findall((CHECKOUT / "docs" / "rings.md").read_text(encoding="utf-8"))


def test_the_page_has_rows_for_several_numbers_of_runs() -> None:
    assert [row[0] for row in rows_of_the_page()] == ["6", "8", "16"]


@pytest.mark.slow
@pytest.mark.parametrize("place", [0, 1, 2])
def test_the_numbers_of_the_page_are_those_of_its_command(place: int) -> None:
    runs, one, study, power = rows_of_the_page()[place]
    again = [separability_rates(int(runs), shift, 12, trials=100) for shift in (1, 2, 3, 4)]
    assert power.replace("|", "").split() == [f"{rates.each:.2f}" for rates in again]
    assert one == f"{separability_rates(int(runs), trials=4000).each:.3f}"
    assert study == f"{separability_rates(int(runs), comparisons=12, trials=400).any:.3f}"
