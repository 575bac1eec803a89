"""A whole reply wakes its reader once, and is the one that uvicorn would have sent."""

import asyncio
from collections.abc import Sequence

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from windlass.http import whole_reply
from windlass.http.listening import Listening
from windlass.http.whole_reply import ONE_PIECE, head_of
from windlass.testing.conformance.fixtures import soon

LENGTH = (b"content-length", b"2")
GET = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\n"


def start(*headers: tuple[bytes, bytes], status: int = 200) -> Message:
    return {"type": "http.response.start", "status": status, "headers": list(headers)}


def body(data: bytes, *, more: bool = False) -> Message:
    return {"type": "http.response.body", "body": data, "more_body": more}


def sends(*messages: Message) -> ASGIApp:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive
        for message in messages:
            await send(dict(message))

    return app


async def answered(app: ASGIApp, request: bytes = GET) -> bytes:
    """Return all that is sent until the connection is closed, which the request must ask for or the reply say."""
    async with Listening(app, "127.0.0.1", 0) as listening:
        reader, writer = await asyncio.open_connection("127.0.0.1", listening.port)
        writer.write(request)
        said = await soon(reader.read(-1))
        writer.close()
        await writer.wait_closed()
        return said


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Keep what is written here, and not by uvicorn."""
    made: list[bytes] = []

    def kept(status: int, headers: Sequence[tuple[bytes, bytes]], length: int) -> bytes | None:
        head = head_of(status, headers, length)
        if head is not None:
            made.append(head)
        return head

    monkeypatch.setattr(whole_reply, "head_of", kept)
    return made


@pytest.mark.parametrize("data", [b"", b"ok", b"x" * (ONE_PIECE + 1)], ids=["empty", "small", "large"])
async def test_a_connection_goes_on_after_a_whole_reply(writes: list[bytes], data: bytes) -> None:
    length = (b"Content-Type", b"text/plain"), (b"content-length", b"%d" % len(data))
    head = OK + b"content-type: text/plain\r\ncontent-length: %d\r\n\r\n" % len(data)
    async with Listening(sends(start(*length), body(data)), "127.0.0.1", 0) as listening:
        reader, writer = await asyncio.open_connection("127.0.0.1", listening.port)
        for _ in range(3):
            writer.write(GET)

            assert await soon(reader.readexactly(len(head + data))) == head + data
        writer.close()
        await writer.wait_closed()

    assert writes == [head] * 3


async def test_requests_sent_together_are_answered_in_their_order(writes: list[bytes]) -> None:
    async def echo(scope: Scope, receive: Receive, send: Send) -> None:
        del receive
        await asyncio.sleep(0)
        await sends(start(LENGTH), body(scope["path"][1:].encode()))(scope, _never, send)

    last = b"GET /cc HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
    said = await answered(echo, GET.replace(b"/ ", b"/aa ") + GET.replace(b"/ ", b"/bb ") + last)

    assert [part[-2:] for part in said.split(OK)[1:]] == [b"aa", b"bb", b"cc"]
    assert len(writes) == 2


async def _never() -> Message:
    raise AssertionError


@pytest.mark.parametrize(
    "app, request_, said",
    [
        (sends(start(LENGTH), body(b"ok")), GET.replace(b"GET", b"HEAD"), OK + b"content-length: 2\r\n"),
        (sends(start(LENGTH), body(b"o", more=True), body(b"k")), GET, OK + b"content-length: 2\r\n"),
        (sends(start(), body(b"o", more=True), body(b"k")), GET, OK + b"transfer-encoding: chunked\r\n"),
        (sends(start(), body(b"ok")), GET, OK + b"transfer-encoding: chunked\r\n"),
        (sends(start((b"set-cookie", b"s=1"), LENGTH), body(b"ok")), GET, OK + b"set-cookie: s=1\r\n"),
    ],
    ids=["head", "in parts", "stream", "no length", "cookie"],
)
async def test_what_is_unusual_is_left_to_uvicorn(
    writes: list[bytes], app: ASGIApp, request_: bytes, said: bytes
) -> None:
    async with Listening(app, "127.0.0.1", 0) as listening:
        reader, writer = await asyncio.open_connection("127.0.0.1", listening.port)
        writer.write(request_)

        assert (await soon(reader.readuntil(b"\r\n\r\n"))).startswith(said)
        writer.close()
        await writer.wait_closed()

    assert not writes


async def test_the_last_reply_of_a_connection_says_so(writes: list[bytes]) -> None:
    said = await answered(sends(start(LENGTH), body(b"ok")), GET.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"))

    assert said == OK + b"content-length: 2\r\nconnection: close\r\n\r\nok"
    assert not writes


async def test_an_app_that_fails_after_the_head_is_an_error_and_no_reply() -> None:
    async def fails(scope: Scope, receive: Receive, send: Send) -> None:
        await sends(start(LENGTH))(scope, receive, send)
        raise RuntimeError

    said = await answered(fails)

    assert said.startswith(b"HTTP/1.1 500 ")


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [(b"content-length", b"3")],
        [LENGTH, LENGTH],
        [LENGTH, (b"Content-Length", b"2")],
        [LENGTH, (b"connection", b"close")],
        [LENGTH, (b"Transfer-Encoding", b"chunked")],
        [LENGTH, (b"Set-Cookie", b"secret")],
        [LENGTH, (b"x", b"a\r\ny: b")],
        [LENGTH, (b"x\r\ny", b"b")],
        [LENGTH, (b"x:", b"b")],
        [LENGTH, (b"", b"b")],
        [LENGTH, (b"x", b"\0")],
    ],
)
def test_a_head_that_is_unusual_or_wrong_is_not_made(headers: list[tuple[bytes, bytes]]) -> None:
    assert head_of(200, headers, 2) is None


def test_a_head_has_its_lines_in_lower_case() -> None:
    head = head_of(404, [(b"X-A", b"B"), LENGTH], 2)

    assert head == b"HTTP/1.1 404 Not Found\r\nx-a: B\r\ncontent-length: 2\r\n\r\n"
    assert head_of(299, [LENGTH], 2) == b"HTTP/1.1 299 \r\ncontent-length: 2\r\n\r\n"
