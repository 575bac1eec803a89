"""Tasks that begin where they are made."""

import asyncio
import sys
from collections.abc import Coroutine
from contextvars import Context
from typing import Any, TypeVar

T = TypeVar("T")

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
