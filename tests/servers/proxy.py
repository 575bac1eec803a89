"""A server to which everything can go wrong: a TCP proxy on loopback that a test steers.

    async with Proxy(url) as proxy:
        lost = proxy.drop_reply(2)
        ...  # what works through proxy.url
        await lost.wait()

Here is what is the same whatever is spoken through it. A store's own proxy knows where requests and answers end.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Collection
from contextlib import suppress
from types import TracebackType
from typing import Final, Generic, Self
from urllib.parse import urlsplit

from tests.servers.faults import BOTH, Direction, Faults, R
from tests.servers.proxied import ProxiedClient, Streams, reset


class Proxy(Faults[R], ABC, Generic[R]):
    """Stands before the server at a URL; once it is entered, `url` leads there through it.

    New connections are reset while `refusing`. Where the URL names no port, it is `port`.
    """

    def __init__(self, url: str, *, port: int) -> None:
        super().__init__()
        parts = urlsplit(url)
        assert parts.hostname is not None
        self.url = url
        self.refusing = False
        self.clients: list[ProxiedClient[R]] = []
        self._parts: Final = parts
        self._to: Final = (parts.hostname, parts.port or port)
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._errors: list[BaseException] = []

    @abstractmethod
    def proxied(self, streams: Streams) -> ProxiedClient[R]:
        """Return what passes on between both ends of a new connection."""

    def hold(self, directions: Collection[Direction] = BOTH) -> None:
        """Let nothing pass, on connections that are there and on new ones; nobody is told, as in a black hole."""
        self.held |= set(directions)
        for client in self.clients:
            client.hold(directions)

    def release(self) -> None:
        """Let everything pass again, beginning with what was held."""
        self.held.clear()
        for client in self.clients:
            client.release()

    def reset(self) -> None:
        """Reset every connection."""
        for client in [*self.clients]:
            client.reset()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        user, at, _ = self._parts.netloc.rpartition("@")
        port = self._server.sockets[0].getsockname()[1]
        self.url = self._parts._replace(netloc=f"{user}{at}127.0.0.1:{port}").geturl()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None:
        assert self._server is not None
        self._server.close()
        self.reset()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._errors:
            raise self._errors[0]

    def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refusing:
            reset(writer)
            return
        task = asyncio.ensure_future(self._live(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if error := task.exception():
            self._errors.append(error)

    async def _live(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError):
                server = await asyncio.open_connection(*self._to)
                client = self.proxied(Streams(reader, writer, *server))
                self.clients.append(client)
                try:
                    await client.live()
                finally:
                    self.clients.remove(client)
        finally:
            writer.close()
