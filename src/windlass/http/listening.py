"""Where callers reach an ASGI app: a port that is open from a start to a stop."""

import asyncio
import errno
import logging
import ssl
import sys
from collections.abc import Callable, Collection
from typing import Any, Final, Self

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle
from uvicorn.server import ServerState

from windlass.http.connection import Connection
from windlass.http.crowd import MOST_CONNECTIONS, MOST_PER_ADDRESS, Crowd
from windlass.http.tls_handshake import TlsHandshake
from windlass.http.whole_reply import WholeReplies

if sys.platform != "win32":
    import resource

logger = logging.getLogger("windlass.http")

IDLE_TIME: Final = 75.0
"""Seconds that a connection may rest between two requests; clients let go of theirs after 60."""
BACKLOG: Final = 2_048
_OTHER_FILES: Final = 256
"""Files that a process has open beside its connections."""


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
        connections_per_address: int = MOST_PER_ADDRESS,
        probes: Collection[str] = (),
        stopping: Callable[[], None] | None = None,
    ) -> None:
        """Be ready to start; port 0 takes any that is free. `probes` are paths that are answered without room too."""
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
        )
        self._connections = connections
        self._per_address = connections_per_address
        self._crowd = Crowd(connections, most_per_address=connections_per_address)
        self._probes = frozenset(path.encode() for path in probes)
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

    @property
    def under_way(self) -> int:
        """How many requests are under way."""
        return len(self._state.tasks)

    async def start(self) -> None:
        """Open the port; raises an `OSError` that says which when that cannot be."""
        self._config.load()
        loop = asyncio.get_running_loop()
        host, port = self._address
        self._crowd = Crowd(_with_files(self._connections), most_per_address=self._per_address)
        try:
            self._server = await loop.create_server(self._protocol, host, port, backlog=BACKLOG)
        except OSError as error:
            message = f"cannot listen on {host}:{port}: {_reason(error)}"
            raise OSError(message) from error

    async def stop(self, grace: float = 30.0) -> None:
        """Close the port, and return when all connections are closed."""
        if self._server is None:
            return
        self._server.close()
        for member in self._crowd:
            if isinstance(member, TlsHandshake):
                member.drop()
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

    def _protocol(self) -> asyncio.Protocol:
        return self._connection() if self._tls is None else TlsHandshake(self._tls, self._crowd, self._connection)

    def _connection(self) -> Connection:
        return Connection(self._config, self._state, self._crowd, self._probes)


class CutOff:
    """An ASGI app, run by uvicorn, whose requests may be cancelled: nobody is there any more to be answered.

    Uvicorn would log each as a failure of the app.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, unless it is cut off."""
        try:
            await self._app(scope, receive, send)
        except asyncio.CancelledError:
            cycle, task = getattr(send, "__self__", None), asyncio.current_task()
            if not isinstance(cycle, RequestResponseCycle) or task is None or not task.cancelling():
                raise
            # or uvicorn would miss the reply
            cycle.disconnected = True


def _with_files(connections: int) -> int:
    """Return how many connections there can be, with as many open files as the system lets this process have."""
    if sys.platform == "win32":
        return connections
    # for a moment there may be twice as many: who is closed for others is known when these have spoken
    wanted = 2 * connections + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return connections
    allowed = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, allowed), hard))
    if allowed >= wanted:
        return connections
    fewer = max(1, min(connections, (allowed - _OTHER_FILES) // 2))
    logger.warning(
        "%d connections are let in, and not %d: the system allows this process %d open files (ulimit -n)",
        fewer,
        connections,
        allowed,
    )
    return fewer


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
