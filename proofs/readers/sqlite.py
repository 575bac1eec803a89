"""The store's file as plain `sqlite3` sees it: a second reader that shares no code with Windlass."""

import json
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol


class Row(NamedTuple):
    """What a checker wants to know of a job."""

    id: str
    queue: str
    payload: bytes
    state: str
    attempt: int
    delivery: int
    kind: str | None
    finished_at: int | None
    """Microseconds since 1970."""


class Reader(Protocol):
    """What every campaign against servers reads, whatever the store is."""

    def jobs(self) -> dict[str, Row]: ...

    def unfinished(self) -> int: ...

    def outcomes(self) -> dict[tuple[str, int], str]: ...

    def servers(self) -> list[str]: ...

    def counts_off(self) -> list[str]: ...

    def integrity(self) -> list[str]: ...

    def left_behind(self) -> list[str]: ...


class Delivery(NamedTuple):
    """A delivery that ended otherwise than by a success; times in seconds since 1970."""

    job: str
    delivery: int
    worker: str
    outcome: str
    started_at: float
    ended_at: float


class Claimed(NamedTuple):
    """The claim of a job by a server."""

    worker: str
    at: float


class FleetReader(Reader, Protocol):
    """What is read of a server that a fleet works on."""

    def headers(self) -> dict[str, dict[str, str]]: ...

    def enqueued_at(self) -> dict[str, float]: ...

    def tokens(self) -> dict[str, str]: ...

    def totals(self) -> tuple[int, int]: ...

    def waiting(self) -> int: ...

    def deliveries(self) -> list[Delivery]: ...

    def claims(self) -> list[Claimed]: ...

    def pids(self) -> dict[str, int]: ...

    def version(self) -> str: ...


class SqliteReader:
    """A store in a file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def jobs(self) -> dict[str, Row]:
        return jobs(self._path)

    def unfinished(self) -> int:
        return unfinished(self._path)

    def outcomes(self) -> dict[tuple[str, int], str]:
        return outcomes(self._path)

    def servers(self) -> list[str]:
        return servers(self._path)

    def counts_off(self) -> list[str]:
        return counts_off(self._path)

    def integrity(self) -> list[str]:
        return integrity(self._path)

    def left_behind(self) -> list[str]:
        """Return the files by which servers showed that they are alive."""
        return [file.name for file in self._path.parent.glob("*-alive-*")]


@contextmanager
def reading(path: Path) -> Generator[sqlite3.Connection, None, None]:
    """A connection that cannot write, and so cannot checkpoint either."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)) as connection:
        yield connection


def jobs(path: Path) -> dict[str, Row]:
    with reading(path) as connection:
        rows = connection.execute(
            "select id, queue, payload, state, attempt, delivery, kind, finished_at from windlass_job"
        )
        return {row[0]: Row(*row) for row in rows}


def unfinished(path: Path) -> int:
    """Return how many jobs have not come to an end."""
    with reading(path) as connection:
        return int(connection.execute("select count(*) from windlass_job where finished_at is null").fetchone()[0])


def running(path: Path) -> int:
    """Return how many jobs are claimed."""
    with reading(path) as connection:
        return int(connection.execute("select count(*) from windlass_job where state = 'running'").fetchone()[0])


def outcomes(path: Path) -> dict[tuple[str, int], str]:
    """Return how deliveries ended that were not a job's last, by job and number."""
    with reading(path) as connection:
        rows = connection.execute(
            "select id, d.delivery, outcome from windlass_delivery d join windlass_job using (seq)"
        )
        return {(row[0], row[1]): row[2] for row in rows}


class Tick(NamedTuple):
    """A job that a schedule made; times in microseconds since 1970."""

    schedule: str
    due_at: int
    created_at: int


def ticks(path: Path) -> list[Tick]:
    """Return the jobs that schedules made for due times."""
    with reading(path) as connection:
        rows = connection.execute(
            "select schedule_id, headers, created_at from windlass_job where schedule_id is not null"
        ).fetchall()
    due = [datetime.fromisoformat(json.loads(headers)["windlass-due-at"]) for _, headers, _ in rows]
    return [Tick(row[0], round(due_at.timestamp() * 1_000_000), row[2]) for row, due_at in zip(rows, due, strict=True)]


def next_runs(path: Path) -> dict[str, int]:
    """Return when each schedule is due next, in microseconds since 1970."""
    with reading(path) as connection:
        return dict(connection.execute("select id, next_run_at from windlass_schedule"))


def rescued_at(path: Path) -> dict[tuple[str, int], int]:
    """Return when deliveries were rescued, in microseconds since 1970, by job and number."""
    with reading(path) as connection:
        rows = connection.execute(
            "select id, d.delivery, ended_at from windlass_delivery d join windlass_job using (seq)"
            " where outcome = 'rescued'"
        )
        return {(row[0], row[1]): row[2] for row in rows}


def servers(path: Path) -> list[str]:
    """Return the servers that are registered."""
    with reading(path) as connection:
        return [row[0] for row in connection.execute("select id from windlass_server")]


def integrity(path: Path) -> list[str]:
    """Return what `pragma integrity_check` complains about; nothing when the file is whole."""
    with reading(path) as connection:
        said = [str(row[0]) for row in connection.execute("pragma integrity_check")]
    return [] if said == ["ok"] else said


def dump(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return every row of every table."""
    with reading(path) as connection:
        connection.execute("begin")
        tables = [
            row[0] for row in connection.execute("select name from sqlite_master where type = 'table' order by 1")
        ]
        return {table: sorted(connection.execute(f'select * from "{table}"'), key=repr) for table in tables}


def counts_off(path: Path) -> list[str]:
    """Return the queues whose kept counts differ from a full count of their jobs."""
    states = ("scheduled", "pending", "running", "succeeded", "dead", "cancelled")
    with reading(path) as connection:
        connection.execute("begin")
        counted: dict[tuple[str, str], int] = {
            (queue, state): count
            for queue, state, count in connection.execute(
                "select queue, state, count(*) from windlass_job group by queue, state"
            )
        }
        kept = connection.execute(
            f"select queue, {', '.join(states)} from windlass_count where minute = ? and queue != ''", (2**63 - 1,)
        ).fetchall()
    return [
        f"{row[0]}: {state} kept {count}, counted {counted.get((row[0], state), 0)}"
        for row in kept
        for state, count in zip(states, row[1:], strict=True)
        if count != counted.get((row[0], state), 0)
    ]
