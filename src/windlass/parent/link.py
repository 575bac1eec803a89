"""A child's line to its parent."""

import contextlib
import logging
import select
import socket
import threading
from collections.abc import Callable
from typing import Final

import msgspec

from windlass.parent.lines import Lines
from windlass.parent.messages import Order, ToChild, ToParent, decode_order, decode_to_child, encode

logger = logging.getLogger("windlass")

LOOK_EVERY: Final = 0.5
"""Seconds between two looks at the health of the server."""


class Link:
    """Hears the parent in a thread of its own, whatever the event loop does; its end is the end of the parent."""

    def __init__(self, descriptor: int) -> None:
        """Take the socket over: nothing that this process starts has it."""
        self._socket = socket.socket(fileno=descriptor)
        self._socket.set_inheritable(False)
        self._turn = threading.Lock()
        self._lines = Lines(self._socket)
        self._early: list[bytes] = []

    def order(self) -> Order | None:
        """Wait for the first line, and return what it says; None when the parent has gone."""
        while not self._lines.ended:
            self._wait(None)
            if lines := self._lines.receive():
                self._early = lines[1:]
                return decode_order(lines[0])
        return None

    def send(self, message: ToParent) -> None:
        """Say something, from any thread; a parent that has gone does not hear it."""
        with self._turn, contextlib.suppress(OSError):
            self._socket.sendall(encode(message) + b"\n")

    def close(self) -> None:
        """Let go of it, in a process that is not the child."""
        self._socket.close()

    def listen(self, hear: Callable[[ToChild], None], gone: Callable[[], None], look: Callable[[], None]) -> None:
        """Call `hear` for each word of the parent, `gone` at its end, and `look` every half second, in a thread."""
        work = lambda: self._listen(hear, gone, look)  # noqa: E731 - the thread's one line
        threading.Thread(target=work, name="windlass link", daemon=True).start()

    def _listen(self, hear: Callable[[ToChild], None], gone: Callable[[], None], look: Callable[[], None]) -> None:
        lines, self._early = self._early, []
        while lines or not self._lines.ended:
            for line in lines:
                # something else may have written to the link
                with contextlib.suppress(msgspec.MsgspecError):
                    hear(decode_to_child(line))
            self._wait(LOOK_EVERY)
            lines = self._lines.receive()
            try:
                look()
            except Exception:
                logger.exception("the health of the server cannot be told")
        gone()

    def _wait(self, seconds: float | None) -> None:
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        poll.poll(None if seconds is None else seconds * 1000)
