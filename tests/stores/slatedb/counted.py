"""A view that counts what is read through it."""

import asyncio

from windlass.stores.slatedb.view import View


class Counted:
    """Another view, with counts: of gets and how many were under way at once, of scans and their rows."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._under_way = 0
        self.got: list[bytes] = []
        self.most_under_way = 0
        self.scans = 0
        self.rows = 0

    async def get(self, key: bytes) -> bytes | None:
        self.got.append(key)
        self._under_way += 1
        self.most_under_way = max(self.most_under_way, self._under_way)
        try:
            # others get the chance to begin
            await asyncio.sleep(0)
            return await self._view.get(key)
        finally:
            self._under_way -= 1

    async def scan(self, start: bytes, end: bytes, *, limit: int, reverse: bool = False) -> list[tuple[bytes, bytes]]:
        rows = await self._view.scan(start, end, limit=limit, reverse=reverse)
        self.scans += 1
        self.rows += len(rows)
        return rows
