"""While a server is not reached: what is said of it, and how its refusal is known."""

import asyncio
import errno
import logging
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

logger = logging.getLogger("windlass")

TOLD_AFTER: Final = 1.0
"""Seconds after which whoever opens a store hears that it is still tried: most that is reached at all is by then."""


@contextmanager
def told_when_slow(where: str, timeout: float, met: Callable[[], str | None]) -> Generator[None]:
    """Log one warning when the block, which gives up after `timeout` seconds, has not reached what is at `where` soon.

    `met` returns what was met last, in the words for users, or None where nothing was met yet.
    """

    def tell() -> None:
        problem = met() or f"{where} has not answered yet"
        logger.warning("%s; it is tried for %.3g s more", problem, timeout - TOLD_AFTER)

    timer = asyncio.get_running_loop().call_later(TOLD_AFTER, tell)
    try:
        yield
    finally:
        timer.cancel()


def is_refused(error: BaseException) -> bool:
    """Whether nothing listens there; of a name with several addresses, at one of them."""
    return isinstance(error, ConnectionRefusedError) or (
        isinstance(error, OSError) and f"[Errno {errno.ECONNREFUSED}]" in str(error)
    )
