"""RINGS (Coupette et al. 2025): does a dataset need its structure, and structure and features both?

`check` measures the two principles. Its parts can be used alone: `mode_complementarity`, `perturb`
and `separability`. Names are imported on first use: the quick check needs no torch.
"""

from typing import TYPE_CHECKING

from graphxai_data.lazy import lazy_names

if TYPE_CHECKING:
    from graphxai_data.rings.complementarity import mode_complementarities as mode_complementarities
    from graphxai_data.rings.complementarity import mode_complementarity as mode_complementarity
    from graphxai_data.rings.measure import check as check
    from graphxai_data.rings.permutation_tests import Scores as Scores
    from graphxai_data.rings.permutation_tests import separability as separability
    from graphxai_data.rings.perturbations import Perturbation as Perturbation
    from graphxai_data.rings.perturbations import perturb as perturb
    from graphxai_data.rings.verdict import judge as judge

_HOME = {
    "Perturbation": "perturbations",
    "Scores": "permutation_tests",
    "check": "measure",
    "judge": "verdict",
    "mode_complementarities": "complementarity",
    "mode_complementarity": "complementarity",
    "perturb": "perturbations",
    "separability": "permutation_tests",
}

__all__ = sorted(_HOME)

__getattr__ = lazy_names(__name__, _HOME)


def __dir__() -> list[str]:
    return __all__
