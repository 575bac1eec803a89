"""What every reply tells a browser: show it to nobody else, run nothing in it, keep nothing of it."""

from collections.abc import Mapping
from typing import Final

from starlette.types import Message, Send

EVERY_REPLY: Final[Mapping[bytes, bytes]] = {
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'",
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"cache-control": b"no-store",
}


class GuardedReply:
    """A `send` that adds the headers of every reply; of those that a page has set for itself its own stay."""

    def __init__(self, send: Send, headers: Mapping[bytes, bytes] = EVERY_REPLY) -> None:
        self._send = send
        self._headers = headers
        self.started = False

    async def __call__(self, message: Message) -> None:
        """Send a message."""
        if message["type"] == "http.response.start":
            self.started = True
            own = list(message.get("headers", ()))
            names = {name.lower() for name, _ in own}
            own += [pair for pair in self._headers.items() if pair[0] not in names]
            message = {**message, "headers": own}
        await self._send(message)
