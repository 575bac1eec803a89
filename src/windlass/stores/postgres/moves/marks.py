"""Marks: where the lines of waiting jobs begin, so that nobody steps over rows that are long gone.

An old snapshot held open anywhere in the database keeps every row that has been claimed since from being removed, and
each look at the head of a line would step over all of them. A mark says that no job of its line can stand before it.
How that can be known, and what must hold for whoever writes jobs, is told in docs/decisions/0013-marks.md.
"""

import logging
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from windlass.kit.damage import DamageLog, shown
from windlass.stores.postgres.rows import Standing
from windlass.stores.postgres.timestamps import TOO_EARLY
from windlass.stores.postgres.work import Row, Statement, Work

BEGINNING: Final = TOO_EARLY
"""Before all jobs, also before one whose time is damaged."""
NO_LEASE_MARK: Final = datetime(1, 1, 2, tzinfo=UTC)
"""Kept where there is no mark of leases; not the first moment, which the driver takes for minus infinity."""
MOST_MARKS: Final = 8
"""How many priorities of a queue have marks: each is one more place where every claim looks."""
PREPARED: Final = "-1/"
"""How the name of a prepared transaction begins once the server was restarted: it has no process."""
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,6})?[+-]\d\d(:\d\d)?")
"""How Postgres writes a time with its zone, in its own format for dates."""
_damaged: Final = DamageLog(logging.getLogger("windlass.postgres"))


class Ready(NamedTuple):
    """The line of a queue's ready jobs of one priority."""

    queue: str
    priority: int


class Due(NamedTuple):
    """The line of a queue's scheduled jobs."""

    queue: str


class Leases(NamedTuple):
    """The line of all running jobs, by the end of their leases."""


Line = Ready | Due | Leases


class Look(NamedTuple):
    """The first half of raising a mark: how far it may rise once all of `writers` have ended."""

    mark: datetime
    writers: frozenset[str]


class Marks(NamedTuple):
    """The marks of one queue; those of ready jobs by priority."""

    ready: dict[int, datetime]
    due: datetime | None


def keep_marks_below(jobs: Sequence[Standing]) -> Work[None]:
    """Let no mark lie above the places of `jobs`, which become pending there in this transaction."""
    if not jobs:
        return
    held = yield Statement("hold_marks", {"queues": sorted({job.queue for job in jobs})})
    if any(marks for (marks,) in held):
        yield from lower_marks([(job.queue, job.priority, job.run_at) for job in jobs])


def lower_marks(places: Sequence[Row]) -> Work[None]:
    """Lower the marks that lie above these places: rows of queue, priority and time."""
    queues, priorities, run_ats = ([place[at] for place in places] for at in range(3))
    yield Statement("lower_marks", {"queues": queues, "priorities": priorities, "run_ats": run_ats})


def look(line: Line) -> Work[Look]:
    """Find how far the mark of a line may rise; each statement must see what was committed before it.

    The clock is read first, then the writers under way, then the line: a writer that is not among them is either in the
    line by now, or writes at a later time than the clock's.
    """
    now, mark = yield from _mark(line)
    rows = yield Statement("writers")
    first = yield from _first(line, mark, now)
    return Look(first or now, frozenset(row[0] for row in rows))


def ended(writers: frozenset[str]) -> Work[bool]:
    """Whether none of these transactions is under way any more."""
    if not writers:
        return True
    under_way = {row[0] for row in (yield Statement("writers"))}
    # after a restart a prepared transaction has another name, and may be any of them
    return writers.isdisjoint(under_way) and not any(name.startswith(PREPARED) for name in under_way)


def raise_mark(line: Line, to: datetime) -> Work[bool]:
    """Raise the mark of a line, all writers of the look having ended: what they brought is in the line by now."""
    if isinstance(line, Leases):
        return (yield from _raise_lease_mark(to))
    rows = yield Statement("hold_queue", {"queue": line.queue})
    if not rows:
        return False
    marks = _marks(rows[0])
    mark = (yield from _first(line, _of(marks, line), to)) or to
    if mark <= _of(marks, line):
        return False
    yield from _write(line.queue, _with(marks, line, mark))
    return True


def check(queue: str) -> Work[bool]:
    """Drop the marks of a queue that cannot be right: in the future, or with a job before them; return whether any was.

    A clock that was set back is what makes them wrong.
    """
    if not (yield from _is_any_wrong(queue)):
        return False
    # once more with the row held: a job that came back to its place has lowered its mark meanwhile
    yield Statement("hold_queue", {"queue": queue})
    if not (yield from _is_any_wrong(queue)):
        return False
    yield from _write(queue, Marks({}, None))
    return True


def check_leases() -> Work[bool]:
    """Drop the mark of running jobs if it cannot be right, as `check` does."""
    now, mark, damaged = yield from _lease_mark()
    if not damaged and (mark is None or not (yield from _is_wrong(Leases(), mark, now))):
        return False
    yield Statement("set_lease_mark", {"mark": NO_LEASE_MARK})
    return True


def lease_mark() -> Work[datetime | None]:
    """Return the time before which no lease ends; None where none is kept, or one that cannot be read."""
    _, mark, _ = yield from _lease_mark()
    return mark


def _lease_mark() -> Work[tuple[datetime, datetime | None, bool]]:
    """Return the time, the mark of leases, and whether what is stored for it is damaged."""
    [(now, stored)] = yield Statement("lease_mark")
    if stored is None:
        return now, None, False
    try:
        mark = datetime.fromisoformat(stored).astimezone(UTC) if _TIME.fullmatch(stored) else None
    except (ValueError, OverflowError):
        mark = None
    if mark is None:
        _damaged.log("the mark of leases is damaged and is not used: %s", shown(stored))
        return now, None, True
    return now, mark if mark > NO_LEASE_MARK else None, False


def _is_any_wrong(queue: str) -> Work[bool]:
    rows = yield Statement("marks_of", {"queue": queue})
    if not rows:
        return False
    now, marks = rows[0][0], _marks(rows[0][1:])
    if not _are_pairs(rows[0][1:]):
        _damaged.log("the marks of a queue are no pairs of priority and time, and are not used: %s", repr(queue))
        return True
    lines: list[Ready | Due] = [Ready(queue, priority) for priority in marks.ready]
    if marks.due is not None:
        lines.append(Due(queue))
    for line in lines:
        if (yield from _is_wrong(line, _of(marks, line), now)):
            return True
    return False


def _is_wrong(line: Line, mark: datetime, now: datetime) -> Work[bool]:
    return mark > now or (yield from _first(line, BEGINNING, mark)) is not None


def _mark(line: Line) -> Work[tuple[datetime, datetime]]:
    """Return the time, and the mark as it is."""
    if isinstance(line, Leases):
        now, mark, _ = yield from _lease_mark()
        return now, mark or BEGINNING
    yield Statement("mark_queue", {"queue": line.queue})
    [(now, *marks)] = yield Statement("marks_of", {"queue": line.queue})
    return now, _of(_marks(marks), line)


def _first(line: Line, mark: datetime, before: datetime) -> Work[datetime | None]:
    """Return where the first job stands from `mark` on; None when there is none before `before`."""
    rows = yield _first_of(line, mark, before)
    return rows[0][0] if rows else None


def _first_of(line: Line, mark: datetime, before: datetime) -> Statement:
    match line:
        case Ready(queue, priority):
            return Statement("first_ready", {"queue": queue, "priority": priority, "mark": mark, "before": before})
        case Due(queue):
            return Statement("first_due", {"queue": queue, "mark": mark, "before": before})
        case Leases():
            return Statement("first_leased", {"mark": mark, "before": before})


def _raise_lease_mark(to: datetime) -> Work[bool]:
    _, mark = yield from _mark(Leases())
    first = yield from _first(Leases(), mark, to)
    yield Statement("set_lease_mark", {"mark": first or to})
    return True


def _marks(row: Row) -> Marks:
    priorities, marks, due = row
    return Marks(dict(zip(priorities, marks, strict=True)) if _are_pairs(row) else {}, due)


def _are_pairs(row: Row) -> bool:
    """Whether there is one mark for each priority; the statements that use marks pass by those that are no pairs."""
    priorities, marks, _ = row
    return len(priorities) == len(marks) and all(
        isinstance(priority, int) and isinstance(mark, datetime)
        for priority, mark in zip(priorities, marks, strict=True)
    )


def _of(marks: Marks, line: Ready | Due) -> datetime:
    mark = marks.ready.get(line.priority) if isinstance(line, Ready) else marks.due
    return mark or BEGINNING


def _with(marks: Marks, line: Ready | Due, mark: datetime) -> Marks:
    """Return marks with a new one; the oldest gives way when there are too many."""
    if isinstance(line, Due):
        return marks._replace(due=mark)
    ready = {**marks.ready, line.priority: mark}
    if len(ready) > MOST_MARKS:
        del ready[min(ready, key=ready.__getitem__)]
    return marks._replace(ready=ready)


def _write(queue: str, marks: Marks) -> Work[None]:
    priorities = sorted(marks.ready)
    ready = [marks.ready[priority] for priority in priorities]
    parameters = {"queue": queue, "priorities": priorities, "marks": ready, "due_mark": marks.due}
    yield Statement("set_marks", parameters)
