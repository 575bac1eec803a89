"""Queries of a store in memory; each function runs inside an atomic step, but for those that take several."""

import asyncio
from collections.abc import Iterator
from datetime import datetime, timedelta
from heapq import merge
from itertools import dropwhile, islice
from operator import itemgetter
from typing import Final

from windlass.core import queries
from windlass.core.duration import ZERO, from_micros, to_micros
from windlass.core.filters import JobFilter
from windlass.core.job import Job
from windlass.core.looks import DeadJob, Death, Finding, JobPage, Place
from windlass.core.moving import Packed
from windlass.core.queue_settings import NO_SETTINGS, StoredSettings
from windlass.core.states import State
from windlass.core.stats import KindStats, MinuteCounts, QueueStats, Totals
from windlass.core.store_calls import table_of
from windlass.kit.moves import looking, moving
from windlass.kit.moves import queries as moves
from windlass.kit.moves.record import Record
from windlass.stores.memory.atomic_step import AtomicStep, MemoryState
from windlass.stores.memory.queues import Queue
from windlass.stores.memory.table import Table
from windlass.stores.memory.timeline import LONG_AGO

AT_ONCE: Final = 4 * 1024 * 1024
"""Bytes that one step scans, about a millisecond: no other call is answered meanwhile."""
PER_JOB: Final = 4 * 1024
"""What a job counts for that is looked at, beside the bytes of its payload."""


async def jobs(step: AtomicStep, query: queries.ListJobs) -> list[Job]:
    """Return jobs in the order of their enqueue, by as many short steps as they need."""
    found: list[Job] = []
    after = query.after
    while True:
        with step as state:
            some, onward = _short_list(state.table, query.chosen, after, query.limit - len(found))
        found += some
        if onward is None:
            return found
        after = onward
        # a search without a match reads every job: other calls are answered in between
        await asyncio.sleep(0)


async def newest(step: AtomicStep, query: queries.ListNewestJobs) -> JobPage:
    """Return jobs, the newest first, by as many short steps as they need."""
    found: list[Job] = []
    before, most = query.before, query.most
    while True:
        with step as state:
            page, count = _short_newest(state.table, query.chosen, before, limit=query.limit - len(found), most=most)
        found += page.jobs
        before, most = page.next, most - count
        if before is None or len(found) >= query.limit or most < 1:
            return JobPage(found, before)
        await asyncio.sleep(0)


def _short_list(table: Table, chosen: JobFilter, after: int | None, limit: int) -> tuple[list[Job], int | None]:
    """Return jobs that match, in the order of their enqueue, of a short scan; and where to go on, None at the end."""
    found: list[Job] = []
    left, reads_payloads = AT_ONCE, chosen.payload_text is not None
    for record in table.after(after):
        if len(found) >= limit:
            break
        if looking.matches(record, chosen):
            found.append(record.job())
        left -= PER_JOB + (len(record.payload) if reads_payloads else 0)
        if left <= 0:
            return found, record.seq
    return found, None


def _short_newest(table: Table, chosen: JobFilter, before: int | None, *, limit: int, most: int) -> tuple[JobPage, int]:
    """Return jobs that match, the newest first, of a short scan of up to `most`, and how many were read."""
    found: list[Job] = []
    left, reads_payloads = AT_ONCE, chosen.payload_text is not None
    count = 0
    for count, record in enumerate(table.before(before)):
        if count >= most or len(found) >= limit or left <= 0:
            return JobPage(found, record.seq + 1), count
        if looking.matches(record, chosen):
            found.append(record.job())
        left -= PER_JOB + (len(record.payload) if reads_payloads else 0)
    return JobPage(found, None), count + 1


def dead(state: MemoryState, query: queries.ListDeadJobs) -> list[DeadJob]:
    """Return a page of the dead jobs, the last to die first."""
    known = state.table.queues
    names = known if query.queue is None else {query.queue}.intersection(known)
    lines = [_deaths(known[name], query.before) for name in names]
    found = islice(merge(*lines, key=itemgetter(0), reverse=True), query.limit)
    return [DeadJob(death, record.job()) for death, record in found]


def _deaths(queue: Queue, before: Death | None) -> Iterator[tuple[Death, Record]]:
    """Give the dead jobs of a queue before a position, the last to die first."""
    latest = queue.ends[State.DEAD].latest(None if before is None else _time_of(before))
    found = ((Death(to_micros(at), record.seq), record) for at, record in latest)
    return found if before is None else dropwhile(lambda each: each[0] >= before, found)


def _time_of(death: Death) -> datetime | None:
    """Return the time of a death, or the last one or None where it is past all times."""
    try:
        return from_micros(death.at)
    except OverflowError:
        return None if death.at > 0 else LONG_AGO


def position(state: MemoryState, query: queries.GetPosition) -> Place | None:
    """Return what stands between a job and its claim."""
    table, now = state.table, state.now
    record = table.jobs.get(query.job_id)
    if record is None:
        return None
    pending = record.state is State.PENDING
    ahead = table.queues[record.queue].ahead(record, looking.AHEAD_MOST) if pending else None
    holder = None if record.hold is None else table.holds.holder(record.hold.name, now)
    return Place(now, ahead, None if holder is None else holder.job_id)


def due_in(state: MemoryState, query: queries.GetDueTime) -> timedelta | None:
    """Return how long it is until the next scheduled job of these queues comes due."""
    known = [state.table.queues[name] for name in query.queues if name in state.table.queues]
    heads = [queue.due.first() for queue in known if not queue.paused]
    return min((max(ZERO, head.run_at - state.now) for head in heads if head is not None), default=None)


def stats(state: MemoryState, query: queries.GetStats) -> list[QueueStats]:
    """Count by state for one queue or all, in order of name."""
    known = state.table.queues
    names = sorted(known) if query.queue is None else [query.queue]
    return [known[name].stats() for name in names if name in known]


def queue_settings(state: MemoryState, query: queries.GetQueueSettings) -> dict[str, StoredSettings]:
    """Return the settings of those of the queues that have any."""
    known = state.table.queues
    found = {name: known[name].settings.settings for name in query.queues if name in known}
    return {name: settings for name, settings in found.items() if settings != NO_SETTINGS}


def kinds(state: MemoryState, query: queries.ListKinds) -> list[str]:
    """Return the kinds of the pending jobs of a queue that are not known, in order of name."""
    queue = state.table.queues.get(query.queue)
    return [] if queue is None else [kind for kind in queue.kinds() if kind not in query.known]


def waiting(state: MemoryState, query: queries.CountWaiting) -> list[KindStats]:
    """Count the pending jobs by queue and kind, in that order."""
    del query
    return sorted(row for queue in state.table.queues.values() for row in queue.waiting())


def minutes(state: MemoryState, query: queries.GetMinutes) -> list[MinuteCounts]:
    """Return what happened in each minute, in order of minute, queue and kind."""
    return sorted(
        MinuteCounts(minute, queue.name, kind, Totals(*row))
        for queue in state.table.queues.values()
        for (minute, kind), row in queue.tally.minutes.items()
        if query.since <= minute < query.until
    )


def ended_servers(state: MemoryState, query: queries.ListEndedServers) -> list[str]:
    """Return none: every server of this store is in this process, which lives."""
    del state, query
    return []


def stranded(state: MemoryState, query: queries.CountStranded) -> int:
    """Count the leases that ran out while no server is live, up to 1,000."""
    if state.house.alive(query.dead_after, state.now):
        return 0
    expired = sum(len(queue.leases.until(state.now)) for queue in state.table.queues.values())
    return min(expired, looking.STRANDED_MOST)


def check(state: MemoryState, query: queries.CheckStore) -> list[Finding]:
    """Return what `doctor` says of a store in memory."""
    del query
    table = state.table
    return [
        Finding("durability", "ok", "memory:// lives with its process: every job is gone when it ends"),
        Finding("jobs", "ok", f"{len(table.jobs):,} jobs on {len(table.queues):,} queues"),
        *looking.of_move(state.house.moved),
    ]


def pack(state: MemoryState, query: queries.PackJobs) -> Packed:
    """Return the first waiting jobs of a queue, in the order of their enqueue."""
    waiting = (record for record in state.table.after(None) if record.queue == query.queue and record.state.waiting)
    return moving.pack(state.table.holds, islice(waiting, query.limit), state.now)


QUERIES: Final = {
    **moves.QUERIES,
    **table_of(
        queries.ListDeadJobs.by(dead),
        queries.GetPosition.by(position),
        queries.GetDueTime.by(due_in),
        queries.GetStats.by(stats),
        queries.GetQueueSettings.by(queue_settings),
        queries.ListKinds.by(kinds),
        queries.CountWaiting.by(waiting),
        queries.GetMinutes.by(minutes),
        queries.ListEndedServers.by(ended_servers),
        queries.CountStranded.by(stranded),
        queries.CheckStore.by(check),
        queries.PackJobs.by(pack),
    ),
}
"""The function that executes each query of one step."""

LONG_QUERIES: Final = table_of(
    queries.ListJobs.by_coroutine(jobs),
    queries.ListNewestJobs.by_coroutine(newest),
)
"""The function that executes each query of several steps."""
