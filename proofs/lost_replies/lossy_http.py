"""A client over HTTP whose replies to changes get lost."""

import sqlite3
import time
from asyncio import Event
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from proofs.lost_replies.lossy import Bench, Change
from tests.http.frames import Request
from tests.http.proxy import Proxy
from windlass import Client

LOOKS: Final = frozenset(
    f"/api/v1/{path}"
    for path in (
        "jobs/get", "jobs/glance", "queues/paused", "queues/due", "queues/kinds", "schedules/get", "schedules/due",
        "kv/get", "kv/scan", "claims/stops",
    )
)  # fmt: skip
"""What is asked for by POST and changes nothing."""
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class HttpBench(Bench):
    """A bench whose second look is plain SQL, at the file behind the serving process."""

    def __init__(self, proxy: Proxy, client: Client, connection: sqlite3.Connection) -> None:
        super().__init__(client)
        self._proxy = proxy
        self._connection = connection

    def lose(self, change: Change, *, twice: bool) -> tuple[Event, Event | None]:  # noqa: ARG002 - one call does all
        first = self._proxy.drop_reply(_changes)
        return first, self._proxy.drop_reply(lambda request: first.is_set() and _changes(request)) if twice else None

    def lose_no_more(self) -> None:
        self._proxy.plans.clear()

    def jobs_in(self, queue: str) -> list[str]:
        return [job for (job,) in self._rows("select id from windlass_job where queue = ? order by seq", [queue])]

    def payloads_in(self, queue: str) -> dict[str, bytes]:
        return dict(self._rows("select id, payload from windlass_job where queue = ?", [queue]))

    def held_in(self, queue: str) -> list[tuple[str, str, int, int]]:
        rows = self._rows(
            "select id, token, attempt, delivery from windlass_job where queue = ? and state = 'running' order by seq",
            [queue],
        )
        return [(job, token, attempt, delivery) for job, token, attempt, delivery in rows]

    def states_in(self, queue: str) -> dict[str, int]:
        return dict(self._rows("select state, count(*) from windlass_job where queue = ? group by state", [queue]))

    def parents_in(self, queue: str) -> list[str | None]:
        return [job for (job,) in self._rows("select parent_id from windlass_job where queue = ?", [queue])]

    def state(self, job: str) -> tuple[str, int, int] | None:
        for state, attempt, delivery in self._rows(
            "select state, attempt, delivery from windlass_job where id = ?", [job]
        ):
            return state, attempt, delivery
        return None

    def deliveries(self, job: str) -> list[tuple[int, str]]:
        rows = self._rows(
            "select d.delivery, outcome from windlass_delivery d join windlass_job using (seq) where id = ? order by 1",
            [job],
        )
        return [(delivery, outcome) for delivery, outcome in rows]

    def lease_end(self, job: str) -> datetime:
        [(at,)] = self._rows("select lease_expires_at from windlass_job where id = ?", [job])
        return EPOCH + timedelta(microseconds=at)

    def lock_holders(self, name: str) -> list[str]:
        return [holder for (holder,) in self._rows("select holder from windlass_lock where name = ?", [name])]

    def let_come_due(self, schedule: str) -> None:
        with self._connection:
            self._connection.execute(
                "update windlass_schedule set next_run_at = ? where id = ?", [time.time_ns() // 1_000, schedule]
            )

    def _rows(self, statement: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        return self._connection.execute(statement, values).fetchall()


def _changes(request: Request) -> bool:
    return request.method == "POST" and request.path not in LOOKS
