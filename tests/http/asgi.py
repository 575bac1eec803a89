"""Requests to an ASGI app without a server, and an app that tells what reaches it."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Message, Scope

from windlass.http.auth import identity_of
from windlass.http.refusal import forbidden

METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE", "TRACE", "QUERY", "MKCOL")
REMOTE = "203.0.113.5"


@dataclass
class Reply:
    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes

    def header(self, name: str) -> str | None:
        found = [value.decode() for key, value in self.headers if key.decode() == name.lower()]
        assert len(found) <= 1, found
        return found[0] if found else None

    @property
    def document(self) -> Any:  # noqa: ANN401 - the JSON edge
        return msgspec.json.decode(self.body)

    @property
    def error(self) -> str:
        """The problem's name; a problem is complete, and said to be JSON."""
        assert self.header("content-type") == "application/json"
        assert set(self.document) >= {"error", "message"}
        assert len(self.document["message"]) > 20
        return str(self.document["error"])


@dataclass
class Sender:
    """What a client sends: the parts of a body, and then nothing until `hang_up`."""

    parts: Sequence[bytes] = (b"",)
    whole: bool = True
    """Whether the last part is said to be the last."""
    sent: int = 0
    gone: asyncio.Event = field(default_factory=asyncio.Event)

    def hang_up(self) -> None:
        self.gone.set()

    async def receive(self) -> Message:
        if self.sent < len(self.parts):
            self.sent += 1
            last = self.sent == len(self.parts)
            return {"type": "http.request", "body": self.parts[self.sent - 1], "more_body": not (last and self.whole)}
        await self.gone.wait()
        return {"type": "http.disconnect"}


async def ask(
    app: ASGIApp,
    method: str = "GET",
    path: str = "/",
    *,
    headers: Sequence[tuple[str, str]] = (),
    host: str | None = "localhost:8000",
    json: object = None,
    sender: Sender | None = None,
    address: str | None = REMOTE,
    root_path: str = "",
) -> Reply:
    """Return what the app replies; a body of `json` comes with the headers that go with it."""
    sent = list(headers)
    if host is not None:
        sent.insert(0, ("host", host))
    if json is not None:
        body = msgspec.json.encode(json)
        sent += [("content-type", "application/json"), ("content-length", str(len(body)))]
        sender = Sender([body])
    scope: Scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "root_path": root_path,
        "query_string": b"",
        "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in sent],
        "client": None if address is None else (address, 4000),
        "server": ("127.0.0.1", 8000),
    }
    scope["path"], _, query = path.partition("?")
    scope["raw_path"], scope["query_string"] = scope["path"].encode(), query.encode()
    reply: list[Reply] = []

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            assert not reply, "two replies to one request"
            reply.append(Reply(message["status"], list(message["headers"]), b""))
        else:
            reply[0].body += message.get("body", b"")

    await app(scope, (sender or Sender()).receive, send)
    return reply[0] if reply else Reply(0, [], b"")


class Echo:
    """An app that notes what reaches it, and tells who asked and what was sent."""

    def __init__(self) -> None:
        self.reached: list[str] = []
        routes = [
            Route("/", self._tell, methods=METHODS),
            Route("/api/v1/jobs", self._tell, methods=METHODS),
            Route("/health/live", self._open, methods=METHODS),
            Route("/login", self._open, methods=METHODS),
            Route("/page", self._page),
            Route("/refused", self._refuse),
        ]
        self.app = Router(routes)

    async def _tell(self, request: Request) -> Response:
        self.reached.append(request.method)
        identity = identity_of(request.scope)
        body = await request.body()
        return JSONResponse({"name": identity.name, "roles": sorted(identity.roles), "size": len(body)})

    async def _open(self, request: Request) -> Response:
        self.reached.append(request.method)
        return JSONResponse({"live": True})

    async def _page(self, request: Request) -> Response:
        del request
        own = {"Content-Security-Policy": "default-src 'self'", "Cache-Control": "max-age=60"}
        return Response("<p>", headers=own, media_type="text/html")

    async def _refuse(self, request: Request) -> Response:
        del request
        raise forbidden("not by this one: use another token")
