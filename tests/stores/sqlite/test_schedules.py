"""Schedules in a file: a firing is whole or not at all, and finding what is due costs the same with ten thousand."""

import asyncio
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from windlass import StoreUnavailable
from windlass.connect import open_store
from windlass.core import failpoint
from windlass.core.queries import ListDueSchedules
from windlass.core.schedule import FireOutcome, Firing, Schedule
from windlass.core.store import Store
from windlass.stores.sqlite import schedule_queries
from windlass.stores.sqlite.reader import Snapshot
from windlass.stores.sqlite.schedule_rows import schedule_row
from windlass.stores.sqlite.statements import sql
from windlass.testing.conformance.given import a_job, a_schedule, kept, written
from windlass.testing.failpoints import VARIABLE, Fault

NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
# fires the one schedule that is there, and is killed somewhere on the way
FIRING = """
import asyncio, sys
from datetime import timedelta
from windlass.connect import open_store
from windlass.core.schedule import Firing
from windlass.testing.conformance.given import a_job
from windlass.testing.failpoints import arm_from_environment

async def fire(url):
    store = open_store(url)
    await store.open()
    now, [schedule] = await store.schedules()
    jobs = [a_job(schedule_id=schedule.id) for _ in range(3)]
    arm_from_environment()
    await store.fire(Firing(schedule.id, schedule.revision, jobs, schedule.next_run_at, now + timedelta(hours=1)))

asyncio.run(fire(sys.argv[1]))
"""


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    store = open_store(url)
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def safeguards() -> Iterator[None]:
    yield
    failpoint.restore()


def firing(schedule: Schedule) -> Firing:
    return Firing(schedule.id, schedule.revision, [a_job()], schedule.next_run_at, NOW + HOUR)


@pytest.mark.slow
@pytest.mark.parametrize(
    "point, done",
    [
        ("sqlite.fire.before_jobs", False),
        ("sqlite.fire.before_move", False),
        ("sqlite.before_commit", False),
        ("sqlite.after_commit", True),
    ],
)
async def test_a_kill_at_any_step_of_a_firing_leaves_all_of_it_or_nothing(
    store: Store, url: str, point: str, *, done: bool
) -> None:
    before = await written(store, a_schedule("s", NOW - HOUR))

    killed = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-W", "ignore", "-c", FIRING, url],
        env={VARIABLE: f"{point}=kill"},
        timeout=60,
        check=False,
    )

    assert killed.returncode == -signal.SIGKILL
    after = await kept(store, "s")
    [*stats] = await store.stats()
    if done:
        assert (after.last_run_at, after.revision > before.revision) == (NOW - HOUR, True)
        assert [(each.pending, each.totals.enqueued) for each in stats] == [(3, 3)]
    else:
        assert (after, stats) == (before, [])
    assert (await store.fire(firing(after))).outcome is (FireOutcome.LOST if done else FireOutcome.DONE)


@pytest.mark.parametrize("point", ["sqlite.fire.before_jobs", "sqlite.fire.before_move"])
async def test_an_error_in_the_middle_of_a_firing_is_nobody_elses(store: Store, point: str) -> None:
    """Those before and after it are neither lost nor made again."""
    schedules = [await written(store, a_schedule(f"s{n}", NOW)) for n in range(3)]

    def fail() -> None:
        raise OSError("in the middle")

    # the first time in the commit that all share, then for the second of those that are tried alone
    fault = Fault(point, fail, lambda reached: reached in {1, 3})
    failpoint.arm(point, fault)
    answers = await asyncio.gather(*(store.fire(firing(each)) for each in schedules), return_exceptions=True)

    assert fault.fired == 2
    assert [isinstance(answer, StoreUnavailable) for answer in answers] == [False, True, False]
    assert [each.last_job_id is None for each in (await store.schedules()).schedules] == [False, True, False]
    assert [row.totals.enqueued for row in await store.stats()] == [2]


@pytest.mark.usefixtures("safeguards")
async def test_without_the_look_at_its_revision_a_due_time_is_fired_twice(store: Store) -> None:
    schedule = await written(store, a_schedule("s", NOW))

    failpoint.remove("tick")
    fired = await asyncio.gather(*(store.fire(firing(schedule)) for _ in range(2)))

    assert [each.outcome for each in fired] == [FireOutcome.DONE] * 2


def many(path: Path, count: int) -> sqlite3.Connection:
    """Return a connection to a store with `count` schedules that are not due, half of them declared by others."""
    connection = sqlite3.connect(path)
    later = [a_schedule(f"s{n:05}", NOW + n * HOUR, declared=n % 2 == 0) for n in range(1, count)]
    due = [a_schedule("due", NOW), a_schedule("mine", NOW, declared=True)]
    rows = [schedule_row(replace(each, payload=b"x" * 100), n) for n, each in enumerate(later + due)]
    connection.executemany(sql("write_schedule"), rows)
    connection.commit()
    return connection


@pytest.mark.slow
@pytest.mark.parametrize("limit", [1, 100])
async def test_what_is_due_costs_the_same_among_ten_thousand(tmp_path: Path, limit: int) -> None:
    steps: dict[int, int] = {}
    for count in (1_000, 10_000):
        path = tmp_path / f"{count}.db"
        store = open_store(f"sqlite:///{path}")
        await store.open()
        await store.close()
        with closing(many(path, count)) as connection:
            steps[count] = 0

            def step(count: int = count) -> None:
                steps[count] += 1

            connection.set_progress_handler(step, 1)
            found = schedule_queries.due_schedules(
                Snapshot(connection.cursor(), NOW), ListDueSchedules(["mine", "unknown"], limit)
            )
            connection.set_progress_handler(None, 1)
        assert [each.id for each in found.due] == ["due", "mine"][:limit]
        assert found.next_run_at == (NOW if limit == 1 else NOW + HOUR)

    assert steps[10_000] == steps[1_000]
