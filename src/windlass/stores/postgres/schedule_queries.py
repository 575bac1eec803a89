"""Queries of schedules. Each is one statement, which also returns its moment."""

from collections.abc import Iterable
from typing import Final

from windlass.core.queries import ListDueSchedules, ListSchedules
from windlass.core.schedule import DueSchedules, Schedule, ScheduleList
from windlass.core.store_calls import table_of
from windlass.stores.postgres.schedule_rows import ScheduleRow, schedule_of
from windlass.stores.postgres.work import Changes, Row, Statement, Work

_UPCOMING: Final = 3
"""How many columns of `upcoming_schedules.sql` stand before those of the schedule."""


def schedules(changes: Changes, query: ListSchedules) -> Work[ScheduleList]:
    """Return all schedules, or those of these ids that are here, in order of id."""
    if query.ids is None:
        rows = yield Statement("schedules", {"now": changes.now})
    else:
        rows = yield Statement("schedules_of", {"now": changes.now, "ids": list(query.ids)})
    return ScheduleList(rows[0][0], sorted(_found(row[1:] for row in rows), key=lambda found: found.id))


def due_schedules(changes: Changes, query: ListDueSchedules) -> Work[DueSchedules]:
    """Return what is due, the longest first, and when the next one is that is not among it."""
    # one more than is wanted: the first that is not among the due tells the next time
    parameters = {"now": changes.now, "declared": list(query.declared), "limit": query.limit + 1}
    rows = yield Statement("upcoming_schedules", parameters)
    upcoming = sorted((row for row in rows if row[1] is not None), key=lambda row: (row[1], row[2]))
    due = _found(row[_UPCOMING:] for row in upcoming[: query.limit])
    next_run_at = upcoming[len(due)][1] if len(upcoming) > len(due) else None
    return DueSchedules(rows[0][0], due, next_run_at)


def _found(rows: Iterable[Row]) -> list[Schedule]:
    """Return the schedules of rows; one that only tells the time, or that is not due, has none."""
    return [schedule_of(ScheduleRow(*row)) for row in rows if row[0] is not None]


SNAPSHOT_READS: Final = table_of(
    ListSchedules.by_generator(schedules),
    ListDueSchedules.by_generator(due_schedules),
)
"""The generator function that executes each query in a read transaction."""
