"""Pages of jobs that match a filter, the newest first."""

from collections.abc import Sequence
from typing import Final, Protocol

from windlass.core.filters import JobFilter
from windlass.core.job import Job
from windlass.core.looks import JobPage
from windlass.stores.slatedb import keys
from windlass.stores.slatedb.job_pages import indexes_of, matching
from windlass.stores.slatedb.ranges import PAGE, rows_of
from windlass.stores.slatedb.view import View

_PAST_ALL: Final = 2**63
"""A sequence number that no job has."""


async def newest(view: View, chosen: JobFilter, before: int | None, *, limit: int, most: int) -> JobPage:
    """Return a page of the jobs that match, the newest first; up to `most` jobs are looked at.

    Where queue or state are given, and no more jobs than that could match, the indexes lead to all of them.
    """
    indexes = await indexes_of(view, chosen)
    if indexes is not None and not indexes.members:
        return JobPage([], None)
    end = _PAST_ALL if before is None else min(max(before, 0), _PAST_ALL)
    source: _Source = _Order(view, end)
    if indexes is not None and indexes.members <= most:
        source = _Listed(view, indexes.prefixes, end)
    found: list[Job] = []
    looked_at, size = 0, min(limit, PAGE)
    while len(found) < limit and looked_at < most:
        turns = await source.take(min(size, most - looked_at))
        if not turns:
            return JobPage(found, None)
        found += await matching(view, [keys.id_of(turn) for turn in turns], chosen, limit - len(found))
        looked_at += len(turns)
        end = keys.seq_of(turns[-1])
        size = min(2 * size, PAGE)
    # of the last ones that were looked at, those behind the end of the page come again
    return JobPage(found, found[-1].seq if found and len(found) >= limit else end)


class _Source(Protocol):
    """Where turns come from: sequence number and id, the newest first."""

    async def take(self, count: int) -> list[bytes]:
        """Return the next turns, up to `count`; none when there are no more."""
        ...


class _Order:
    """All jobs before the sequence number `end`."""

    def __init__(self, view: View, end: int) -> None:
        self._view = view
        self._end = keys.order(end)

    async def take(self, count: int) -> list[bytes]:
        rows = await self._view.scan(keys.ORDER, self._end, limit=count, reverse=True)
        if rows:
            self._end = rows[-1][0]
        return [key[len(keys.ORDER) :] + value for key, value in rows]


class _Listed:
    """The jobs of some indexes, few enough to be read whole, before the sequence number `end`."""

    def __init__(self, view: View, prefixes: Sequence[bytes], end: int) -> None:
        self._view = view
        self._prefixes = prefixes
        self._end = keys.number(end)
        self._turns: list[bytes] | None = None

    async def take(self, count: int) -> list[bytes]:
        if self._turns is None:
            rows = [row for prefix in self._prefixes for row in await rows_of(self._view, prefix)]
            self._turns = sorted(turn for key, _ in rows if (turn := keys.turn_of(key)) < self._end)
        taken = self._turns[: -count - 1 : -1]
        del self._turns[-count:]
        return taken
