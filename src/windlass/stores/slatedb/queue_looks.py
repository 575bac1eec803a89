"""What people look at of queues: their counts, their kinds, and what happened in each minute."""

from collections import Counter
from datetime import datetime
from typing import Final, TypeAlias

from windlass.core.queries import CountWaiting, GetMinutes, GetQueueSettings, GetStats, GetTimings, ListKinds
from windlass.core.queue_settings import NO_SETTINGS, StoredSettings
from windlass.core.states import State
from windlass.core.stats import KindStats, MinuteCounts, QueueStats, TimingCount, Totals
from windlass.stores.slatedb import keys, records
from windlass.stores.slatedb.damaged import decoded, read_rows
from windlass.stores.slatedb.loading import gets
from windlass.stores.slatedb.ranges import rows_between, rows_of
from windlass.stores.slatedb.view import ReadState, View

READ_THROUGH: Final = 200
"""So many pending jobs are looked through at once rather than line by line."""

NamedQueue: TypeAlias = tuple[str, records.QueueRecord]


async def read_queues(view: View) -> list[NamedQueue]:
    """Return every queue that is known, in order of name."""
    return [(keys.queue_of(key), await read_row(view, key, value)) for key, value in await rows_of(view, keys.QUEUES)]


async def read_queue(view: View, queue: str) -> records.QueueRecord | None:
    """Return a queue, if it is known."""
    key = keys.queue_record(queue)
    value = await view.get(key)
    return None if value is None else await read_row(view, key, value)


async def read_row(view: View, key: bytes, value: bytes) -> records.QueueRecord:
    """Return a queue by its row; where that cannot be read, by the jobs that are there."""
    queue = keys.queue_of(key)
    then = "its jobs are counted, and it is not paused"
    return decoded(records.queue_record, value, f"the record of queue {queue!r}", then) or await recounted(view, queue)


async def recounted(view: View, queue: str) -> records.QueueRecord:
    """Return the record of a queue by the jobs that are there; what ever happened on it is lost."""
    found = records.QueueRecord()
    lines: Counter[str | None] = Counter()
    for state in State:
        rows = await rows_of(view, keys.index(queue, state))
        if state is State.PENDING:
            lines.update(keys.kind_of(key) for key, _ in rows)
        else:
            setattr(found, state, len(rows))
    found.lines = list(lines.items())
    return found


async def stats(state: ReadState, query: GetStats) -> list[QueueStats]:
    """Count by state for one queue or all, in order of name."""
    if query.queue is None:
        return [await _stats(state.view, name, kept) for name, kept in await read_queues(state.view)]
    kept = await read_queue(state.view, query.queue)
    return [] if kept is None else [await _stats(state.view, query.queue, kept)]


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


async def queue_settings(state: ReadState, query: GetQueueSettings) -> dict[str, StoredSettings]:
    """Return the settings of those of the queues that have any."""
    view, wanted = state.view, [keys.queue_record(queue) for queue in query.queues]
    values = zip(query.queues, wanted, await gets(view, wanted), strict=True)
    found = {queue: await read_row(view, key, value) for queue, key, value in values if value is not None}
    settings = {queue: kept.settings.settings for queue, kept in found.items()}
    return {queue: each for queue, each in settings.items() if each != NO_SETTINGS}


async def kinds(state: ReadState, query: ListKinds) -> list[str]:
    """Return the kinds of the pending jobs of a queue that are not known, in order of name."""
    kept = await read_queue(state.view, query.queue)
    lines = [] if kept is None else kept.lines
    return sorted(kind for kind, count in lines if count and kind is not None and kind not in query.known)


async def waiting(state: ReadState, query: CountWaiting) -> list[KindStats]:
    """Count the pending jobs by queue and kind, in that order."""
    del query
    return sorted(
        [
            KindStats(queue, kind or "", count, await _oldest_of_line(state.view, queue, kind, count))
            for queue, kept in await read_queues(state.view)
            for kind, count in kept.lines
            if count
        ]
    )


async def timings(state: ReadState, query: GetTimings) -> list[TimingCount]:
    """Return how long attempts took in each minute, in order of minute, queue and kind."""
    if query.since >= query.until:
        return []
    start, end = (keys.minute(at, family=keys.TIMINGS) for at in (query.since, query.until))
    rows = await rows_between(state.view, start, end)
    found = read_rows(rows, lambda key, value: (keys.minute_of(key), records.timings(value)), "how long attempts took")
    return [TimingCount(*minute, *timing) for minute, timings in found for timing in timings]


async def minutes(state: ReadState, query: GetMinutes) -> list[MinuteCounts]:
    """Return what happened in each minute, in order of minute, queue and kind."""
    if query.since >= query.until:
        return []
    rows = await rows_between(state.view, keys.minute(query.since), keys.minute(query.until))
    return read_rows(
        rows,
        lambda key, value: MinuteCounts(*keys.minute_of(key), Totals(*records.counts(value))),
        "what happened in a minute",
    )
