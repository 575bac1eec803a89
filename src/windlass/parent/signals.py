"""Signals to the parent, heard where it waits."""

import signal
import socket
from collections.abc import Callable
from types import FrameType
from typing import Any, Final, Self, TypeAlias

GRACEFUL: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""The first of them stops gracefully, the second at once."""
AT_ONCE: Final = signal.SIGQUIT
OF_THE_TERMINAL: Final = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
"""A terminal sends these to the children as well, who leave it to the parent to tell them."""

Before: TypeAlias = Callable[[int, FrameType | None], Any] | int | signal.Handlers | None


class Signals:
    """Takes the signals over while it is entered; `link` becomes readable when there are any."""

    def __enter__(self) -> Self:
        self.link, self._ours = socket.socketpair()
        self.link.settimeout(0)
        self._ours.settimeout(0)
        self._wakeup = signal.set_wakeup_fd(self._ours.fileno(), warn_on_full_buffer=False)
        self._before: dict[signal.Signals, Before] = {}
        for number in (*GRACEFUL, AT_ONCE, signal.SIGCHLD):
            # who was started by nohup is not to end with its terminal
            if number is signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
                continue
            self._before[number] = signal.signal(number, _heard)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler or signal.SIG_DFL)
        signal.set_wakeup_fd(self._wakeup)
        self.link.close()
        self._ours.close()

    def receive(self) -> list[signal.Signals]:
        """Return what came, in order."""
        try:
            return [signal.Signals(number) for number in self.link.recv(4_096)]
        except BlockingIOError:
            return []


def _heard(number: int, frame: FrameType | None) -> None:
    """Do nothing: Python has written the number to the link."""
