"""What handlers write beside their jobs: one adds to a sum and notes which attempt did it."""

import sqlite3
from collections import Counter
from contextlib import closing
from typing import Any, Final, LiteralString

import psycopg

from proofs.readers import sqlite as reader
from proofs.readers.postgres import PostgresReader
from proofs.report import Report
from proofs.serving import Place

PATIENCE: Final = 0.5
"""Seconds after which a lock is taken to be kept by somebody who does not go on."""
LOCK_TIMEOUT: Final = "set lock_timeout = '500ms'"
TABLES: Final = (
    "create table proof_sum (total integer not null)",
    "insert into proof_sum values (0)",
    "create table proof_effect (job text not null, delivery integer not null)",
)


def make_tables(place: Place) -> None:
    """Make the tables that handlers write to."""
    if isinstance(place.reader, PostgresReader):
        place.reader.write(*TABLES)
        return
    with closing(sqlite3.connect(place.database)) as connection, connection:
        for statement in TABLES:
            connection.execute(statement)


def is_locked(place: Place) -> bool:
    """Whether somebody keeps the lock that every effect needs."""
    try:
        if isinstance(place.reader, PostgresReader):
            place.reader.write(LOCK_TIMEOUT, "select total from proof_sum for update")
            return False
        with closing(sqlite3.connect(place.database, timeout=PATIENCE)) as connection, connection:
            connection.execute("begin immediate")
    except (psycopg.errors.LockNotAvailable, sqlite3.OperationalError):
        return True
    return False


def _rows(place: Place, statement: LiteralString) -> list[tuple[Any, ...]]:
    if isinstance(place.reader, PostgresReader):
        return place.reader.rows(statement)
    with reader.reading(place.database) as connection:
        return connection.execute(statement).fetchall()


def effects_of(place: Place) -> list[tuple[str, int]]:
    """Return the attempts whose effects are there."""
    return [(job, delivery) for job, delivery in _rows(place, "select job, delivery from proof_effect")]


def check_effects(report: Report, place: Place, ids: list[str], refused: set[tuple[str, int]]) -> None:
    """Every job has its effect once, by the delivery that was accepted."""
    [(total,)] = _rows(place, "select total from proof_sum")
    effects = effects_of(place)
    counts = Counter(job for job, _ in effects)
    rows = place.reader.jobs()
    report.figure("attempts charged", sum(row.attempt for row in rows.values()))
    report.figure("the sum", total)
    report.never("the sum is off by", range(abs(total - len(ids))))
    report.never("jobs without their effect", [job for job in ids if not counts[job]])
    report.never("jobs with their effect more than once", [job for job, count in counts.items() if count > 1])
    report.never("effects of refused attempts", refused & set(effects))
    report.never(
        "effects of another delivery than the accepted one",
        [(job, delivery) for job, delivery in effects if rows[job].delivery != delivery],
    )
