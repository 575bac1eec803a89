"""The beginning of a connection with TLS, counted and timed as what comes after it is."""

import asyncio
import ssl
from collections.abc import Callable
from typing import Any, Final, cast

from windlass.http.crowd import Crowd
from windlass.http.throttle import network_of

HANDSHAKE_TIME: Final = 10.0
"""Seconds in which a handshake must be done."""


class TlsHandshake(asyncio.Protocol):
    """Shakes hands, and hands the connection over to the protocol that speaks next.

    A server of asyncio would do it by itself, and does not count the handshakes that never end.
    """

    def __init__(self, context: ssl.SSLContext, crowd: Crowd, speak: Callable[[], asyncio.Protocol]) -> None:
        """Go on by the protocol that `speak` makes."""
        self._context = context
        self._crowd = crowd
        self._speak = speak
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport
        self._shaking: asyncio.Task[None] | None = None
        self._early = bytearray()
        self.address = "unknown"
        self.idle_since = self._loop.time()

    @property
    def is_authenticated(self) -> bool:
        """Whether it is known who speaks: not yet."""
        return False

    @property
    def is_asking(self) -> bool:
        """Whether a request is under way: not yet."""
        return False

    def drop(self) -> None:
        """Close it now."""
        self._transport.abort()

    def connection_made(self, transport: Any) -> None:  # noqa: ANN401 - a transport of the event loop
        """Begin."""
        if self._shaking is not None:
            return
        self._transport = transport
        peer = transport.get_extra_info("peername")
        self.address = network_of(str(peer[0])) if peer else "unknown"
        # nothing may be read before the handshake reads it
        transport.pause_reading()
        self._shaking = self._loop.create_task(self._shake_hands())
        # uvloop reads as soon as this has returned, paused or not. What comes before TLS has taken over the transport,
        # in the first step of the task, is passed on after that step and before anything else is read.
        self._loop.call_soon(self._loop.call_soon, self._pass_on_early)
        self._crowd.enter(self)

    def data_received(self, data: bytes) -> None:
        """Keep bytes that came before the handshake had begun, or behind it in the same packet."""
        self._early += data

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing more."""
        del exc
        self._crowd.leave(self)

    async def _shake_hands(self) -> None:
        try:
            secure = await self._loop.start_tls(
                self._transport, self, self._context, server_side=True, ssl_handshake_timeout=HANDSHAKE_TIME
            )
        except (OSError, ssl.SSLError):
            # it is no TLS, or too late, or the peer has gone: there is no peer to notify
            secure = None
        finally:
            self._crowd.leave(self)
        if secure is None or secure.is_closing():
            self._transport.abort()
            return
        speaker = self._speak()
        secure.set_protocol(speaker)
        speaker.connection_made(secure)
        if self._early:
            speaker.data_received(bytes(self._early))

    def _pass_on_early(self) -> None:
        if not self._early or self._transport.is_closing():
            return
        early, self._early = self._early, bytearray()
        tls = cast("asyncio.BufferedProtocol", self._transport.get_protocol())
        while early:
            buffer = memoryview(tls.get_buffer(len(early)))
            size = min(len(early), len(buffer))
            buffer[:size] = early[:size]
            tls.buffer_updated(size)
            del early[:size]
