"""What people and waiters look at; every function reads with one cursor, inside one read transaction."""

import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import msgspec

from windlass.core.duration import ZERO, from_micros, to_micros
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.job import Job
from windlass.core.looks import AuditEntry, Glance, Place, ServerRecord
from windlass.core.names import LOG_LINES_KEPT
from windlass.core.states import State
from windlass.core.stats import KindStats, MinuteCounts, QueueStats, TimingCount, Totals
from windlass.kit.moves.looking import AHEAD_MOST
from windlass.kit.records import STATES, server_of
from windlass.stores.sqlite.rows import JobRow, history_of, job_of, json_list, log_line_of, moment
from windlass.stores.sqlite.statements import sql


def get(cursor: sqlite3.Cursor, ids: Sequence[JobId]) -> list[Job | None]:
    """Return jobs with their history and log."""
    return [_get(cursor, job_id) for job_id in ids]


def _get(cursor: sqlite3.Cursor, job_id: JobId) -> Job | None:
    row = cursor.execute(sql("get"), (job_id,)).fetchone()
    if row is None:
        return None
    return with_traces(cursor, JobRow(*row))


def with_traces(cursor: sqlite3.Cursor, found: JobRow) -> Job:
    """Return the job of a row, with its history and log."""
    job = job_of(found)
    ended = cursor.execute(sql("deliveries"), (job.seq,)).fetchall() if job.delivery else []
    lines = cursor.execute(sql("log"), (job.seq,)).fetchall() if found.log_lines else []
    log = tuple(log_line_of(line) for line in lines[-LOG_LINES_KEPT:])
    return job._replace(history=history_of(job, ended), log=log)


def glance(cursor: sqlite3.Cursor, ids: Collection[JobId]) -> dict[JobId, Glance]:
    """Return where jobs stand."""
    rows = cursor.execute(sql("glance"), (json_list(list(ids)),)).fetchall()
    return {job_id: Glance(STATES[state], bool(flag), token) for job_id, state, flag, token in rows}


def jobs(cursor: sqlite3.Cursor, chosen: JobFilter, after: int | None, limit: int) -> list[Job]:
    """Return a page of jobs in the order of their enqueue."""
    only_dead = chosen == JobFilter(queue=chosen.queue, state=State.DEAD) and chosen.queue is not None
    parameters = {**filter_values(chosen), "after": -1 if after is None else after, "limit": limit}
    statement = sql("dead_jobs" if only_dead else "jobs")
    return [job_of(JobRow(*row)) for row in cursor.execute(statement, parameters).fetchall()]


def filter_values(chosen: JobFilter) -> dict[str, object]:
    """Return what the statements that search bind for `chosen`."""
    return {
        "queue": chosen.queue,
        "kind": chosen.kind,
        "state": None if chosen.state is None else str(chosen.state),
        "tenant": chosen.tenant,
        "schedule_id": chosen.schedule_id,
        "error": chosen.error,
        "since": None if chosen.since is None else to_micros(chosen.since),
        "until": None if chosen.until is None else to_micros(chosen.until),
        "text": chosen.text,
        "parent_id": chosen.parent_id,
        "unique_key": chosen.unique_key,
        "error_type": chosen.error_type,
        # bytes are looked for in bytes
        "payload_text": None if chosen.payload_text is None else chosen.payload_text.encode(),
    }


def place(cursor: sqlite3.Cursor, now: datetime, job_id: JobId) -> Place | None:
    """Return what stands between a job and its claim."""
    row = cursor.execute(sql("place"), (job_id,)).fetchone()
    if row is None:
        return None
    queue, state, hold, *place = row
    holder = None if hold is None else cursor.execute(sql("holder"), (hold, to_micros(now))).fetchone()
    ahead = _ahead(cursor, queue, *place) if state == State.PENDING else None
    return Place(now, ahead, None if holder is None else holder[0])


def _ahead(cursor: sqlite3.Cursor, queue: str, priority: int, run_at: int, seq: int) -> int:
    parameters = {"queue": queue, "priority": priority, "run_at": run_at, "seq": seq, "most": AHEAD_MOST}
    return int(cursor.execute(sql("ahead"), parameters).fetchone()[0])


def stats(cursor: sqlite3.Cursor, queue: str | None) -> list[QueueStats]:
    """Return the counts of queues, which every commit keeps exact."""
    rows = cursor.execute(sql("stats"), {"queue": queue}).fetchall()
    return [_queue_stats(cursor, *row) for row in rows]


def _queue_stats(cursor: sqlite3.Cursor, queue: str, paused: int, *counts: int) -> QueueStats:
    scheduled, pending, running, succeeded, dead, cancelled, *totals = counts
    return QueueStats(
        queue=queue,
        paused=bool(paused),
        scheduled=scheduled,
        pending=pending,
        running=running,
        succeeded=succeeded,
        dead=dead,
        cancelled=cancelled,
        oldest_waiting=_oldest_waiting(cursor, queue, pending),
        totals=Totals(*totals),
    )


def _oldest_waiting(cursor: sqlite3.Cursor, queue: str, pending: int) -> datetime | None:
    if not pending:
        return None
    return moment(cursor.execute(sql("oldest_waiting"), {"queue": queue}).fetchone()[0])


def due_in(cursor: sqlite3.Cursor, now: datetime, queues: Sequence[str]) -> timedelta | None:
    """Return how long it is until the next scheduled job comes due."""
    times: list[int] = []
    for queue in queues:
        paused = cursor.execute(sql("paused"), (queue,)).fetchone()
        if paused is not None and not paused[0]:
            at = cursor.execute(sql("next_due"), (queue,)).fetchone()[0]
            times += [] if at is None else [at]
    return max(ZERO, from_micros(min(times)) - now) if times else None


def paused(cursor: sqlite3.Cursor, queues: Sequence[str]) -> list[str]:
    """Return those of `queues` that are paused, in their order."""
    found = {row[0] for row in cursor.execute(sql("paused_of"), (json_list(list(queues)),)).fetchall()}
    return [queue for queue in queues if queue in found]


def kinds(cursor: sqlite3.Cursor, queue: str, known: Collection[str]) -> list[str]:
    """Return the kinds of the pending jobs of `queue` that are not among `known`, in order of name."""
    found = [row[0] for row in cursor.execute(sql("kinds"), {"queue": queue}).fetchall()]
    return [kind for kind in found if kind not in known]


def waiting(cursor: sqlite3.Cursor) -> list[KindStats]:
    """Count the pending jobs by queue and kind, in that order."""
    rows = cursor.execute(sql("waiting_by_kind")).fetchall()
    found = [KindStats(queue, kind, pending, moment(oldest)) for queue, kind, pending, oldest in rows]
    return sorted(found + _raw_waiting(cursor, found))


def _raw_waiting(cursor: sqlite3.Cursor, others: Sequence[KindStats]) -> list[KindStats]:
    """Count the pending jobs without a kind, which have no index of their own: they are those that are left over."""
    left = {queue: pending for queue, _, _, pending, *_ in cursor.execute(sql("stats"), {"queue": None}).fetchall()}
    for row in others:
        left[row.queue] -= row.pending
    return [
        KindStats(queue, "", pending, moment(cursor.execute(sql("oldest_raw"), {"queue": queue}).fetchone()[0]))
        for queue, pending in left.items()
        if pending
    ]


def minutes(cursor: sqlite3.Cursor, since: datetime, until: datetime) -> list[MinuteCounts]:
    """Return the counts of each minute."""
    rows = cursor.execute(sql("minutes"), (to_micros(since), to_micros(until))).fetchall()
    return [MinuteCounts(from_micros(row[0]), row[1], row[2], Totals(*row[3:])) for row in rows]


def timings(cursor: sqlite3.Cursor, since: datetime, until: datetime) -> list[TimingCount]:
    """Return how long attempts took in each minute."""
    rows = cursor.execute(sql("timings"), (to_micros(since), to_micros(until))).fetchall()
    return [TimingCount(from_micros(minute), *rest) for minute, *rest in rows]


def servers(cursor: sqlite3.Cursor) -> list[ServerRecord]:
    """Return every server that has not taken itself out."""
    rows = cursor.execute(sql("servers")).fetchall()
    return [replace(server_of(record), seen_at=from_micros(seen_at)) for seen_at, record in rows]


def audit(cursor: sqlite3.Cursor, limit: int) -> list[AuditEntry]:
    """Return what people did, the newest first."""
    rows = cursor.execute(sql("audit"), (limit,)).fetchall()
    return [
        AuditEntry(from_micros(at), actor, action, target, msgspec.json.decode(detail))
        for at, actor, action, target, detail in rows
    ]


def stranded(cursor: sqlite3.Cursor, now: datetime, dead_after: timedelta) -> int:
    """Count expired leases while no server is live."""
    row = cursor.execute(sql("stranded"), (to_micros(now), to_micros(now - dead_after))).fetchone()
    return int(row[0])


def kv_get(cursor: sqlite3.Cursor, keys: Sequence[bytes]) -> list[bytes | None]:
    """Return the caller's own values."""
    rows = (cursor.execute(sql("kv_get"), (key,)).fetchone() for key in keys)
    return [None if row is None else row[0] for row in rows]


def kv_scan(cursor: sqlite3.Cursor, prefix: bytes, after: bytes | None, limit: int) -> list[tuple[bytes, bytes]]:
    """Return the caller's own values whose key begins with `prefix`."""
    parameters = {"prefix": prefix, "past": _past(prefix), "after": after, "limit": limit}
    return cursor.execute(sql("kv_scan"), parameters).fetchall()


def _past(prefix: bytes) -> bytes | None:
    """Return the first key that sorts after every key with this prefix; None when there is none."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else None


def data_version(cursor: sqlite3.Cursor) -> int:
    """Return a number that changes with every commit of others."""
    return int(cursor.execute("pragma data_version").fetchone()[0])
