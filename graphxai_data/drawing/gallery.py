"""Which graphs a gallery shows."""

from collections.abc import Iterable

from graphxai_data.graphs.record import GraphRecord


def first_of_each_class(records: Iterable[GraphRecord], classes: int) -> list[GraphRecord]:
    """The first graph of each class that is there, in the order of classes."""
    first: dict[int, GraphRecord] = {}
    for record in records:
        first.setdefault(record.y, record)
        if len(first) == classes:
            break
    return [first[label] for label in sorted(first)]
