"""How long something may take, by the clock of the process."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from windlass.core.clock import Clock

T = TypeVar("T")


async def within(seconds: float, work: Coroutine[Any, Any, T], clock: Clock) -> T:
    """Return what `work` returns; after `seconds` it is cancelled, and `TimeoutError` raised when it has ended."""
    doing = asyncio.ensure_future(work)
    is_late = False

    def stop() -> None:
        nonlocal is_late
        is_late = doing.cancel()

    timer = clock.call_later(seconds, stop)
    try:
        await asyncio.wait((doing,))
    finally:
        timer.cancel()
        doing.cancel()
        await asyncio.wait((doing,))
        if not doing.cancelled():
            # of one that ended by an error while it was given up, the error is nobody's
            doing.exception()
    if is_late and doing.cancelled():
        raise TimeoutError
    return doing.result()
