"""The real world behind the seams: the machine's clock, its randomness, asyncio's tasks."""

import asyncio
import logging
import os
import random
import sys
import time
from collections.abc import Callable, Coroutine
from contextvars import Context
from datetime import UTC, datetime
from typing import Any, TypeVar

logger = logging.getLogger("windlass")

T = TypeVar("T")


class SystemClock:
    """The machine's own time."""

    goes_by_itself = True

    def now(self) -> datetime:
        """Return the wall time in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds that never step back."""
        return time.monotonic()

    def call_later(self, delay: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
        """Run `callback` on the running event loop after `delay` seconds."""
        return asyncio.get_running_loop().call_later(delay, callback)

    async def sleep(self, delay: float) -> None:
        """Return after `delay` seconds."""
        await asyncio.sleep(delay)


class SystemRng:
    """The machine's own randomness."""

    def random(self) -> float:
        """Return a number from 0.0 up to, not including, 1.0."""
        return random.random()  # noqa: S311 - jitter, not a secret

    def token_bytes(self, count: int) -> bytes:
        """Return `count` bytes that nobody can guess."""
        return os.urandom(count)


class TaskSpawn:
    """Starts asyncio tasks, keeps hold of them and logs what leaves them."""

    def __init__(self) -> None:
        """Begin with no task."""
        self._tasks: set[asyncio.Task[None]] = set()

    def __call__(self, work: Coroutine[Any, Any, None], *, name: str) -> asyncio.Task[None]:
        """Start `work` on the running event loop."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def close(self) -> None:
        """Cancel what still runs and wait until it has ended."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("background task %s ended by an error", task.get_name(), exc_info=error)


if sys.version_info >= (3, 12):

    def eager_task(
        work: Coroutine[Any, Any, T],
        loop: asyncio.AbstractEventLoop,
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[T]:
        """Run `work` up to its first wait at once, and the rest as a task of its own.

        In `context`, or without one in a copy of the caller's.
        """
        return asyncio.Task(work, loop=loop, name=name, context=context, eager_start=True)

else:

    def eager_task(
        work: Coroutine[Any, Any, T],
        loop: asyncio.AbstractEventLoop,
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[T]:
        """Run `work` as a task of its own: this Python begins none before its turn."""
        return asyncio.Task(work, loop=loop, name=name, context=context)
