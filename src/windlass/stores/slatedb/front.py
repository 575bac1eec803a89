"""The front of an index in memory, so that nobody walks over the graves of what was there before.

A key that was deleted leaves a mark in the database until that is compacted, and a look for the first key of an index
would step over all of them, again and again. Whoever owns the database sees every change: it keeps the first keys.
"""

from bisect import bisect_left, insort
from collections.abc import Mapping
from itertools import islice
from typing import Final

from windlass.stores.slatedb.keys import after
from windlass.stores.slatedb.view import View

MOST: Final = 2_000
FILL: Final = 1_000


class FromFronts:
    """A view whose looks through an index begin where its front begins, and not at the graves before it."""

    def __init__(self, view: View, firsts: Mapping[bytes, bytes]) -> None:
        self._view = view
        self._firsts = firsts

    async def get(self, key: bytes) -> bytes | None:
        """Return the value of a key."""
        return await self._view.get(key)

    async def scan(self, start: bytes, end: bytes, *, limit: int, reverse: bool = False) -> list[tuple[bytes, bytes]]:
        """Return up to `limit` keys from `start` to before `end`, with their values."""
        start = self._firsts.get(start, start)
        return await self._view.scan(start, end, limit=limit, reverse=reverse) if start < end else []


class Front:
    """The first keys of an index, in order: all of them up to where the reading goes on, or all there are."""

    __slots__ = ("_next", "_prefix", "complete", "keys")

    def __init__(self, prefix: bytes, *, empty: bool, begin: bytes | None = None) -> None:
        """Begin with nothing; `empty` when there is nothing else, and else no key is before `begin`."""
        self._prefix = prefix
        self._next = begin or prefix
        self.keys: list[bytes] = []
        self.complete = empty

    def add(self, key: bytes) -> None:
        """Let a new key stand where it belongs; one that is further back is left to the database."""
        if not self.complete and key >= self._next:
            return
        keys = self.keys
        if not keys or key > keys[-1]:
            keys.append(key)
        else:
            insort(keys, key)
        if len(keys) > MOST:
            del keys[FILL:]
            self._next = keys[-1] + b"\0"
            self.complete = False

    def remove(self, key: bytes) -> None:
        """Let a key stand here no more."""
        at = bisect_left(self.keys, key)
        if at < len(self.keys) and self.keys[at] == key:
            del self.keys[at]

    def first(self, count: int) -> list[bytes]:
        """Return the first keys, up to `count`; `fill` comes first."""
        return list(islice(self.keys, count))

    @property
    def begin(self) -> bytes:
        """Where the index begins: no key of it comes before this."""
        if self.keys:
            return self.keys[0]
        return after(self._prefix) if self.complete else self._next

    def lacks(self, count: int) -> bool:
        """Whether the database must be asked before the first `count` keys are known."""
        return not self.complete and len(self.keys) < count

    async def fill(self, view: View, count: int) -> None:
        """Read on until the first `count` keys are here; `view` has every change so far."""
        while self.lacks(count):
            rows = await view.scan(self._next, after(self._prefix), limit=FILL)
            self.keys += [key for key, _ in rows]
            if rows:
                self._next = rows[-1][0] + b"\0"
            self.complete = len(rows) < FILL
