"""Where callers reach an ASGI app: a port that is open from a start to a stop."""

import asyncio
import errno
import ssl
from collections.abc import Callable
from typing import Any, Final, Self

from starlette.types import ASGIApp
from uvicorn import Config
from uvicorn.server import ServerState

from windlass.http.connection import Connection
from windlass.http.cut_off import CutOff
from windlass.http.whole_reply import WholeReplies

IDLE_TIME: Final = 75.0
"""Seconds that a connection may rest between two requests; clients let go of theirs after 60."""
MOST_CONNECTIONS: Final = 1_000


class Listening:
    """Serves an app on one address, by uvicorn's protocol, without its signal handlers and its sleeps.

    A stop takes no new connection, lets requests that are under way be answered, and cuts off those that are not within
    the grace. `stopping` is called at its beginning: for whoever waits long.
    """

    def __init__(
        self,
        app: ASGIApp,
        host: str,
        port: int,
        *,
        tls: ssl.SSLContext | None = None,
        connections: int = MOST_CONNECTIONS,
        stopping: Callable[[], None] | None = None,
    ) -> None:
        """Be ready to start; port 0 takes any that is free."""
        self._address = (host, port)
        self._tls = tls
        self._stopping = stopping
        self._config = Config(
            CutOff(WholeReplies(app)),
            http=Connection,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            timeout_keep_alive=round(IDLE_TIME),
            limit_concurrency=connections,
        )
        self._state = _State()
        self._server: asyncio.Server | None = None

    @property
    def port(self) -> int:
        """The port that is open."""
        if self._server is None:
            message = "nothing is served here: start it first"
            raise RuntimeError(message)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def start(self) -> None:
        """Open the port; raises an `OSError` that says which when that cannot be."""
        self._config.load()
        loop = asyncio.get_running_loop()
        host, port = self._address
        try:
            self._server = await loop.create_server(self._connection, host, port, ssl=self._tls, backlog=2_048)
        except OSError as error:
            message = f"cannot listen on {host}:{port}: {_reason(error)}"
            raise OSError(message) from error

    async def stop(self, grace: float = 30.0) -> None:
        """Close the port, and return when all connections are closed."""
        if self._server is None:
            return
        self._server.close()
        if self._stopping is not None:
            self._stopping()
        for connection in list(self._state.connections):
            connection.shutdown()
        try:
            async with asyncio.timeout(grace):
                await self._state.idle()
        except TimeoutError:
            for task in list(self._state.tasks):
                task.cancel()
            for connection in list(self._state.connections):
                connection.transport.abort()
            await self._state.idle()
        self._server = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    def _connection(self) -> Connection:
        return Connection(self._config, self._state, {})


def _reason(error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return "the address is in use: end who listens there, or take another port"
    return error.strerror or str(error)


class _Awaited(set[Any]):
    """A set that can be waited for to be empty."""

    def __init__(self) -> None:
        super().__init__()
        self._empty = asyncio.Event()
        self._empty.set()

    def add(self, element: Any, /) -> None:  # noqa: ANN401 - as a set's
        super().add(element)
        self._empty.clear()

    def discard(self, element: Any, /) -> None:  # noqa: ANN401 - as a set's
        super().discard(element)
        if not self:
            self._empty.set()

    async def empty(self) -> None:
        await self._empty.wait()


class _State(ServerState):
    """What uvicorn's connections share, and when nothing of it is left."""

    def __init__(self) -> None:
        super().__init__()
        self.connections = self._connections = _Awaited()
        self.tasks = self._tasks = _Awaited()

    async def idle(self) -> None:
        while self.connections or self.tasks:
            await self._connections.empty()
            await self._tasks.empty()
