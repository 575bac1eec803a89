"""Queries of schedules; each function runs inside one read transaction."""

import sqlite3
from collections.abc import Collection
from typing import Final

from windlass.core.duration import to_micros
from windlass.core.queries import ListDueSchedules, ListSchedules
from windlass.core.schedule import DueSchedules, Schedule, ScheduleList
from windlass.core.store_calls import table_of
from windlass.stores.sqlite.reader import Snapshot
from windlass.stores.sqlite.rows import LATEST, json_list, moment
from windlass.stores.sqlite.schedule_rows import ScheduleRow, schedule_of
from windlass.stores.sqlite.statements import sql


def schedules(snapshot: Snapshot, query: ListSchedules) -> ScheduleList:
    """Return all schedules, or those of these ids that are here, in order of id."""
    cursor, now = snapshot
    return ScheduleList(now, _all(cursor) if query.ids is None else _of(cursor, query.ids))


def due_schedules(snapshot: Snapshot, query: ListDueSchedules) -> DueSchedules:
    """Return what is due, the longest first, and when the next one is that is not among it."""
    cursor, now = snapshot
    limit = query.limit
    # one more than is wanted: the first that is not among the due tells the next time
    upcoming = _upcoming(cursor, query.declared, limit + 1)
    due_ids = [schedule_id for next_run_at, schedule_id in upcoming[:limit] if next_run_at <= to_micros(now)]
    found = {schedule.id: schedule for schedule in _of(cursor, due_ids)}
    next_run_at = upcoming[len(due_ids)][0] if len(upcoming) > len(due_ids) else None
    due = [found[schedule_id] for schedule_id in due_ids if schedule_id in found]
    # one whose time is damaged never comes due
    return DueSchedules(now, due, None if next_run_at is None or next_run_at > LATEST else moment(next_run_at))


def _upcoming(cursor: sqlite3.Cursor, declared: Collection[str], limit: int) -> list[tuple[int, str]]:
    """Return when the first to be due are, and their ids, in order."""
    others: list[tuple[int, str]] = cursor.execute(sql("upcoming_schedules"), {"limit": limit}).fetchall()
    if not declared:
        return others
    parameters = {"ids": json_list(list(declared)), "limit": limit}
    return sorted(others + cursor.execute(sql("upcoming_declared"), parameters).fetchall())


def _all(cursor: sqlite3.Cursor) -> list[Schedule]:
    return [schedule_of(ScheduleRow(*row)) for row in cursor.execute(sql("schedules")).fetchall()]


def _of(cursor: sqlite3.Cursor, ids: Collection[str]) -> list[Schedule]:
    rows = cursor.execute(sql("schedules_of"), {"ids": json_list(list(ids))}).fetchall()
    return [schedule_of(ScheduleRow(*row)) for row in rows]


QUERIES: Final = table_of(ListSchedules.by(schedules), ListDueSchedules.by(due_schedules))
"""The function that executes each query of this module."""
