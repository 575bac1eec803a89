"""A call made from a thread to an event loop in another, which can send work back to the caller's thread."""

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from windlass.borrow.errand import errand
from windlass.core.errors import ClientClosed

R = TypeVar("R")
T = TypeVar("T")


class Call(Generic[R]):
    """One call under way: the caller waits for its end, and runs errands for it meanwhile."""

    def __init__(self, loop: asyncio.AbstractEventLoop, work: Callable[[], Coroutine[Any, Any, R]]) -> None:
        """Begin `work`, in a copy of the caller's context."""
        self._loop = loop
        self._work = work
        self._errands: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        context = copy_context()
        context.run(errand.set, self.carry)
        loop.call_soon_threadsafe(self._begin, context)

    def result(self) -> R:
        """Return what the work returns."""
        try:
            while (task := self._errands.get()) is not None:
                task()
        except BaseException:
            self._loop.call_soon_threadsafe(self._cancel)
            raise
        if self._task.cancelled():
            raise ClientClosed
        return self._task.result()

    async def carry(self, work: Callable[[], T]) -> T:
        """Let the caller's thread do `work`: what belongs to that thread, like a connection, stays in it."""
        done: asyncio.Future[T] = self._loop.create_future()
        self._errands.put(lambda: self._do(work, done))
        return await done

    def _begin(self, context: Context) -> None:
        self._task = self._loop.create_task(self._run(), context=context)
        self._task.add_done_callback(lambda _: self._errands.put(None))

    async def _run(self) -> R:
        # called in the task: arguments that do not fit are the caller's error, as any other
        return await self._work()

    def _cancel(self) -> None:
        self._task.cancel()

    def _do(self, work: Callable[[], T], done: asyncio.Future[T]) -> None:
        try:
            value = work()
        except Exception as error:  # noqa: BLE001 - it is raised where the work is awaited
            self._loop.call_soon_threadsafe(_fail, done, error)
        else:
            self._loop.call_soon_threadsafe(_give, done, value)


def _give(done: asyncio.Future[T], value: T) -> None:
    if not done.done():
        done.set_result(value)


def _fail(done: asyncio.Future[Any], error: Exception) -> None:
    if not done.done():
        done.set_exception(error)
