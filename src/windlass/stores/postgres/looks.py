"""What people and waiters look at. Every look is one statement, so that its answer is of one moment."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

import msgspec

from windlass.core.duration import ZERO
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.job import Job
from windlass.core.looks import AuditEntry, Glance, Place, ServerRecord
from windlass.core.names import MAX_KEY
from windlass.core.states import State
from windlass.core.stats import KindStats, MinuteCounts, QueueStats, TimingCount, Totals
from windlass.kit.moves.looking import AHEAD_MOST
from windlass.kit.records import STATES, server_of
from windlass.stores.postgres.rows import JobRow, deliveries_of, history_of, job_of, log_of, plain_text
from windlass.stores.postgres.work import Changes, Row, Statement, Work

_JOB_COLUMNS: Final = len(JobRow._fields)
_PAST_EVERY_KEY: Final = b"\xff" * (MAX_KEY + 1)


def get(ids: Sequence[JobId]) -> Work[list[Job | None]]:
    """Return jobs with their history and log."""
    rows = yield Statement("get", [list(ids)])
    jobs = {job.id: job for job in map(whole_job, rows)}
    return [jobs.get(job_id) for job_id in ids]


def whole_job(row: Row) -> Job:
    """Return the job of a row of `get.sql`."""
    job = job_of(JobRow(*row[:_JOB_COLUMNS]))
    ended, lines = row[_JOB_COLUMNS:]
    return job._replace(history=history_of(job, deliveries_of(ended)), log=log_of(lines))


def glance(ids: Collection[JobId]) -> Work[dict[JobId, Glance]]:
    """Return where jobs stand."""
    rows = yield Statement("glance", [list(ids)])
    return {job_id: Glance(STATES[state], flag, token) for job_id, state, flag, token in rows}


def jobs(chosen: JobFilter, after: int | None, limit: int) -> Work[list[Job]]:
    """Return a page of jobs in the order of their enqueue."""
    first = -1 if after is None else after
    if chosen.queue is not None and chosen == JobFilter(queue=chosen.queue, state=State.DEAD):
        rows = yield Statement("dead_jobs", [chosen.queue, first, limit])
    else:
        rows = yield Statement("jobs", [first, limit, *conditions(chosen)])
    return [job_of(JobRow(*row)) for row in rows]


def conditions(chosen: JobFilter) -> list[object]:
    """Return the values by which `jobs.sql` and those for the newest jobs choose."""
    return [
        chosen.queue,
        chosen.kind,
        None if chosen.state is None else str(chosen.state),
        chosen.tenant,
        chosen.schedule_id,
        None if chosen.error is None else plain_text(chosen.error),
        chosen.since,
        chosen.until,
        None if chosen.text is None else plain_text(chosen.text),
        chosen.parent_id,
        chosen.unique_key,
        None if chosen.error_type is None else plain_text(chosen.error_type),
        None if chosen.payload_text is None else chosen.payload_text.encode(),
    ]


def stats(queue: str | None) -> Work[list[QueueStats]]:
    """Return the counts of queues, exactly, in order of name."""
    rows = yield Statement("stats", [queue])
    return sorted(map(_queue_stats, rows), key=lambda row: row.queue or "")


def _queue_stats(row: Row) -> QueueStats:
    queue, paused, scheduled, pending, running, succeeded, dead, cancelled, *totals, oldest_waiting = row
    return QueueStats(
        queue=queue,
        paused=paused,
        scheduled=scheduled,
        pending=pending,
        running=running,
        succeeded=succeeded,
        dead=dead,
        cancelled=cancelled,
        oldest_waiting=oldest_waiting,
        totals=Totals(*totals),
    )


def due_in(changes: Changes, queues: Sequence[str]) -> Work[timedelta | None]:
    """Return how long it is until the next scheduled job comes due, by the database's clock."""
    [(wait,)] = yield Statement("due_in", [changes.now, list(queues)])
    return None if wait is None else max(ZERO, wait)


def paused(queues: Sequence[str]) -> Work[list[str]]:
    """Return those of `queues` that are paused, in their order."""
    rows = yield Statement("paused", [list(queues)])
    found = {row[0] for row in rows}
    return [queue for queue in queues if queue in found]


def kinds(queue: str, known: Collection[str]) -> Work[list[str]]:
    """Return the kinds of the pending jobs of `queue` that are not among `known`, in order of name."""
    rows = yield Statement("kinds", [queue, list(known)])
    return sorted(row[0] for row in rows)


def waiting() -> Work[list[KindStats]]:
    """Count the pending jobs by queue and kind, exactly, in that order."""
    rows = yield Statement("waiting")
    return sorted(KindStats(*row) for row in rows)


def minutes(since: datetime, until: datetime) -> Work[list[MinuteCounts]]:
    """Return the counts of each minute."""
    rows = yield Statement("minutes", [since, until])
    return [MinuteCounts(minute, queue, kind, Totals(*totals)) for minute, queue, kind, *totals in rows]


def timings(since: datetime, until: datetime) -> Work[list[TimingCount]]:
    """Return how long attempts took in each minute."""
    rows = yield Statement("timings", [since, until])
    return [TimingCount(*row) for row in rows]


def place(changes: Changes, job_id: JobId) -> Work[Place | None]:
    """Return what stands between a job and its claim."""
    rows = yield Statement("place", [changes.now, job_id, AHEAD_MOST])
    return Place(*rows[0]) if rows else None


def servers() -> Work[list[ServerRecord]]:
    """Return every server that has not taken itself out."""
    rows = yield Statement("servers")
    return [replace(server_of(record), started_at=started_at, seen_at=seen_at) for started_at, seen_at, record in rows]


def audit(limit: int) -> Work[list[AuditEntry]]:
    """Return what people did, the newest first."""
    rows = yield Statement("audit", [limit])
    return [
        AuditEntry(at, actor, action, target, msgspec.json.decode(detail)) for at, actor, action, target, detail in rows
    ]


def stranded(changes: Changes, dead_after: timedelta) -> Work[int]:
    """Count expired leases while no server is live."""
    [(count,)] = yield Statement("stranded", [changes.now, dead_after])
    return int(count)


def kv_get(keys: Sequence[bytes]) -> Work[list[bytes | None]]:
    """Return the caller's own values."""
    rows = yield Statement("kv_get", [list(keys)])
    values: dict[bytes, bytes] = {row[0]: row[1] for row in rows}
    return [values.get(key) for key in keys]


def kv_scan(prefix: bytes, after: bytes | None, limit: int) -> Work[list[tuple[bytes, bytes]]]:
    """Return the caller's own values whose key begins with `prefix`."""
    # the next key there can be: a range with two ends is what an index finds without looking at any other key
    first = prefix if after is None else max(prefix, after + b"\0")
    rows = yield Statement("kv_scan", [first, _past(prefix), limit])
    return [(key, value) for key, value in rows]


def _past(prefix: bytes) -> bytes:
    """Return a key that sorts after every key with this prefix."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else _PAST_EVERY_KEY
