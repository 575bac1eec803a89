"""A report in words: the table, and the sentence below it."""

from collections import Counter
from typing import Final

from examples.demo.checker import Difference, Kind, Report
from examples.demo.ledger import What
from examples.demo.view import Fact

HELD: Final = 0
BROKEN: Final = 1
VOID: Final = 2
EXAMPLES: Final = 5
"""So many differences of each kind are named."""


def facts(report: Report, wall_time: float) -> list[Fact]:
    """Return the rows of the table."""
    lost, twice = report.count(Kind.LOST), report.count(Kind.TWICE)
    unread = f"{report.unread} of them by the killed worker's last call" if report.unread else ""
    other = len(report.differences) - lost - twice
    return [
        Fact("jobs enqueued", f"{report.enqueued:,}"),
        Fact("succeeded", f"{report.succeeded:,}", unread, good=report.succeeded == report.enqueued),
        Fact("ran more than once", f"{len(report.reruns):,}", _causes(report)),
        Fact("kills delivered", f"{report.kills}", "SIGKILL, in the middle of its jobs", good=report.kills > 0),
        Fact("pauses delivered", f"{report.pauses}", "SIGSTOP, for longer than a lease"),
        Fact("claims rescued", f"{report.rescued:,}", "their leases had run out"),
        Fact("stale settlements refused", f"{report.refused:,}", "ClaimLost", good=report.refused > 0),
        Fact("lost", f"{lost:,}", good=not lost),
        Fact("settled twice", f"{twice:,}", good=not twice),
        Fact("other differences", f"{other:,}", good=not other),
        Fact("wall time", f"{wall_time:.1f} s"),
    ]


def conclusion(report: Report, removed: str | None) -> tuple[int, str]:
    """Return the exit code of the run, and what it showed."""
    if report.differences:
        return BROKEN, "\n".join([_opening(report, removed), *_listed(report.differences)])
    if report.void is not None:
        return VOID, f"This run shows nothing: {report.void}."
    if removed is not None:
        return VOID, f"The {removed} was taken out and no difference was found: this run shows nothing."
    return HELD, f"Nothing lost, nothing settled twice: ledger and store agree on all {report.enqueued:,} jobs."


def _causes(report: Report) -> str:
    causes = Counter(report.reruns.values())
    parts = [(What.KILLED, "by the kill"), (What.PAUSED, "by the pause"), (None, "without a cause")]
    return ", ".join(f"{causes[cause]} {words}" for cause, words in parts if causes[cause])


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
            lines += [f"    job {one.job} {one.detail}" for one in same[:EXAMPLES]]
    return lines
