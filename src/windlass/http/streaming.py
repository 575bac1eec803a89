"""Replies that go on: events for one caller, until it hangs up, there are no more, or the process stops."""

import asyncio
from collections.abc import Callable
from typing import Final, Protocol

from starlette.types import Receive, Scope, Send

from windlass.http.auth import Auth, identity_of
from windlass.http.refusal import Refusal, too_many_requests
from windlass.http.reply import RETRY_AFTER
from windlass.http.request_headers import deciding_headers
from windlass.http.shared import Shared

MOST_STREAMS: Final = 1_000
MOST_OF_ONE: Final = 900
"""Streams of one caller: others have some room always."""
STILL_HERE: Final = 15.0
"""Seconds of silence after which a comment tells that the stream lives."""

_HEADERS: Final = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    # a proxy that gathers what it passes on would hold the events back
    (b"x-accel-buffering", b"no"),
)


class Source(Protocol):
    """Where the events of one stream come from."""

    def end(self) -> None:
        """Let the stream end; from its event loop."""
        ...

    async def wait(self, silence: float) -> bytes | None:
        """Return the next event: an empty one after `silence` seconds without any, and None at the end."""
        ...


class Streaming:
    """Streams to callers, to so many at a time.

    Whoever is no longer known after a while, or may do other things than at the begin, is told nothing more.
    """

    def __init__(self, shared: Shared, auth: Auth) -> None:
        self._shared = shared
        self._auth = auth

    def check_room(self, scope: Scope) -> None:
        """Refuse one stream more than there may be, or than its caller may have."""
        shared = self._shared
        if len(shared.streams) >= MOST_STREAMS or shared.stopping:
            message = f"this process has its {MOST_STREAMS:,} streams: look again each second, or ask another one"
            raise Refusal(503, "store_unavailable", message, RETRY_AFTER)
        name = identity_of(scope).name
        if shared.streams_of[name] >= MOST_OF_ONE:
            raise too_many_requests(f"{name} has its {MOST_OF_ONE:,} streams: look again each second, or wait", 1.0)

    async def stream(self, scope: Scope, receive: Receive, send: Send, source: Source) -> None:
        """Send all events of `source`; refused where there is no room."""
        self.check_room(scope)
        shared, clock, identity = self._shared, self._shared.client.clock, identity_of(scope)
        leaving = asyncio.ensure_future(_until_gone(receive, source.end))
        shared.streams.add(source.end)
        shared.streams_of[identity.name] += 1
        try:
            await send({"type": "http.response.start", "status": 200, "headers": list(_HEADERS)})
            await send(_part(b": ok\n\n"))
            known_at = clock.monotonic()
            while (told := await source.wait(STILL_HERE)) is not None:
                if clock.monotonic() - known_at >= STILL_HERE:
                    if self._auth.identify(deciding_headers(scope["headers"])) != identity:
                        break
                    known_at = clock.monotonic()
                await send(_part(told or b": still here\n\n"))
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            shared.streams.discard(source.end)
            shared.streams_of[identity.name] -= 1
            if not shared.streams_of[identity.name]:
                del shared.streams_of[identity.name]
            leaving.cancel()
            await asyncio.wait((leaving,))


async def _until_gone(receive: Receive, end: Callable[[], None]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    end()


def _part(body: bytes) -> dict[str, object]:
    return {"type": "http.response.body", "body": body, "more_body": True}
