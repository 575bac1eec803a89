"""A whole reply goes out by one write: each write wakes the caller, who can do nothing with a head.

The head is put together here, where the same few lines stand in nearly every reply; uvicorn would check each anew.
Whatever is not as usual is left to uvicorn: streams, the last reply of a connection, HEAD, a caller who reads slowly.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from http import HTTPStatus
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

ONE_PIECE: Final = 64 * 1024
"""Bytes of a body up to which it is worth copying it behind its head."""

_NAME: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE: Final = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")
_LENGTH: Final = b"content-length"
_NOT_HERE: Final = frozenset({b"connection", b"transfer-encoding", b"set-cookie"})
"""What says how the connection goes on, and what is a secret that must not be remembered."""


class WholeReplies:
    """An ASGI app, run by uvicorn, whose whole replies are each written at once."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        cycle = getattr(send, "__self__", None)
        if isinstance(cycle, RequestResponseCycle) and scope["method"] != "HEAD":
            send = WholeReply(cycle, send)
        await self._app(scope, receive, send)


class WholeReply:
    """The `send` of one request: keeps the head of its reply until the body comes."""

    __slots__ = ("_cycle", "_head", "_send")

    def __init__(self, cycle: RequestResponseCycle, send: Send) -> None:
        self._cycle = cycle
        self._send = send
        self._head: Message | None = None

    async def __call__(self, message: Message) -> None:
        """Send a message."""
        if message["type"] == "http.response.start" and self._head is None:
            self._head = message
            return
        head, self._head = self._head, None
        if head is not None:
            if self._write(head, message):
                return
            await self._send(head)
        await self._send(message)

    def _write(self, head: Message, message: Message) -> bool:
        """Write a whole reply, and leave everything as uvicorn does; False when it is not as usual."""
        cycle = self._cycle
        if message["type"] != "http.response.body" or message.get("more_body", False):
            return False
        if cycle.disconnected or cycle.response_started or not cycle.keep_alive or cycle.flow.write_paused:
            return False
        if cycle.access_log or cycle.default_headers:
            return False
        body: bytes = message.get("body", b"")
        written = head_of(head["status"], head["headers"], len(body))
        if written is None:
            return False
        cycle.response_started = True
        cycle.waiting_for_100_continue = False
        if len(body) <= ONE_PIECE:
            cycle.transport.write(written + body)
        else:
            cycle.transport.write(written)
            cycle.transport.write(body)
        cycle.response_complete = True
        cycle.message_event.set()
        cycle.on_response()
        return True


def head_of(status: int, headers: Iterable[tuple[bytes, bytes]], length: int) -> bytes | None:
    """Return the head of a reply as it is sent; None for one that does not say this `length`, or more than is usual."""
    said = b"%d" % length
    lines: list[bytes] = [_status_line(status)]
    measured = False
    for name, value in headers:
        if name != _LENGTH:
            line = _line(name, value)
            if line is None:
                return None
            lines.append(line)
        elif measured or value != said:
            return None
        else:
            measured = True
    if not measured:
        return None
    lines.append(b"%b: %b\r\n\r\n" % (_LENGTH, said))
    return b"".join(lines)


@lru_cache(maxsize=256)
def _line(name: bytes, value: bytes) -> bytes | None:
    lower = name.lower()
    if lower in _NOT_HERE or lower == _LENGTH or not _NAME.fullmatch(name) or not _VALUE.fullmatch(value):
        return None
    return b"%b: %b\r\n" % (lower, value)


@lru_cache(maxsize=64)
def _status_line(status: int) -> bytes:
    phrases = {each.value: each.phrase for each in HTTPStatus}
    return f"HTTP/1.1 {status} {phrases.get(status, '')}\r\n".encode()
