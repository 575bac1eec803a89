"""A real HTTP server that answers as it is told: rightly, late, in part, in vain or not at all."""

import asyncio
import ssl
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from windlass.stores.http.address import read_address
from windlass.stores.http.options import Options

SERVING = "process-1"


@dataclass(frozen=True)
class Request:
    """What was asked for, on which connection."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    connection: int


@dataclass
class Line:
    """One connection of a client."""

    number: int
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()


Act = Callable[[Request, Line], Awaitable[bool]]
"""Answers a request; returns whether the connection stays open."""


class Scripted:
    """Answers each request by the next act that is there for it, else with its own body, or its target."""

    def __init__(self, serving: str | None = SERVING, *, tls: ssl.SSLContext | None = None) -> None:
        self.serving = serving
        self._tls = tls
        self.acts: deque[Act] = deque()
        self.always: Act = echo(self)
        self.requests: list[Request] = []
        self.lines: dict[int, Line] = {}
        self.opened = 0
        self.over = asyncio.Event()
        self.asked = asyncio.Event()
        self._server: asyncio.Server | None = None
        self.port = 0

    async def __aenter__(self) -> Self:
        await self.listen()
        return self

    async def __aexit__(
        self, kind_of_error: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.over.set()
        await self.leave()

    async def listen(self) -> None:
        """Be there, at the same port as before."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]

    async def leave(self) -> None:
        """Be gone, with every connection."""
        if self._server is not None:
            self._server.close()
            self.reset()
            await self._server.wait_closed()
            self._server = None

    def stop_listening(self) -> None:
        """Take no new connection."""
        if self._server is not None:
            self._server.close()

    def reset(self) -> None:
        """Cut off every connection."""
        for line in [*self.lines.values()]:
            line.writer.transport.abort()

    def demand_certificates(self) -> None:
        """Talk to nobody who does not show who they are."""
        assert self._tls is not None
        self._tls.verify_mode = ssl.CERT_REQUIRED

    def options(self, *, path: str = "", token: str | None = None, **given: str) -> Options:
        return read_address("http", f"127.0.0.1:{self.port}", path, given, token=token)

    async def until_asked(self, times: int) -> None:
        """Return when so many requests have come."""
        async with asyncio.timeout(20):
            while len(self.requests) < times:
                self.asked.clear()
                await self.asked.wait()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.opened += 1
        line = Line(self.opened, reader, writer)
        self.lines[line.number] = line
        try:
            while await self._answer(line):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            del self.lines[line.number]
            writer.close()

    async def _answer(self, line: Line) -> bool:
        head = (await line.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        method, target, _ = head[0].split(" ")
        headers = {name.lower(): value for name, _, value in (each.partition(": ") for each in head[1:] if each)}
        # one that is there twice is read in two ways by two servers
        assert len(headers) == len([each for each in head[1:] if each]), head
        body = await line.reader.readexactly(int(headers.get("content-length", "0")))
        request = Request(method, target, headers, body, line.number)
        self.requests.append(request)
        self.asked.set()
        return await (self.acts.popleft() if self.acts else self.always)(request, line)


def reply(body: bytes = b"", status: int = 200, *, serving: str | None = SERVING, **headers: str) -> bytes:
    """Return a reply as it is sent; `_` in the name of a header stands for `-`."""
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    if serving is not None:
        lines.append(f"Windlass-Serving: {serving}")
    return "".join(f"{line}\r\n" for line in lines).encode() + b"\r\n" + body


def echo(server: Scripted) -> Act:
    async def act(request: Request, line: Line) -> bool:
        await line.send(reply(request.body or request.target.encode(), serving=server.serving))
        return True

    return act


def says(data: bytes, *, stays: bool = True) -> Act:
    """Send just this, and hang up unless it `stays`."""

    async def act(_: Request, line: Line) -> bool:
        await line.send(data)
        return stays

    return act


def in_steps(data: bytes, size: int = 1) -> Act:
    """Send this in pieces that come one after the other."""

    async def act(_: Request, line: Line) -> bool:
        for begin in range(0, len(data), size):
            await line.send(data[begin : begin + size])
            await asyncio.sleep(0)
        return True

    return act


def hangs(server: Scripted, data: bytes = b"") -> Act:
    """Send this and nothing more, as a black hole does, until the server is over."""

    async def act(_: Request, line: Line) -> bool:
        await line.send(data)
        await server.over.wait()
        return False

    return act


def refuses(status: int, body: bytes = b"", *, serving: str | None = SERVING, **headers: str) -> Act:
    return says(reply(body, status, serving=serving, **headers))


def vanishes() -> Act:
    """Do it, and hang up without a word."""
    return says(b"", stays=False)
