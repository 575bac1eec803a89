"""The reply to a call, as it is sent and as it is kept."""

import asyncio
from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec
from starlette.types import Send

from windlass.api.problems import Problem, problem_of, status_of
from windlass.core.errors import WindlassError
from windlass.http.refusal import Refusal

JSON: Final = "application/json"
_NO_HEADERS: Final[Mapping[str, str]] = {}
UNAVAILABLE: Final = 503
ONE_PIECE: Final = 64 * 1024
"""Bytes of a body that are sent at once."""
RETRY_AFTER: Final[Mapping[str, str]] = {"Retry-After": "1"}

encode: Final = msgspec.json.Encoder().encode


class Reply(NamedTuple):
    """A status and a body, of JSON unless it says otherwise."""

    status: int
    body: bytes
    headers: Mapping[str, str] = _NO_HEADERS
    content_type: str = JSON

    async def send(self, send: Send) -> None:
        """Send it, whole."""
        headers = [(b"content-type", self.content_type.encode()), (b"content-length", str(len(self.body)).encode())]
        headers += [(name.lower().encode(), value.encode("latin-1")) for name, value in self.headers.items()]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        body = self.body
        if len(body) > ONE_PIECE:
            # a server that is told of a part waits until its reader has taken those before it
            for begin in range(0, len(body) - ONE_PIECE, ONE_PIECE):
                part = body[begin : begin + ONE_PIECE]
                await send({"type": "http.response.body", "body": part, "more_body": True})
                # and others are answered in between, however fast this one reads
                await asyncio.sleep(0)
            body = body[(len(body) - 1) // ONE_PIECE * ONE_PIECE :]
        await send({"type": "http.response.body", "body": body})


def problem_from(error: WindlassError | Refusal) -> Problem:
    """Return why something was not done, as it is told."""
    return error.problem if isinstance(error, Refusal) else problem_of(error)


def refused(error: WindlassError | Refusal) -> Reply:
    """Return the reply that tells why a call was not done."""
    if isinstance(error, Refusal):
        return Reply(error.status, encode(error.problem), error.headers)
    status = status_of(error)
    return Reply(status, encode(problem_of(error)), RETRY_AFTER if status == UNAVAILABLE else _NO_HEADERS)


def event(told: msgspec.Struct) -> bytes:
    """Return an event that tells a record."""
    return b"data: " + encode(told) + b"\n\n"
