"""From scores to verdicts: do the two principles of RINGS hold, and which numbers say so?

P1, structural necessity: the graph as it is does separably better than without its structure, and
than shortcuts that need none (pooled features, degrees, sizes).
P2, feature-topology interdependence: it does separably better than without its structure, and than
without its features.

A principle passes if the original is separably above every rival; it fails if a rival does as well,
or solves what the original does not; otherwise nothing can be said.
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
            stated = {k: v for k, v in plain.pop("claimed").items() if v is not None}
            claimed = parse_table(Claims, stated, str(path), "claimed")
            rest = {key: value for key, value in plain.items() if value is not None}
            found = parse_table(cls, {**rest, "principles": {}}, str(path))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise DamagedError(
                f"{path}: not a RINGS measurement ({error}); measure again: `graphxai-data rings`"
            ) from None
        return cls(**{**vars(found), "principles": principles, "claimed": claimed})


def judge(
    scores: Mapping[str, Sequence[float]], alpha: float = ALPHA, least_learnt: float = 0.0
) -> tuple[dict[str, Verdict], list[Comparison]]:
    """Verdicts on P1 and P2, and the comparisons of the original with every rival behind them.

    Args:
        scores: of "original", of the control "shuffled_labels", and of as many of the modes and
            probes as were tried; runs in the same order.
        alpha: level of separability.
        least_learnt: how far above the control, in the mean, counts as learnt; for scores whose
            runs share their graphs, and so are not as independent as the tests take them to be.
    """
    for name in ("original", CONTROL):
        if name not in scores:
            raise InputError(f"no scores of '{name}': without them nothing can be judged")
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
    """The original is at chance; a rival that is not solves the task without what is claimed."""
    numbers = f"the original scores {mean['original']:.3f}, shuffled labels {mean[CONTROL]:.3f}"
    if not solved:
        return Verdict("inconclusive", f"nothing was learnt: {numbers}")
    best = max(solved, key=mean.__getitem__)
    return Verdict("fail", f"{best} solves it with {mean[best]:.3f}, while {numbers}")


def _verdict(comparisons: list[Comparison], mean: dict[str, float]) -> Verdict:
    equals = [c for c in comparisons if c.difference <= _AS_GOOD]
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


def inconclusive(depth: Literal["quick", "full"], reason: str, **known: Any) -> Measurement:
    """A measurement that could not be made."""
    return Measurement(depth, dict.fromkeys(RIVALS, Verdict("inconclusive", reason)), **known)
