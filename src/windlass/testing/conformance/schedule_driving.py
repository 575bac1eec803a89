"""What tests of schedules do with a server and its store: time goes by, and what is due has fired."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from datetime import datetime
from typing import Any

import pytest

from windlass.client.client import Client
from windlass.core.filters import JobFilter
from windlass.core.job import Job, NewJob
from windlass.core.schedule import DUE_AT, CatchUp, DueSchedules, Firing, Schedule
from windlass.core.store import Store
from windlass.testing.clock import FakeClock
from windlass.testing.conformance.served import until
from windlass.testing.conformance.watched_store import calls_under_way

JOB = NewJob("default")
CAUGHT_UP: tuple[CatchUp, ...] = ("none", "one", "all")


async def comes_true(true: Callable[[], Awaitable[bool]]) -> None:
    """Return when `true()`: for what says so to nobody else."""
    async with asyncio.timeout(10):
        while not await true():  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.001)


async def nothing_due(store: Store, *declared: str) -> None:
    """Return when everything that is due has fired."""

    async def fired() -> bool:
        return not (await store.due_schedules(declared, limit=1)).due

    await comes_true(fired)


async def moved_on(store: Store, schedule_id: str) -> None:
    """Return when a schedule has fired, whatever others do."""

    async def fired() -> bool:
        now, [schedule] = await store.schedules([schedule_id])
        return schedule.next_run_at is None or schedule.next_run_at > now

    await comes_true(fired)


async def by_the_second(store: Store, clock: FakeClock, seconds: int, *declared: str) -> None:
    """Let time go by; what comes due fires on the way."""
    for _ in range(seconds):
        await answered()
        clock.advance(1)
        await nothing_due(store, *declared)


async def answered() -> None:
    """Wait, for a second at most, until servers have the answers to what they asked.

    They have patience for some seconds of a clock that the test moves on in no time.
    """
    with suppress(TimeoutError):
        async with asyncio.timeout(1):
            while calls_under_way():  # noqa: ASYNC110 - nobody tells of every end
                await asyncio.sleep(0.001)


async def jobs_of(store: Store, schedule_id: str) -> list[Job]:
    """Return the jobs that a schedule has made."""
    return await store.jobs(JobFilter(schedule_id=schedule_id), after=None, limit=10_000)


async def due_times(store: Store, schedule_id: str) -> list[datetime]:
    """Return the due times that a schedule has made jobs for, in the order of these."""
    return [datetime.fromisoformat(job.headers[DUE_AT]) for job in await jobs_of(store, schedule_id)]


async def stored(client: Client, schedule_id: str) -> Schedule:
    """Return a schedule that must be there."""
    schedule = await client.schedules.get(schedule_id)
    assert schedule is not None
    return schedule


def fires_by_itself(store: Store) -> None:
    """Skip a test that gets between a server and its store, where the schedules are fired behind that store."""
    if store.features.served:
        pytest.skip("whoever serves this store makes the jobs of schedules")


class HangingStore:
    """A store that does not answer when these schedules are to fire."""

    def __init__(self, store: Store) -> None:
        """Answer every call."""
        self._store = store
        self.hangs: set[str] = set()
        self.hung: list[str] = []

    async def fire(self, firing: Firing) -> Any:  # noqa: ANN401 - what the store returns
        """Fire, or never return."""
        if firing.schedule_id in self.hangs:
            self.hung.append(firing.schedule_id)
            await asyncio.Event().wait()
        return await self._store.fire(firing)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the store has
        """Give what the store has."""
        return getattr(self._store, name)


class LookedAt:
    """A store that tells when nobody looks which schedules are due."""

    def __init__(self, store: Store) -> None:
        """Count the looks."""
        self._store = store
        self._looks = 0
        self._looking = 0

    async def due_schedules(self, declared: Collection[str], *, limit: int) -> DueSchedules:
        """Look."""
        self._looking += 1
        try:
            return await self._store.due_schedules(declared, limit=limit)
        finally:
            self._looking -= 1
            self._looks += 1

    async def left_alone(self, *, after: int) -> None:
        """Return when so many looks were made and none is on its way: then time can leap over the server."""
        await until(lambda: self._looks >= after and not self._looking)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the store has
        """Give what the store has."""
        return getattr(self._store, name)
