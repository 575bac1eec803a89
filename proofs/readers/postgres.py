"""The store's tables as plain psycopg sees them: a second reader that shares no code with Windlass."""

import json
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, Final, LiteralString

import psycopg

from proofs.readers.sqlite import Claimed, Delivery, Row

STATES: Final = ("scheduled", "pending", "running", "succeeded", "dead", "cancelled")
APPLICATION: Final = "windlass"
"""How the sessions of Windlass are shown by the server."""
PATIENCE: Final = 10.0


class PostgresReader:
    """A store in a database, in the first schema of the search path; every look is a session of its own."""

    def __init__(self, url: str) -> None:
        self._url = url

    @contextmanager
    def reading(self) -> Generator[psycopg.Connection]:
        """A session that sees one moment and cannot write."""
        with psycopg.connect(self._url, connect_timeout=5) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            yield connection

    def rows(self, statement: LiteralString, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of one statement."""
        with self.reading() as connection:
            return connection.execute(statement, values).fetchall()

    def write(self, *statements: LiteralString) -> None:
        """Run statements on tables of a campaign's own."""
        with psycopg.connect(self._url, connect_timeout=5) as connection:
            for statement in statements:
                connection.execute(statement)

    def jobs(self) -> dict[str, Row]:
        rows = self.rows(
            "select id::text, queue, payload, state, attempt, delivery, kind,"
            " (extract(epoch from finished_at) * 1000000)::bigint from windlass_job"
        )
        return {row[0]: Row(*row) for row in rows}

    def headers(self) -> dict[str, dict[str, str]]:
        """Return the headers of each job that has some."""
        rows = self.rows("select id::text, headers from windlass_job where headers is not null")
        return {job: json.loads(headers) for job, headers in rows}

    def enqueued_at(self) -> dict[str, float]:
        """Return when each job was enqueued, in seconds since 1970."""
        return dict(self.rows("select id::text, extract(epoch from created_at)::float8 from windlass_job"))

    def tokens(self) -> dict[str, str]:
        """Return the token of each job's last claim."""
        return dict(self.rows("select id::text, token::text from windlass_job where token is not null"))

    def totals(self) -> tuple[int, int]:
        """Return how many jobs were ever counted as enqueued, and as succeeded."""
        [(enqueued, succeeded)] = self.rows(
            "select coalesce(sum(enqueued_total), 0)::bigint, coalesce(sum(succeeded_total), 0)::bigint from ("
            " select enqueued_total, succeeded_total from windlass_count where minute = 'infinity'"
            " union all select enqueued_total, succeeded_total from windlass_delta) as all_counts"
        )
        return int(enqueued), int(succeeded)

    def version(self) -> str:
        """Return what runs, and how it keeps what it has committed."""
        [(version,)] = self.rows("show server_version")
        [(fsync,)] = self.rows("show fsync")
        return f"Postgres {version} with fsync {fsync}"

    def unfinished(self) -> int:
        """Return how many jobs have not come to an end."""
        [(count,)] = self.rows("select count(*) from windlass_job where finished_at is null")
        return int(count)

    def waiting(self) -> int:
        """Return how many jobs wait to be claimed."""
        [(count,)] = self.rows("select count(*) from windlass_job where state = 'pending'")
        return int(count)

    def outcomes(self) -> dict[tuple[str, int], str]:
        """Return how deliveries ended that were not a job's last, by job and number."""
        return {(each.job, each.delivery): each.outcome for each in self.deliveries()}

    def deliveries(self) -> list[Delivery]:
        """Return the deliveries that ended otherwise than by a success."""
        rows = self.rows(
            "select id::text, d.delivery, d.worker, outcome, extract(epoch from started_at)::float8,"
            " extract(epoch from ended_at)::float8 from windlass_delivery d join windlass_job using (seq)"
        )
        return [Delivery(*row) for row in rows]

    def claims(self) -> list[Claimed]:
        """Return when servers claimed, in the order of time."""
        rows = self.rows(
            "select worker, extract(epoch from claimed_at)::float8 as at from windlass_job where claimed_at is not null"
            " union all select worker, extract(epoch from started_at)::float8 from windlass_delivery order by at"
        )
        return [Claimed(*row) for row in rows]

    def servers(self) -> list[str]:
        """Return the servers that are registered."""
        return [row[0] for row in self.rows("select id from windlass_server")]

    def pids(self) -> dict[str, int]:
        """Return the processes of the servers that are registered."""
        return {name: json.loads(record)["pid"] for name, record in self.rows("select id, record from windlass_server")}

    def counts_off(self) -> list[str]:
        """Return the queues whose counts, kept and not yet added up, differ from a full count of their jobs."""
        with self.reading() as connection:
            counted: dict[tuple[str, str], int] = {
                (queue, state): count
                for queue, state, count in connection.execute(
                    "select queue, state, count(*) from windlass_job group by queue, state"
                )
            }
            kept = connection.execute(
                "select queue, sum(scheduled)::bigint, sum(pending)::bigint, sum(running)::bigint,"
                " sum(succeeded)::bigint, sum(dead)::bigint, sum(cancelled)::bigint from ("
                "  select queue, scheduled, pending, running, succeeded, dead, cancelled from windlass_count"
                "  where minute = 'infinity' and queue <> ''"
                "  union all"
                "  select queue, scheduled, pending, running, succeeded, dead, cancelled from windlass_delta"
                "  where queue <> '') all_counts group by queue"
            ).fetchall()
        known = {(row[0], state): count for row in kept for state, count in zip(STATES, row[1:], strict=True)}
        return [
            f"{queue}: {state} kept {known.get((queue, state), 0)}, counted {counted.get((queue, state), 0)}"
            for queue, state in sorted(known.keys() | counted.keys())
            if known.get((queue, state), 0) != counted.get((queue, state), 0)
        ]

    def integrity(self) -> list[str]:
        """Return what amcheck says against a table or an index; every index must hold every row of its table."""
        self.write("create extension if not exists amcheck")
        said: list[str] = []
        with psycopg.connect(self._url, autocommit=True) as connection:
            indexes = connection.execute(
                "select indexrelid::regclass::text from pg_index join pg_class on pg_class.oid = indrelid"
                " where relname like 'windlass\\_%' and relkind = 'r'"
            ).fetchall()
            for (index,) in indexes:
                try:
                    connection.execute("select bt_index_check(%s::regclass, true)", [index])
                except psycopg.Error as error:
                    said.append(f"{index}: {error}")
            tables = connection.execute(
                "select oid::regclass::text from pg_class where relname like 'windlass\\_%' and relkind = 'r'"
            ).fetchall()
            for (table,) in tables:
                found = connection.execute("select blkno, offnum, msg from verify_heapam(%s::regclass)", [table])
                said += [f"{table}: {row}" for row in found]
        return said if indexes and tables else ["there are no tables"]

    def left_behind(self) -> list[str]:
        """Return the sessions of Windlass that are still there, a while after the last server has ended."""
        until = time.monotonic() + PATIENCE
        while (sessions := self.sessions()) and time.monotonic() < until:
            time.sleep(0.05)
        return sessions

    def sessions(self) -> list[str]:
        """Return what the sessions of Windlass do."""
        rows = self.rows(
            "select pid, state, left(query, 60) from pg_stat_activity where application_name = %s", [APPLICATION]
        )
        return [f"{pid} {state}: {query}" for pid, state, query in rows]
