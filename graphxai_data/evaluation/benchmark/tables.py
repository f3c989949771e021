"""The big table as text: one row per dataset, and a table per dataset with all explainers."""

import math
from collections.abc import Sequence

import numpy as np

from graphxai_data.evaluation.benchmark.summary import Floor, Line, Summary
from graphxai_data.evaluation.statistics import Interval
from graphxai_data.generators.base import Rule
from graphxai_data.metrics import Floats
from graphxai_data.recipe import Recipe
from graphxai_data.rings.colour_rules import ROWS
from graphxai_data.rings.scored_rules import own_rules

_KNOWING = {row.name for row in ROWS if row.knows_labels}
# Columns of the overview: methods, by the beginning of their label. Others share the last column.
_METHODS = {
    "B-cos ×5": "bcos ×5",
    "B-cos": "bcos",
    "integrated gradients": "integrated-gradients",
    "saliency": "saliency",
    "GNNExplainer": "gnn-explainer",
    "GSAT": "gsat",
}
OVERVIEW = ("dataset", *_METHODS, "best of others", "best floor", "bound")
_COLUMNS = ("explainer", "model", "Jaccard@k", "95 %", "deviation", "AUROC", "95 %", "ms/graph")
_SUFFICIENT = "sufficient part"


def overview_row(summary: Summary) -> list[str]:
    """Return the row of a dataset or pair: the best row of each method, and the best floor.

    The highest mean is bold. The bound is what a rule can reach that looks at no model.
    """
    best = {title: _best(summary, key) for title, key in _METHODS.items()}
    others = [line for line in summary.lines if line.method not in _METHODS.values()]
    best["best of others"] = max(others, key=_mean, default=None)
    floors = floors_of(summary)
    values = [_mean(line) for line in best.values() if line] + [f.jaccard for f in floors[:1]]
    top = max(values, default=math.nan)
    cells = [f"`{summary.name}`"]
    for title, line in best.items():
        name = f"{line.explainer}: " if line and title == "best of others" else ""
        cells.append(_bold(f"{name}{_mean(line):.3f}", _mean(line) == top) if line else "")
    floor = floors[0] if floors else None
    cells.append(_bold(floor_text(floor), floor.jaccard == top) if floor else "")
    cells.append(f"{summary.bounds['own']:.3f}" if summary.bounds else "")
    return cells


def columns(summary: Summary) -> tuple[str, ...]:
    """Return the headers of `table_rows`."""
    return (*_COLUMNS, _SUFFICIENT) if _knows_sufficient(summary) else _COLUMNS


def table_rows(summary: Summary) -> list[list[str]]:
    """Return a row per explainer and model, the best first; "≈" marks ties with the best.

    The last column is Jaccard@k with the smallest parts that decide the label, where these are
    known.
    """
    known, rows = _knows_sufficient(summary), []
    for line in sorted(summary.lines, key=_mean, reverse=True):
        one, two = line.interval, line.auroc_interval
        rows.append([
            line.explainer + " ≈" * (line.name in summary.as_good), line.model,
            f"{one.mean:.3f}", _range(one), f"{one.deviation:.3f}", f"{two.mean:.3f}", _range(two),
            f"{line.ms_per_graph:.1f}", *([f"{_nanmean(line.sufficient):.3f}"] if known else []),
        ])  # fmt: skip
    for floor in floors_of(summary):
        cells = ["–", f"{floor.jaccard:.3f}", "", "", f"{floor.auroc:.3f}", "", ""]
        rows.append([floor_name(floor), *cells, *([""] if known else [])])
    return rows


def _knows_sufficient(summary: Summary) -> bool:
    return any(line.sufficient is not None for line in summary.lines)


def both_rows(summary: Summary) -> list[list[str]]:
    """Return Jaccard@k on the build of a pair in which labels do not say which cause counts."""
    lines = [line for line in summary.lines if line.both is not None]
    values = [(line.explainer, line.model, _nanmean(line.both)) for line in lines]
    values += [(floor_name(f), "–", f.both) for f in floors_of(summary) if not math.isnan(f.both)]
    ordered = sorted(values, key=lambda row: row[2], reverse=True)
    return [[name, model, f"{value:.3f}"] for name, model, value in ordered]


def floors_of(summary: Summary) -> list[Floor]:
    """Return the floors, the best first, without rules that repeat the rationale's definition."""
    definitions = {rule.name for rule in _rules(summary) if rule.is_definition}
    floors = [floor for floor in summary.floors if floor.name not in definitions]
    return sorted(floors, key=lambda floor: floor.jaccard, reverse=True)


def floor_name(floor: Floor) -> str:
    """Return the name of a rule, with a star if it knows labels of training graphs."""
    return f"`{floor.name}` *" if floor.name in _KNOWING else f"`{floor.name}`"


def floor_text(floor: Floor) -> str:
    """Return a floor as a cell."""
    return f"{floor_name(floor)}: {floor.jaccard:.3f}"


def _rules(summary: Summary) -> Sequence[Rule]:
    names = [summary.name] if not summary.name.endswith("-pair") else [f"{summary.name}-a"]
    return [rule for name in names for rule in own_rules(Recipe.load(name))]


def _best(summary: Summary, method: str) -> Line | None:
    return max((line for line in summary.lines if line.method == method), key=_mean, default=None)


def _mean(line: Line) -> float:
    return line.interval.mean


def _nanmean(values: Floats | None) -> float:
    return math.nan if values is None else float(np.nanmean(values))


def _range(value: Interval) -> str:
    return f"{value.low:.3f} to {value.high:.3f}"


def _bold(text: str, is_bold: bool) -> str:
    return f"**{text}**" if is_bold else text
