"""Somebody who reads a stream of an app, without a server."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from starlette.types import ASGIApp, Message

from tests.http.asgi import REMOTE, Sender
from tests.http.given_app import GivenApp, secret_of
from windlass.api.operations import ROOT
from windlass.api.roles import Role
from windlass.testing import FakeClock


class Stream:
    """A reader of a stream, who takes a part when the test does."""

    def __init__(self) -> None:
        self.sender = Sender()
        self.status = 0
        self.headers: dict[bytes, bytes] = {}
        self.parts: asyncio.Queue[bytes] = asyncio.Queue(maxsize=1)
        self.ended = asyncio.Event()

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], dict(message["headers"])
            return
        if message["body"]:
            await self.parts.put(message["body"])
        if not message.get("more_body", False):
            self.ended.set()


def a_stream(given: GivenApp, target: str, who: str = Role.VIEW) -> AbstractAsyncContextManager[Stream]:
    return read_by(Stream(), given.api, ROOT + target, who)


@asynccontextmanager
async def read_by(stream: Stream, app: ASGIApp, target: str, who: str) -> AsyncGenerator[Stream]:
    """Ask an app for a stream, to be read by `stream`; hang up at the end."""
    path, _, query = target.partition("?")
    scope: dict[str, Any] = {
        "type": "http", "http_version": "1.1", "method": "GET", "path": path, "root_path": "",
        "query_string": query.encode(), "client": (REMOTE, 1),
        "headers": [(b"host", b"localhost"), (b"authorization", f"Bearer {secret_of(who)}".encode())],
    }  # fmt: skip
    told = asyncio.ensure_future(_asked(app, scope, stream))
    try:
        yield stream
    finally:
        stream.sender.hang_up()
        while not told.done():
            if not stream.parts.empty():
                stream.parts.get_nowait()
            await asyncio.sleep(0)
        await told


async def _asked(app: ASGIApp, scope: dict[str, Any], stream: Stream) -> None:
    await app(scope, stream.sender.receive, stream.send)


async def time_passes(clock: FakeClock, stream: Stream, by: float = 1.0) -> None:
    """Let time pass until the stream tells something, or ends."""
    while stream.parts.empty() and not stream.ended.is_set():
        clock.advance(by)
        await asyncio.sleep(0)
