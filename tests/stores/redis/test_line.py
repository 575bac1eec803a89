"""One connection: replies in whatever pieces they come, and every way in which none comes."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

import hiredis
import pytest

from windlass.stores.redis.line import Line, Refused, open_line
from windlass.stores.redis.options import Options, Place

PATIENCE: Final = 10.0
LARGE: Final = b"x" * 3_000_000


class Server:
    """Lets one client in, and then says what it is told to."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writer = writer
        await reader.readuntil(b"windlass\r\n")
        writer.write(b"+OK\r\n")

    def say(self, text: bytes) -> None:
        self.writer.write(text)

    def hang_up(self) -> None:
        self.writer.close()


@asynccontextmanager
async def connected() -> AsyncGenerator[tuple[Server, Line]]:
    """Give a server, and a connection to it."""
    server = Server()
    async with asyncio.timeout(PATIENCE), await asyncio.start_server(server.serve, "127.0.0.1", 0) as listening:
        place = Place(*listening.sockets[0].getsockname()[:2])
        line = await open_line(Options("single", (place,)), place)
        yield server, line
        line.cut()
        server.hang_up()
        await server.writer.wait_closed()


async def test_a_reply_may_come_in_many_pieces() -> None:
    async with connected() as (server, line):
        coming = asyncio.ensure_future(line.next())
        for piece in (b"$", b"5\r", b"\nhel", b"lo", b"\r", b"\n"):
            await asyncio.sleep(0.002)
            assert not coming.done()
            server.say(piece)

        assert await coming == b"hello"


async def test_a_reply_may_be_larger_than_what_the_system_hands_over_at_once() -> None:
    async with connected() as (server, line):
        server.say(b"$%d\r\n%b\r\n" % (len(LARGE), LARGE))

        assert await line.next() == LARGE


async def test_replies_that_come_together_are_taken_one_by_one() -> None:
    async with connected() as (server, line):
        server.say(b":1\r\n-ERR no\r\n*2\r\n$-1\r\n+yes\r\n")

        one, refusal, rest = [await line.next() for _ in range(3)]

    assert (one, rest) == (1, [None, b"yes"])
    assert isinstance(refusal, Refused)
    assert (refusal.code, str(refusal)) == ("ERR", "no")


async def test_who_stops_waiting_has_taken_nothing() -> None:
    async with connected() as (server, line):
        waiting = asyncio.ensure_future(line.next())
        await asyncio.sleep(0)
        server.say(b"+first\r\n")
        while not vars(line)["_come"]:  # noqa: ASYNC110 - it has come, and nobody has taken it yet
            await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

        assert await line.next() == b"first"


async def test_each_wait_ends_at_its_own_deadline() -> None:
    async with connected() as (server, line):
        time = asyncio.get_running_loop().time
        server.say(b"+first\r\n")
        assert await line.next(time() + PATIENCE) == b"first"

        # sooner than the timer of the one before
        began = time()
        with pytest.raises(TimeoutError):
            await line.next(began + 0.05)
        assert 0.05 <= time() - began < PATIENCE / 2

        # later than it
        asyncio.get_running_loop().call_later(0.05, server.say, b"+second\r\n")
        assert await line.next(time() + PATIENCE) == b"second"


async def test_a_server_that_hangs_up_ends_every_wait() -> None:
    async with connected() as (server, line):
        server.say(b"+last\r\n")
        server.hang_up()

        assert await line.next() == b"last"
        with pytest.raises(ConnectionError, match="closed the connection"):
            await line.next()
        assert not line.is_open
        with pytest.raises(ConnectionError):
            line.send("PING")


async def test_what_is_no_reply_ends_the_connection() -> None:
    async with connected() as (server, line):
        server.say(b"+good\r\nHTTP/1.1 400 Bad Request\r\n")

        assert await line.next() == b"good"
        with pytest.raises(hiredis.ProtocolError):
            await line.next()
        assert not line.is_open
