"""The store's file as plain `sqlite3` sees it, behind a process that serves it to a fleet."""

import json
import sqlite3
from pathlib import Path
from typing import Any, Final

from proofs.readers.sqlite import Claimed, Delivery, SqliteReader, reading

ALL_TIME: Final = 2**63 - 1
"""The minute that stands for all of them."""


class SqliteFleetReader(SqliteReader):
    """A store in a file that another process serves."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._file = path

    def headers(self) -> dict[str, dict[str, str]]:
        """Return the headers of each job that has some."""
        rows = self._rows("select id, headers from windlass_job where headers is not null")
        return {job: json.loads(headers) for job, headers in rows}

    def enqueued_at(self) -> dict[str, float]:
        """Return when each job was enqueued, in seconds since 1970."""
        return dict(self._rows("select id, created_at / 1e6 from windlass_job"))

    def tokens(self) -> dict[str, str]:
        """Return the token of each job's last claim."""
        return dict(self._rows("select id, token from windlass_job where token is not null"))

    def totals(self) -> tuple[int, int]:
        """Return how many jobs were ever counted as enqueued, and as succeeded."""
        [(enqueued, succeeded)] = self._rows(
            "select coalesce(sum(enqueued_total), 0), coalesce(sum(succeeded_total), 0) from windlass_count"
            f" where minute = {ALL_TIME} and queue <> ''"
        )
        return int(enqueued), int(succeeded)

    def waiting(self) -> int:
        """Return how many jobs wait to be claimed."""
        [(count,)] = self._rows("select count(*) from windlass_job where state = 'pending'")
        return int(count)

    def deliveries(self) -> list[Delivery]:
        """Return the deliveries that ended otherwise than by a success."""
        rows = self._rows(
            "select id, d.delivery, d.worker, outcome, started_at / 1e6, ended_at / 1e6"
            " from windlass_delivery d join windlass_job using (seq)"
        )
        return [Delivery(*row) for row in rows]

    def claims(self) -> list[Claimed]:
        """Return when servers claimed, in the order of time."""
        rows = self._rows(
            "select worker, claimed_at / 1e6 as at from windlass_job where claimed_at is not null"
            " union all select worker, started_at / 1e6 from windlass_delivery order by at"
        )
        return [Claimed(*row) for row in rows]

    def pids(self) -> dict[str, int]:
        """Return the processes of the servers that are registered."""
        return {
            name: json.loads(record)["pid"] for name, record in self._rows("select id, record from windlass_server")
        }

    def version(self) -> str:
        """Return what the jobs are kept in, and how they are reached."""
        return f"SQLite {sqlite3.sqlite_version} behind windlass serve"

    def _rows(self, statement: str) -> list[tuple[Any, ...]]:
        with reading(self._file) as connection:
            return connection.execute(statement).fetchall()
