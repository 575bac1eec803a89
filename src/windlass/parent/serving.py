"""The server of a child, from its first start to its stop."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable

from windlass.app.app import App
from windlass.client.spoken import counted
from windlass.core.errors import Fenced, StoreUnavailable, WindlassError
from windlass.engine.health import Health
from windlass.engine.server import Server
from windlass.engine.service import backoff, trace_of
from windlass.system import SystemRng

logger = logging.getLogger("windlass")


class Serving:
    """Starts a server, again and again while something is away that it needs, and stops it when it is told to.

    All of it is used on one event loop, except where a method says otherwise.
    """

    def __init__(
        self, app: App, *, stop_on_error: bool, begins: Callable[[str], None], ready: Callable[[], None]
    ) -> None:
        """Serve `app`; `begins` hears of the id of each server before it can claim anything, `ready` of the start."""
        self._app = app
        self._stop_on_error = stop_on_error
        self._begins = begins
        self._ready = ready
        self._rng = SystemRng()
        self._loop = asyncio.get_running_loop()
        self._starting = self._loop.create_task(self._start())
        self._stopping: asyncio.Task[None] | None = None
        self._rescues: set[asyncio.Task[None]] = set()
        self._server: Server | None = None
        self._cut_short = False
        self.over_at: float | None = None
        """When the grace is over, by `time.monotonic`; None when nobody has told it to stop."""

    async def run(self) -> None:
        """Return when the server was stopped; raises what no other try could mend."""
        try:
            server = await self._starting
        except asyncio.CancelledError:
            return
        await server.stopped()
        for rescue in self._rescues:
            rescue.cancel()

    @property
    def server(self) -> Server | None:
        """The server, once it has started; from any thread."""
        return self._server

    @property
    def fenced(self) -> Fenced | None:
        """What the store said when another process had taken it over, which stops the server; from any thread."""
        return None if self._server is None else self._server.fenced

    def health(self) -> Health | None:
        """Return how the server is, None when there is nothing to tell yet or any more; from any thread."""
        server = self._server
        return None if server is None or server.stopping or not server.running else server.health()

    def stop(self, grace: float) -> None:
        """Stop gracefully; harmless when it stops."""
        if self._stopping is None and self.fenced is None:
            self.over_at = time.monotonic() + grace
            self._stopping = self._loop.create_task(self._stop(grace))

    def stop_now(self) -> None:
        """Stop without any grace, also if a stop is under way."""
        if self._stopping is None:
            self.stop(0)
        elif not self._cut_short:
            self.over_at = time.monotonic()
            # not before its first step: a task that is cancelled then never begins
            self._loop.call_soon(self._stopping.cancel)
        self._cut_short = True

    def answers(self, within: float) -> bool:
        """Whether the event loop does anything, within so many seconds; from any other thread."""
        answered = threading.Event()
        try:
            self._loop.call_soon_threadsafe(answered.set)
        except RuntimeError:  # it is closed: all is over
            return True
        return answered.wait(within)

    def give_back(self, within: float) -> None:
        """Settle what the server holds: its event loop is blocked, and the process ends now; from any other thread."""
        if self._server is None:
            return
        logger.error("the event loop of server %s is blocked: what it runs is cut off", self._server.id)
        try:
            self._server.give_back(within)
        except Exception as error:  # noqa: BLE001 - the lease is there too
            logger.error("what server %s held could not be given back: %s", self._server.id, str(error) or "no answer")  # noqa: TRY400

    def rescue(self, server: str, done: Callable[[], None]) -> None:
        """Give back what a server held whose process has ended, and call `done`."""
        task = self._loop.create_task(self._rescue(server, done))
        self._rescues.add(task)
        task.add_done_callback(self._rescues.discard)

    async def _start(self) -> Server:
        failures = 0
        while True:
            server = Server(self._app, ends_process=True)
            self._begins(server.id)
            try:
                await server.start()
            except Exception as error:
                if self._is_final(error):
                    raise
                failures += 1
                wait = backoff(failures, self._rng)
                text = "the server cannot start (%d times in a row), again in %.1f s: %s"
                logger.error(text, failures, wait, error, exc_info=trace_of(error))  # noqa: TRY400 - a store says enough in a line
                await asyncio.sleep(wait)
            else:
                self._server = server
                # before it waits for anything: the first job may hold up the event loop for good
                self._ready()
                return server

    def _is_final(self, error: Exception) -> bool:
        """Whether another try would end the same way: what the app opens may be back, wrong settings stay wrong."""
        if isinstance(error, StoreUnavailable):
            return self._stop_on_error or not error.retryable
        return self._stop_on_error or isinstance(error, WindlassError)

    async def _stop(self, grace: float) -> None:
        server = self._server
        if server is None:
            self._starting.cancel()
            return
        running = server.busy
        logger.info("server %s stops: %s running, %g s to end", server.id, counted(running, "job"), grace)
        await server.stop(grace=grace)
        logger.info("server %s has stopped", server.id)

    async def _rescue(self, server: str, done: Callable[[], None]) -> None:
        failures = 0
        while self._server is not None and self._server.running:
            try:
                await self._server.rescue([server])
            except Exception as error:  # noqa: BLE001 - it is tried again, and the lease is there too
                if self._server.stopping or isinstance(error, Fenced):
                    return
                failures += 1
                wait = backoff(failures, self._rng)
                text = "what server %s held cannot be given back (%d times in a row), again in %.1f s: %s"
                logger.warning(text, server, failures, wait, error)
                await asyncio.sleep(wait)
            else:
                done()
                return
