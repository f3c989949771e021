"""Verdicts on the two principles of RINGS, from the scores of all modes.

P1, structural necessity: the original graphs score separably better than graphs without their
structure, and than shortcuts that need none (pooled features, degrees, sizes).
P2, feature-topology interdependence: the original scores separably better than graphs without
their structure, and than graphs without their features.

A principle passes if the original is separably above every rival. It fails if a rival scores as
well, or solves what the original does not. Otherwise the verdict is inconclusive.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from graphxai_data.errors import DamagedError, InputError
from graphxai_data.files.disk import write_atomically
from graphxai_data.files.toml import parse_table
from graphxai_data.manifest import RINGS_NAME
from graphxai_data.rings.modes import FEATURE_FREE, STRUCTURE_FREE
from graphxai_data.rings.permutation_tests import ALPHA, Comparison, separability

PROBES = ("pooled_features", "degree_histogram", "sizes")
# The control: the original with shuffled labels, so that nothing can be learnt.
CONTROL = "shuffled_labels"
RIVALS = {"p1": (*STRUCTURE_FREE, *PROBES), "p2": (*STRUCTURE_FREE, *FEATURE_FREE)}
# A rival whose mean score is lower by at most this much scores as well.
_TOLERANCE = 0.01

Word = Literal["pass", "fail", "inconclusive"]
Depth = Literal["quick", "full"]


@dataclass(frozen=True)
class Verdict:
    """The verdict on one principle, and the reason: one sentence with the decisive numbers."""

    verdict: Word
    reason: str


@dataclass(frozen=True)
class Claims:
    """What the paper claims about the two principles; None where it claims nothing."""

    p1: bool | None = None
    p2: bool | None = None


@dataclass(frozen=True)
class Measurement:
    """The result of a check: the content of `rings.json`.

    Attributes:
        depth: "quick" (probes without training) or "full" (trained models).
        principles: the verdicts on "p1" and "p2".
        score: what the scores are.
        classes: what is predicted: the class of a graph, or a class made from its number.
        graphs: number of graphs that were measured.
        scores: scores of every mode, one per run.
        comparisons: the original against every rival, with corrected p-values.
        complementarity: mean mode complementarity, where it is defined.
    """

    depth: Depth
    principles: dict[str, Verdict]
    claimed: Claims = field(default_factory=Claims)
    score: str = "balanced accuracy"
    classes: str = "those of the graphs"
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
        """Return the text of `rings.json`."""
        table = asdict(self)
        return json.dumps(
            {"depth": table.pop("depth"), **table.pop("principles"), **table}, indent=2
        )

    def save(self, folder: Path) -> None:
        """Write `rings.json` atomically."""
        write_atomically(folder / RINGS_NAME, (self.to_json() + "\n").encode())

    @classmethod
    def load(cls, folder: Path) -> "Measurement | None":
        """Return the measurement of a build, or None if it was not measured."""
        path = folder / RINGS_NAME
        if not path.is_file():
            return None
        try:
            table = json.loads(path.read_text(encoding="utf-8"))
            principles = {key: table.pop(key) for key in RIVALS}
            whole = {**table, "principles": principles, "claimed": table["claimed"]}
            return parse_table(cls, whole, str(path))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise DamagedError(
                f"{path}: not a RINGS measurement ({error}); measure again: `graphxai-data rings`"
            ) from None


def judge(
    scores: Mapping[str, Sequence[float]], alpha: float = ALPHA, least_learnt: float = 0.0
) -> tuple[dict[str, Verdict], list[Comparison]]:
    """Return verdicts on P1 and P2, and the comparisons of the original with every rival.

    Args:
        scores: scores of "original", of the control "shuffled_labels", and of any modes and probes;
            runs in the same order.
        alpha: level of separability.
        least_learnt: margin above the control, in the mean, that counts as learnt. For runs that
            share graphs, which are less independent than the tests assume.
    """
    for name in ("original", CONTROL):
        if name not in scores:
            raise InputError(f"no scores of '{name}': they are needed for any verdict; add them")
    rivals = [mode for mode in scores if mode != "original"]
    comparisons = separability(scores, [("original", rival) for rival in rivals], alpha)
    against = {c.second: c for c in comparisons}
    mean = {mode: float(np.mean(values)) for mode, values in scores.items()}
    verdicts = {}
    for principle, names in RIVALS.items():
        tried = [name for name in names if name in scores]
        if against[CONTROL].above and against[CONTROL].difference > least_learnt:
            verdicts[principle] = _verdict([against[name] for name in tried], mean)
        else:
            against_control = separability(scores, [(name, CONTROL) for name in tried], alpha)
            solved = [c.first for c in against_control if c.above and c.difference > least_learnt]
            verdicts[principle] = _nothing_learnt(solved, mean)
    return verdicts, comparisons


def _nothing_learnt(solved: list[str], mean: dict[str, float]) -> Verdict:
    """Return the verdict where the original is at chance: a fail if some rival is not."""
    numbers = f"the original scores {mean['original']:.3f}, shuffled labels {mean[CONTROL]:.3f}"
    if not solved:
        return Verdict("inconclusive", f"nothing was learnt: {numbers}")
    best = max(solved, key=mean.__getitem__)
    return Verdict("fail", f"{best} solves it with {mean[best]:.3f}, while {numbers}")


def _verdict(comparisons: list[Comparison], mean: dict[str, float]) -> Verdict:
    equals = [c for c in comparisons if c.difference <= _TOLERANCE]
    doubtful = [c for c in comparisons if not c.above]
    decisive = max(equals or doubtful or comparisons, key=lambda c: mean[c.second])
    numbers = (
        f"the original scores {mean['original']:.3f}, {decisive.second} "
        f"{mean[decisive.second]:.3f} (corrected p {decisive.ks_p:.2g})"
    )
    if equals:
        return Verdict("fail", f"a rival does as well: {numbers}")
    if doubtful:
        return Verdict("inconclusive", f"a rival is not separably below: {numbers}")
    return Verdict("pass", f"separably above every rival, of which the best: {numbers}")


def inconclusive(depth: Depth, reason: str, graphs: int) -> Measurement:
    """Return a measurement without scores, and the reason why there are none."""
    verdicts = dict.fromkeys(RIVALS, Verdict("inconclusive", reason))
    return Measurement(depth, verdicts, graphs=graphs)
