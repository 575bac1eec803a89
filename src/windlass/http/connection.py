"""One connection of a caller: uvicorn's, with an end to patience."""

import asyncio
from collections.abc import Callable, Collection
from typing import Any, Final, cast

from starlette.types import Receive, Scope, Send
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from windlass.http.auth import is_identified
from windlass.http.crowd import SHARE, Crowd
from windlass.http.refusal import Refusal
from windlass.http.reply import RETRY_AFTER, refused
from windlass.http.throttle import network_of

HEADER_TIME: Final = 20.0
"""Seconds in which the headers of a request must have come, from its first byte or from the connection's beginning."""
BODY_TIME: Final = 45.0
"""Seconds in which the body must have come: more than the guard gives it, who then says what is wrong."""
WRITE_TIME: Final = 30.0
"""Seconds in which a reader must have taken what waits for it, about 64 kB."""
MOST_HEADERS: Final = 64 * 1024
_PROBED_BY: Final = frozenset({b"GET", b"HEAD"})


class Connection(HttpToolsProtocol):
    """Connection that is closed when its peer sends a request too slowly, sends too much or takes no reply."""

    def __init__(
        self, config: Config, state: ServerState, crowd: Crowd | None = None, probes: Collection[bytes] = ()
    ) -> None:
        """Count among a `crowd`; `probes` are paths that are answered also where it has no room."""
        super().__init__(config, state, {})
        self._crowd = Crowd() if crowd is None else crowd
        self._probes = probes
        self._authenticated = False
        self._headers_due = _Timer(self.loop, self._too_late)
        self._body_due = _Timer(self.loop, self._body_is_late)
        self._write_due = _Timer(self.loop, self.drop)
        self._headers_come = True
        self._headers_size = 0
        self._idle_since = self.loop.time()

    @property
    def address(self) -> str:
        """Where it comes from."""
        return network_of(self.client[0]) if self.client else "unknown"

    @property
    def is_authenticated(self) -> bool:
        """Whether it has carried an authenticated request."""
        cycle = self._last
        self._authenticated = self._authenticated or (cycle is not None and is_identified(cycle.scope))
        return self._authenticated

    @property
    def is_asking(self) -> bool:
        """Whether a request is under way; without authentication it must be here whole, and its answer be taken."""
        cycle = self._last
        if cycle is None or cycle.response_complete:
            return False
        return self.is_authenticated or not (cycle.more_body or self.flow.write_paused)

    @property
    def idle_since(self) -> float:
        """When it was opened, or its last request was answered."""
        return self._idle_since

    def drop(self) -> None:
        """Close it now."""
        self.transport.abort()

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401 - a transport that can be written to
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._headers_due.start(HEADER_TIME)
        self._crowd.enter(self)

    def data_received(self, data: bytes) -> None:
        """Read what has come."""
        if self._headers_come:
            self._headers_size += len(data)
        super().data_received(data)
        if self._headers_come and self._headers_size > MOST_HEADERS and not self.transport.is_closing():
            self.send_400_response(f"the headers are over {MOST_HEADERS:,} bytes")

    def on_message_begin(self) -> None:
        """Begin to wait for the rest of the headers."""
        super().on_message_begin()
        self._headers_due.start(HEADER_TIME)

    def on_headers_complete(self) -> None:
        """Wait no longer for headers, and answer; where there is no room only probes are."""
        self._headers_come, self._headers_size = False, 0
        self._headers_due.stop()
        self._body_due.stop()
        self._body_due.start(BODY_TIME)
        app = self.app
        if not self._has_room():
            self.app = no_room
        cast("dict[str, object]", self.scope)[SHARE] = self._crowd.share
        super().on_headers_complete()
        self.app = app

    def on_message_complete(self) -> None:
        """Expect the next request."""
        super().on_message_complete()
        self._headers_come = True
        self._body_due.stop()

    def on_response_complete(self) -> None:
        """Rest until the next request."""
        self._idle_since = self.loop.time()
        # the next request is not authenticated yet
        self._authenticated = self.is_authenticated
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Begin to wait for a reader who takes nothing."""
        super().pause_writing()
        self._write_due.start(WRITE_TIME)

    def resume_writing(self) -> None:
        """Wait no longer: what was written has been taken."""
        self._write_due.stop()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing more."""
        self._headers_due.stop()
        self._body_due.stop()
        super().connection_lost(exc)
        self._write_due.stop()
        self._crowd.leave(self)

    def _has_room(self) -> bool:
        if self._method() in _PROBED_BY and self.url.partition(b"?")[0] in self._probes:
            return True
        return self._crowd.has_room_for(self)

    @property
    def _last(self) -> RequestResponseCycle | None:
        """The last request, if there was one."""
        return cast("RequestResponseCycle | None", self.cycle)

    def _method(self) -> bytes:
        parser: Any = self.parser
        method: bytes = parser.get_method()
        return method

    def _body_is_late(self) -> None:
        if self.flow.read_paused:
            # it may have arrived, and is not read yet: it is behind another request
            self._body_due.start(BODY_TIME)
        else:
            self._too_late()

    def _too_late(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()


async def no_room(scope: Scope, receive: Receive, send: Send) -> None:
    """Refuse a connection for which there is no capacity, and say when to try again."""
    del scope, receive
    message = "this process has all the connections that it may have: try again in a second, or ask another one"
    reply = refused(Refusal(503, "store_unavailable", message, RETRY_AFTER, {"retryable": True}))
    await reply._replace(headers={**reply.headers, "Connection": "close"}).send(send)


class _Timer:
    """Calls something once, unless it is stopped before."""

    __slots__ = ("_call", "_handle", "_loop")

    def __init__(self, loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
        self._loop = loop
        self._call = call
        self._handle: asyncio.TimerHandle | None = None

    def start(self, seconds: float) -> None:
        """Begin, unless it has begun."""
        if self._handle is None:
            self._handle = self._loop.call_later(seconds, self._over)

    def stop(self) -> None:
        """Forget what has begun."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _over(self) -> None:
        self._handle = None
        self._call()
