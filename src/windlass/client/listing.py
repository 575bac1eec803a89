"""Listing: all records of a query, read page by page."""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Sequence
from typing import Any, Final, Generic, TypeVar

from windlass.core.names import check_limit

C = TypeVar("C")
T = TypeVar("T")

PAGE: Final = 100
"""Records that one call of the store returns: payloads and values may be large."""


class Listing(Generic[T]):
    """The records of a query, all of them or the first `limit`: `async for` reads them one by one, `await` as a list.

    `async for` keeps one page in memory, however many there are. Each page is of its own moment.
    """

    def __init__(self, read: Callable[[C | None, int], Awaitable[Sequence[tuple[C, T]]]], limit: int | None) -> None:
        """Read by `read(last, size)`: it returns the page past the cursor `last`, each record behind its cursor."""
        self._read: Callable[[Any, int], Awaitable[Sequence[tuple[Any, T]]]] = read
        self._limit = None if limit is None else check_limit(limit)

    async def pages(self) -> AsyncGenerator[Sequence[T], None]:
        """Read page by page."""
        left = self._limit
        last: Any = None
        while left is None or left > 0:
            page = await self._read(last, PAGE if left is None else min(PAGE, left))
            if not page:
                return
            yield [record for _, record in page]
            last = page[-1][0]
            left = None if left is None else left - len(page)

    async def __aiter__(self) -> AsyncIterator[T]:
        async for page in self.pages():
            for record in page:
                yield record

    def __await__(self) -> Generator[Any, None, list[T]]:
        return self._all().__await__()

    async def _all(self) -> list[T]:
        return [record async for record in self]
