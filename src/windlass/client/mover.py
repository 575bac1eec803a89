"""Taking what waits in one store to another; a crash at any step loses nothing, and nothing goes over twice."""

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Final, Protocol

from windlass.client.client import Client
from windlass.client.parcel_size import MOST_BYTES, fitting, size_of
from windlass.client.spoken import counted
from windlass.client.upkeep import rescue_all
from windlass.core.errors import AlreadyRunning, InvalidValue, LockLost, OutcomeUnknown, StoreUnavailable
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.job import Job
from windlass.core.moving import Moved, Packed, Parcel
from windlass.core.requests import KvWrite, RescueRequest
from windlass.core.schedule import Overlap, Schedule
from windlass.core.states import State
from windlass.core.stats import QueueStats, total

logger = logging.getLogger("windlass")

LEAVING: Final = "windlass:move-from"
ARRIVING: Final = "windlass:move-to"
"""The locks of a move, in the source and in the target."""
ONE_STORE: Final = "a store cannot be moved to itself: both URLs lead to the same jobs"
LOCK_TTL: Final = timedelta(seconds=10)
MOVE_ID_BYTES: Final = 8
PAIRS: Final = 100
"""Of kv and timed keys in one look."""
FIRST_PARCEL: Final = 50
MOST_JOBS: Final = 1_000
LISTED: Final = 1_000
"""Running jobs, and damaged ones of a queue, that are named when they are left out."""
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
    damaged: list[tuple[JobId, str]] = field(default_factory=list[tuple[JobId, str]])
    """Waiting jobs whose stored record is damaged, each with the damage: they stay in the source."""
    damaged_schedules: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Schedules whose stored record is damaged, each with the damage: they stay in the source."""
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
    the source is on its way elsewhere, both are one store, or the target has jobs of its own to send elsewhere, and
    `AlreadyRunning` when somebody else moves one of them.
    """
    mover = _Mover(source, target, told)
    async with _alone(source, LEAVING), _alone(target, ARRIVING):
        await mover.begin(to)
        await mover.carry(wait)
    return mover.carried


async def undo(client: Client) -> Moved | None:
    """Let a store take jobs again; return where it was on its way to. Raises `AlreadyRunning` while it is moved."""
    async with _alone(client, LEAVING):
        moved = await client.store.moved()
        if moved is not None:
            await client.store.set_moved(None)
        return moved


@asynccontextmanager
async def _alone(client: Client, name: str) -> AsyncGenerator[None]:
    # one that was lost, since the store was away, does no harm: the numbers of the parcels keep two movers apart
    with suppress(LockLost):
        async with AsyncExitStack() as held:
            try:
                await held.enter_async_context(client.lock(name, LOCK_TTL, wait=LOCK_TTL))
            except TimeoutError as error:
                message = "another process moves jobs from or to this store: let it end, or stop it, and call again"
                raise AlreadyRunning(message) from error
            yield


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
        if await self._are_one():
            raise InvalidValue(ONE_STORE)
        before = await self._to.moved()
        if before is not None:
            await self._sent_here(before)
        await self._surely(partial(self._from.set_moved, moved))
        if before is not None:
            await self._reopen(before)

    async def _are_one(self) -> bool:
        """Return whether both URLs lead to one store: then what is locked in the one is locked in the other."""
        name = f"{ARRIVING}:{self._source.rng.token_bytes(MOVE_ID_BYTES).hex()}"
        await self._to.lock(name, "target", LOCK_TTL)
        alone = await self._from.lock(name, "source", LOCK_TTL)
        await self._to.unlock(name, "target")
        if alone:
            await self._from.unlock(name, "source")
        return not alone

    async def _sent_here(self, before: Moved) -> list[JobId]:
        """Return what the target, which was left itself, sent to the source last; it may not have let go of that."""
        queues = await self._to.stats()
        sent = [await self._from.unpacked(before.move, str(queue.queue)) for queue in queues]
        waiting = sum(queue.pending + queue.scheduled for queue in queues)
        if waiting and not any(sent):
            # some may be in that other store as well, and would run in both
            message = (
                f"the target is itself on its way to {before.to}, with {counted(waiting, 'job')} still to go: end "
                "that move first, or let it take jobs again by `windlass move DST --undo`"
            )
            raise InvalidValue(message)
        return [job_id for last in sent if last is not None for job_id in last.ids]

    async def _reopen(self, before: Moved) -> None:
        """Let the target take jobs again, without those that the source has from it."""
        async with _alone(self._target, LEAVING):
            # only now is the list complete: the source, which has been left, takes in no parcel any more
            sent = await self._sent_here(before)
            await self._to.let_go(move=before.move, jobs=sent)
            await self._to.set_moved(None)

    async def carry(self, wait: float) -> None:
        """Carry over all there is: what jobs may need comes before them, and what those write that still run."""
        until = self._clock.monotonic() + wait
        await self._all_ended(until)
        await self._surely(self._pauses)
        await self._surely(partial(self._schedules, "allow"))
        await self._surely(self._kv)
        await self._surely(self._all_queues)
        # these look for their last job before they fire: it has to be there
        await self._surely(partial(self._schedules, "skip"))
        while self.carried.running and self._clock.monotonic() < until:
            # what ended meanwhile may wait for another attempt, or have enqueued more
            await self._all_ended(until)
            await self._surely(self._all_queues)
        if self.carried.running:
            # named before the last look: one that ends now and waits again is carried, or named, or both
            await self._surely(self._name_running)
            await self._surely(self._all_queues)
        await self._surely(self._kv)
        await self._surely(self._timed_keys)
        await self._surely(self._name_damaged)

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

    async def _schedules(self, overlap: Overlap) -> None:
        _, schedules = await self._from.schedules()
        for schedule in (each for each in schedules if each.overlap == overlap):
            if schedule.damage is not None:
                if (schedule.id, schedule.damage) not in self.carried.damaged_schedules:
                    self.carried.damaged_schedules.append((schedule.id, schedule.damage))
            elif await self._wrote_schedule(schedule):
                await self._let_go(schedules=(schedule.id,))
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
            await self._let_go(kv=done)
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
            await self._jobs(str(queue.queue))

    async def _jobs(self, queue: str) -> None:
        number = await self._last_parcel(queue)
        limit = FIRST_PARCEL
        while (packed := fitting(await self._from.pack(queue, limit=limit))).jobs:
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
        await self._let_go(jobs=last.ids)
        return last.number

    async def _send(self, parcel: Parcel) -> None:
        ids = [job.id for job in parcel.packed.jobs]
        if not await self._to.unpack(parcel):
            # the reply to a first call may have been lost; else somebody who slept, or this one, is too late
            last = await self._to.unpacked(parcel.move, parcel.queue)
            if last is None or last.number != parcel.number or list(last.ids) != ids:
                raise AlreadyRunning(f"another process moves the jobs of {parcel.queue!r}: let it do so")
        await self._let_go(jobs=ids)

    async def _let_go(
        self,
        *,
        jobs: Sequence[JobId] = (),
        keys: Sequence[str] = (),
        kv: Sequence[bytes] = (),
        schedules: Sequence[str] = (),
    ) -> None:
        """Let the source forget what the target has, unless this mover slept until the move was over."""
        if not await self._from.let_go(move=self._move, jobs=jobs, keys=keys, kv=kv, schedules=schedules):
            message = "this move has ended meanwhile: the jobs are where another process has taken them"
            raise AlreadyRunning(message)

    async def _timed_keys(self) -> None:
        while keys := await self._from.timed_keys(limit=PAIRS):
            await self._to.take_keys(keys)
            await self._let_go(keys=[key.name for key in keys])
            self.carried.keys += len(keys)
            self._step()

    async def _name_running(self) -> None:
        self.carried.left = [job.id for job in await self._listed(JobFilter(state=State.RUNNING))]

    async def _name_damaged(self) -> None:
        """Name the damaged jobs among those that still wait: `pack` leaves them out."""
        waiting: list[Job] = []
        for queue in await self._queues():
            for state, count in ((State.PENDING, queue.pending), (State.SCHEDULED, queue.scheduled)):
                waiting += await self._listed(JobFilter(queue=queue.queue, state=state)) if count else ()
        self.carried.damaged = [(job.id, job.damage) for job in waiting if job.damage is not None]

    async def _listed(self, chosen: JobFilter) -> list[Job]:
        found: list[Job] = []
        before: int | None = None
        while len(found) < LISTED:
            jobs, before = await self._from.newest(chosen, before=before, limit=LISTED, most=LISTED)
            found += jobs
            if before is None:
                break
        return found

    async def _queues(self) -> list[QueueStats]:
        return [queue for queue in await self._from.stats() if queue.queue is not None]

    async def _surely(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do a part of the move, again from its beginning when a store was away for a while: each part can be."""
        while True:
            try:
                await work()
            except (StoreUnavailable, OutcomeUnknown) as error:
                away = isinstance(error, OutcomeUnknown) or error.retryable
                if not away or self._clock.monotonic() > self._went_on_at + PATIENCE:
                    raise
                logger.warning("a store is away, it is tried again: %s", error)
                await self._clock.sleep(AGAIN)
            else:
                self._went_on_at = self._clock.monotonic()
                return

    def _step(self) -> None:
        self._went_on_at = self._clock.monotonic()
        self._told(self.carried)


def _rule(schedule: Schedule) -> Schedule:
    """Return what somebody wrote of a schedule, without what has become of it."""
    return replace(
        schedule, paused=False, next_run_at=None, last_run_at=None, last_job_id=None, revision=0, orphaned=False
    )


def _next_limit(packed: Packed) -> int:
    size = sum(map(size_of, packed.jobs)) // len(packed.jobs)
    return max(1, min(MOST_JOBS, MOST_BYTES // max(1, size)))
