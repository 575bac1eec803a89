"""Server-sent events, as they are sent."""

import msgspec

from windlass.http.reply import encode


def event(told: msgspec.Struct) -> bytes:
    """Return an event that tells a record."""
    return b"data: " + encode(told) + b"\n\n"
