"""What is asked on one connection: an answer is that of its own question, and what cannot be read is a loss."""

import asyncio
import ssl
from typing import Final

import hiredis
import pytest

from tests.stores.redis.test_line import connected
from windlass.stores.redis.wire import Wire

PATIENCE: Final = 10.0


async def test_a_reply_that_nobody_asked_for_is_not_taken_for_an_answer() -> None:
    async with connected() as (server, line):
        wire = Wire(line)
        server.say(b"+of somebody else\r\n")
        while not line.has_unread:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0)
        assert wire.broken

        with pytest.raises(ConnectionError, match="nobody had asked for"):
            await wire.ask("PING")

        assert wire.closed


async def test_what_cannot_be_read_is_a_loss_and_no_refusal() -> None:
    async with connected() as (server, line):
        wire = Wire(line)
        asking = asyncio.ensure_future(wire.ask("PING"))
        await asyncio.sleep(0)
        server.say(b"HTTP/1.1 502 Bad Gateway\r\n")

        with pytest.raises(ConnectionError, match="could not be read") as told:
            await asking

        assert isinstance(told.value.__cause__, hiredis.ProtocolError)
        assert wire.broken


async def test_what_cannot_be_decrypted_is_a_loss_too() -> None:
    async with connected() as (_, line):
        wire = Wire(line)
        asking = asyncio.ensure_future(wire.ask("PING"))
        await asyncio.sleep(0)
        line.connection_lost(ssl.SSLError(1, "decryption failed or bad record mac"))

        with pytest.raises(ConnectionError, match="bad record mac") as told:
            await asking

        assert not isinstance(told.value, ssl.SSLError)
        assert wire.broken
