"""Findings: a list of broken promises about graphs, each naming the first graph that breaks it."""

import numpy as np
import numpy.typing as npt

from graphxai_data.columns import Columns


class Findings:
    """Collects problems of the graphs in `columns`; `problems` is empty when there are none."""

    def __init__(self, columns: Columns) -> None:
        self._graph_id = columns["graph_id"]
        self.problems: list[str] = []

    def require(self, holds: npt.NDArray[np.bool_], sentence: str) -> None:
        """Note a problem unless `holds` [g] is true for every graph."""
        if not holds.all():
            broken = int((~holds).sum())
            first = int(self._graph_id[int(np.argmin(holds))])
            others = f" (and {broken - 1} more)" if broken > 1 else ""
            self.problems.append(f"graph {first}{others}: {sentence}")
