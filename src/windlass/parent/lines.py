"""Lines that come over a socket."""

import socket
from typing import Final

_MOST: Final = 65_536


class Lines:
    """Cuts what arrives into lines; `ended` when there will be no more."""

    def __init__(self, link: socket.socket) -> None:
        """Read from `link`."""
        self._link = link
        self._rest = b""
        self.ended = False

    def receive(self) -> list[bytes]:
        """Return every whole line that is there now, without its end, and wait for none."""
        while not self.ended:
            try:
                arrived = self._link.recv(_MOST, socket.MSG_DONTWAIT)
            except (BlockingIOError, InterruptedError):
                break
            except OSError:
                arrived = b""
            self.ended = not arrived
            self._rest += arrived
        *whole, self._rest = self._rest.split(b"\n")
        return whole
