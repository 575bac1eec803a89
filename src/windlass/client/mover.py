"""Taking what waits in one store to another; a crash at any step loses nothing, and nothing goes over twice."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Final, Protocol

from windlass.client.client import Client
from windlass.client.upkeep import rescue_all
from windlass.core.errors import AlreadyRunning, InvalidValue, OutcomeUnknown, StoreUnavailable
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.job import Job
from windlass.core.moving import Moved, Packed, Parcel
from windlass.core.schedule import Schedule
from windlass.core.states import State
from windlass.core.stats import QueueStats, total
from windlass.core.store import KvWrite, RescueRequest, Store

logger = logging.getLogger("windlass")

LOCK: Final = "windlass:move"
LOCK_TTL: Final = timedelta(seconds=10)
MOVE_ID_BYTES: Final = 8
PAIRS: Final = 100
"""Of kv and timed keys in one look."""
FIRST_PARCEL: Final = 50
MOST_JOBS: Final = 1_000
MOST_BYTES: Final = 4 * 1024 * 1024
"""Of payloads in one parcel: both stores and this process have to hold it."""
LISTED: Final = 1_000
"""Running jobs that are named when they are left out."""
LOOK: Final = 0.2
AGAIN: Final = 0.5
PATIENCE: Final = 60.0
"""Seconds without any step forward after which a store that is away ends the move; it can be gone on with."""


@dataclass(slots=True)
class Carried:
    """What a move has done so far."""

    jobs: int = 0
    schedules: int = 0
    kv: int = 0
    keys: int = 0
    running: int = 0
    """How many jobs still ran in the source at the last look."""
    left: list[JobId] = field(default_factory=list[JobId])
    """Jobs that were still running when nobody wanted to wait longer: they end in the source."""
    kept_schedules: list[str] = field(default_factory=list[str])
    """Schedules that the target had already with another rule or job, and keeps; the source keeps its own."""
    kept_kv: list[bytes] = field(default_factory=list[bytes])
    """Keys of kv with another value in the target, which it keeps; the source keeps its own."""


class Told(Protocol):
    """Hears of every step."""

    def __call__(self, carried: Carried) -> None:
        """Take how far it is."""
        ...


async def move(source: Client, target: Client, *, to: str, wait: float, told: Told) -> Carried:
    """Take waiting jobs, schedules, kv and pauses of `source` to `target`; `to` is its URL without secrets.

    The source takes nothing new from the first step on. Jobs that run there have `wait` seconds to end; those that do
    not are left out and told. Whatever ends this early, the same call goes on with it later. Raises `InvalidValue` when
    the source is on its way elsewhere, or both are one store, and `AlreadyRunning` when somebody else moves it.
    """
    mover = _Mover(source, target, told)
    async with target.lock(LOCK, LOCK_TTL, wait=LOCK_TTL):
        await mover.begin(to)
        await mover.carry(wait)
    return mover.carried


class _Mover:
    def __init__(self, source: Client, target: Client, told: Told) -> None:
        self.carried = Carried()
        self._source = source
        self._target = target
        self._from = source.store
        self._to = target.store
        self._clock = source.clock
        self._told = told
        self._move = ""
        self._went_on_at = self._clock.monotonic()

    async def begin(self, to: str) -> None:
        """Let the source take nothing new, and the target everything."""
        under_way = await self._from.moved()
        if under_way is not None and under_way.to != to:
            message = (
                f"this store is on its way to {under_way.to}, not to {to}: name that one to go on, or let the store "
                "take jobs again by `windlass move SRC --undo`"
            )
            raise InvalidValue(message)
        moved = under_way or Moved(to, self._source.rng.token_bytes(MOVE_ID_BYTES).hex())
        self._move = moved.move
        before = await self._to.moved()
        await self._surely(partial(self._from.set_moved, moved))
        if await self._to.moved() == moved:
            # both URLs lead to one store: all is as it was
            await self._from.set_moved(under_way)
            raise InvalidValue("a store cannot be moved to itself: both URLs lead to the same jobs")
        if before is not None:
            await self._to.set_moved(None)

    async def carry(self, wait: float) -> None:
        """Carry over all there is: what jobs may need comes before them, and what those write that still run."""
        until = self._clock.monotonic() + wait
        await self._all_ended(until)
        await self._surely(self._pauses)
        await self._surely(self._schedules)
        await self._surely(self._kv)
        await self._all_queues()
        while self.carried.running and self._clock.monotonic() < until:
            # what ended meanwhile may wait for another attempt, or have enqueued more
            await self._all_ended(until)
            await self._all_queues()
        await self._surely(self._kv)
        await self._surely(self._timed_keys)
        self.carried.left = await self._running()

    async def _all_ended(self, until: float) -> None:
        """Wait for the end of what runs in the source, and take back what nobody holds any more."""
        while True:
            await self._surely(self._look)
            if not self.carried.running or self._clock.monotonic() >= until:
                return
            await self._clock.sleep(LOOK)

    async def _look(self) -> None:
        await rescue_all(self._from, RescueRequest(), self._source.settings.retention)
        self.carried.running = total(await self._from.stats()).running

    async def _pauses(self) -> None:
        for queue in await self._queues():
            # whoever resumed it in the target meanwhile meant it
            if queue.paused and await self._to.unpacked(self._move, str(queue.queue)) is None:
                await self._to.set_paused(str(queue.queue), paused=True)

    async def _schedules(self) -> None:
        _, schedules = await self._from.schedules()
        for schedule in schedules:
            if await self._wrote_schedule(schedule):
                await self._from.let_go(schedules=(schedule.id,))
                self.carried.schedules += 1
            elif schedule.id not in self.carried.kept_schedules:
                self.carried.kept_schedules.append(schedule.id)
            self._step()

    async def _wrote_schedule(self, schedule: Schedule) -> bool:
        if await self._to.write_schedule(schedule, expected=None) is not None:
            return True
        _, there = await self._to.schedules((schedule.id,))
        # one that went over before a crash may have been due there meanwhile
        return bool(there) and _rule(there[0]) == _rule(schedule)

    async def _kv(self) -> None:
        after: bytes | None = None
        while pairs := await self._from.kv_scan(b"", after=after, limit=PAIRS):
            done = [key for key, value in pairs if await self._wrote(key, value)]
            await self._from.let_go(kv=done)
            self.carried.kv += len(done)
            after = pairs[-1][0]
            self._step()

    async def _wrote(self, key: bytes, value: bytes) -> bool:
        if await self._to.kv_write(KvWrite(key, value, expected=None)):
            return True
        [there] = await self._to.kv_get((key,))
        if there != value and key not in self.carried.kept_kv:
            self.carried.kept_kv.append(key)
        return there == value

    async def _all_queues(self) -> None:
        for queue in await self._queues():
            await self._surely(partial(self._jobs, str(queue.queue)))

    async def _jobs(self, queue: str) -> None:
        number = await self._last_parcel(queue)
        limit = FIRST_PARCEL
        while (packed := _fitting(await self._from.pack(queue, limit=limit))).jobs:
            number += 1
            await self._send(Parcel(self._move, queue, number, packed))
            self.carried.jobs += len(packed.jobs)
            self._step()
            limit = _next_limit(packed)

    async def _last_parcel(self, queue: str) -> int:
        """Return the number of the last parcel that is there, and let go of what was in it."""
        last = await self._to.unpacked(self._move, queue)
        if last is None:
            return 0
        await self._from.let_go(jobs=last.ids)
        return last.number

    async def _send(self, parcel: Parcel) -> None:
        ids = [job.id for job in parcel.packed.jobs]
        if not await self._to.unpack(parcel):
            # the reply to a first try may have been lost; else somebody who slept, or this one, is too late
            last = await self._to.unpacked(parcel.move, parcel.queue)
            if last is None or last.number != parcel.number or list(last.ids) != ids:
                raise AlreadyRunning(f"another process moves the jobs of {parcel.queue!r}: let it do so")
        await self._from.let_go(jobs=ids)

    async def _timed_keys(self) -> None:
        while keys := await self._from.timed_keys(limit=PAIRS):
            await self._to.take_keys(keys)
            await self._from.let_go(keys=[key.name for key in keys])
            self.carried.keys += len(keys)
            self._step()

    async def _running(self) -> list[JobId]:
        found: list[Job] = []
        before: int | None = None
        while len(found) < LISTED:
            jobs, before = await self._from.newest(
                JobFilter(state=State.RUNNING), before=before, limit=LISTED, most=LISTED
            )
            found += jobs
            if before is None:
                break
        return [job.id for job in found]

    async def _queues(self) -> list[QueueStats]:
        return [queue for queue in await self._from.stats() if queue.queue is not None]

    async def _surely(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do a part of the move, again from its beginning when a store was away for a while: each part can be."""
        while True:
            try:
                return await work()
            except (StoreUnavailable, OutcomeUnknown) as error:
                away = isinstance(error, OutcomeUnknown) or error.retryable
                if not away or self._clock.monotonic() > self._went_on_at + PATIENCE:
                    raise
                logger.warning("a store is away, it is tried again: %s", error)
                await self._clock.sleep(AGAIN)

    def _step(self) -> None:
        self._went_on_at = self._clock.monotonic()
        self._told(self.carried)


def _rule(schedule: Schedule) -> Schedule:
    """Return what somebody wrote of a schedule, without what has become of it."""
    return replace(
        schedule, paused=False, next_run_at=None, last_run_at=None, last_job_id=None, revision=0, orphaned=False
    )


def _fitting(packed: Packed) -> Packed:
    """Return as many of the jobs as a parcel has room for, but one at least, with their keys."""
    size = 0
    for count, job in enumerate(packed.jobs):
        size += len(job.payload)
        if size > MOST_BYTES and count:
            kept = packed.jobs[:count]
            ids = {job.id for job in kept}
            return Packed(kept, [key for key in packed.keys if key.job_id in ids])
    return packed


def _next_limit(packed: Packed) -> int:
    size = sum(len(job.payload) for job in packed.jobs) // len(packed.jobs)
    return max(1, min(MOST_JOBS, MOST_BYTES // max(1, size)))


async def undo(store: Store) -> Moved | None:
    """Let a store take jobs again; return where it was on its way to."""
    moved = await store.moved()
    if moved is not None:
        await store.set_moved(None)
    return moved
