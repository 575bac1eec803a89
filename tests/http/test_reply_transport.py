"""A reply wakes its reader once, and nothing that was written is kept for good."""

import asyncio

import pytest
from starlette.types import Receive, Scope, Send

from windlass.http.listening import Listening
from windlass.http.reply_transport import ReplyTransport
from windlass.testing.conformance.fixtures import soon

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"
STREAM = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


class Written(asyncio.Transport):
    """Keeps each write apart."""

    def __init__(self) -> None:
        super().__init__({"peername": ("here", 1)})
        self.writes: list[bytes] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.writes.append(bytes(data))

    def close(self) -> None:
        self.writes.append(b"closed")


def test_head_and_body_go_out_at_once_reply_by_reply() -> None:
    written = Written()
    transport = ReplyTransport(written)

    for part in (HEAD, b"ok", HEAD, b"no"):
        transport.write(part)

    assert written.writes == [HEAD + b"ok", HEAD + b"no"]


@pytest.mark.parametrize("part", [STREAM, b"HTTP/1.1 100 Continue\r\n\r\n", HEAD + b"ok", b"ok"])
def test_what_is_no_head_of_a_known_length_goes_out_as_it_comes(part: bytes) -> None:
    written = Written()

    ReplyTransport(written).write(part)

    assert written.writes == [part]


def test_a_head_whose_body_never_came_goes_out_before_the_close() -> None:
    written = Written()
    transport = ReplyTransport(written)

    transport.write(HEAD)
    transport.close()

    assert written.writes == [HEAD, b"closed"]


def test_everything_else_is_that_of_the_transport() -> None:
    assert ReplyTransport(Written()).get_extra_info("peername") == ("here", 1)


async def test_a_reply_without_a_body_by_its_method_is_sent() -> None:
    async def answers(scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})

    async with Listening(answers, "127.0.0.1", 0) as listening:
        reader, writer = await asyncio.open_connection("127.0.0.1", listening.port)
        for method, end in ((b"GET", b"ok"), (b"HEAD", b"\r\n\r\n"), (b"GET", b"ok")):
            writer.write(method + b" / HTTP/1.1\r\nhost: localhost\r\n\r\n")

            assert (await soon(reader.readuntil(end))).startswith(b"HTTP/1.1 200 OK")
        writer.close()
        await writer.wait_closed()
