"""Processes that a handler forks: what is sent to them is theirs alone."""

import os
import signal
import threading
from collections.abc import Callable
from typing import Final

_TOLD: Final = (signal.SIGTERM,)


def leave_forks_alone(also: Callable[[], None] = lambda: None) -> None:
    """Let whatever this process forks from now on end by SIGTERM, as others do, and call `also` in it.

    A copy of this process would take the signal as this one does, and by a pipe that both share it would be told here.
    """
    former = threading.local()

    def before() -> None:
        # one that comes before the copy has changed its ways waits until it has
        former.mask = signal.pthread_sigmask(signal.SIG_BLOCK, _TOLD)

    def after() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, former.mask)

    def in_the_fork() -> None:
        signal.set_wakeup_fd(-1)
        for number in _TOLD:
            signal.signal(number, signal.SIG_DFL)
        also()
        after()

    os.register_at_fork(before=before, after_in_parent=after, after_in_child=in_the_fork)
