"""Ranges of keys, page by page."""

from collections.abc import AsyncIterator
from typing import Final, TypeAlias

from windlass.stores.slatedb import keys
from windlass.stores.slatedb.view import View

PAGE: Final = 1_000

Row: TypeAlias = tuple[bytes, bytes]


async def pages(view: View, start: bytes, end: bytes, *, size: int = PAGE) -> AsyncIterator[list[Row]]:
    """Give the rows from `start` up to, not including, `end`, a page at a time; no page is empty."""
    while rows := await view.scan(start, end, limit=size):
        yield rows
        if len(rows) < size:
            return
        start = rows[-1][0] + b"\0"


async def rows_between(view: View, start: bytes, end: bytes) -> list[Row]:
    """Return all rows from `start` up to, not including, `end`."""
    return [row async for page in pages(view, start, end) for row in page]


async def rows_of(view: View, prefix: bytes) -> list[Row]:
    """Return all rows whose key begins with `prefix`."""
    return await rows_between(view, prefix, keys.after(prefix))
