"""Messages between a server and its child processes: bytes with their length before them, over a pair of sockets."""

import select
import socket
import struct
import threading
from contextlib import suppress
from typing import Final

_LENGTH: Final = struct.Struct("!I")
_CHUNK: Final = 256 * 1024
_LOOK_AGAIN: Final = 1_000
"""Milliseconds."""
MOST_WAITING: Final = 8 * 1024 * 1024
"""Bytes that may wait for a side that does not read, before what may be lost is lost."""


class Post:
    """Sends messages whole and in order, from any thread, and waits for nobody.

    What the other side has room for is handed over at once, so that it arrives also if this process dies next. What it
    has no room for waits here.
    """

    def __init__(self, link: socket.socket) -> None:
        """Send over `link`, which does not block."""
        self._link = link
        self._guard = threading.Lock()
        self._waiting = bytearray()
        self._flushing = False

    def send(self, message: bytes, *, may_be_lost: bool = False) -> bool:
        """Send a message; return False if it was dropped because too much waits already."""
        data = _LENGTH.pack(len(message)) + message
        with self._guard:
            if may_be_lost and len(self._waiting) > MOST_WAITING:
                return False
            sent = 0 if self._flushing else self._hand_over(data)
            if sent < len(data):
                self._waiting += memoryview(data)[sent:]
                self._flush()
        return True

    def _flush(self) -> None:
        if not self._flushing:
            self._flushing = True
            threading.Thread(target=self._send_waiting, name="windlass post", daemon=True).start()

    def _send_waiting(self) -> None:
        room = select.poll()
        with suppress(OSError, ValueError):  # closed by this side, which the next send finds out
            room.register(self._link, select.POLLOUT)
        while True:
            room.poll(_LOOK_AGAIN)
            with self._guard:
                del self._waiting[: self._hand_over(self._waiting[:_CHUNK])]
                if not self._waiting:
                    self._flushing = False
                    return

    def _hand_over(self, data: bytes | bytearray) -> int:
        """Return how many bytes are off; all, when nobody will ever read them."""
        try:
            return self._link.send(data)
        except BlockingIOError:
            return 0
        except OSError:
            # the other side is gone, which whoever reads from it finds out
            self._waiting.clear()
            return len(data)


class Frames:
    """Takes messages apart that came over a link."""

    def __init__(self, link: socket.socket) -> None:
        """Read from `link`, which does not block."""
        self._link = link
        self._data = bytearray()
        self.ended = False

    def receive(self) -> bool:
        """Take what has come; return False when there was nothing, or `ended` is set because no more can come."""
        try:
            chunk = self._link.recv(_CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            chunk = b""
        self._data += chunk
        self.ended = self.ended or not chunk
        return bool(chunk)

    def messages(self) -> list[bytes]:
        """Return the messages that have come as a whole."""
        messages: list[bytes] = []
        at = 0
        while len(self._data) >= at + _LENGTH.size:
            begin = at + _LENGTH.size
            end = begin + _LENGTH.unpack_from(self._data, at)[0]
            if len(self._data) < end:
                break
            messages.append(bytes(self._data[begin:end]))
            at = end
        del self._data[:at]
        return messages
