"""What the store holds, read by plain SQL and by nothing of Windlass: the store cannot speak for itself here."""

import sqlite3
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import NamedTuple


class Row(NamedTuple):
    """A job as it stands: `delivery` is the number of its last claim, `due_at` the tick of the schedule it is for."""

    state: str
    delivery: int
    schedule: str | None = None
    due_at: float | None = None
    parent: str | None = None


class Ended(NamedTuple):
    """A claim that ended otherwise than by success: whose it was, how it ended, and from when until when it held."""

    job: str
    delivery: int
    worker: str
    outcome: str
    since: float
    at: float


class Contents(NamedTuple):
    jobs: dict[str, Row]
    ended: list[Ended]


def read(database: Path) -> Contents:
    """Return what is in the file; for when everybody else has closed it."""
    with closing(sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True)) as connection:
        jobs = connection.execute(
            """select id, state, delivery, schedule_id, json_extract(headers, '$."windlass-due-at"'), parent_id
            from windlass_job"""
        )
        rows = {
            id: Row(state, delivery, schedule, due_at and datetime.fromisoformat(due_at).timestamp(), parent)
            for id, state, delivery, schedule, due_at, parent in jobs
        }
        ended = connection.execute(
            "select job.id, ended.delivery, ended.worker, ended.outcome, ended.started_at / 1e6, ended.ended_at / 1e6"
            " from windlass_delivery as ended join windlass_job as job using (seq)"
        )
        return Contents(rows, [Ended(*each) for each in ended])
