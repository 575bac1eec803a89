"""The guard behind the server that it is run by: what is on the wire, and what becomes of the connection."""

import asyncio
from collections.abc import AsyncIterator
from typing import NamedTuple

import pytest
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from tests.http.asgi import Echo
from tests.http.given_tokens import SECRET, TokenList, a_token
from windlass.http.auth import TokenAuth
from windlass.http.guard import Guard, GuardSettings
from windlass.testing import FakeClock

PATIENCE = 30.0
TOKEN = f"Authorization: Bearer {SECRET}\r\n".encode()
JSON = b"Content-Type: application/json\r\n"


class Served(NamedTuple):
    port: int
    echo: Echo
    clock: FakeClock


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    echo, clock = Echo(), FakeClock()
    settings = GuardSettings(auth=TokenAuth(TokenList(a_token())), largest_body=1_000)
    config = uvicorn.Config(Guard(echo.app, settings, clock=clock), log_config=None, ws="none", lifespan="off")
    config.load()
    state = ServerState()
    server = await asyncio.get_running_loop().create_server(
        lambda: HttpToolsProtocol(config=config, server_state=state, app_state={}), "127.0.0.1", 0
    )
    async with server:
        yield Served(server.sockets[0].getsockname()[1], echo, clock)
        for connection in list(state.connections):
            connection.shutdown()


class Connection:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, head: bytes, body: bytes = b"") -> None:
        self.writer.write(head + b"\r\n" + body)

    async def status(self) -> int:
        """The status of the next reply, which is read to its end."""
        async with asyncio.timeout(PATIENCE):
            head = await self.reader.readuntil(b"\r\n\r\n")
            length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            await self.reader.readexactly(int(length.partition(b":")[2]))
        return int(head.split(b" ")[1])

    async def is_closed(self) -> bool:
        async with asyncio.timeout(PATIENCE):
            return await self.reader.read(1) == b""


@pytest.fixture
async def connection(served: Served) -> AsyncIterator[Connection]:
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    yield Connection(reader, writer)
    writer.close()


POST = b"POST / HTTP/1.1\r\nHost: localhost\r\n"


async def test_requests_follow_each_other_on_one_connection_also_refused_ones(connection: Connection) -> None:
    for head, status in [
        (POST + JSON + TOKEN, 200),
        (POST + JSON, 401),
        (POST + TOKEN, 415),
        (POST + JSON + TOKEN, 200),
    ]:
        connection.send(head + b"Content-Length: 2\r\n", b"{}")
        assert await connection.status() == status


async def test_a_stream_without_end_is_cut_off(connection: Connection, served: Served) -> None:
    connection.send(POST + JSON + TOKEN + b"Transfer-Encoding: chunked\r\n")
    connection.writer.write(b"1f4\r\n" + b"x" * 500 + b"\r\n")
    connection.writer.write(b"1f5\r\n" + b"x" * 501 + b"\r\n")

    assert await connection.status() == 413
    assert await connection.is_closed()
    assert served.echo.reached == []


async def test_a_stream_of_somebody_unknown_is_not_read(connection: Connection) -> None:
    connection.send(POST + JSON + b"Transfer-Encoding: chunked\r\n")

    assert await connection.status() == 401
    assert await connection.is_closed()


async def test_a_body_that_is_announced_too_large_is_not_waited_for(connection: Connection) -> None:
    connection.send(POST + JSON + TOKEN + b"Content-Length: 100000\r\n")

    assert await connection.status() == 413
    assert await connection.is_closed()


async def test_a_body_that_comes_too_slowly_is_cut_off(connection: Connection, served: Served) -> None:
    connection.send(POST + JSON + TOKEN + b"Content-Length: 2\r\n", b"{")
    await served.clock.timers(1)

    served.clock.advance(30)

    assert await connection.status() == 408
    assert await connection.is_closed()


async def test_whoever_hangs_up_leaves_nothing_behind(connection: Connection, served: Served) -> None:
    connection.send(POST + JSON + TOKEN + b"Content-Length: 2\r\n", b"{")
    await served.clock.timers(1)

    connection.writer.close()
    reader, writer = await asyncio.open_connection("127.0.0.1", served.port)
    after = Connection(reader, writer)
    after.send(POST + JSON + TOKEN + b"Content-Length: 2\r\n", b"{}")

    assert await after.status() == 200
    assert served.echo.reached == ["POST"]
    writer.close()


@pytest.mark.parametrize(
    "head,status",
    [
        (b"POST / HTTP/1.1\r\n", 421),
        (b"POST / HTTP/1.1\r\nHost: evil.test\r\n", 421),
        (b"POST / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n", 400),
        (b"POST http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\n", 421),
        (b"GET / HTTP/1.0\r\nHost: localhost\r\n", 401),
    ],
)
async def test_a_strange_head_is_refused(connection: Connection, head: bytes, status: int) -> None:
    connection.send(head)

    assert await connection.status() == status
