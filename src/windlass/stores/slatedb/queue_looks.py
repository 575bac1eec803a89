"""What people look at of queues: their counts, their kinds, and what happened in each minute."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final, TypeAlias

from windlass.core.stats import KindStats, MinuteCounts, QueueStats, TimingCount, Totals
from windlass.stores.slatedb import keys, records
from windlass.stores.slatedb.loading import gets
from windlass.stores.slatedb.ranges import rows_between, rows_of
from windlass.stores.slatedb.view import View

READ_THROUGH: Final = 200
"""So many pending jobs are looked through at once rather than line by line."""

NamedQueue: TypeAlias = tuple[str, records.QueueRecord]


async def read_queues(view: View) -> list[NamedQueue]:
    """Return every queue that is known, in order of name."""
    return [(keys.queue_of(key), records.queue_record(value)) for key, value in await rows_of(view, keys.QUEUES)]


async def read_queue(view: View, queue: str) -> records.QueueRecord | None:
    """Return a queue, if it is known."""
    value = await view.get(keys.queue_record(queue))
    return None if value is None else records.queue_record(value)


async def stats(view: View, queue: str | None) -> list[QueueStats]:
    """Count by state for one queue or all, in order of name."""
    if queue is None:
        return [await _stats(view, name, kept) for name, kept in await read_queues(view)]
    kept = await read_queue(view, queue)
    return [] if kept is None else [await _stats(view, queue, kept)]


async def _stats(view: View, queue: str, kept: records.QueueRecord) -> QueueStats:
    return QueueStats(
        queue=queue,
        paused=kept.paused,
        scheduled=kept.scheduled,
        pending=kept.pending,
        running=kept.running,
        succeeded=kept.succeeded,
        dead=kept.dead,
        cancelled=kept.cancelled,
        oldest_waiting=await _oldest_waiting(view, queue, kept),
        totals=Totals(*kept.totals),
    )


async def _oldest_waiting(view: View, queue: str, kept: records.QueueRecord) -> datetime | None:
    times = [await _oldest_of_line(view, queue, kind, count) for kind, count in kept.lines]
    return min((at for at in times if at is not None), default=None)


async def _oldest_of_line(view: View, queue: str, kind: str | None, count: int) -> datetime | None:
    if count > READ_THROUGH:
        return min(await _oldest_by_priority(view, queue, kind), default=None)
    return min((keys.time_of(key) for key, _ in await rows_of(view, keys.line(queue, kind))), default=None)


async def _oldest_by_priority(view: View, queue: str, kind: str | None) -> list[datetime]:
    """Return the earliest run time of each priority of a line: within one priority it stands first."""
    line = keys.line(queue, kind)
    start, end = line, keys.after(line)
    times: list[datetime] = []
    while rows := await view.scan(start, end, limit=1):
        [(first, _)] = rows
        times.append(keys.time_of(first))
        start = line + keys.first_of_priority(keys.priority_of(first) + 1)
    return times


async def paused(view: View, queues: Sequence[str]) -> list[str]:
    """Return those of `queues` that are paused, in their order."""
    values = await gets(view, [keys.queue_record(queue) for queue in queues])
    return [
        queue
        for queue, value in zip(queues, values, strict=True)
        if value is not None and records.queue_record(value).paused
    ]


async def kinds(view: View, queue: str, known: Collection[str]) -> list[str]:
    """Return the kinds of the pending jobs of `queue` that are not among `known`, in order of name."""
    kept = await read_queue(view, queue)
    lines = [] if kept is None else kept.lines
    return sorted(kind for kind, count in lines if count and kind is not None and kind not in known)


async def waiting(view: View) -> list[KindStats]:
    """Count the pending jobs by queue and kind, in that order."""
    return sorted(
        [
            KindStats(queue, kind or "", count, await _oldest_of_line(view, queue, kind, count))
            for queue, kept in await read_queues(view)
            for kind, count in kept.lines
            if count
        ]
    )


async def timings(view: View, since: datetime, until: datetime) -> list[TimingCount]:
    """Return how long attempts took in each minute, in order of minute, queue and kind."""
    if since >= until:
        return []
    start, end = (keys.minute(at, family=keys.TIMINGS) for at in (since, until))
    return [
        TimingCount(*keys.minute_of(key), *timing)
        for key, value in await rows_between(view, start, end)
        for timing in records.timings(value)
    ]


async def minutes(view: View, since: datetime, until: datetime) -> list[MinuteCounts]:
    """Return what happened in each minute, in order of minute, queue and kind."""
    if since >= until:
        return []
    rows = await rows_between(view, keys.minute(since), keys.minute(until))
    return [MinuteCounts(*keys.minute_of(key), Totals(*records.counts(value))) for key, value in rows]
