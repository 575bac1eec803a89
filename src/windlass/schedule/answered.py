"""Calls of the store that are not waited for without an end."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from windlass.core.clock import Clock
from windlass.core.errors import StoreUnavailable
from windlass.engine.within import ends_within

T = TypeVar("T")

DEADLINE: Final = 10.0
"""Seconds after which an answer is no longer waited for."""


async def answered(call: Coroutine[Any, Any, T], what: str, clock: Clock) -> T:
    """Return what `call` returns; raises `StoreUnavailable` when it hangs. Whether it was done is not known then."""
    task = asyncio.ensure_future(call)
    try:
        if await ends_within(task, DEADLINE, clock):
            return task.result()
    finally:
        task.cancel()
    message = f"the store has not answered within {DEADLINE:.0f} s: {what}"
    raise StoreUnavailable(message, retryable=True)
