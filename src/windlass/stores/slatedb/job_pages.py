"""Pages of jobs that match a filter, in the order of their enqueue."""

import asyncio
from collections.abc import Collection, Sequence
from itertools import islice
from math import inf
from typing import Final, NamedTuple, Protocol

from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.job import Job
from windlass.core.queries import ListJobs
from windlass.core.states import State
from windlass.kit.moves.looking import matches
from windlass.stores.slatedb import keys, records
from windlass.stores.slatedb.loading import load_parts, load_records
from windlass.stores.slatedb.queue_looks import read_queues
from windlass.stores.slatedb.ranges import PAGE, pages
from windlass.stores.slatedb.view import ReadState, View

LISTED: Final = 20_000
"""So many entries of indexes are kept in memory at a time."""
SHOWN: Final = tuple(part for part in records.PARTS if part.field in {"payload", "result"})
"""The parts that every job is shown with."""
_PAYLOAD: Final = tuple(part for part in SHOWN if part.field == "payload")
_TOGETHER: Final = 32
"""Jobs whose payloads are looked at together."""


async def jobs(state: ReadState, query: ListJobs) -> list[Job]:
    """Return a page of the jobs that match, in the order of their enqueue.

    All jobs are looked at in that order. Where queue or state are given, that ends after as many jobs as could match,
    and the indexes are read instead: it costs little more than the cheaper of the two ways, wherever the jobs lie.
    """
    view, chosen, limit = state.view, query.chosen, query.limit
    indexes = await indexes_of(view, chosen)
    order = _Order(view, 0 if query.after is None else max(query.after + 1, 0))
    if indexes is None:
        return await _fill(view, order, chosen, limit)
    if not indexes.members:
        return []
    found = await _fill(view, order, chosen, limit, most=max(indexes.members, limit))
    if len(found) < limit and not order.ended:
        found += await _fill(view, _Listed(view, indexes.prefixes, order.first), chosen, limit - len(found))
    return found


class _Source(Protocol):
    """Where ids come from, in the order of enqueue."""

    async def take(self, count: int) -> list[JobId]:
        """Return the next ids, up to `count`; none when there are no more."""
        ...


class _Order:
    """All jobs from the sequence number `first` on."""

    def __init__(self, view: View, first: int) -> None:
        self._view = view
        self.first = first
        self.ended = False

    async def take(self, count: int) -> list[JobId]:
        rows = await self._view.scan(keys.order(self.first), keys.after(keys.ORDER), limit=count)
        if rows:
            self.first = keys.number_of(rows[-1][0]) + 1
        self.ended = len(rows) < count
        return [keys.id_of(value) for _, value in rows]


class _Listed:
    """The jobs of some indexes from the sequence number `first` on: indexes sort by time, so they are read whole."""

    def __init__(self, view: View, prefixes: Sequence[bytes], first: int) -> None:
        self._view = view
        self._prefixes = prefixes
        self._first = keys.number(first)
        self._turns: list[bytes] = []
        self._ended = False

    async def take(self, count: int) -> list[JobId]:
        if not self._turns and not self._ended:
            await self._list()
        taken = self._turns[:count]
        del self._turns[:count]
        return [keys.id_of(turn) for turn in taken]

    async def _list(self) -> None:
        """List the next jobs, as many as are kept in memory."""
        turns: list[bytes] = []
        dropped = False
        for prefix in self._prefixes:
            async for rows in pages(self._view, prefix, keys.after(prefix), size=PAGE):
                turns += [turn for key, _ in rows if (turn := keys.turn_of(key)) >= self._first]
                if len(turns) > 2 * LISTED:
                    turns.sort()
                    del turns[LISTED:]
                    dropped = True
        turns.sort()
        if dropped:
            # some that were dropped may come before those that were read later
            del turns[LISTED:]
            self._first = turns[-1] + b"\0"
        self._turns = turns
        self._ended = not dropped


class Indexes(NamedTuple):
    """The indexes of all jobs that could match, as what their keys begin with, and how many jobs stand there."""

    prefixes: list[bytes]
    members: int


async def indexes_of(view: View, chosen: JobFilter) -> Indexes | None:
    """Return the indexes of the queue and the state that are given; None when neither is."""
    if chosen.queue is None and chosen.state is None:
        return None
    queues = [(queue, kept) for queue, kept in await read_queues(view) if chosen.queue in {None, queue}]
    states = list(State) if chosen.state is None else [State(chosen.state)]
    used = [(queue, state, kept.standing(state)) for queue, kept in queues for state in states if kept.standing(state)]
    return Indexes([keys.index(queue, state) for queue, state, _ in used], sum(count for *_, count in used))


async def _fill(view: View, source: _Source, chosen: JobFilter, limit: int, *, most: float = inf) -> list[Job]:
    """Return up to `limit` jobs that match, of those of the source; about `most` of them are looked at."""
    found: list[Job] = []
    looked_at, size = 0, min(limit, PAGE)
    while len(found) < limit and looked_at < most and (ids := await source.take(size)):
        found += await matching(view, ids, chosen, limit - len(found))
        looked_at += len(ids)
        size = min(2 * size, PAGE)
    return found


async def matching(view: View, ids: Sequence[JobId], chosen: JobFilter, limit: int) -> list[Job]:
    """Return those of these jobs that match, in their order, up to `limit`."""
    if chosen.payload_text is None:
        fitting = await _fitting(view, ids, chosen, ())
    else:
        fitting = dict[JobId, bytes]()
        # few at a time: their payloads are in memory meanwhile, and no other call is answered
        for begin in range(0, len(ids), _TOGETHER):
            fitting |= await _fitting(view, ids[begin : begin + _TOGETHER], chosen, _PAYLOAD)
            if len(fitting) >= limit:
                break
            await asyncio.sleep(0)
    shown = await load_parts(view, dict(islice(fitting.items(), limit)), SHOWN)
    return [shown[job_id].job() for job_id in fitting if job_id in shown]


async def _fitting(
    view: View, ids: Sequence[JobId], chosen: JobFilter, parts: Collection[records.Part]
) -> dict[JobId, bytes]:
    """Return those of these jobs that match, in their order, as they are kept."""
    loaded = await load_records(view, ids, parts=parts)
    return {each: loaded[each].main for each in ids if each in loaded and matches(loaded[each].record, chosen)}
