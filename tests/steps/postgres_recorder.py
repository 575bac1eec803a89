"""Recorder of the Postgres store: it wraps the four steps, and asks the database for jobs that a statement chooses."""

from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Final, NamedTuple, cast

import psycopg
import pytest

from tests.postgres.cluster import dsn_of, schema_of
from tests.postgres.ready import ready_schema
from tests.steps.recording import ENDS, STARTS_RUNNING, STARTS_WAITING, STOPS_RUNNING, Step
from windlass.connect import open_store
from windlass.core.states import State
from windlass.core.store import Store
from windlass.stores.postgres.moves import steps
from windlass.stores.postgres.rows import ClaimedRow, Standing
from windlass.stores.postgres.work import Rows, Statement, Work
from windlass.testing import FakeClock, SeededRng

NAMES: Final = (STARTS_WAITING, STARTS_RUNNING, STOPS_RUNNING, ENDS)
JOBS: Final = "select id::text, queue, kind, state, run_at from windlass_job order by run_at, seq"
_SEQ: Final = -len(ClaimedRow._fields)


class Stored(NamedTuple):
    """A job in the database."""

    id: str
    queue: str
    kind: str | None
    state: str
    run_at: object


@dataclass
class PostgresRecording:
    """Store whose steps are wrapped."""

    store: Store
    connection: psycopg.Connection[tuple[Any, ...]]
    found: list[Step] = field(default_factory=list[Step])

    async def steps(self) -> list[Step]:
        found, self.found[:] = [*self.found], []
        return found

    def noted(self, name: str, step: Callable[..., Work[Any]]) -> Callable[..., Work[Any]]:
        """Return a step that is noted before those inside it."""

        @wraps(step)
        def noted(*arguments: Any, **options: Any) -> Work[Any]:  # noqa: ANN401 - as the step has it
            *others, change = arguments
            before = [Stored(*row) for row in self.connection.execute(JOBS)]
            ran: list[tuple[Statement, Rows]] = []
            place = len(self.found)
            answer = yield from step(*others, _watched(change, ran), **options)
            jobs = [*others[1]] if len(others) > 1 else []
            self.found[place:place] = [
                Step(name, queue, kind, old) for queue, kind, old in (_given(jobs) if jobs else _chosen(ran, before))
            ]
            return answer

        return noted


def _watched(change: Work[Any], ran: list[tuple[Statement, Rows]]) -> Work[Any]:
    """Do `change`, and keep its statements with the rows that they gave."""
    try:
        wanted = next(change)
        while True:
            rows = yield wanted
            if isinstance(wanted, Statement):
                ran.append((wanted, rows))
            wanted = change.send(rows)
    except StopIteration as end:
        return end.value


def _given(jobs: Iterable[Any]) -> list[tuple[str, str | None, State | None]]:
    return [(job.queue, job.kind, job.state if isinstance(job, Standing) else None) for job in jobs]


def _chosen(ran: Iterable[tuple[Statement, Rows]], before: list[Stored]) -> list[tuple[str, str | None, State | None]]:
    """Return the jobs that statements have chosen by themselves, as they were before."""
    found: list[Stored] = []
    for statement, rows in ran:
        match statement.name:
            case "claim" | "claim_chosen":
                ids = {str(row[_SEQ + 1]) for row in rows if row[_SEQ] is not None}
            case "ack" | "ack_and_forget":
                [(done,)] = rows
                ids = set(cast("list[str]", statement.parameters["ids"] if done is None else done))
            case "set_aside":
                ids = {str(row[0]) for row in rows}
            case "promote":
                ids = set[str]()
                for queue, _, _, count in rows:
                    found += [job for job in before if job.queue == queue and job.state == "scheduled"][:count]
            case _:
                ids = set[str]()
        found += [job for job in before if job.id in ids]
    return [(job.queue, job.kind, State(job.state)) for job in found]


@asynccontextmanager
async def recorded_postgres(clock: FakeClock) -> AsyncGenerator[PostgresRecording]:
    """Open a store in a schema of its own, and note the steps of its jobs."""
    with ready_schema() as url, pytest.MonkeyPatch.context() as patch:
        options = f"-c search_path={schema_of(url)}"
        with psycopg.connect(dsn_of(url), options=options, autocommit=True) as connection:
            store = open_store(url, clock=clock, rng=SeededRng())
            recording = PostgresRecording(store, connection)
            for name in NAMES:
                patch.setattr(steps, name, recording.noted(name, getattr(steps, name)))
            await store.open()
            yield recording
            await store.close()
