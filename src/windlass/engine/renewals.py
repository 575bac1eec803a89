"""Renewals: every held claim is renewed for as long as its code may run, also while that code blocks the event loop."""

import asyncio
import faulthandler
import logging
import tempfile
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final

from windlass.core.clock import Clock, Rng, Spawn
from windlass.core.duration import duration
from windlass.core.errors import Fenced, WindlassError
from windlass.core.store import Store
from windlass.core.topics import OWNER
from windlass.engine.attempt import Attempt
from windlass.engine.attempt_stopper import AttemptStopper
from windlass.engine.held_claims import HeldClaims
from windlass.engine.job_fields import fields_of
from windlass.engine.service import Service

logger = logging.getLogger("windlass")

PARTS: Final = 3
"""A lease is renewed each third of it: two renewals may fail before another server takes the job."""
_LONGEST_PAUSE: Final = 10.0
_SHORTEST_PAUSE: Final = 0.02


class Renewals:
    """Decides which held claims are renewed, and renews them."""

    def __init__(self, held: HeldClaims, stopper: AttemptStopper, clock: Clock, *, shortest: float) -> None:
        """Renew what is `held`, no claim for less than `shortest` seconds.

        An attempt whose claim is lost, or whose job was asked to be cancelled, is ended by `stopper`.
        """
        self._held = held
        self._stopper = stopper
        self.pause = max(_SHORTEST_PAUSE, min(_LONGEST_PAUSE, shortest / PARTS))
        self._clock = clock
        self.overdue: set[Attempt] = set()
        """Attempts past their timeout and a lease, which are renewed no more."""

    async def round(self, store: Store) -> float:
        """Renew what is due, in one call for each lease; return how many seconds until the next round."""
        now = self._clock.monotonic()
        due: dict[float, list[Attempt]] = {}
        pause = self.pause
        for attempt in self._held.attempts():
            third = attempt.lease / PARTS
            if attempt.renewed_at + third <= now:
                if self._may_be_renewed(attempt, now):
                    due.setdefault(attempt.lease, []).append(attempt)
            else:
                pause = min(pause, attempt.renewed_at + third - now)
        for lease, attempts in due.items():
            await self._renew(store, attempts, lease, now)
        return max(_SHORTEST_PAUSE, pause)

    def _may_be_renewed(self, attempt: Attempt, now: float) -> bool:
        if attempt.renew_until is None or now < attempt.renew_until:
            return True
        if attempt not in self.overdue:
            self.overdue.add(attempt)
            logger.critical(
                "job %s (%s) is past its timeout of %s and its lease, and does not end: it is renewed no more, and "
                "another server will take it. What runs here:\n%s",
                attempt.job.id,
                attempt.handler.name,
                attempt.timeout,
                stacks(),
                extra=fields_of(attempt.job),
            )
        return False

    async def _renew(self, store: Store, attempts: list[Attempt], lease: float, now: float) -> None:
        claims = [(attempt.job.id, attempt.token) for attempt in attempts]
        answers = await store.renew(claims, duration(lease, "lease"))
        for attempt, answer in zip(attempts, answers, strict=True):
            attempt.renewed_at = now
            if answer is None:
                # a claim that is settled meanwhile, or may be, is not lost: its own settlement has ended it
                if not (attempt.settled or attempt.in_doubt):
                    self._stopper.request_soon(attempt, "claim_lost")
            elif answer.cancel_requested:
                self._stopper.request_soon(attempt, "cancel")


class RenewalThread:
    """Renews from a thread with an event loop and a door to the store of its own."""

    def __init__(
        self,
        renewals: Renewals,
        store: Store,
        *,
        fenced: Callable[[Fenced], None],
        failed: Callable[[], None] = lambda: None,
    ) -> None:
        """Renew through `store`, which is opened and closed in the thread; `failed` hears of each round in vain.

        `fenced` is called there when another process has taken the store over: it is seen here also while code blocks
        the event loop.
        """
        self._renewals = renewals
        self._store = store
        self._fenced = fenced
        self._failed = failed
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._work, name="windlass-renewals", daemon=True)
        self._begun: asyncio.Future[None] | None = None
        self._ending = False
        self._ended = asyncio.Event()

    async def start(self) -> None:
        """Begin; raises what opening the store raised."""
        loop = asyncio.get_running_loop()
        self._begun = loop.create_future()
        self._caller = loop
        self._thread.start()
        await self._begun

    async def stop(self, within: float) -> None:
        """End, and return when the thread has ended; also while it begins.

        One that waits for a store which does not answer is left, after `within` seconds, to end by itself.
        """
        self._ending = True
        if self._loop is not None and self._stopped is not None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._stopped.set)
        if self._thread.ident is not None:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._ended.wait(), within)
                self._thread.join()

    def call(self, work: Callable[[Store], Coroutine[Any, Any, object]], within: float) -> None:
        """Do `work` with the store of this thread, from any other but the event loop's, and wait for it.

        Raises `TimeoutError` after `within` seconds, and what the work raised.
        """
        if self._loop is not None:
            asyncio.run_coroutine_threadsafe(work(self._store), self._loop).result(within)

    def _work(self) -> None:
        try:
            asyncio.run(self._renew_for_ever())
        finally:
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                self._caller.call_soon_threadsafe(self._ended.set)

    async def _renew_for_ever(self) -> None:
        self._stopped = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        if self._ending:
            return
        try:
            await self._store.open()
        except Exception as error:  # noqa: BLE001 - it is raised by the start
            self._tell(error)
            return
        self._tell(None)
        watch = self._loop.create_task(self._watch_owner(self._loop)) if self._store.features.one_owner else None
        try:
            while not self._stopped.is_set():
                pause = await self._round()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._stopped.wait(), pause)
        finally:
            if watch is not None:
                watch.cancel()
            await self._store.close()

    async def _watch_owner(self, loop: asyncio.AbstractEventLoop) -> None:
        """Ask the store for something small whenever its owner may have changed: it raises `Fenced` if so."""
        rung = asyncio.Event()
        # it may have changed before anybody listened
        rung.set()

        def ring() -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody looks any more
                loop.call_soon_threadsafe(rung.set)

        stop_listening = self._store.listen((OWNER,), ring)
        try:
            while await rung.wait():
                rung.clear()
                await self._look_at_owner()
        finally:
            stop_listening()

    async def _look_at_owner(self) -> None:
        try:
            await self._store.paused(("owner",))
        except Fenced as error:
            self._fenced(error)
        except WindlassError as error:
            logger.warning("who owns the store cannot be seen, the next beat of the heart shows it: %s", error)

    async def _round(self) -> float:
        try:
            return await self._renewals.round(self._store)
        except Fenced as error:
            self._fenced(error)
        except WindlassError as error:
            logger.warning("leases could not be renewed, it is tried again: %s", error)
        except Exception:
            logger.exception("leases could not be renewed, it is tried again")
        self._failed()
        return min(1.0, self._renewals.pause)

    def _tell(self, error: Exception | None) -> None:
        begun = self._begun
        assert begun is not None  # noqa: S101 - for the type checker: start made it

        def tell() -> None:
            if not begun.done():
                begun.set_result(None) if error is None else begun.set_exception(error)

        with suppress(RuntimeError):
            self._caller.call_soon_threadsafe(tell)


class RenewalService(Service):
    """Renews on the event loop itself: a test's clock can only wake what runs on the loop that moves it."""

    name = "renewals"

    def __init__(self, renewals: Renewals, store: Store, *, clock: Clock, rng: Rng, spawn: Spawn) -> None:
        """Renew through `store`."""
        super().__init__(clock=clock, rng=rng, spawn=spawn)
        self._renewals = renewals
        self._store = store
        self.interval = timedelta(seconds=1)

    async def tick(self) -> None:
        """Renew what is due."""
        self.interval = timedelta(seconds=await self._renewals.round(self._store))


def stacks() -> str:
    """Return what every thread of this process is doing, the newest call first."""
    with tempfile.TemporaryFile("w+") as file:
        faulthandler.dump_traceback(file)
        file.seek(0)
        return file.read()
