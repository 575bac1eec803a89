"""A report in words: the table, and the sentence below it."""

from typing import Final

from windlass.demo.checker import Report, Rescues
from windlass.demo.difference import Difference, Kind
from windlass.demo.ledger import What
from windlass.demo.view import Fact, jobs

HELD: Final = 0
BROKEN: Final = 1
VOID: Final = 2
STOPPED: Final = 130
EXAMPLES: Final = 5
"""So many differences of each kind are named."""


def facts(report: Report, wall_time: float) -> list[Fact]:
    """Return the rows of the table."""
    lost = report.count(Kind.LOST)
    twice = report.count(Kind.TWICE, Kind.STALE)
    dead = report.count(Kind.DEAD, Kind.UNHARMED)
    ticks = report.count(Kind.TICK_TWICE, Kind.TICK_MISSING, Kind.TICK_WRONG)
    other = len(report.differences) - lost - twice - dead - ticks
    unread = f"{report.unread} of them by a killed process' last call" if report.unread else ""
    rows = [
        Fact("jobs", f"{report.jobs:,}"),
        Fact("succeeded", f"{report.succeeded:,}", unread),
        Fact("dead", f"{report.dead:,}", "the poison, by its third attempt" if report.dead else "", good=not dead),
        Fact("failed attempts retried", f"{report.retried:,}", "the mail server hung up" if report.retried else ""),
        Fact("ticks of the schedule", f"{report.ticks:,}", "one job for each" if report.ticks else "", good=not ticks),
        Fact("processes killed", f"{report.kills}", _rescued(report, What.KILLED)),
        Fact("processes poisoned", f"{report.poisoned}", _rescued(report, What.POISONED)),
        Fact("processes paused", f"{report.pauses}", _rescued(report, What.PAUSED)),
        Fact("stale settlements refused", f"{report.refused:,}", "it came back too late" if report.refused else ""),
        Fact("settled twice", f"{twice:,}", good=not twice),
        Fact("other differences", f"{other:,}", good=not other),
        Fact("lost", f"{lost:,}", good=not lost),
        Fact("wall time", f"{wall_time:.1f} s"),
    ]
    if report.waiting:
        rows.insert(2, Fact("waiting", f"{report.waiting:,}", "for the next server on this file"))
    return rows


def conclusion(report: Report, removed: str | None, *, stopped: bool = False) -> tuple[int, str]:
    """Return the exit code of the run, and what it showed."""
    if report.differences:
        return BROKEN, "\n".join([_opening(report, removed), *_listed(report.differences)])
    if stopped:
        return STOPPED, "Stopped. Up to here nothing was lost; the worker has ended, its files are gone."
    if report.void is not None:
        return VOID, f"This run shows nothing: {report.void}."
    if removed is not None:
        return VOID, f"The {removed} was taken out and no difference was found: this run shows nothing."
    return HELD, f"0 lost, 0 settled twice: ledger and store agree on all {report.jobs:,} jobs."


def _rescued(report: Report, cause: What) -> str:
    rescued, slowest = report.rescues.get(cause, Rescues())
    return f"{jobs(rescued)} taken back, after {slowest:.2f} s at most" if rescued else ""


def _opening(report: Report, removed: str | None) -> str:
    count = len(report.differences)
    found = f"{count} difference{'' if count == 1 else 's'} between the ledger and the store"
    return f"{found}:" if removed is None else f"Without the {removed} there are {found}:"


def _listed(differences: list[Difference]) -> list[str]:
    """Return each kind with its count and its first examples."""
    lines: list[str] = []
    for kind in Kind:
        if same := [difference for difference in differences if difference.kind is kind]:
            lines.append(f"  {kind}: {len(same):,}")
            lines += [f"    {one.what}: {one.detail}" for one in same[:EXAMPLES]]
    return lines
