"""Figures as they are printed: a measured value beside its target, and what it was measured from."""

import statistics
from collections.abc import Sequence

from attrs import frozen


@frozen
class Figure:
    """``target`` is text such as ``>= 5x``; ``context`` the absolute numbers, which only this machine knows."""

    what: str
    measured: str
    target: str
    context: str


def ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """The median of the ratios of rounds that were measured one right after the other."""
    return statistics.median(a / b for a, b in zip(ours, theirs, strict=True))


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def table(figures: Sequence[Figure]) -> str:
    rows = [("what", "measured", "target", "context")]
    rows += [(figure.what, figure.measured, figure.target, figure.context) for figure in figures]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return "\n".join(lines)
