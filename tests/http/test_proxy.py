"""What the proxy passes on and what it keeps, as a client sees it that knows nothing of ours."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from starlette.types import Receive, Scope, Send

from tests.http.proxy import Proxy
from windlass.http.endpoint import whole
from windlass.http.listening import Listening
from windlass.testing.conformance.fixtures import soon


class App:
    """Gives back what it gets: whole, in chunks, or as news, of which there is more when it is told so."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.more = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        body = await whole(receive)
        self.bodies.append(body)
        length = [(b"content-length", str(len(body)).encode())] if path == "/whole" else []
        kind = [(b"content-type", b"text/event-stream")] if path == "/api/v1/news" else []
        await send({"type": "http.response.start", "status": 200, "headers": [*length, *kind]})
        await send({"type": "http.response.body", "body": body, "more_body": path != "/whole"})
        if path == "/api/v1/news":
            await self.more.wait()
        if path != "/whole":
            await send({"type": "http.response.body", "body": b"end"})


class Caller:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def ask(self, path: str, body: bytes, end: bytes) -> bytes:
        self.send(path, body)
        return await soon(self.reader.readuntil(end))

    def send(self, path: str, body: bytes) -> None:
        head = f"POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {len(body)}\r\n\r\n"
        self.writer.write(head.encode() + body)


@pytest.fixture
def app() -> App:
    return App()


@pytest.fixture
async def proxy(app: App) -> AsyncIterator[Proxy]:
    async with Listening(app, "127.0.0.1", 0) as listening, Proxy(f"http://127.0.0.1:{listening.port}") as proxy:
        yield proxy
        app.more.set()


@pytest.fixture
async def caller(proxy: Proxy) -> AsyncIterator[Caller]:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(proxy.url.rpartition(":")[2]))
    yield Caller(reader, writer)
    writer.close()


async def test_requests_and_answers_pass_as_they_are(proxy: Proxy, caller: Caller) -> None:
    large = b"a" * 200_000 + b"whole"

    assert (await caller.ask("/whole", b"a whole", b"whole")).startswith(b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n")
    assert await caller.ask("/chunks?a=b", b"begin", b"0\r\n\r\n") == (
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nbegin\r\n3\r\nend\r\n0\r\n\r\n"
    )
    caller.send("/whole", large)
    head = await soon(caller.reader.readuntil(b"\r\n\r\n"))
    assert (head, await soon(caller.reader.readexactly(len(large)))) == (
        b"HTTP/1.1 200 OK\r\ncontent-length: 200005\r\n\r\n",
        large,
    )
    assert (proxy.requests, proxy.answers) == (3, 3)


async def test_a_dropped_reply_is_one_to_what_was_done_and_ends_in_a_reset(
    app: App, proxy: Proxy, caller: Caller
) -> None:
    lost = proxy.drop_reply(lambda request: request.path == "/whole" and request.body == b"second")

    await caller.ask("/whole", b"first", b"first")
    caller.send("/whole?with=query", b"second")

    with pytest.raises(ConnectionResetError):
        await soon(caller.reader.read())
    assert lost.is_set()
    assert app.bodies == [b"first", b"second"]


async def test_a_dropped_request_is_not_done(app: App, proxy: Proxy, caller: Caller) -> None:
    lost = proxy.drop_request(1)

    caller.send("/whole", b"first")

    with pytest.raises(ConnectionResetError):
        await soon(caller.reader.read())
    assert lost.is_set()
    assert app.bodies == []


async def test_news_passes_as_it_comes_and_is_no_answer(app: App, proxy: Proxy, caller: Caller) -> None:
    lost = proxy.drop_reply(1)

    assert (await caller.ask("/api/v1/news?topic=ends", b"ring", b"ring\r\n")).startswith(b"HTTP/1.1 200 OK")
    app.more.set()
    assert await soon(caller.reader.readuntil(b"0\r\n\r\n")) == b"3\r\nend\r\n0\r\n\r\n"

    assert not lost.is_set()
    assert (proxy.requests, proxy.answers) == (0, 0)
