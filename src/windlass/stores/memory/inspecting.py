"""What people look at."""

from collections.abc import Collection, Sequence
from datetime import datetime
from itertools import islice

from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.job import Job
from windlass.core.looks import Finding, Glance, JobPage, Place
from windlass.core.states import State
from windlass.core.stats import KindStats, MinuteCounts, QueueStats, Totals
from windlass.kit.moves import looking
from windlass.stores.memory.table import Table


def get(table: Table, job_id: JobId) -> Job | None:
    """Return a job with its history and log."""
    record = table.jobs.get(job_id)
    return None if record is None else record.whole_job()


def glance(table: Table, ids: Collection[JobId]) -> dict[JobId, Glance]:
    """Return where each of these jobs stands."""
    found = [(job_id, table.jobs.get(job_id)) for job_id in ids]
    return {job_id: looking.glance(record) for job_id, record in found if record is not None}


def jobs(table: Table, chosen: JobFilter, after: int | None, limit: int) -> list[Job]:
    """Return a page of the jobs that match, in the order of their enqueue."""
    matching = (record for record in table.after(after) if looking.matches(record, chosen))
    return [record.job() for record in islice(matching, limit)]


def newest(table: Table, chosen: JobFilter, before: int | None, *, limit: int, most: int) -> JobPage:
    """Return a page of the jobs that match, the newest first; up to `most` jobs are looked at."""
    found: list[Job] = []
    for looked_at, record in enumerate(table.before(before)):
        if looked_at >= most or len(found) >= limit:
            return JobPage(found, record.seq + 1)
        if looking.matches(record, chosen):
            found.append(record.job())
    return JobPage(found, None)


def place(table: Table, job_id: JobId, now: datetime) -> Place | None:
    """Return what stands between a job and its claim."""
    record = table.jobs.get(job_id)
    if record is None:
        return None
    pending = record.state is State.PENDING
    ahead = table.queues[record.queue].ahead(record, looking.AHEAD_MOST) if pending else None
    holder = None if record.hold is None else table.holds.holder(record.hold.name, now)
    return Place(now, ahead, None if holder is None else holder.job_id)


def stats(table: Table, queue: str | None) -> list[QueueStats]:
    """Count by state for one queue or all, in order of name."""
    names = sorted(table.queues) if queue is None else [queue]
    return [table.queues[name].stats() for name in names if name in table.queues]


def paused(table: Table, queues: Sequence[str]) -> list[str]:
    """Return those of `queues` that are paused, in their order."""
    return [name for name in queues if name in table.queues and table.queues[name].paused]


def kinds(table: Table, queue: str, known: Collection[str]) -> list[str]:
    """Return the kinds of the pending jobs of `queue` that are not among `known`, in order of name."""
    return [kind for kind in table.queues[queue].kinds() if kind not in known] if queue in table.queues else []


def waiting(table: Table) -> list[KindStats]:
    """Count the pending jobs by queue and kind, in that order."""
    return sorted(row for queue in table.queues.values() for row in queue.waiting())


def minutes(table: Table, since: datetime, until: datetime) -> list[MinuteCounts]:
    """Return what happened in each minute, in order of minute, queue and kind."""
    return sorted(
        MinuteCounts(minute, queue.name, kind, Totals(*row))
        for queue in table.queues.values()
        for (minute, kind), row in queue.tally.minutes.items()
        if since <= minute < until
    )


def stranded(table: Table, now: datetime) -> int:
    """Count the leases that ran out, up to 1,000."""
    return min(sum(len(queue.leases.until(now)) for queue in table.queues.values()), looking.STRANDED_MOST)


def check(table: Table) -> list[Finding]:
    """Say what to know about a store in memory."""
    return [
        Finding("durability", "ok", "memory:// lives with its process: every job is gone when it ends"),
        Finding("jobs", "ok", f"{len(table.jobs):,} jobs on {len(table.queues):,} queues"),
    ]
