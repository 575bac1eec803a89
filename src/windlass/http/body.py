"""The body of a request: JSON, of a bounded size, and there in time."""

import asyncio
import re
from collections.abc import Mapping
from typing import Final

from starlette.types import Message, Receive

from windlass.core.clock import Clock
from windlass.http.refusal import Refusal
from windlass.http.request_headers import is_json

LARGEST_BODY: Final = 16 * 1024 * 1024
ARRIVES_WITHIN: Final = 30.0
AMBIGUOUS: Final = 400
TIMED_OUT: Final = 408
WORTH_READING: Final = 64 * 1024

_LENGTH: Final = re.compile(r"[0-9]{1,19}", re.ASCII)


class Gone(Exception):
    """Whoever asked has hung up."""


def check_announced(headers: Mapping[str, str], largest: int) -> None:
    """Refuse a body that is said to be too large, packed, or anything but JSON."""
    length = headers.get("content-length", "0").strip()
    if not _LENGTH.fullmatch(length):
        message = "Content-Length is a number of bytes: send it as one"
        raise Refusal(AMBIGUOUS, "bad_request", message)
    if int(length) > largest:
        raise _too_large(largest)
    if headers.get("content-encoding", "identity").strip().lower() != "identity":
        message = "a body is taken as it is: send it without Content-Encoding"
        raise Refusal(415, "unsupported_media_type", message)
    if not is_json(headers):
        message = "a body is JSON: send it with Content-Type: application/json"
        raise Refusal(415, "unsupported_media_type", message)


async def whole_body(receive: Receive, largest: int, within: float, clock: Clock) -> bytes:
    """Return a body when all of it is there; one that grows too large or comes too slowly is refused at once."""
    reader = asyncio.current_task()
    assert reader is not None  # noqa: S101 - a coroutine runs in a task
    timed_out = False

    def stop() -> None:
        nonlocal timed_out
        timed_out = True
        reader.cancel()

    timer = clock.call_later(within, stop)
    try:
        return await _read(receive, largest)
    except asyncio.CancelledError:
        # cancelled by somebody else as well: then that counts
        if not timed_out or reader.uncancel() > 0:
            raise
        message = "the body did not come in time: send it faster, or in smaller requests"
        raise Refusal(TIMED_OUT, "request_timeout", message, facts={"retryable": True}) from None
    finally:
        timer.cancel()


async def _read(receive: Receive, largest: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Gone
        part: bytes = message.get("body", b"")
        size += len(part)
        if size > largest:
            raise _too_large(largest)
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


def given_again(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that gives a body which was read already, and then what comes after it."""
    given = False

    async def receive_again() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again


def is_long(headers: Mapping[str, str]) -> bool:
    """Whether more of a body may follow than is worth reading for the sake of the request after it."""
    length = headers.get("content-length", "0").strip()
    return "transfer-encoding" in headers or not _LENGTH.fullmatch(length) or int(length) > WORTH_READING


def _too_large(largest: int) -> Refusal:
    message = f"the body is larger than {largest:,} bytes: send fewer jobs at once, or raise the limit of the process"
    return Refusal(413, "body_too_large", message)
