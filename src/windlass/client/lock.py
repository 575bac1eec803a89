"""Named locks over all processes."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta

from windlass.client.bell import Bell, Listeners
from windlass.core.clock import Clock, Spawn
from windlass.core.duration import ZERO
from windlass.core.errors import Fenced, InvalidValue, LockLost, WindlassError
from windlass.core.store import Store
from windlass.core.topics import lock_topic

logger = logging.getLogger("windlass")


class HeldLock:
    """A named lock while it is held; `lost` is set when it could not be renewed in time."""

    def __init__(self, name: str, holder: str, ttl: timedelta) -> None:
        """Stand for one hold."""
        self.name = name
        self.holder = holder
        self.ttl = ttl
        self.lost = asyncio.Event()


class Locks:
    """Takes, renews and lets go of named locks for one client."""

    def __init__(self, store: Store, listeners: Listeners, *, clock: Clock, spawn: Spawn, poll_interval: float) -> None:
        """Look each `poll_interval` whether a lock has expired, which rings nobody."""
        self._store = store
        self._listeners = listeners
        self._clock = clock
        self._spawn = spawn
        self._poll_interval = poll_interval

    @asynccontextmanager
    async def hold(self, held: HeldLock, wait: float | None) -> AsyncGenerator[HeldLock, None]:
        """Hold a lock for the time of the block; raises `LockLost` at its end when it was lost meanwhile."""
        await self._take(held, wait)
        renewal = self._spawn(self._renew(held), name=f"windlass lock {held.name}")
        try:
            yield held
        finally:
            renewal.cancel()
            kept = await asyncio.shield(self._let_go(held))
        # not in the finally: an error of the block itself comes first
        if not kept or held.lost.is_set():
            raise LockLost(held.name)

    async def _take(self, held: HeldLock, wait: float | None) -> None:
        deadline = None if wait is None else self._clock.monotonic() + wait
        with self._listeners.bell((lock_topic(held.name),)) as bell:
            while not await self._take_now(held, bell):
                await bell.wait(self._until(deadline, held.name))

    async def _take_now(self, held: HeldLock, bell: Bell) -> bool:
        bell.clear()
        try:
            return await self._store.lock(held.name, held.holder, held.ttl)
        except asyncio.CancelledError:
            # the store may have given it although the caller has gone
            self._spawn(self._forget(held), name=f"windlass unlock {held.name}")
            raise

    def _until(self, deadline: float | None, name: str) -> float:
        if deadline is None:
            return self._poll_interval
        left = deadline - self._clock.monotonic()
        if left <= 0:
            message = f"lock {name!r} was not free in time: wait longer, or do without"
            raise TimeoutError(message)
        return min(left, self._poll_interval)

    async def _renew(self, held: HeldLock) -> None:
        ttl = held.ttl.total_seconds()
        held_until = self._clock.monotonic() + ttl
        while not held.lost.is_set():
            # two renewals may fail before another holder can take it
            await self._clock.sleep(ttl / 3)
            began = self._clock.monotonic()
            try:
                kept = await self._store.lock(held.name, held.holder, held.ttl)
            except Fenced:
                kept = False
            except WindlassError as error:
                logger.warning("lock %r could not be renewed: %s", held.name, error)
                kept = began < held_until
            else:
                held_until = began + ttl
            if not kept:
                held.lost.set()

    async def _let_go(self, held: HeldLock) -> bool:
        return await self._store.unlock(held.name, held.holder)

    async def _forget(self, held: HeldLock) -> None:
        await self._let_go(held)


def checked_ttl(ttl: timedelta) -> timedelta:
    """Return `ttl` if a lock can live that long."""
    if ttl == ZERO:
        message = "ttl must be more than zero: a lock that expires at once is held by nobody"
        raise InvalidValue(message)
    return ttl
