"""An async context manager that is kept open between two calls."""

import asyncio
from contextlib import AbstractAsyncContextManager
from contextvars import Context
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Held(Generic[T]):
    """Enters and leaves a context manager in one task, as many of them ask for."""

    def __init__(self, manager: AbstractAsyncContextManager[T, Any]) -> None:
        """Hold `manager`, which is entered by `open`."""
        self._manager = manager

    async def open(self, context: Context | None = None) -> T:
        """Enter, and return what that gives; what it sets in `context` is seen by whoever runs there."""
        loop = asyncio.get_running_loop()
        self._opened: asyncio.Future[T] = loop.create_future()
        self._closing: asyncio.Future[BaseException | None] = loop.create_future()
        self._held = loop.create_task(self._hold(), context=context)
        return await self._opened

    async def close(self, error: BaseException | None = None) -> None:
        """Leave, by `error` if it is given; raises it again unless the context manager takes care of it."""
        self._closing.set_result(error)
        _raise(await self._held)

    async def _hold(self) -> BaseException | None:
        """Return what the context manager was left by."""
        try:
            async with self._manager as value:
                self._opened.set_result(value)
                _raise(await self._closing)
        except BaseException as error:  # noqa: BLE001 - it is raised by whoever opens or closes
            if not self._opened.done():
                self._opened.set_exception(error)
            return error
        return None


def _raise(error: BaseException | None) -> None:
    if error is not None:
        raise error
