"""Ctrl-C that lets a step end before the work stops."""

import asyncio
import signal
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Final

GENTLE: Final = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stop_asked() -> Generator[asyncio.Event]:
    """Give an event that the first Ctrl-C or SIGTERM sets, for the time of a block; the second ends all at once."""
    loop, asked = asyncio.get_running_loop(), asyncio.Event()

    def ask() -> None:
        asked.set()
        _forget(loop)

    # not every system, nor every thread, can be told of signals: there the first one ends all at once
    with suppress(NotImplementedError, ValueError, RuntimeError):
        for number in GENTLE:
            loop.add_signal_handler(number, ask)
    try:
        yield asked
    finally:
        _forget(loop)


def _forget(loop: asyncio.AbstractEventLoop) -> None:
    for number in GENTLE:
        with suppress(NotImplementedError, ValueError, RuntimeError):
            loop.remove_signal_handler(number)
