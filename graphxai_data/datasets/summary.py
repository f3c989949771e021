"""The summary of a dataset: PyG's, but its table needs no other package."""

from dataclasses import fields

from torch_geometric.data.summary import Stats
from torch_geometric.data.summary import Summary as PyGSummary


class Summary(PyGSummary):  # type: ignore[misc]
    """Mean, deviation and quantiles of the numbers of nodes and edges, as in PyG."""

    def format(self, fmt: str = "psql") -> str:
        """Return the table as text, in the style that PyG calls "psql".

        Args:
            fmt: any other style is made by the package tabulate, which has to be installed.
        """
        if fmt != "psql" or self.num_nodes_per_type is not None:
            text: str = super().format(fmt)
            return text
        columns = {"#nodes": self.num_nodes, "#edges": self.num_edges}
        rows = [["", *columns]]
        for field in fields(Stats):
            numbers = (getattr(stats, field.name) for stats in columns.values())
            rows.append([field.name, *(f"{number:.1f}" for number in numbers)])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["| " + " | ".join(_cells(row, widths)) + " |" for row in rows]
        dashes = ["-" * (width + 2) for width in widths]
        edge, rule = f"+{'+'.join(dashes)}+", f"|{'+'.join(dashes)}|"
        title = f"{self.name} (#graphs={self.num_graphs}):"
        return "\n".join([title, edge, lines[0], rule, *lines[1:], edge])

    def __repr__(self) -> str:
        return self.format()  # older versions of PyG make the table here, with tabulate


def _cells(row: list[str], widths: list[int]) -> list[str]:
    """Return names flush left and numbers flush right."""
    return [row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]
