"""One connection of a caller: uvicorn's, with an end to patience."""

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEADER_TIME: Final = 20.0
"""Seconds in which the headers of a request must have come, from its first byte or from the connection's beginning."""
MOST_HEADERS: Final = 64 * 1024


class Connection(HttpToolsProtocol):
    """Closes on whoever is slow to say what they want, or says too much: neither may hold on to a connection (S28)."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - as uvicorn's
        super().__init__(*args, **kwargs)
        self._headers_due: asyncio.TimerHandle | None = None
        self._headers_come = True
        self._headers_size = 0

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401 - a transport that can be written to
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._await_headers()

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
        if self._headers_due is None:
            self._await_headers()

    def on_headers_complete(self) -> None:
        """Wait no longer for headers."""
        self._headers_come, self._headers_size = False, 0
        self._stop_waiting()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Expect the next request."""
        super().on_message_complete()
        self._headers_come = True

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing more."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _await_headers(self) -> None:
        self._headers_due = self.loop.call_later(HEADER_TIME, self._too_late)

    def _too_late(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()

    def _stop_waiting(self) -> None:
        if self._headers_due is not None:
            self._headers_due.cancel()
            self._headers_due = None
