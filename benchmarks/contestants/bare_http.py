"""The bare engine: HTTP that carries the jobs to another process and back, and does nothing with them there.

What a call costs over it is what is done with the jobs; what it costs itself is Starlette, uvicorn and two sockets.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import cast

import msgspec
from httptools import HttpResponseParser

from benchmarks.measuring.contestant import Arrived, Contestant, Role
from benchmarks.measuring.workload import Payload
from benchmarks.servers.http_echo import PATH
from benchmarks.servers.our_loop import run_on_ours
from benchmarks.workloads import asynchronous
from benchmarks.workloads.other_process import other_process

CONNECTIONS = 8
"""As many as Windlass has by default."""


class Connection(asyncio.Protocol):
    """Asks for one thing at a time."""

    def __init__(self) -> None:
        """Read answers as they come."""
        self._parser = HttpResponseParser(self)
        self._answered: asyncio.Future[None] | None = None

    async def ask(self, body: bytes) -> None:
        """Send a body and wait until it is back."""
        self._answered = asyncio.get_running_loop().create_future()
        head = f"POST {PATH} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(body)}\r\n\r\n"
        self._transport.write(head.encode() + body)
        await self._answered

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Read on."""
        self._parser.feed_data(data)

    def on_message_complete(self) -> None:
        """Know that an answer is whole."""
        if self._answered is not None:
            self._answered.set_result(None)

    def close(self) -> None:
        """Hang up."""
        self._transport.close()


class Queue:
    """Keeps nothing."""

    def __init__(self, connections: Sequence[Connection]) -> None:
        """Use connections that are open."""
        self._free = asyncio.Queue[Connection]()
        for connection in connections:
            self._free.put_nowait(connection)

    async def put(self, value: Payload) -> None:
        """Send one job."""
        await self._ask(msgspec.json.encode(value))

    async def put_many(self, values: Sequence[Payload]) -> None:
        """Send all jobs by one call."""
        await self._ask(msgspec.json.encode(values))

    def working(self, arrived: Arrived) -> AbstractAsyncContextManager[None]:
        """Refuse: there is nothing to work."""
        raise NotImplementedError

    async def left(self) -> int:
        """Count nothing."""
        return 0

    async def _ask(self, body: bytes) -> None:
        connection = await self._free.get()
        await connection.ask(body)
        self._free.put_nowait(connection)


@asynccontextmanager
async def open_queue(folder: Path, *, keep: bool = False) -> AsyncGenerator[Queue]:
    """Start the other process."""
    del folder, keep
    with other_process("benchmarks.servers.http_echo") as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        loop = asyncio.get_running_loop()
        opened = [await loop.create_connection(Connection, "127.0.0.1", port) for _ in range(CONNECTIONS)]
        connections = [connection for _, connection in opened]
        yield Queue(connections)
        for connection in connections:
            connection.close()


CONTESTANT = Contestant(
    name="bare-http",
    role=Role.ENGINE,
    distribution="uvicorn",
    module="httptools",
    how="a route of Starlette on uvicorn that gives back what it gets, asked by httptools; no store",
    durability=lambda _: "keeps nothing",
    measures={
        "enqueue_one": asynchronous.enqueue_one(open_queue, by=run_on_ours),
        "enqueue_callers": asynchronous.enqueue_callers(open_queue, by=run_on_ours),
        "enqueue_many": asynchronous.enqueue_many(open_queue, by=run_on_ours),
    },
)
