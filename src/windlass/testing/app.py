"""An app in a test: on a store of its own, by a clock that stands still, its jobs run when the test says so."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from typing import Final, Unpack

from windlass.app.app import App
from windlass.client.client import Client
from windlass.core.duration import ZERO, Duration, duration
from windlass.core.errors import AlreadyRunning, InvalidValue
from windlass.core.filters import JobFilter
from windlass.core.states import State
from windlass.core.store import Store
from windlass.engine.config import ServerSettings
from windlass.engine.context import Context
from windlass.engine.inline import MOST, Endless, Inline
from windlass.engine.observed import Observed
from windlass.engine.server import Server
from windlass.testing.clock import FakeClock, turns
from windlass.testing.looking import Looking, StoreReader

PATIENCE: Final = 0.2
"""Seconds of real time that an attempt of a server gets to end before the clock is moved on over its head."""
_LOOK_EVERY: Final = 0.001
_POLL: Final = 60.0


class TestApp(Looking):
    """An app in a test: what `in_memory` and `in_database` give."""

    __test__ = False

    clock: FakeClock
    """The clock of the store, the client and everything that runs here."""

    def __init__(self, app: App, reader: StoreReader, clock: FakeClock, client: Client | None = None) -> None:
        """Test `app`, which is on `clock` and the store of `reader`; a `client` is used in place of the app's own."""
        super().__init__(app, reader)
        self.clock = clock
        self._observed = Observed(app, client)
        self._inline: Inline | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._servers: list[Server] = []
        self._slow: set[Context] = set()

    @property
    def client(self) -> Client:
        """The client of the app, on the store of the test."""
        return self._observed.client

    async def drain(self, *, advance: bool = False) -> int:
        """Run every job that is ready, and those that come meanwhile; return how many attempts there were.

        Claims whose lease has run out are rescued first. With `advance` the clock is moved to the next job that is
        scheduled, or the next lease that runs out, again and again until nothing waits. While a server of this object
        runs it does the work, and this waits for it.
        """
        store = await self._open_store()
        most = MOST + sum(row.pending + row.scheduled + row.running for row in await store.stats())
        attempts = await self._work()
        while advance and (due := await self._next_due()) is not None:
            attempts += await self._until(due)
            if attempts > most:
                raise Endless(None)
        return attempts

    async def advance(self, by: Duration) -> int:
        """Move the clock on and run what comes due on the way, at its time; return how many attempts there were."""
        end = self.clock.now() + duration(by, "by")
        attempts = await self._work()
        while not self._served and (due := await self._next_due()) is not None and due <= end:
            attempts += await self._until(due)
        return attempts + await self._until(end)

    @asynccontextmanager
    async def server(self, **settings: Unpack[ServerSettings]) -> AsyncGenerator[Server, None]:
        """Run a real server for the time of a block, by the clock of the test; `settings` are those of `ServerConfig`.

        At the end of the block it is stopped, and the clock is moved on when it waits for handlers that do not end. It
        needs a store in memory: a test cannot tell whether a server still waits for a database.
        """
        if not self._reader.answers_at_once:
            message = (
                "a server by the clock of a test needs a store in memory: use in_memory, or drain without a server"
            )
            raise InvalidValue(message)
        settings.setdefault("poll_interval", _POLL)
        server = Server(self._observed, **settings)
        await server.start()
        self._servers.append(server)
        try:
            yield server
        finally:
            self._servers.remove(server)
            await self._stop(server)

    async def close_lifespan(self) -> None:
        """Close what was opened for the jobs that ran in place; the next one opens it again."""
        self._observed.forget()
        if self._inline is not None:
            await self._inline.close()

    async def close(self) -> None:
        """Close what was opened for the test; it is done at the end of the block."""
        await self.close_lifespan()
        # a client in an event loop of somebody else goes with the store
        with suppress(AlreadyRunning):
            await self.app.close()

    def close_from_outside(self) -> None:
        """Close what was opened for the test, when the event loop of the test is not running any more."""
        self._observed.forget()
        loop = self._loop
        if loop is not None and not loop.is_closed() and not loop.is_running():
            loop.run_until_complete(self.close())

    async def _open_store(self) -> Store:
        await self.client.open()
        return self.client.store

    @property
    def _served(self) -> bool:
        return any(server.running for server in self._servers)

    async def _work(self) -> int:
        if self._served:
            before = self._observed.begun
            await self._quiet()
            return self._observed.begun - before
        await self.client.rescue()
        if self._inline is None:
            self._inline, self._loop = Inline(self._observed), asyncio.get_running_loop()
        return await self._inline.drain()

    async def _next_due(self) -> datetime | None:
        """Return when there is something to do again, for a job that the app knows."""
        await self.client.promote()
        store = await self._open_store()
        due_in = await store.due_in(sorted(self.app.queues))
        due = None if due_in is None else self.clock.now() + due_in
        running = await store.jobs(JobFilter(state=State.RUNNING), after=None, limit=MOST)
        leases = [job.lease_expires_at for job in running if job.queue in self.app.queues and not self._served]
        return min([at for at in (due, *leases) if at is not None], default=None)

    async def _until(self, at: datetime) -> int:
        before = self._observed.begun
        by = max(ZERO, at - self.clock.now())
        if not self._served:
            self.clock.advance(by)
            return await self._work()
        await self.clock.let_pass(by, after_each=self._quiet)
        return self._observed.begun - before

    async def _quiet(self) -> None:
        """Return when the servers have done what they can do now."""
        await turns()
        loop, active = asyncio.get_running_loop(), self._observed.active
        patient_until = loop.time() + PATIENCE
        # one that waits for something that the test does next is waited for once, and no more
        self._slow &= active
        if not active - self._slow:
            return
        while active - self._slow and loop.time() < patient_until:  # noqa: ASYNC110 - nobody tells of every end
            await asyncio.sleep(_LOOK_EVERY)
        self._slow |= active
        await turns()

    async def _stop(self, server: Server) -> None:
        stopping = asyncio.create_task(server.stop())
        await asyncio.wait({stopping}, timeout=PATIENCE)
        while not stopping.done():
            await self.clock.let_pass(1)
            await asyncio.sleep(_LOOK_EVERY)
        await stopping
