"""A thread of a child process that listens to the server, whatever the handler does."""

import logging
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Callable
from typing import Final

from windlass.engine.executors.messages import Begin, decode_to_child
from windlass.engine.executors.wire import Frames
from windlass.engine.stop_event import StopEvent

logger = logging.getLogger("windlass")

LAST_WORDS: Final = 5.0
"""Seconds that a child has to close what it opened, once its server has hung up."""
_ORPHANED: Final = 70
_LOOK_FOR_PARENT: Final = 2_000
"""Milliseconds. A copy of the link in another process, made by a fork, would hide that the server has ended."""


class Ear:
    """Hears what the server sends: attempts to run, and words to stop. A child does not outlive its server."""

    def __init__(
        self, link: socket.socket, parent: int, *, begin: Callable[[Begin, StopEvent], None], end: Callable[[], None]
    ) -> None:
        """Listen to the process `parent`; call `begin` for an attempt, and `end` when there will be no more."""
        self._link = link
        self._frames = Frames(link)
        self._parent = parent
        self._begin = begin
        self._end = end
        self._running: tuple[int, StopEvent] | None = None
        self._signalled, self._signal = os.pipe()
        os.set_blocking(self._signal, False)

    def listen(self) -> None:
        """Begin to listen, in a thread."""
        threading.Thread(target=self._listen, name="windlass ear", daemon=True).start()

    def heed_signals(self) -> None:
        """Let SIGTERM stop the attempt, and leave an interrupt from the keyboard to the server."""
        signal.signal(signal.SIGTERM, self._terminated)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT,))

    def rest(self) -> None:
        """No attempt runs any more."""
        self._running = None

    def _listen(self) -> None:
        try:
            self._hear_all()
        except Exception:
            logger.exception("a child process cannot hear its server any more, and ends")
        finally:
            self._leave()

    def _hear_all(self) -> None:
        poll = select.poll()
        poll.register(self._link, select.POLLIN)
        poll.register(self._signalled, select.POLLIN)
        while not self._frames.ended and os.getppid() == self._parent:
            ready = [descriptor for descriptor, _ in poll.poll(_LOOK_FOR_PARENT)]
            # what was said before a signal is heard before it
            while self._frames.receive():
                self._hear(self._frames.messages())
            if self._signalled in ready:
                os.read(self._signalled, 1)
                self._stop()

    def _hear(self, messages: list[bytes]) -> None:
        for message in map(decode_to_child, messages):
            if isinstance(message, Begin):
                stop = StopEvent()
                if message.reason is not None:
                    stop.fire(message.reason)
                self._running = message.run, stop
                self._begin(message, stop)
            elif self._running is not None and self._running[0] == message.run:
                self._running[1].fire(message.reason)

    def _terminated(self, *_: object) -> None:
        try:
            os.write(self._signal, b"\0")
        except BlockingIOError:
            logger.debug("more signals than anybody has heard")

    def _stop(self) -> None:
        """Stop the attempt by a signal; one that the server did not announce comes to all processes of a service."""
        if self._running is not None:
            self._running[1].fire("stop")

    def _leave(self) -> None:
        if self._running is not None:
            os._exit(_ORPHANED)
        self._end()
        time.sleep(LAST_WORDS)
        os._exit(_ORPHANED)
