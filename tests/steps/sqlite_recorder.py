"""Recorder of the SQLite store."""

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from tests.steps.recording import ENDS, STARTS_RUNNING, STARTS_WAITING, STOPS_RUNNING, Step
from windlass.connect import open_store
from windlass.core.states import State
from windlass.core.store import Store
from windlass.stores.sqlite.moves import steps
from windlass.stores.sqlite.rows import ClaimedRow
from windlass.stores.sqlite.transaction import Transaction
from windlass.testing import FakeClock, SeededRng

# a promotion does not tell the kinds of its jobs
PROMOTED = """
select kind from windlass_job
where queue = ? and state = 'pending' and run_at <= ? and run_at > created_at and delivery = 0
"""


@dataclass
class SqliteRecording:
    """Store whose steps are watched."""

    store: Store
    found: list[Step] = field(default_factory=list[Step])

    async def steps(self) -> list[Step]:
        found, self.found[:] = [*self.found], []
        return found


@contextmanager
def watched_steps(found: list[Step]) -> Generator[None]:
    """Note each step for the time of a block, also those that are rolled back."""
    with pytest.MonkeyPatch.context() as patch:
        for name in (STARTS_WAITING, STOPS_RUNNING, ENDS):
            _watch_groups(patch, name, found)
        starts_running = steps.starts_running

        def noted_claim(tx: Transaction, statement: str, values: dict[str, object]) -> list[tuple[Any, ...]]:
            rows = starts_running(tx, statement, values)
            jobs = [ClaimedRow(*row) for row in rows]
            found.extend(Step(STARTS_RUNNING, job.queue, job.kind, State.PENDING) for job in jobs)
            return rows

        patch.setattr(steps, STARTS_RUNNING, noted_claim)
        yield


def _watch_groups(patch: pytest.MonkeyPatch, name: str, found: list[Step]) -> None:
    step = getattr(steps, name)

    def noted(tx: Transaction, jobs: steps.Group, *args: Any, **options: Any) -> None:  # noqa: ANN401 - as the step has it
        found.extend(Step(name, jobs.queue, kind, jobs.old) for kind in _kinds(tx, jobs))
        step(tx, jobs, *args, **options)

    patch.setattr(steps, name, noted)


def _kinds(tx: Transaction, jobs: steps.Group) -> list[str | None]:
    """Return the kind of each job of a group."""
    if jobs.seqs:
        return [jobs.kind for _ in jobs.seqs]
    kinds = [kind for (kind,) in tx.execute(PROMOTED, (jobs.queue, tx.now)).fetchall()]
    assert len(kinds) == jobs.size
    return kinds


@asynccontextmanager
async def recorded_sqlite(clock: FakeClock) -> AsyncGenerator[SqliteRecording]:
    with TemporaryDirectory() as folder:
        store = open_store(f"sqlite:///{Path(folder).resolve()}/jobs.db", clock=clock, rng=SeededRng())
        recording = SqliteRecording(store)
        with watched_steps(recording.found):
            await store.open()
            yield recording
            await store.close()
