"""One shared look at the store for everybody in a client who waits for a job."""

import asyncio
import logging
import threading
from collections import OrderedDict
from contextlib import suppress
from typing import Final
from weakref import WeakValueDictionary

from windlass.client.bell import Bell, resolve
from windlass.client.cancelled import Cancelled
from windlass.core.clock import Clock, Running, Spawn
from windlass.core.errors import Fenced, StoreUnavailable
from windlass.core.ids import JobId
from windlass.core.job import Token
from windlass.core.looks import Glance
from windlass.core.states import State
from windlass.core.store import Store
from windlass.core.topics import ENDS, FLAGS

logger = logging.getLogger("windlass")

SPACING: Final = 0.005
REQUESTS_KEPT: Final = 1024


class Waiter:
    """Somebody who waits for the end of one job: first for a look at it, then for its end."""

    __slots__ = ("ended", "job_id", "looked")

    def __init__(self, job_id: JobId) -> None:
        """Wait on the running event loop."""
        loop = asyncio.get_running_loop()
        self.job_id = job_id
        self.looked: asyncio.Future[Glance | None] = loop.create_future()
        self.ended: asyncio.Future[bool] = loop.create_future()

    def tell(self, glance: Glance | None) -> None:
        """Take what a look has shown."""
        if not self.looked.done():
            self.looked.set_result(glance)
        if glance is None or glance.state.finished:
            resolve(self.ended, value=True)

    def fail(self, error: Exception) -> None:
        """End the wait by an error."""
        for future in (self.looked, self.ended):
            if not future.done():
                future.set_exception(error)
                # whoever waits for one of the two never asks the other
                future.exception()


class Watcher:
    """Looks at all watched jobs at once: when something ended or was flagged, and once each `poll_interval`."""

    def __init__(self, store: Store, *, clock: Clock, spawn: Spawn, poll_interval: float) -> None:
        """Begin on the running event loop, with nobody waiting."""
        self._store = store
        self._spawn = spawn
        self._poll_interval = poll_interval
        self._bell = Bell(clock)
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._waiters: dict[JobId, set[Waiter]] = {}
        self._events: WeakValueDictionary[Token, Cancelled] = WeakValueDictionary()
        self._requested: OrderedDict[JobId, int] = OrderedDict()
        self.requests = 0
        self._task: Running | None = None
        self._looked_at = float("-inf")

    def add(self, job_id: JobId) -> Waiter:
        """Wait for the end of a job; pair it with `discard`."""
        waiter = Waiter(job_id)
        self._waiters.setdefault(job_id, set()).add(waiter)
        self._wake()
        return waiter

    def discard(self, waiter: Waiter) -> None:
        """Wait no longer."""
        waiters = self._waiters.get(waiter.job_id, set())
        waiters.discard(waiter)
        if not waiters:
            self._waiters.pop(waiter.job_id, None)

    def watch(self, event: Cancelled, *, born: int) -> None:
        """Look after a claim's event, as long as somebody holds it; `born` is the count of requests at its claim."""
        if self._requested.get(event.job_id, 0) > born:
            event.fire("cancel")
            return
        if threading.get_ident() == self._thread:
            self._watch(event)
            return
        # a loop that was closed has no store left to look at
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._watch, event)

    def forget(self, event: Cancelled) -> None:
        """Look after an event no longer."""
        self._events.pop(event.token, None)

    def cancel_requested(self, job_id: JobId) -> None:
        """Fire the events of a job that this client itself asked to stop, without another look at the store."""
        self.requests += 1
        self._requested[job_id] = self.requests
        if len(self._requested) > REQUESTS_KEPT:
            self._requested.popitem(last=False)
        for event in list(self._events.values()):
            if event.job_id == job_id:
                event.fire("cancel")

    def close(self, error: Exception) -> None:
        """End every wait by `error`."""
        self._fail(error, all_of_them=True)
        if self._task is not None:
            self._task.cancel()

    def _watch(self, event: Cancelled) -> None:
        self._events[event.token] = event
        self._wake()

    def _wake(self) -> None:
        if self._task is None:
            self._task = self._spawn(self._run(), name="windlass watcher")
        self._bell.ring()

    async def _run(self) -> None:
        stop = self._store.listen((ENDS, FLAGS), self._bell.ring)
        try:
            while await self._somebody_waits():
                await self._look_in_time()
                await self._bell.wait(self._poll_interval)
        finally:
            stop()
            self._task = None

    async def _somebody_waits(self) -> bool:
        if not self._waiters and not self._events:
            # one idle round before it ends: waits that follow each other share one listener
            self._bell.clear()
            await self._bell.wait(self._poll_interval)
        return bool(self._waiters or self._events)

    async def _look_in_time(self) -> None:
        # this spares the machine under load and promises nothing, so it goes by the loop's own time, not the clock's
        early = self._looked_at + SPACING - self._loop.time()
        if early > 0:
            await asyncio.sleep(early)
        self._bell.clear()
        try:
            await self._look()
        except Fenced as error:
            self._fence(error)
        except StoreUnavailable as error:
            logger.warning("cannot look at the jobs that are waited for: %s", error)
            self._fail(error, all_of_them=not error.retryable)
        except Exception as error:
            self._fail(error, all_of_them=True)
            raise
        finally:
            self._looked_at = self._loop.time()

    async def _look(self) -> None:
        waiters = [waiter for waiters in self._waiters.values() for waiter in waiters]
        events = list(self._events.values())
        seen = await self._store.glance({*(w.job_id for w in waiters), *(e.job_id for e in events)})
        for waiter in waiters:
            waiter.tell(seen.get(waiter.job_id))
        for event in events:
            self._tell(event, seen.get(event.job_id))

    def _tell(self, event: Cancelled, glance: Glance | None) -> None:
        # one that was forgotten during the look was settled by its holder: that its job moved on is no loss
        if self._events.get(event.token) is not event:
            return
        if glance is None or glance.state is not State.RUNNING or glance.token != event.token:
            event.fire("claim_lost")
        elif glance.cancel_requested:
            event.fire("cancel")
        else:
            return
        self.forget(event)

    def _fence(self, error: Fenced) -> None:
        """End every wait, and tell every holder of a claim that it is lost: the store has another owner."""
        self._fail(error, all_of_them=True)
        for event in list(self._events.values()):
            event.fire("claim_lost")
            self.forget(event)

    def _fail(self, error: Exception, *, all_of_them: bool) -> None:
        for waiters in list(self._waiters.values()):
            for waiter in list(waiters):
                if all_of_them or not waiter.looked.done():
                    waiter.fail(error)
