"""The server: one process that works an app's queues and runs the services."""

import asyncio
import contextlib
import logging
import multiprocessing
from collections.abc import Sequence
from typing import Final, Self, Unpack

from windlass.core.errors import AlreadyRunning, Fenced, InvalidValue
from windlass.engine.config import ServerConfig, ServerSettings
from windlass.engine.health import Health
from windlass.engine.heart import new_server_id
from windlass.engine.served import Served
from windlass.engine.server_run import ServerRun
from windlass.engine.tally import Tally
from windlass.event_loop import runner_on

logger = logging.getLogger("windlass")

FENCED_GRACE: Final = 0.1
"""Seconds that code has to see that its claim is lost, before it is ended by force."""


class Server:
    """Runs the jobs of an app, until it is stopped; it can be started again.

    ```python
    import windlass

    app = windlass.App("memory://")


    @app.job
    async def greet(name: str) -> str:
        return f"hello {name}"


    async with app, windlass.Server(app):
        handle = await greet.enqueue("world")
        print(await handle.result(timeout=10))
    ```
    """

    def __init__(
        self,
        app: Served,
        config: ServerConfig | None = None,
        *,
        ends_process: bool = False,
        **settings: Unpack[ServerSettings],
    ) -> None:
        """Be ready to start; nothing is opened yet.

        The settings are given as a `ServerConfig` or as its keywords: `Server(app, concurrency=5)`.
        `ends_process` promises that the process ends when the server has stopped. Then a stop gives back also what
        still runs after its grace, such as threads, since nothing of it goes on.
        """
        _check_given(app, config, settings)
        self._app = app
        self._ends_process = ends_process
        self._given = ServerConfig(**settings) if config is None else config
        self._config = self._given
        self._id = ""
        self._id_was_used = False
        self._run: ServerRun | None = None
        self._turn = asyncio.Lock()
        self._stopping = False
        self._over = asyncio.Event()
        self._error: Exception | None = None
        self._last: asyncio.Task[None] | None = None
        self.tally: Final = Tally()
        """What the server has counted in all its runs."""

    @property
    def id(self) -> str:
        """How the server is registered: its name and a UUID, which is new at every start.

        Before the first start it is what that will use.
        """
        if not self._id:
            self._id = new_server_id(self._app.name, clock=self._app.client.clock, rng=self._app.client.rng)
        return self._id

    @property
    def running(self) -> bool:
        """Whether the server works; also while it stops."""
        return self._run is not None

    @property
    def stopping(self) -> bool:
        """Whether the server was told to stop, since its last start."""
        return self._stopping

    @property
    def busy(self) -> int:
        """How many jobs run."""
        return 0 if self._run is None else self._run.busy

    @property
    def unsettled(self) -> int:
        """How many ends of jobs wait for the store."""
        return 0 if self._run is None else self._run.unsettled

    @property
    def slots(self) -> int:
        """How many jobs may run at once."""
        return self._config.concurrency

    @property
    def fenced(self) -> Fenced | None:
        """What the store said when another process had taken it over, which stops this server; from any thread."""
        if isinstance(self._error, Fenced):
            return self._error
        return None if self._run is None else self._run.fenced_by

    def health(self) -> Health:
        """Tell whether new work can be expected of the server, and why not."""
        if self._run is None:
            return Health(ready=False, reasons=("the server does not run",))
        return self._run.health()

    async def start(self) -> None:
        """Begin to work; raises `AlreadyRunning`. When it raises anything, nothing was begun."""
        async with self._turn:
            if self._run is not None:
                message = f"server {self._id} runs already: stop it first"
                raise AlreadyRunning(message)
            _refuse_inside_an_import()
            if self._id_was_used:
                self._id = ""
            self._id_was_used = True
            self._stopping = False
            self._error = None
            self._over.clear()
            self._config = self._app.server_config(self._given)
            self._run = await ServerRun.begin(
                self._app,
                self._config,
                self.id,
                counts=self.tally,
                on_store_error=self._failed,
                ends_process=self._ends_process,
            )

    async def stop(self, *, grace: float | None = None) -> None:
        """Claim no more, let running jobs finish, give back what cannot in `shutdown_timeout`, and leave.

        It costs no job an attempt. `grace` is another time than the setting, in seconds. Harmless when it does not run.
        Where another process has taken the store over, nothing is given back: what was held is with the new owner.
        When this is cancelled, the stop is done without any more grace.
        """
        self._stopping = True
        async with self._turn:
            run = self._run
            if run is None:
                return
            if self.fenced is not None:
                # one that came while the server started
                run.stop.fence()
            try:
                await run.stop.end(self._config.shutdown_timeout.total_seconds() if grace is None else grace)
            except asyncio.CancelledError:
                await run.stop.end_now()
                raise
            finally:
                self._run = None
                self._over.set()

    async def crash(self) -> None:
        """End as a process does that is killed: nothing is settled, given back or taken out. For tests."""
        self._stopping = True
        async with self._turn:
            run, self._run = self._run, None
            if run is not None:
                await run.stop.crash()
                self._over.set()

    async def serve(self) -> None:
        """Work until `stop` is called, or this is cancelled, which stops gracefully too."""
        async with self:
            with contextlib.suppress(asyncio.CancelledError):
                await self._over.wait()
        self._raise_error()

    async def stopped(self) -> None:
        """Return when the server has stopped; raises what stopped it: `Fenced`, or what `stop_on_error` is about."""
        await self._over.wait()
        self._raise_error()

    async def rescue(self, servers: Sequence[str]) -> None:
        """Take back the jobs of servers that have ended, whatever their leases: whoever calls this has the proof.

        Nothing is done when this server does not run.
        """
        if self._run is not None:
            await self._run.rescue(servers)

    def give_back(self, within: float) -> None:
        """Settle all that the server holds, from another thread: its event loop is blocked, and its process ends now.

        Raises what the store did, or `TimeoutError`.
        """
        if self._run is not None:
            self._run.give_back(within)

    def run(self) -> None:
        """Work until interrupted, from a program without an event loop; the app is closed at the end."""
        with runner_on(self._config.event_loop) as runner:
            runner.run(self._serve_and_close())

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def _serve_and_close(self) -> None:
        try:
            await self.serve()
        finally:
            await self._app.close()

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    def _failed(self, error: Exception) -> None:
        if isinstance(error, Fenced):
            self._fence(error)
        elif self._config.stop_on_error and self._error is None:
            self._error = error
            logger.error("the server stops, as stop_on_error says: %s", error)
            self._last = asyncio.get_running_loop().create_task(self.stop())

    def _fence(self, error: Fenced) -> None:
        """Stop at once: another process owns the store, and decides about all that was held here."""
        if isinstance(self._error, Fenced):
            return
        self._error = error
        # where a process ends with its server, whoever ended it says why, once
        level = logging.INFO if self._ends_process else logging.ERROR
        logger.log(level, "server %s stops at once: %s", self._id, error)
        if self._run is not None:
            self._run.stop.fence()
        self._last = asyncio.get_running_loop().create_task(self.stop(grace=FENCED_GRACE))


def _check_given(app: object, config: object, settings: ServerSettings) -> None:
    if not callable(getattr(app, "server_config", None)):
        message = f"a server works an App, not {type(app).__name__}: Server(app), with app = windlass.App(...)"
        raise InvalidValue(message)
    if not isinstance(config, ServerConfig | None):
        message = (
            f"a server takes a ServerConfig, not {type(config).__name__}: Server(app, ServerConfig(concurrency=5)), "
            "or Server(app, concurrency=5)"
        )
        raise InvalidValue(message)
    if config is not None and settings:
        message = (
            f"a server takes a ServerConfig or keywords, not both: put {', '.join(settings)} into the ServerConfig"
        )
        raise InvalidValue(message)


def _refuse_inside_an_import() -> None:
    """Refuse to start while a child process imports the program that it belongs to: it would start without an end."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        message = "a child process imports this program, which starts a server: write if __name__ == '__main__': around"
        raise AlreadyRunning(message)
