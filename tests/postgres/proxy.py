"""A way to Postgres on which everything can go wrong: a TCP proxy on loopback that a test steers.

    async with Proxy(cluster().url) as proxy:
        lost = proxy.drop_reply(lambda request: request.text.startswith("COMMIT"))
        ...  # what works through proxy.url
        await lost.wait()

A request is all that a client sends until it waits: one `Query`, or messages up to a `Sync`. Encryption is refused.
"""

import asyncio
import socket
import struct
from collections import deque
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Literal, NamedTuple, Self, TypeAlias
from urllib.parse import urlsplit

from tests.postgres.frames import PARTS, READY, Frame, Request, Requests, raising, read_frame, read_startup

Direction: TypeAlias = Literal["requests", "answers"]
When: TypeAlias = int | Callable[[Request], bool]
"""Of the requests from now that run something: the n-th, counted from 1, or the first that the function is true of."""

BOTH: Final[Collection[Direction]] = ("requests", "answers")
_RESET: Final = struct.pack("ii", 1, 0)


@dataclass
class Plan:
    """What is to be done to one request, and an event for when it was done."""

    when: When
    what: Literal["drop request", "drop reply", "fail"]
    sqlstate: str = ""
    done: asyncio.Event = field(default_factory=asyncio.Event)

    def meets(self, request: Request) -> bool:
        if not request.runs:
            return False
        if callable(self.when):
            return self.when(request)
        self.when -= 1
        return self.when == 0


class _Expected(NamedTuple):
    runs: bool
    plan: Plan | None = None


class Proxy:
    """Stands before the Postgres at a URL; once it is entered, `url` leads there through it.

    `latency` (in seconds) is added each way to whatever passes, new connections are reset while `refusing`. `requests`
    counts those that were passed on and run something, `answers` how many of them were answered.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        self.url = url
        self.latency = 0.0
        self.refusing = False
        self.requests = 0
        self.answers = 0
        self.clients: list[ProxiedClient] = []
        self.held: set[Direction] = set()
        self.left: int | None = None
        self.plans: list[Plan] = []
        self._parts: Final = parts
        self._to: Final = (parts.hostname, parts.port or 5432)
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._errors: list[BaseException] = []

    def drop_reply(self, when: When) -> asyncio.Event:
        """Let a request be done, keep its answer, and reset the connection; the event tells when."""
        return self._plan(Plan(when, "drop reply"))

    def drop_request(self, when: When) -> asyncio.Event:
        """Reset the connection in place of passing a request on."""
        return self._plan(Plan(when, "drop request"))

    def fail(self, when: When, sqlstate: str) -> asyncio.Event:
        """Let the server answer a request with this error in place of doing it; a transaction fails as by any error."""
        return self._plan(Plan(when, "fail", sqlstate))

    def cut_after(self, size: int) -> None:
        """End the connection that brings the answer's byte number `size + 1` from now, before that byte."""
        self.left = size

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

    def planned(self, request: Request) -> Plan | None:
        """Return what is to be done to this request, once."""
        for plan in self.plans:
            if plan.meets(request):
                self.plans.remove(plan)
                return plan
        return None

    def _plan(self, plan: Plan) -> asyncio.Event:
        self.plans.append(plan)
        return plan.done

    def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refusing:
            _reset(writer)
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
                client = ProxiedClient(self, reader, writer, *server)
                self.clients.append(client)
                try:
                    await client.live()
                finally:
                    self.clients.remove(client)
        finally:
            writer.close()


class ProxiedClient:
    """One connection through the proxy, to be held or reset alone."""

    def __init__(
        self,
        proxy: Proxy,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        server_reader: asyncio.StreamReader,
        server_writer: asyncio.StreamWriter,
    ) -> None:
        self._proxy: Final = proxy
        self._reader: Final = reader
        self._writer: Final = writer
        self._server_reader: Final = server_reader
        self._server_writer: Final = server_writer
        self._open: Final[dict[Direction, asyncio.Event]] = {"requests": asyncio.Event(), "answers": asyncio.Event()}
        # what the server has still to answer, in order; its first answer is to the start of the session
        self._expected: Final[deque[_Expected]] = deque([_Expected(runs=False)])
        self._ended: Final = asyncio.Event()
        self.release()
        self.hold(proxy.held)

    def hold(self, directions: Collection[Direction] = BOTH) -> None:
        """Let nothing pass."""
        for direction in directions:
            self._open[direction].clear()

    def release(self) -> None:
        """Let everything pass again, beginning with what was held."""
        for gate in self._open.values():
            gate.set()

    def reset(self) -> None:
        """Reset the connection, to the client and to the server."""
        _reset(self._writer)
        _reset(self._server_writer)
        self._ended.set()

    async def live(self) -> None:
        """Pass on what comes, both ways, until one side ends."""
        ways = [asyncio.ensure_future(way) for way in (self._requests(), self._answers(), self._end())]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            ends = await asyncio.gather(*ways, return_exceptions=True)
            self._server_writer.close()
        for error in ends:
            if isinstance(error, Exception) and not isinstance(error, OSError | asyncio.IncompleteReadError):
                raise error

    async def _requests(self) -> None:
        await self._pass_on(await self._startup())
        requests, whole = Requests(id(self)), b""
        while frame := await read_frame(self._reader):
            whole += frame.whole
            if request := requests.add(frame):
                await self._request(request, whole)
            elif frame.letter in PARTS:
                continue
            else:
                await self._pass_on(whole)
            whole = b""

    async def _startup(self) -> bytes:
        while True:
            message, asks_for_encryption = await read_startup(self._reader)
            if not asks_for_encryption:
                return message
            self._writer.write(b"N")

    async def _request(self, request: Request, whole: bytes) -> None:
        plan = self._proxy.planned(request)
        if plan is not None and plan.what == "drop request":
            self.reset()
            plan.done.set()
            return
        if plan is not None and plan.what == "fail":
            whole = raising(plan.sqlstate)
        self._expected.append(_Expected(request.runs, plan))
        self._proxy.requests += request.runs
        await asyncio.sleep(self._proxy.latency)
        await self._pass_on(whole)

    async def _pass_on(self, whole: bytes) -> None:
        await self._open["requests"].wait()
        self._server_writer.write(whole)
        await self._server_writer.drain()

    async def _answers(self) -> None:
        while frame := await read_frame(self._server_reader):
            expected = self._expected[0] if self._expected else None
            if expected is None or expected.plan is None or expected.plan.what != "drop reply":
                await self._give(frame)
            if expected is not None and frame.letter == READY:
                self._answered(expected)

    def _answered(self, expected: _Expected) -> None:
        self._expected.popleft()
        self._proxy.answers += expected.runs
        if expected.plan is None:
            return
        if expected.plan.what == "drop reply":
            self.reset()
        expected.plan.done.set()

    async def _give(self, frame: Frame) -> None:
        # once for a whole answer, however many rows it has
        if frame.letter == READY:
            await asyncio.sleep(self._proxy.latency)
        await self._open["answers"].wait()
        passing = frame.whole if self._proxy.left is None else frame.whole[: self._proxy.left]
        self._writer.write(passing)
        await self._writer.drain()
        if self._proxy.left is not None:
            self._proxy.left -= len(passing)
        if len(passing) < len(frame.whole):
            self._proxy.left = None
            self._ended.set()

    async def _end(self) -> None:
        await self._ended.wait()


def _reset(writer: asyncio.StreamWriter) -> None:
    connection: socket.socket = writer.get_extra_info("socket")
    with suppress(OSError):
        # linger for no time: what is not sent is thrown away, and the other side gets a reset in place of an end
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()
