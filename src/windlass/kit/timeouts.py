"""Timeouts by a clock: for a task that goes on, and for a call that is cancelled."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from windlass.core.clock import Clock

T = TypeVar("T")


async def wait_for_task(task: "asyncio.Task[Any]", seconds: float, clock: Clock) -> bool:
    """Wait until `task` has ended, at most `seconds` by `clock`; return whether it has. It goes on if not."""
    over = asyncio.Event()
    task.add_done_callback(lambda _: over.set())
    timer = clock.call_later(seconds, over.set)
    try:
        await over.wait()
    finally:
        timer.cancel()
    return task.done()


async def call_with_timeout(call: Coroutine[Any, Any, T], seconds: float, clock: Clock) -> T:
    """Return what `call` returns; after `seconds` it is cancelled, and `TimeoutError` raised when it has ended."""
    task = asyncio.ensure_future(call)
    is_late = False
    try:
        await wait_for_task(task, seconds, clock)
    finally:
        is_late = task.cancel()
        await asyncio.wait((task,))
        if not task.cancelled():
            # of a call that ended by an error while it was cancelled, the error is nobody's
            task.exception()
    if is_late and task.cancelled():
        raise TimeoutError
    return task.result()
