"""The rows of a report as cells of text."""

from collections.abc import Sequence

from benchmarks.measuring.child import Introduction
from benchmarks.measuring.measurements import Unit
from benchmarks.reporting.summary import Row

WHO = ("contestant", "version", "durability", "how it is run")
HEADINGS = ("what", "contestant", "median", "range", "x best peer", "x bare", "floor → goal", "note")
NUMBERS = frozenset({"median", "range", "x best peer", "x bare", "floor → goal"})


def who(contestants: Sequence[Introduction], missing: Sequence[Introduction]) -> list[tuple[str, ...]]:
    """Return one line of cells per contestant, those that could not be run here with the reason."""
    present = [(one.name, one.version, one.durability, one.how) for one in contestants]
    return [*present, *[(one.name, "", "", f"not run: {one.missing}") for one in missing]]


def parts(rows: Sequence[Row]) -> dict[str, list[tuple[str, ...]]]:
    """Return the lines of cells of each part; a title stands only at its first row."""
    lines: dict[str, list[tuple[str, ...]]] = {}
    title = ""
    for row in rows:
        shown = "" if row.title == title else f"{row.title}, {row.unit}"
        title = row.title
        lines.setdefault(row.part, []).append((shown, *_cells(row)))
    return lines


def _cells(row: Row) -> tuple[str, ...]:
    if row.value is None or row.lowest is None or row.highest is None:
        return (row.contestant, "", "", "", "", "", row.note)
    return (
        row.contestant,
        number(row.value, row.unit),
        f"{number(row.lowest, row.unit)} to {number(row.highest, row.unit)}",
        _times(row.over_peer),
        _times(row.over_engine),
        _target(row),
        row.note,
    )


def number(value: float, unit: Unit) -> str:
    """Write a figure with the digits that mean something."""
    match unit:
        case Unit.RATE:
            return f"{value:,.0f}"
        case Unit.MILLISECONDS | Unit.TIMES:
            return f"{value:.2f}"
        case Unit.MICROSECONDS | Unit.MEBIBYTES:
            return f"{value:.1f}"
        case Unit.SHARE:
            return f"{value:.1%}"


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}"


def _target(row: Row) -> str:
    if row.target is None:
        return ""
    floor = number(row.target.floor, row.unit)
    if row.target.over_peer is not None:
        floor += f", {row.target.over_peer} x peer"
    goal = "" if row.target.goal is None else f" → {number(row.target.goal, row.unit)}"
    return f"{floor}{goal} {'✓' if row.reached else '✗'}"
