"""Queries of a Postgres store; each function makes the statements of one query."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Final

import msgspec

from windlass.core import queries
from windlass.core.duration import ZERO
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.job import Job
from windlass.core.looks import AuditEntry, Glance, Place, ServerRecord
from windlass.core.names import MAX_KEY
from windlass.core.queue_settings import SettingsRow, StoredSettings
from windlass.core.states import State
from windlass.core.stats import KindStats, MinuteCounts, QueueStats, TimingCount, Totals
from windlass.core.store_calls import table_of
from windlass.kit.damage import DamageLog, read_each
from windlass.kit.moves.looking import AHEAD_MOST
from windlass.kit.records import server_of
from windlass.stores.postgres.moves import departure, holds, unpack
from windlass.stores.postgres.moves.marks import lease_mark
from windlass.stores.postgres.rows import JobRow, job_of, plain_text, readable, state_of, with_history
from windlass.stores.postgres.work import Changes, Row, Statement, Work

_damaged: Final = DamageLog(logging.getLogger("windlass.postgres"))
_JOB_COLUMNS: Final = len(JobRow._fields)
MOST_COUNTED: Final = 2**53
"""Where the sums of the statements end: a larger one comes from a damaged row."""
_PAST_EVERY_KEY: Final = b"\xff" * (MAX_KEY + 1)


def get(changes: Changes, query: queries.GetJobs) -> Work[list[Job | None]]:
    """Return jobs with their history and log."""
    del changes
    rows = yield Statement("get", {"ids": list(query.ids)})
    jobs = {job.id: job for job in map(whole_job, rows)}
    return [jobs.get(job_id) for job_id in query.ids]


def whole_job(row: Row) -> Job:
    """Return the job of a row of `get.sql`."""
    deliveries, lines = row[_JOB_COLUMNS:]
    return with_history(job_of(JobRow(*row[:_JOB_COLUMNS])), deliveries, lines)


def glance(changes: Changes, query: queries.GetGlances) -> Work[dict[JobId, Glance]]:
    """Return the states of jobs."""
    del changes
    rows = yield Statement("glance", {"ids": list(query.ids)})
    return {job_id: Glance(state_of(state), flag, token) for job_id, state, flag, token in rows}


def jobs(changes: Changes, query: queries.ListJobs) -> Work[list[Job]]:
    """Return a page of jobs in the order of their enqueue."""
    del changes
    chosen, limit = query.chosen, query.limit
    first = -1 if query.after is None else query.after
    if chosen.queue is not None and chosen == JobFilter(queue=chosen.queue, state=State.DEAD):
        rows = yield Statement("dead_jobs", {"queue": chosen.queue, "after": first, "limit": limit})
    else:
        rows = yield Statement("jobs", {"after": first, "limit": limit, **conditions(chosen)})
    return [job_of(JobRow(*row)) for row in rows]


def conditions(chosen: JobFilter) -> dict[str, object]:
    """Return the parameters of `parts/job_filter.sql`."""
    return {
        **chosen.by_field(),
        "state": None if chosen.state is None else str(chosen.state),
        "error": None if chosen.error is None else plain_text(chosen.error),
        "text": None if chosen.text is None else plain_text(chosen.text),
        "error_type": None if chosen.error_type is None else plain_text(chosen.error_type),
        "payload_text": None if chosen.payload_text is None else chosen.payload_text.encode(),
    }


def stats(changes: Changes, query: queries.GetStats) -> Work[list[QueueStats]]:
    """Return the counts of queues, exactly, in order of name."""
    del changes
    rows = yield Statement("stats", {"queue": query.queue})
    return sorted(map(_queue_stats, rows), key=lambda row: row.queue or "")


def _queue_stats(row: Row) -> QueueStats:
    queue, paused, scheduled, pending, running, succeeded, dead, cancelled, *totals, oldest_waiting = row
    note_damaged_counts(queue, row[2:-1])
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


def note_damaged_counts(queue: str, counts: Sequence[int]) -> bool:
    """Log that counts of a queue are out of all range, as a damaged row makes them; return whether one is."""
    is_damaged = any(abs(count) >= MOST_COUNTED for count in counts)
    if is_damaged:
        _damaged.log("the counts of a queue are damaged, in windlass_count or windlass_delta: %s", repr(queue))
    return is_damaged


def due_in(changes: Changes, query: queries.GetDueTime) -> Work[timedelta | None]:
    """Return how long it is until the next scheduled job comes due, by the database's clock."""
    [(wait,)] = yield Statement("due_in", {"now": changes.now, "queues": list(query.queues)})
    return None if wait is None else max(ZERO, wait)


def queue_settings(changes: Changes, query: queries.GetQueueSettings) -> Work[dict[str, StoredSettings]]:
    """Return the settings of those of the queues that have any."""
    del changes
    rows = yield Statement("queue_settings", {"queues": list(query.queues)})
    found = {queue: SettingsRow(*row) for queue, *row in rows}
    for queue, row in found.items():
        if row.damaged:
            _damaged.log("settings of a queue are damaged, in windlass_queue, and count as not set: %s", repr(queue))
    return {queue: row.settings for queue, row in found.items()}


def kinds(changes: Changes, query: queries.ListKinds) -> Work[list[str]]:
    """Return the kinds of the pending jobs of a queue that are not known, in order of name."""
    del changes
    rows = yield Statement("kinds", {"queue": query.queue, "known": list(query.known)})
    return sorted(row[0] for row in rows)


def waiting(changes: Changes, query: queries.CountWaiting) -> Work[list[KindStats]]:
    """Count the pending jobs by queue and kind, exactly, in that order."""
    del changes, query
    rows = yield Statement("waiting")
    return sorted(KindStats(*row) for row in rows)


def minutes(changes: Changes, query: queries.GetMinutes) -> Work[list[MinuteCounts]]:
    """Return the counts of each minute."""
    del changes
    rows = yield Statement("minutes", {"since": query.since, "until": query.until})
    found: list[MinuteCounts] = []
    for minute, queue, kind, *totals in rows:
        note_damaged_counts(queue, totals)
        found.append(MinuteCounts(minute, queue, kind, Totals(*totals)))
    return found


def timings(changes: Changes, query: queries.GetTimings) -> Work[list[TimingCount]]:
    """Return how long attempts took in each minute."""
    del changes
    rows = yield Statement("timings", {"since": query.since, "until": query.until})
    return [TimingCount(*row) for row in rows]


def position(changes: Changes, query: queries.GetPosition) -> Work[Place | None]:
    """Return what stands between a job and its claim."""
    rows = yield Statement("place", {"now": changes.now, "id": query.job_id, "most": AHEAD_MOST})
    return Place(*rows[0]) if rows else None


def servers(changes: Changes, query: queries.ListServers) -> Work[list[ServerRecord]]:
    """Return every server whose record was not removed."""
    del changes, query
    rows = yield Statement("servers")
    return read_each(
        map(readable, rows), _server_of, partial(_damaged.log, "a server is not listed, its record is damaged: %s")
    )


def _server_of(row: Row) -> ServerRecord:
    started_at, seen_at, record = row
    return replace(server_of(record), started_at=started_at, seen_at=seen_at)


def ended_servers(changes: Changes, query: queries.ListEndedServers) -> Work[list[str]]:
    """Return none: a process on another machine that is silent may still be alive."""
    del changes, query
    yield from ()
    return []


def audit(changes: Changes, query: queries.ListAudit) -> Work[list[AuditEntry]]:
    """Return what people did, the newest first."""
    del changes
    rows = yield Statement("audit", {"limit": query.limit})
    return read_each(
        map(readable, rows), _entry_of, partial(_damaged.log, "an entry of the audit is not listed, it is damaged: %s")
    )


def _entry_of(row: Row) -> AuditEntry:
    at, actor, action, target, detail = row
    return AuditEntry(at, actor, action, target, msgspec.json.decode(detail, type=dict[str, str]))


def stranded(changes: Changes, query: queries.CountStranded) -> Work[int]:
    """Count expired leases while no server is live."""
    mark = yield from lease_mark()
    [(count,)] = yield Statement("stranded", {"now": changes.now, "age": query.dead_after, "lease_mark": mark})
    return int(count)


def get_kv(changes: Changes, query: queries.GetKv) -> Work[list[bytes | None]]:
    """Return the caller's own values."""
    del changes
    rows = yield Statement("kv_get", {"keys": list(query.keys)})
    values: dict[bytes, bytes] = {row[0]: row[1] for row in rows}
    return [values.get(key) for key in query.keys]


def scan_kv(changes: Changes, query: queries.ScanKv) -> Work[list[tuple[bytes, bytes]]]:
    """Return the caller's own values whose key begins with the prefix."""
    del changes
    prefix, after = query.prefix, query.after
    # the next key there can be: a range with two ends is what an index finds without looking at any other key
    first = prefix if after is None else max(prefix, after + b"\0")
    rows = yield Statement("kv_scan", {"first": first, "past": _past(prefix), "limit": query.limit})
    return [(key, value) for key, value in rows]


def _past(prefix: bytes) -> bytes:
    """Return a key that sorts after every key with this prefix."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else _PAST_EVERY_KEY


READS: Final = table_of(
    queries.GetGlances.by_generator(glance),
    queries.ListJobs.by_generator(jobs),
    queries.GetPosition.by_generator(position),
    queries.GetDueTime.by_generator(due_in),
    queries.GetStats.by_generator(stats),
    queries.GetQueueSettings.by_generator(queue_settings),
    queries.ListKinds.by_generator(kinds),
    queries.CountWaiting.by_generator(waiting),
    queries.GetMinutes.by_generator(minutes),
    queries.GetTimings.by_generator(timings),
    queries.ListServers.by_generator(servers),
    queries.ListEndedServers.by_generator(ended_servers),
    queries.ListAudit.by_generator(audit),
    queries.CountStranded.by_generator(stranded),
    queries.GetKv.by_generator(get_kv),
    queries.ScanKv.by_generator(scan_kv),
    queries.GetMoved.by_generator(departure.moved),
    queries.GetUnpacked.by_generator(unpack.unpacked),
    queries.ListTimedKeys.by_generator(holds.timed),
)
"""The generator function that executes each query; each of its statements sees a moment of its own."""
SNAPSHOT_READS: Final = table_of(queries.GetJobs.by_generator(get))
"""The generator function that executes each query in a read transaction; all its statements see one moment."""
