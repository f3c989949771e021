"""Write the pages of the big table from its results: docs/results.md and a part of the README.

Run from a checkout with `python -m tools.results`, after
`graphxai-data evaluate --all --results docs/results`. Tests compare the pages with the results.
`tools/results_notes.md` has what is written by hand.
"""

import math
from collections.abc import Sequence
from pathlib import Path

from matplotlib import rc_context

from graphxai_data.drawing.critical_difference import critical_difference_diagram
from graphxai_data.evaluation.benchmark.plan import Plan
from graphxai_data.evaluation.benchmark.store import Store
from graphxai_data.evaluation.benchmark.summary import Summary, rank_methods, summarise
from graphxai_data.evaluation.benchmark.tables import (
    OVERVIEW,
    both_rows,
    columns,
    overview_row,
    table_rows,
)
from graphxai_data.evaluation.statistics import cliques
from graphxai_data.files.disk import write_atomically

ROOT = Path(__file__).parent.parent
RESULTS, PAGE, README = ROOT / "docs/results", ROOT / "docs/results.md", ROOT / "README.md"
DIAGRAM = ROOT / "docs/critical-difference.svg"
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"


def main() -> None:
    """Write the page, the part of the README and the diagram."""
    summaries = read_summaries()
    write_atomically(PAGE, page(summaries).encode())
    text = README.read_text(encoding="utf-8")
    write_atomically(README, with_overview(text, summaries).encode())
    names, ranks = rank_methods(summaries)
    groups = cliques(ranks.means, ranks.critical_difference)
    figure = critical_difference_diagram(names, ranks.means, ranks.critical_difference, groups)
    with rc_context({"svg.hashsalt": "graphxai-data"}):  # the same bytes every time
        figure.savefig(DIAGRAM, metadata={"Date": None})


def read_summaries(folder: Path = RESULTS) -> list[Summary]:
    """Return the results of all rows of the plan that have some, in its order."""
    store, known = Store(folder), set(Store(folder).names())
    return [summarise(store, name) for name in Plan.load().names if name in known]


def with_overview(text: str, summaries: Sequence[Summary]) -> str:
    """Return the README with a new overview between its two marks."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{overview(summaries)}\n{END}{after}"


def overview(summaries: Sequence[Summary]) -> str:
    """Return the table with a row per dataset or pair."""
    return markdown(OVERVIEW, [overview_row(summary) for summary in summaries])


def page(summaries: Sequence[Summary]) -> str:
    """Return the text of docs/results.md."""
    names, ranks = rank_methods(summaries)
    order = sorted(range(len(names)), key=lambda i: float(ranks.means[i]))
    listed = ", ".join(f"{names[i]} {ranks.means[i]:.1f}" for i in order)
    ranked = (
        f"Average ranks over the {ranks.datasets} rows above, 1 is best: {listed}. Friedman's "
        f"test: p = {_p(ranks.friedman_p)}. Two methods whose ranks differ by less than "
        f"{ranks.critical_difference:.1f} do not differ significantly (Nemenyi, 5 %). A method "
        "with several rows has the row that is best in the mean over all datasets."
    )
    notes = (ROOT / "tools/results_notes.md").read_text(encoding="utf-8")
    parts = [
        notes.replace("{overview}", overview(summaries)).replace("{ranks}", ranked).strip(),
        *(section(summary) for summary in summaries),
    ]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def section(summary: Summary) -> str:
    """Return all rows of a dataset or pair, with what its models predict."""
    models = []
    for model, facts in summary.models.items():
        text = f"`{model}` {facts['accuracy']:.3f}"
        if not math.isnan(facts.get("agrees", math.nan)):
            text += f" (follows its cause alone in {facts['agrees']:.3f})"
        models.append(text)
    lines = [
        f"## {summary.name}",
        f"Accuracy, mean of {summary.seeds} trainings: {', '.join(models)}. {_graphs(summary)}",
        markdown(columns(summary), table_rows(summary)),
    ]
    if rows := both_rows(summary):
        bound = summary.bounds.get("both", math.nan)
        lines += [
            f"On `{summary.name}-both`, where labels do not say which cause counts, no rule "
            f"without a model can have more than {bound:.3f}:",
            markdown(("explainer", "model", "Jaccard@k"), rows),
        ]
    return "\n\n".join(lines)


def _graphs(summary: Summary) -> str:
    text = f"Scored on {summary.graphs} test graphs"
    fewer: dict[int, list[str]] = {}
    for line in summary.lines:
        if line.interval.graphs < summary.graphs:
            fewer.setdefault(line.interval.graphs, []).append(line.explainer)
    parts = [f"{', '.join(dict.fromkeys(names))} on {n}" for n, names in sorted(fewer.items())]
    return text + (f"; {'; '.join(parts)}." if parts else ".")


def markdown(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table."""
    lines = ["| " + " | ".join(headers) + " |", "|" + " --- |" * len(headers)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def _p(value: float) -> str:
    return f"{value:.2g}" if value >= 1e-4 else "less than 0.0001"


if __name__ == "__main__":
    main()
