"""A damaged job that a claim or the rescue makes dead, in a SQLite file, goes through its steps too."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from tests.steps.recording import ENDS, STARTS_RUNNING, STARTS_WAITING, STOPS_RUNNING, Step
from tests.steps.sqlite_recorder import watched_steps
from windlass.connect import open_store
from windlass.core.requests import RescueRequest
from windlass.core.retention import KEEP_ALL
from windlass.core.states import State
from windlass.core.store import Store
from windlass.testing import FakeClock, SeededRng
from windlass.testing.conformance.given import a_job, claim_one, wanting


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "jobs.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[Store]:
    store = open_store(f"sqlite:///{path}", clock=FakeClock(), rng=SeededRng())
    await store.open()
    yield store
    await store.close()


def damage(path: Path, column: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"update windlass_job set {column} = cast(x'ff' as text)")


async def test_a_job_that_a_claim_sets_aside_ends(store: Store, path: Path) -> None:
    await store.enqueue([a_job(kind="email")])
    damage(path, "codec")

    steps: list[Step] = []
    with watched_steps(steps):
        claimed = await store.claim(wanting())

    assert not claimed.jobs
    assert [step for step in steps if step.name != STARTS_RUNNING] == [Step(ENDS, "default", "email", State.PENDING)]
    [stats] = await store.stats()
    assert (stats.pending, stats.dead, stats.totals.dead) == (0, 1, 1)


async def test_a_damaged_job_that_the_rescue_makes_dead_stops_and_ends(store: Store, path: Path) -> None:
    await store.enqueue([a_job(kind="email")])
    await claim_one(store, lease=timedelta(0))
    damage(path, "hold")

    steps: list[Step] = []
    with watched_steps(steps):
        await store.rescue(RescueRequest(), KEEP_ALL)

    # the first try, which found the damage, was rolled back
    assert [step.name for step in steps if step.name != STARTS_WAITING][-2:] == [STOPS_RUNNING, ENDS]
    [stats] = await store.stats()
    assert (stats.running, stats.dead, stats.totals.dead) == (0, 1, 1)
