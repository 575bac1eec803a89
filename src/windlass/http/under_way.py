"""Calls that are on their way: a repeat of one joins it."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Shared:
    __slots__ = ("callers", "task")

    def __init__(self, task: "asyncio.Task[Any]") -> None:
        self.task = task
        self.callers = 0


class UnderWay:
    """Runs the work of a name once for all who ask for it at the same time."""

    def __init__(self) -> None:
        self._shared: dict[object, _Shared] = {}

    def __len__(self) -> int:
        return len(self._shared)

    async def join(self, name: object, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return what `work` does, or what is done already under this name.

        The work goes on while one of those who wait for it is there; it is cancelled with the last.
        """
        shared = self._shared.get(name)
        if shared is None:
            shared = self._shared[name] = _Shared(asyncio.ensure_future(work()))
            shared.task.add_done_callback(lambda _: self._shared.pop(name, None))
        shared.callers += 1
        try:
            done: T = await asyncio.shield(shared.task)
            return done
        finally:
            shared.callers -= 1
            if not shared.callers and not shared.task.done():
                # one that comes now begins anew: this one can no longer be joined
                self._shared.pop(name, None)
                shared.task.cancel()
                await asyncio.wait((shared.task,))
