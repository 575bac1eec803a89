"""Client: what a program talks to a store with."""

import asyncio
from collections.abc import AsyncGenerator, Collection, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

from windlass.borrow.borrow import borrow
from windlass.client.bell import Listeners, answer
from windlass.client.cancelled import Cancelled
from windlass.client.claims import Claimer, requests_for
from windlass.client.failure import cut, failure_of
from windlass.client.kv import KeyValue
from windlass.client.lock import HeldLock, Locks, checked_ttl
from windlass.client.operations import by_filter
from windlass.client.operations import cancel as cancelling
from windlass.client.prepare import Preparer
from windlass.client.results import Completed, NotFound, TimedOut, WaitResult
from windlass.client.settle import NO_EXTRAS, Extras, Kv, Settler, checked_claim, done_in_vain
from windlass.client.steering import Id, Steering, checked_filter, checked_queues
from windlass.client.watch import Watcher
from windlass.codec import Codec, decode
from windlass.core.clock import Clock, Rng
from windlass.core.duration import Duration, duration
from windlass.core.errors import ClaimLost, ClientClosed, EncodeError, InvalidValue, PayloadTooLarge
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId, job_id
from windlass.core.job import Claim, Enqueued, Job, NewJob
from windlass.core.names import check_limit, check_name
from windlass.core.requests import CancelOutcome
from windlass.core.settings import Settings
from windlass.core.store import Store
from windlass.core.unique import Unique
from windlass.core.verdict import GaveUp, GivenBack, Outcome, PutOff, Raised, Stopped
from windlass.system import TaskSpawn

if TYPE_CHECKING:
    from windlass.client.schedules import Schedules

HOLDER_BYTES: Final = 16


class Background(Protocol):
    """What runs beside a client from its open to its close."""

    async def start(self) -> None:
        """Begin."""
        ...

    async def stop(self) -> None:
        """End, and return when it has ended."""
        ...


class Client(Steering):
    """A queue without handlers: enqueue, claim, settle, and what an operator needs.

    It opens by `async with`, by `open()` or at its first use, and belongs to the event loop that it was opened in.

    ```python
    import windlass
    from windlass import NewJob

    client = windlass.connect("memory://")
    await client.enqueue_many([NewJob("email", b"one"), NewJob("email", b"two", delay=60)])
    for claim in await client.claim_many(["urgent", "email"], limit=10):
        await client.nack(claim, "no such address")
    print(await client.stats("email"))
    await client.close()
    ```
    """

    kv: KeyValue
    """The caller's own key space in the store."""
    store: Store
    """The store itself, for servers and tests; it is open while the client is."""
    settings: Settings
    """What holds for each queue; for servers, like the next three."""
    preparer: Preparer
    """Checks and encodes what is enqueued or returned."""
    clock: Clock
    """The time that waits go by."""
    rng: Rng
    """The chance in ids and delays."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        *,
        codec: Codec,
        clock: Clock,
        rng: Rng,
        spawn: TaskSpawn,
        poll_interval: float,
        worker: str,
        services: Background | None = None,
    ) -> None:
        """Talk to `store`, which is opened and closed with the client; use `windlass.connect` to make one."""
        super().__init__(settings)
        self.store = store
        self.settings = settings
        self.clock = self._clock = clock
        self.rng = self._rng = rng
        self._codec = codec
        self._poll_interval = poll_interval
        self._worker = worker
        self._services = services
        self._spawn = spawn
        self.preparer = Preparer(settings, codec, clock=clock, rng=rng)
        self._settler = Settler(settings, self.preparer, clock=clock, rng=rng)
        self._opening = asyncio.Lock()
        self._ready: Store | None = None
        self._closed = False
        self.kv = KeyValue(self._reach)

    @cached_property
    def schedules(self) -> "Schedules":
        """The rules in the store that make jobs in time."""
        # loaded when they are asked for: a program that only enqueues needs no cron and no time zones
        made: Schedules = import_module("windlass.client.schedules").Schedules(self._reach, self.preparer)
        return made

    @property
    def closed(self) -> bool:
        """Whether the client was closed: it cannot be opened again."""
        return self._closed

    async def open(self) -> None:
        """Connect to the store; harmless when it is open. Raises `ClientClosed` after a close."""
        async with self._opening:
            if self._closed:
                raise ClientClosed
            if self._ready is None:
                await self._open()

    async def close(self) -> None:
        """Let go of the store; what was accepted is finished first, and waits end by `ClientClosed`."""
        async with self._opening:
            was_open, self._ready, self._closed = self._ready is not None, None, True
            if was_open:
                await self._close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    if not TYPE_CHECKING:
        # type checkers know by themselves that there is no such form

        def __enter__(self):  # noqa: ANN204
            message = (
                "a client opens by `async with`: in a program without an event loop use windlass.connect_sync(...)"
            )
            raise TypeError(message)

        def __exit__(self, *_: object) -> None:
            pass  # without it Python would not come as far as to call the other

    def enqueue(
        self,
        queue: str,
        payload: object = b"",
        *,
        id: Id | None = None,
        kind: str | None = None,
        priority: int | None = None,
        run_at: datetime | None = None,
        delay: Duration | None = None,
        max_attempts: int | None = None,
        unique: Unique | str | None = None,
        headers: Mapping[str, str] | None = None,
        tenant: str | None = None,
        kv: Kv | None = None,
        connection: object = None,
    ) -> Coroutine[Any, Any, Enqueued]:
        """Put one job in line; when this returns it is kept. `payload` is bytes, or anything the codec takes.

        `created` is False when the job was there already, by its unique key, or by its `id`; `kv` is written with the
        job, and not in that case. Raises `IdConflict` when a job of another queue, kind or tenant has the `id`. With
        `connection` the job exists if and only if the caller's transaction commits.
        """
        job = NewJob(queue, payload, id, kind, priority, run_at, delay, max_attempts, unique, headers, tenant, kv)
        return self.enqueue_job(job, connection=connection)

    async def enqueue_job(self, job: NewJob, *, connection: object = None) -> Enqueued:
        """Put one job in line, as `enqueue` does with its parts."""
        prepared = (self.preparer.one(job),)
        store = self._ready or await self._reach(connection)
        if connection is None:
            [done] = await store.enqueue(prepared)
        else:
            [done] = await store.join(borrow(connection)).enqueue(prepared)
        return done

    async def enqueue_many(self, jobs: Iterable[NewJob], *, connection: object = None) -> list[Enqueued]:
        """Put jobs in line, all or none, in their order; the results come in that order too."""
        prepared = self.preparer.prepare(jobs)
        store = self._ready or await self._reach(connection)
        if not prepared:
            return []
        if connection is None:
            return await store.enqueue(prepared)
        return await store.join(borrow(connection)).enqueue(prepared)

    async def claim(
        self,
        queue: str,
        *,
        lease: Duration | None = None,
        wait: Duration | None = None,
        kinds: Collection[str] | None = None,
    ) -> Claim | None:
        """Take the most urgent ready job, or None; with `wait`, as soon as one is ready or the time is over."""
        check_name(queue, "queue")
        claims = await self.claim_many((queue,), lease=lease, wait=wait, kinds=kinds)
        return claims[0] if claims else None

    async def claim_many(
        self,
        queues: str | Sequence[str],
        *,
        lease: Duration | None = None,
        limit: int = 1,
        wait: Duration | None = None,
        kinds: Collection[str] | None = None,
    ) -> list[Claim]:
        """Take up to `limit` ready jobs, strictly in the order of `queues`, each for its queue's lease or `lease`.

        Each claim charges an attempt. Whoever is cancelled while waiting holds nothing: what comes late is released.
        """
        names = checked_queues(queues)
        held = None if lease is None else duration(lease, "lease")
        leases = [(name, self._settings.of(name).lease if held is None else held) for name in names]
        requests = requests_for(leases, limit=check_limit(limit), kinds=_kinds(kinds), worker=self._worker)
        patience = 0.0 if wait is None else duration(wait, "wait").total_seconds()
        if self._ready is None:
            await self._reach()
        if not limit or not names:
            return []
        claimed = await (self._claimer.claim_in_time(requests, patience) if patience else self._claimer.claim(requests))
        for claim in claimed.jobs:
            job = claim.job
            claim.cancelled = Cancelled(self._watcher, job.id, claim.token, requested=job.cancel_requested)
        return claimed.jobs

    async def ack(
        self,
        claim: Claim,
        result: object = None,
        *,
        then: Sequence[NewJob] = (),
        kv: Kv | None = None,
        connection: object = None,
    ) -> None:
        """Settle a claim whose work was done.

        A result that cannot be encoded, or is too large, makes the job dead, saying that the work was done; that is
        written, and then `EncodeError` or `PayloadTooLarge` raised. Like every settlement it raises `ClaimLost` when
        the claim no longer holds its job, and then nothing was written.
        """
        try:
            outcome = self._settler.returned(result)
        except (EncodeError, PayloadTooLarge) as error:
            await self._settle(claim, done_in_vain(error), Extras(connection=connection))
            raise
        extras = NO_EXTRAS if not then and kv is None and connection is None else Extras(then, kv, connection)
        await self._settler.settle(self._ready or await self._reach(connection), claim, outcome, extras)

    async def nack(
        self,
        claim: Claim,
        error: str | BaseException,
        *,
        delay: Duration | None = None,
        then: Sequence[NewJob] = (),
        kv: Kv | None = None,
        connection: object = None,
    ) -> None:
        """Settle a claim whose attempt failed: it is retried after `delay`, or by the retry policy, or dead.

        `then` and `kv` are written only if the job is dead now.
        """
        cause = error if isinstance(error, BaseException) else None
        after = None if delay is None else duration(delay, "delay")
        await self._settle(claim, Raised(failure_of(error), cause, after), Extras(then, kv, connection))

    async def dead_letter(
        self,
        claim: Claim,
        reason: str | BaseException,
        *,
        then: Sequence[NewJob] = (),
        kv: Kv | None = None,
        connection: object = None,
    ) -> None:
        """Settle a claim whose job can never be done, whatever attempts are left."""
        await self._settle(claim, GaveUp(failure_of(reason)), Extras(then, kv, connection))

    async def snooze(self, claim: Claim, delay: Duration, *, then: Sequence[NewJob] = (), kv: Kv | None = None) -> None:
        """Put the job off by `delay`, at no cost of an attempt."""
        await self._settle(claim, PutOff(duration(delay, "delay")), Extras(then, kv))

    async def release(self, claim: Claim, *, then: Sequence[NewJob] = (), kv: Kv | None = None) -> None:
        """Put the job back in its place, at no cost of an attempt."""
        await self._settle(claim, GivenBack(), Extras(then, kv))

    async def cancel_claim(
        self, claim: Claim, reason: str, *, then: Sequence[NewJob] = (), kv: Kv | None = None
    ) -> None:
        """Settle a claim whose job ends here because somebody wanted it to."""
        if not isinstance(reason, str):
            message = f"a reason is a string, not {type(reason).__name__}"
            raise InvalidValue(message)
        await self._settle(claim, Stopped(cut(reason)), Extras(then, kv))

    async def renew(self, claim: Claim, lease: Duration | None = None) -> datetime:
        """Hold a claim for `lease` (its queue's by default) from now; return until when. Raises `ClaimLost`."""
        job = checked_claim(claim).job
        held = self._settings.of(job.queue).lease if lease is None else duration(lease, "lease")
        [renewed] = await (self._ready or await self._reach()).renew(((job.id, claim.token),), held)
        event = getattr(claim, "cancelled", None)
        if renewed is None:
            _fire(event, "claim_lost")
            raise ClaimLost(job.id)
        if renewed.cancel_requested:
            _fire(event, "cancel")
        return renewed.lease_expires_at

    async def cancel(self, id: Id) -> CancelOutcome:
        """End a waiting job, or ask the holder of a running one to stop, in whichever process it is."""
        wanted = job_id(id)
        [outcome] = await (self._ready or await self._reach()).cancel((wanted,), self._retention)
        if outcome is CancelOutcome.REQUESTED:
            self._watcher.cancel_requested(wanted)
        return outcome

    async def cancel_many(self, chosen: JobFilter) -> int:
        """End the waiting jobs that match, and ask the holders of the running ones to stop; return how many.

        It works in chunks of 1,000, each job a step of its own.
        """
        wanted = checked_filter(chosen)
        store = self._ready or await self._reach()

        def tell(id: JobId, outcome: CancelOutcome) -> None:
            if outcome is CancelOutcome.REQUESTED:
                self._watcher.cancel_requested(id)

        return await by_filter(store, cancelling(self._retention, tell), wanted)

    async def wait(self, id: Id, timeout: Duration | None = None) -> WaitResult:
        """Return when a job has reached an end, on whichever path and in whichever process, or `timeout` is over."""
        wanted = job_id(id)
        patience = None if timeout is None else duration(timeout, "timeout").total_seconds()
        store = self._ready or await self._reach()
        waiter = self._watcher.add(wanted)
        try:
            if await waiter.looked is None:
                return NotFound()
            if not waiter.ended.done() and not await answer(waiter.ended, patience, self._clock):
                return TimedOut()
        finally:
            self._watcher.discard(waiter)
        [job] = await store.get((wanted,))
        return Completed(job)

    @asynccontextmanager
    async def lock(self, name: str, ttl: Duration, *, wait: Duration | None = None) -> AsyncGenerator[HeldLock, None]:
        """Hold the lock `name` over all processes for the time of an `async with` block, renewed while it is held.

        It waits for the lock, at most `wait`, then raises `TimeoutError`. A holder that could not renew within `ttl`
        may find another one in its place: `lost` is set then, and the end of the block raises `LockLost`.
        """
        holder = self._rng.token_bytes(HOLDER_BYTES).hex()
        held = HeldLock(check_name(name, "lock"), holder, checked_ttl(duration(ttl, "ttl")))
        patience = None if wait is None else duration(wait, "wait").total_seconds()
        if self._ready is None:
            await self._reach()
        async with self._locks.hold(held, patience):
            yield held

    def decode(self, job: Job) -> Any:  # noqa: ANN401 - the JSON edge
        """Return the payload of a job as the value that was enqueued; raises `DecodeError`."""
        return decode(job.payload, job.codec, self._codec)

    def decode_result(self, job: Job) -> Any:  # noqa: ANN401 - the JSON edge
        """Return the result of a job as the value that was acked, None when it has none; raises `DecodeError`."""
        if job.result is None or job.result_codec is None:
            return None
        return decode(job.result, job.result_codec, self._codec)

    async def _reach(self, connection: object = None) -> Store:
        """Return the store, open; for a call in a caller's own transaction it is not opened where that would wait.

        The transaction of `connection` may hold the lock that is needed to make the store, and ends after this call.
        """
        if connection is not None and not self._closed and not await self.store.is_prepared():
            return self.store
        if self._ready is None:
            await self.open()
        if self._ready is None:
            raise ClientClosed
        return self._ready

    async def _open(self) -> None:
        await self.store.open()
        clock, interval = self._clock, self._poll_interval
        self._listeners = Listeners(self.store, clock)
        self._watcher = Watcher(self.store, clock=clock, spawn=self._spawn, poll_interval=interval)
        self._locks = Locks(self.store, self._listeners, clock=clock, spawn=self._spawn, poll_interval=interval)
        self._claimer = Claimer(
            self.store, self._listeners, clock=clock, poll_interval=interval, rescued=self._services is not None
        )
        if self._services is not None:
            await self._services.start()
        self._ready = self.store

    async def _close(self) -> None:
        self._watcher.close(ClientClosed())
        self._listeners.close(ClientClosed())
        if self._services is not None:
            await self._services.stop()
        await self._claimer.close()
        await self._spawn.close()
        await self.store.close()

    async def _settle(self, claim: Claim, outcome: Outcome, extras: Extras) -> None:
        store = self._ready or await self._reach(extras.connection)
        await self._settler.settle(store, claim, outcome, extras)


def _kinds(kinds: Collection[str] | None) -> frozenset[str] | None:
    if kinds is None:
        return None
    if isinstance(kinds, (str, bytes)):
        message = f"kinds are a list of names, not {kinds!r}"
        raise InvalidValue(message)
    return frozenset(check_name(kind, "kind") for kind in kinds)


def _fire(event: object, reason: str) -> None:
    if isinstance(event, Cancelled):
        event.fire(reason)
