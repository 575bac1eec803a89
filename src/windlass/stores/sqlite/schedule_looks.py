"""Looks at schedules; every function reads with one cursor, inside one read transaction."""

import sqlite3
from collections.abc import Collection
from datetime import datetime

from windlass.core.duration import to_micros
from windlass.core.schedule import DueSchedules, Schedule, ScheduleList
from windlass.stores.sqlite.rows import json_list, moment
from windlass.stores.sqlite.schedule_rows import ScheduleRow, schedule_of
from windlass.stores.sqlite.statements import sql


def schedules(cursor: sqlite3.Cursor, now: datetime, ids: Collection[str] | None) -> ScheduleList:
    """Return all schedules, or those of these ids that are here, in order of id."""
    return ScheduleList(now, _all(cursor) if ids is None else _of(cursor, ids))


def due_schedules(cursor: sqlite3.Cursor, now: datetime, declared: Collection[str], limit: int) -> DueSchedules:
    """Return what is due, the longest first, and when the next one is that is not among it."""
    # one more than is wanted: the first that is not among the due tells the next time
    upcoming = _upcoming(cursor, declared, limit + 1)
    due_ids = [schedule_id for next_run_at, schedule_id in upcoming[:limit] if next_run_at <= to_micros(now)]
    found = {schedule.id: schedule for schedule in _of(cursor, due_ids)}
    next_run_at = upcoming[len(due_ids)][0] if len(upcoming) > len(due_ids) else None
    return DueSchedules(now, [found[schedule_id] for schedule_id in due_ids], moment(next_run_at))


def _upcoming(cursor: sqlite3.Cursor, declared: Collection[str], limit: int) -> list[tuple[int, str]]:
    """Return when the first to be due are, and their ids, in order."""
    others: list[tuple[int, str]] = cursor.execute(sql("upcoming_schedules"), (limit,)).fetchall()
    if not declared:
        return others
    parameters = {"ids": json_list(list(declared)), "limit": limit}
    return sorted(others + cursor.execute(sql("upcoming_declared"), parameters).fetchall())


def _all(cursor: sqlite3.Cursor) -> list[Schedule]:
    return [schedule_of(ScheduleRow(*row)) for row in cursor.execute(sql("schedules")).fetchall()]


def _of(cursor: sqlite3.Cursor, ids: Collection[str]) -> list[Schedule]:
    rows = cursor.execute(sql("schedules_of"), (json_list(list(ids)),)).fetchall()
    return [schedule_of(ScheduleRow(*row)) for row in rows]
