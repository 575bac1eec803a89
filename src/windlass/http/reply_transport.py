"""What a connection writes to: the head of a reply waits for its body, so that both go out at once."""

import asyncio
from typing import Any, Final

_HEAD: Final = b"HTTP/1.1 "
_LENGTH: Final = b"\r\ncontent-length: "
_END: Final = b"\r\n\r\n"


class ReplyTransport:
    """Another transport, which keeps the head of a reply until its body is written; one without a length is not kept.

    Each write wakes the caller, who can do nothing with a head. `together` is False where no body will be written.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self.together = True
        self._transport = transport
        self._head = b""

    def write(self, data: bytes) -> None:
        """Write, with the head that was kept before it."""
        if self._head:
            data, self._head = self._head + data, b""
        elif self.together and data.startswith(_HEAD) and data.endswith(_END) and _LENGTH in data:
            self._head = data
            return
        self._transport.write(data)

    def close(self) -> None:
        """Close when everything is sent."""
        if self._head:
            self.write(b"")
        self._transport.close()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the transport has
        return getattr(self._transport, name)
