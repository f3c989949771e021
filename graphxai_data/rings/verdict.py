"""From scores to verdicts: do the two principles of RINGS hold, and which numbers say so?

P1, structural necessity: the graph as it is does separably better than without its structure, and
than shortcuts that need none (pooled features, degrees, sizes).
P2, feature-topology interdependence: it does separably better than without its structure, and than
without its features.

A principle passes if the original is separably above every rival; it fails if a rival does as well
though something was learnt; otherwise nothing can be said.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from graphxai_data.disk import write_atomically
from graphxai_data.errors import DamagedError
from graphxai_data.rings.modes import FEATURE_FREE, STRUCTURE_FREE
from graphxai_data.rings.permutation_tests import ALPHA, Comparison, separability
from graphxai_data.typed_table import parse_table

RINGS_NAME = "rings.json"
PROBES = ("pooled_features", "degree_histogram", "sizes")
# The control: the original with labels dealt out anew, so that nothing can be learnt.
CONTROL = "shuffled_labels"
RIVALS = {"p1": (*STRUCTURE_FREE, *PROBES), "p2": (*STRUCTURE_FREE, *FEATURE_FREE)}
# A rival within this much of the original's mean score does as well.
_AS_GOOD = 0.01

Word = Literal["pass", "fail", "inconclusive"]


@dataclass(frozen=True)
class Verdict:
    """What is known about one principle.

    Attributes:
        verdict: "pass", "fail" or "inconclusive".
        reason: one sentence with the numbers that decided.
    """

    verdict: Word
    reason: str


@dataclass(frozen=True)
class Claims:
    """What the paper says of the two principles; None where it says nothing."""

    p1: bool | None = None
    p2: bool | None = None


@dataclass(frozen=True)
class Measurement:
    """What a check found, as `rings.json` has it.

    Attributes:
        depth: "quick" (probes without training) or "full" (trained models).
        claimed: what the paper says of the principles.
        score: what the numbers are.
        graphs: how many graphs were looked at.
        scores: of every mode, one a run.
        comparisons: of the original with every rival, p-values corrected for their number.
        complementarity: mean mode complementarity, where it is defined.
        content_sha256: the build that was measured.
    """

    depth: Literal["quick", "full"]
    principles: dict[str, Verdict]
    claimed: Claims = field(default_factory=Claims)
    score: str = "balanced accuracy"
    graphs: int = 0
    scores: dict[str, tuple[float, ...]] = field(default_factory=dict)
    comparisons: tuple[dict[str, Any], ...] = ()
    complementarity: float | None = None
    content_sha256: str = ""

    @property
    def p1(self) -> Word:
        """Verdict on structural necessity."""
        return self.principles["p1"].verdict

    @property
    def p2(self) -> Word:
        """Verdict on feature-topology interdependence."""
        return self.principles["p2"].verdict

    def to_json(self) -> str:
        """The text of `rings.json`."""
        plain = asdict(self)
        return json.dumps(
            {"depth": plain.pop("depth"), **plain.pop("principles"), **plain}, indent=2
        )

    def save(self, folder: Path) -> None:
        """Write `rings.json`, whole or not at all."""
        write_atomically(folder / RINGS_NAME, (self.to_json() + "\n").encode())

    @classmethod
    def load(cls, folder: Path) -> "Measurement | None":
        """What was measured of a build, if anything was."""
        path = folder / RINGS_NAME
        if not path.is_file():
            return None
        try:
            plain = json.loads(path.read_text(encoding="utf-8"))
            principles = {
                key: parse_table(Verdict, plain.pop(key), str(path), key) for key in ("p1", "p2")
            }
            claimed = Claims(**plain.pop("claimed"))
            rest = {key: value for key, value in plain.items() if value is not None}
            found = parse_table(cls, {**rest, "principles": {}}, str(path))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise DamagedError(
                f"{path}: not a RINGS measurement ({error}); measure again: `graphxai-data rings`"
            ) from None
        return cls(**{**vars(found), "principles": principles, "claimed": claimed})


def judge(
    scores: Mapping[str, Sequence[float]], alpha: float = ALPHA
) -> tuple[dict[str, Verdict], list[Comparison]]:
    """Verdicts on P1 and P2, and the comparisons behind them.

    Args:
        scores: of "original", of the control "shuffled_labels", and of as many of the modes and
            probes as were tried; runs in the same order.
        alpha: level of separability.
    """
    rivals = [mode for mode in scores if mode != "original"]
    comparisons = separability(scores, [("original", rival) for rival in rivals], alpha)
    against = {c.second: c for c in comparisons}
    mean = {mode: float(np.mean(values)) for mode, values in scores.items()}
    control = against[CONTROL]
    if not (control.separable and control.difference > 0):
        reason = (
            f"nothing was learnt: the original scores {mean['original']:.3f}, with shuffled labels "
            f"{mean[CONTROL]:.3f}"
        )
        return dict.fromkeys(RIVALS, Verdict("inconclusive", reason)), comparisons
    verdicts = {}
    for principle, names in RIVALS.items():
        verdicts[principle] = _verdict([against[name] for name in names if name in against], mean)
    return verdicts, comparisons


def _verdict(comparisons: list[Comparison], mean: dict[str, float]) -> Verdict:
    best = max(comparisons, key=lambda c: mean[c.second])
    numbers = (
        f"the original scores {mean['original']:.3f}, the best rival, {best.second}, "
        f"{mean[best.second]:.3f} (corrected p {best.ks_p:.2g})"
    )
    doubtful = [c.second for c in comparisons if not (c.separable and c.difference > 0)]
    if not doubtful:
        return Verdict("pass", f"separably above every rival: {numbers}")
    equals = [c for c in comparisons if c.second in doubtful and c.difference <= _AS_GOOD]
    if equals:
        return Verdict("fail", f"a rival does as well: {numbers}")
    return Verdict("inconclusive", f"not separable from {', '.join(doubtful)}: {numbers}")


def inconclusive(depth: Literal["quick", "full"], reason: str, **known: Any) -> Measurement:
    """A measurement that could not be made."""
    return Measurement(depth, dict.fromkeys(RIVALS, Verdict("inconclusive", reason)), **known)
