"""Schedulers without a server, clocks that differ, stores that misbehave."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import windlass
from windlass import App
from windlass.client.client import Client
from windlass.client.wanted import checked_terms
from windlass.core.clock import Timer
from windlass.core.filters import JobFilter
from windlass.core.job import NewJob
from windlass.core.schedule import DUE_AT, CatchUp, DueSchedules, Fired, FireOutcome, Firing
from windlass.core.store import Store
from windlass.engine.config import ServerConfig
from windlass.engine.served import Around
from windlass.handlers.arguments import JsonArguments
from windlass.schedule.declared import Declared
from windlass.schedule.declared_here import DeclaredHere
from windlass.schedule.scheduler import Scheduler
from windlass.system import TaskSpawn
from windlass.testing import FakeClock, SeededRng

JOB = NewJob("default")
SECOND = timedelta(seconds=1)


class Skewed:
    """A clock that goes as fast as another one and shows another time."""

    goes_by_itself = False

    def __init__(self, clock: FakeClock, by: timedelta) -> None:
        self._clock = clock
        self._by = by

    def now(self) -> datetime:
        return self._clock.now() + self._by

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        return self._clock.call_later(delay, callback)

    async def sleep(self, delay: float) -> None:
        await self._clock.sleep(delay)


class Without:
    """A store as another one, but for what a test puts in front of it."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the store has
        return getattr(self.store, name)


class WithoutRevisions(Without):
    """A store that lets everybody fire who wants to."""

    async def fire(self, firing: Firing) -> Fired:
        fired = await self.store.fire(firing)
        if fired.outcome is FireOutcome.LOST:
            await self.store.enqueue(firing.jobs)
        return fired


class Noting(Without):
    """Keeps note of looks and firings, and lets firings wait until they may go on."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.looks: list[int] = []
        self.fired: list[FireOutcome] = []
        self.held_up = asyncio.Event()
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def due_schedules(self, declared: Sequence[str], *, limit: int) -> DueSchedules:
        self.looks.append(limit)
        return await self.store.due_schedules(declared, limit=limit)

    async def fire(self, firing: Firing) -> Fired:
        if not self.go_on.is_set():
            self.held_up.set()
            await self.go_on.wait()
        fired = await self.store.fire(firing)
        self.fired.append(fired.outcome)
        return fired


def a_client(clock: FakeClock, store: Any = "memory://", seed: int = 0) -> Client:  # noqa: ANN401 - a store, or as good as one
    return windlass.connect(store, clock=clock, rng=SeededRng(seed))


def a_scheduler(
    client: Client,
    *,
    declared: Sequence[Declared] = (),
    server_id: str = "me#1",
    config: ServerConfig | None = None,
) -> Scheduler:
    around = Around(config or ServerConfig(), client.clock, client.rng, TaskSpawn(), client, server_id)
    return Scheduler(client, DeclaredHere(client, declared, around), around)


async def tidy(text: str = "") -> None:
    """What a declared schedule runs."""


def a_declared(
    schedule_id: str, rule: str | float = 1, *, catch_up: CatchUp = "one", args: Mapping[str, object] | None = None
) -> Declared:
    registered = App("memory://").job(tidy).registered
    assert isinstance(registered.arguments, JsonArguments)
    terms = checked_terms(rule, timezone="UTC", catch_up=catch_up, overlap="allow")
    return Declared(schedule_id, terms, registered, registered.arguments, args or {})


async def due_times(store: Store, schedule_id: str) -> list[datetime]:
    """Return the due times that a schedule has made jobs for, in the order of these."""
    jobs = await store.jobs(JobFilter(schedule_id=schedule_id), after=None, limit=100_000)
    return [datetime.fromisoformat(job.headers[DUE_AT]) for job in jobs]


async def comes_true(true: Callable[[], Awaitable[bool]]) -> None:
    """Return when `true()`: for what says so to nobody else."""
    async with asyncio.timeout(10):
        while not await true():  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.001)
