"""Waiting that ends."""

import asyncio
from typing import Any

from windlass.core.clock import Clock


async def ends_within(task: "asyncio.Task[Any]", seconds: float, clock: Clock) -> bool:
    """Wait until `task` has ended, at most `seconds` by `clock`; return whether it has. It goes on if not."""
    over = asyncio.Event()
    task.add_done_callback(lambda _: over.set())
    timer = clock.call_later(seconds, over.set)
    try:
        await over.wait()
    finally:
        timer.cancel()
    return task.done()
