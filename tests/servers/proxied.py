"""One connection through a proxy: what a client asks for is passed on, and the server's answers are given back."""

import asyncio
import socket
import struct
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Collection
from contextlib import suppress
from typing import Final, Generic, NamedTuple

from tests.servers.faults import BOTH, Direction, Faults, Plan, R

_RESET: Final = struct.pack("ii", 1, 0)


class Streams(NamedTuple):
    """Both ends of a connection: to the client, and to the server."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    server_reader: asyncio.StreamReader
    server_writer: asyncio.StreamWriter


class _Expected(NamedTuple, Generic[R]):
    runs: bool
    plan: Plan[R] | None = None


class ProxiedClient(ABC, Generic[R]):
    """A client's connection, to be held or reset alone.

    A store's own reads both ways: it calls `request` for each request, `answer` for each part of an answer, and
    `pass_on` and `give` for what is neither.
    """

    def __init__(self, faults: Faults[R], streams: Streams) -> None:
        self.reader: Final = streams.reader
        self.writer: Final = streams.writer
        self.server_reader: Final = streams.server_reader
        self._server_writer: Final = streams.server_writer
        self._faults: Final = faults
        self._open: Final[dict[Direction, asyncio.Event]] = {"requests": asyncio.Event(), "answers": asyncio.Event()}
        # what the server has still to answer, in order
        self._expected: Final[deque[_Expected[R]]] = deque()
        self._ended: Final = asyncio.Event()
        self.release()
        self.hold(faults.held)

    @abstractmethod
    async def requests(self) -> None:
        """Read what the client sends, until it ends."""

    @abstractmethod
    async def answers(self) -> None:
        """Read what the server sends, until it ends."""

    @abstractmethod
    def failing(self, error: str) -> bytes:
        """Return a request that fails with `error` and does nothing else."""

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
        reset(self.writer)
        reset(self._server_writer)
        self._ended.set()

    async def live(self) -> None:
        """Pass on what comes, both ways, until one side ends."""
        ways = [asyncio.ensure_future(way) for way in (self.requests(), self.answers(), self._end())]
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

    async def request(self, request: R, whole: bytes) -> None:
        """Pass on a request, unless it is planned otherwise; the server answers it after those before."""
        plan = self._faults.planned(request)
        if plan is not None and plan.what == "drop request":
            self.reset()
            plan.done.set()
            return
        if plan is not None and plan.what == "fail":
            whole = self.failing(plan.error)
        self.expect(runs=request.runs, plan=plan)
        self._faults.requests += request.runs
        await asyncio.sleep(self._faults.latency)
        await self.pass_on(whole)

    def expect(self, *, runs: bool, plan: Plan[R] | None = None) -> None:
        """Expect one more answer."""
        self._expected.append(_Expected(runs, plan))

    async def pass_on(self, whole: bytes) -> None:
        """Send to the server what is no request."""
        await self._send(whole, self._server_writer, "requests")

    async def answer(self, whole: bytes, *, ends: bool) -> None:
        """Give a part of the answer that is expected next; with the last one it `ends`."""
        expected = self._expected[0] if self._expected else None
        if expected is None or expected.plan is None or expected.plan.what != "drop reply":
            if ends:
                # once for a whole answer, however many parts it has
                await asyncio.sleep(self._faults.latency)
            await self.give(whole)
        if expected is not None and ends:
            self._answered(expected)

    async def give(self, whole: bytes) -> None:
        """Send to the client what answers nothing."""
        await self._send(whole, self.writer, "answers")

    def _answered(self, expected: _Expected[R]) -> None:
        self._expected.popleft()
        self._faults.answers += expected.runs
        if expected.plan is None:
            return
        if expected.plan.what == "drop reply":
            self.reset()
        expected.plan.done.set()

    async def _send(self, whole: bytes, writer: asyncio.StreamWriter, direction: Direction) -> None:
        await self._open[direction].wait()
        passing = self._faults.passing(whole, direction)
        writer.write(passing)
        await writer.drain()
        if len(passing) < len(whole):
            self._ended.set()
            # what comes after may not pass
            self._open[direction].clear()

    async def _end(self) -> None:
        await self._ended.wait()


def reset(writer: asyncio.StreamWriter) -> None:
    """End a connection as by an error: who is at its other end gets a reset."""
    connection: socket.socket = writer.get_extra_info("socket")
    with suppress(OSError):
        # linger for no time: what is not sent is thrown away, and the other side gets a reset in place of an end
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()
