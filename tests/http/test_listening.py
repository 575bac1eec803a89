"""Nobody holds on to a connection by being slow, and a stop leaves nothing open."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import pytest
from starlette.types import Receive, Scope, Send

from tests.http.given_app import until
from windlass.http import connection
from windlass.http.auth import LOCAL, set_identity
from windlass.http.listening import Listening
from windlass.testing.conformance.fixtures import soon

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
GET = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"


async def answers(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer everything alike."""
    del receive
    assert scope["type"] == "http"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


@asynccontextmanager
async def connected(listening: Listening) -> AsyncGenerator[Streams]:
    reader, writer = await asyncio.open_connection("127.0.0.1", listening.port)
    try:
        yield reader, writer
    finally:
        writer.close()
        with suppress(ConnectionResetError):
            await writer.wait_closed()


async def test_one_connection_carries_many_requests() -> None:
    async with Listening(answers, "127.0.0.1", 0) as listening, connected(listening) as (reader, writer):
        for _ in range(3):
            writer.write(GET)
            assert (await soon(reader.readuntil(b"ok"))).startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize("begun", [b"", b"GET / HTTP/1.1\r\nhost: lo", GET + b"GET /"], ids=["nothing", "half", "next"])
async def test_whoever_is_slow_to_say_what_they_want_is_cut_off(monkeypatch: pytest.MonkeyPatch, begun: bytes) -> None:
    monkeypatch.setattr(connection, "HEADER_TIME", 0.05)
    async with Listening(answers, "127.0.0.1", 0) as listening, connected(listening) as (reader, writer):
        writer.write(begun)

        assert await soon(reader.read(-1)) in (b"", b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")


async def test_a_request_that_was_said_in_time_may_take_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HEADER_TIME", 0.05)
    go = asyncio.Event()

    async def late(scope: Scope, receive: Receive, send: Send) -> None:
        await go.wait()
        await answers(scope, receive, send)

    async with Listening(late, "127.0.0.1", 0) as listening, connected(listening) as (reader, writer):
        writer.write(GET)
        asyncio.get_running_loop().call_later(0.15, go.set)

        assert (await soon(reader.readuntil(b"ok"))).startswith(b"HTTP/1.1 200 OK")


@pytest.mark.parametrize("header", [b"GET /" + b"a" * 70_000, b"GET / HTTP/1.1\r\na: " + b"b" * 70_000])
async def test_headers_have_an_end(header: bytes) -> None:
    async with Listening(answers, "127.0.0.1", 0) as listening, connected(listening) as (reader, writer):
        writer.write(header)

        assert b"the headers are over 65,536 bytes" in await soon(reader.read(-1))


async def test_a_body_does_not_count_as_headers() -> None:
    async with Listening(answers, "127.0.0.1", 0) as listening, connected(listening) as (reader, writer):
        writer.write(b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000\r\n\r\n" + b"a" * 100_000)
        assert (await soon(reader.readuntil(b"ok"))).startswith(b"HTTP/1.1 200 OK")
        writer.write(GET)

        assert (await soon(reader.readuntil(b"ok"))).startswith(b"HTTP/1.1 200 OK")


async def test_whoever_comes_when_there_is_no_room_is_told_so_and_makes_some() -> None:
    go = asyncio.Event()

    async def waits(scope: Scope, receive: Receive, send: Send) -> None:
        set_identity(scope, LOCAL)
        await go.wait()
        await answers(scope, receive, send)

    async with (
        Listening(waits, "127.0.0.1", 0, connections=2) as listening,
        connected(listening) as (first, writer),
        connected(listening) as (second, other),
    ):
        writer.write(GET)
        other.write(GET)
        await soon(until(lambda: listening.under_way == 2))
        async with connected(listening) as (third, late):
            late.write(GET)
            told = await soon(third.read(-1))

        assert told.startswith(b"HTTP/1.1 503")
        assert b"retry-after: 1\r\n" in told
        go.set()
        for reader in (first, second):
            assert (await soon(reader.readuntil(b"ok"))).startswith(b"HTTP/1.1 200")
        async with connected(listening) as (third, late):
            late.write(GET)
            assert (await soon(third.readuntil(b"ok"))).startswith(b"HTTP/1.1 200")


async def test_a_stop_lets_a_request_under_way_be_answered_and_closes_the_rest() -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    async def waits(scope: Scope, receive: Receive, send: Send) -> None:
        begun.set()
        await go.wait()
        await answers(scope, receive, send)

    listening = Listening(waits, "127.0.0.1", 0, stopping=go.set)
    await listening.start()
    port = listening.port
    async with connected(listening) as (reader, writer), connected(listening) as (idle, _):
        writer.write(GET)
        await soon(begun.wait())

        await soon(listening.stop(10))

        assert (await soon(reader.read(-1))).endswith(b"ok")
        assert await soon(idle.read(-1)) == b""
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)


@pytest.mark.parametrize("said", [b"", b"a part"])
async def test_what_is_not_answered_within_the_grace_is_cut_off_and_is_no_error(
    caplog: pytest.LogCaptureFixture, said: bytes
) -> None:
    begun, cancelled = asyncio.Event(), asyncio.Event()

    async def never(scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive
        if said:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": said, "more_body": True})
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    listening = Listening(never, "127.0.0.1", 0)
    await listening.start()
    async with connected(listening) as (reader, writer):
        writer.write(GET)
        await soon(begun.wait())
        stopping = asyncio.create_task(listening.stop(0.05))

        with suppress(ConnectionResetError):
            assert said in await soon(reader.read(-1))
        await soon(stopping)
    assert cancelled.is_set()
    assert caplog.text == ""


async def test_an_app_that_raises_what_looks_like_a_stop_has_failed(caplog: pytest.LogCaptureFixture) -> None:
    async def fails(scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive, send
        raise asyncio.CancelledError

    async with Listening(fails, "127.0.0.1", 0) as listening, connected(listening) as (reader, writer):
        writer.write(GET)

        assert (await soon(reader.read(-1))).startswith(b"HTTP/1.1 500")
    assert "Exception in ASGI application" in caplog.text


async def test_an_address_that_is_taken_is_a_clear_error() -> None:
    async with Listening(answers, "127.0.0.1", 0) as listening:
        with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1:{listening.port}: .*take another port"):
            await Listening(answers, "127.0.0.1", listening.port).start()
