"""Queries of a SQLite store; each function runs inside one read transaction."""

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from windlass.core import queries
from windlass.core.duration import ZERO, from_micros, to_micros
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.job import Job
from windlass.core.looks import AuditEntry, Glance, Place, ServerRecord
from windlass.core.names import LOG_LINES_KEPT
from windlass.core.states import State
from windlass.core.stats import KindStats, MinuteCounts, QueueStats, TimingCount, Totals
from windlass.core.store_calls import table_of
from windlass.kit.damage import Unreadable, read_each
from windlass.kit.moves.looking import AHEAD_MOST
from windlass.kit.records import STATES, server_of, whole_history
from windlass.stores.sqlite.damaged import readable_rows
from windlass.stores.sqlite.queue_settings import queue_settings
from windlass.stores.sqlite.reader import Snapshot
from windlass.stores.sqlite.rows import (
    EARLIEST,
    LATEST,
    JobRow,
    delivery_of,
    job_of,
    json_list,
    log_line_of,
    moment,
)
from windlass.stores.sqlite.statements import sql

_detail_decoder: Final = msgspec.json.Decoder(dict[str, str])
_BEFORE_ALL: Final = -(2.0**64)
"""Before every sequence number, also before one that is damaged."""


def get(snapshot: Snapshot, query: queries.GetJobs) -> list[Job | None]:
    """Return jobs with their history and log."""
    return [_get(snapshot.cursor, job_id) for job_id in query.ids]


def _get(cursor: sqlite3.Cursor, job_id: JobId) -> Job | None:
    row = cursor.execute(sql("get"), {"job_id": job_id}).fetchone()
    if row is None:
        return None
    return with_traces(cursor, JobRow(*row))


def with_traces(cursor: sqlite3.Cursor, found: JobRow) -> Job:
    """Return the job of a row, with its history and log; damaged entries of these are left out."""
    job = job_of(found)
    ended = cursor.execute(sql("deliveries"), {"seq": job.seq}).fetchall() if job.delivery or found.log_lines else []
    lines = cursor.execute(sql("log"), {"seq": job.seq}).fetchall() if found.log_lines else []
    damage = [] if job.damage is None else [job.damage]
    history = read_each(ended, delivery_of, lambda why: damage.append(f"an entry of its history: {why}"))
    log = read_each(lines[-LOG_LINES_KEPT:], log_line_of, lambda why: damage.append(f"a line of its log: {why}"))
    return job._replace(history=whole_history(job, history), log=tuple(log), damage="; ".join(damage) or None)


def glance(snapshot: Snapshot, query: queries.GetGlances) -> dict[JobId, Glance]:
    """Return the states of jobs."""
    rows = snapshot.cursor.execute(sql("glance"), {"ids": json_list(list(query.ids))}).fetchall()
    # the stand-in of a state is that of `kit.damage`: who waits for the job looks at all of it then
    return {
        job_id: Glance(STATES.get(state, State.DEAD), bool(flag), None if isinstance(token, Unreadable) else token)
        for job_id, state, flag, token in rows
    }


def jobs(snapshot: Snapshot, query: queries.ListJobs) -> list[Job]:
    """Return a page of jobs in the order of their enqueue."""
    chosen = query.chosen
    only_dead = chosen == JobFilter(queue=chosen.queue, state=State.DEAD) and chosen.queue is not None
    page = {"after": _BEFORE_ALL if query.after is None else query.after, "limit": query.limit}
    if only_dead:
        rows = snapshot.cursor.execute(sql("dead_jobs"), {"queue": chosen.queue, **page}).fetchall()
    else:
        rows = snapshot.cursor.execute(sql("jobs"), {**filter_values(chosen), **page}).fetchall()
    return [job_of(JobRow(*row)) for row in rows]


def filter_values(chosen: JobFilter) -> dict[str, object]:
    """Return what the statements that search bind for `chosen`."""
    return {
        **chosen.by_field(),
        "state": None if chosen.state is None else str(chosen.state),
        "since": None if chosen.since is None else to_micros(chosen.since),
        "until": None if chosen.until is None else to_micros(chosen.until),
        # bytes are looked for in bytes
        "payload_text": None if chosen.payload_text is None else chosen.payload_text.encode(),
    }


def position(snapshot: Snapshot, query: queries.GetPosition) -> Place | None:
    """Return what stands between a job and its claim."""
    cursor, now = snapshot
    row = cursor.execute(sql("place"), {"job_id": query.job_id}).fetchone()
    if row is None:
        return None
    queue, state, hold, *place = row
    holder = None
    if isinstance(hold, str):
        holder = cursor.execute(sql("holder"), {"name": hold, "now": to_micros(now)}).fetchone()
    ahead = _ahead(cursor, queue, *place) if state == State.PENDING and isinstance(queue, str) else None
    return Place(now, ahead, None if holder is None or isinstance(holder[0], Unreadable) else holder[0])


def _ahead(cursor: sqlite3.Cursor, queue: str, priority: int, run_at: int, seq: int) -> int:
    parameters = {"queue": queue, "priority": priority, "run_at": run_at, "seq": seq, "limit": AHEAD_MOST}
    return int(cursor.execute(sql("ahead"), parameters).fetchone()[0])


def stats(snapshot: Snapshot, query: queries.GetStats) -> list[QueueStats]:
    """Return the counts of queues, which every commit keeps exact."""
    rows = snapshot.cursor.execute(sql("stats"), {"queue": query.queue}).fetchall()
    return readable_rows(rows, lambda row: _queue_stats(snapshot.cursor, *row), "a row of counts")


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
    parameters = {"queue": queue, "earliest": EARLIEST, "latest": LATEST}
    return moment(cursor.execute(sql("oldest_waiting"), parameters).fetchone()[0])


def due_in(snapshot: Snapshot, query: queries.GetDueTime) -> timedelta | None:
    """Return how long it is until the next scheduled job comes due."""
    cursor, now = snapshot
    times: list[int] = []
    for queue in query.queues:
        paused = cursor.execute(sql("paused"), {"queue": queue}).fetchone()
        if paused is not None and not paused[0]:
            at = cursor.execute(sql("next_due"), {"queue": queue}).fetchone()[0]
            # one whose time is damaged never comes due, or is due by now
            times += [] if at is None or at > LATEST else [max(at, EARLIEST)]
    return max(ZERO, from_micros(min(times)) - now) if times else None


def kinds(snapshot: Snapshot, query: queries.ListKinds) -> list[str]:
    """Return the kinds of the pending jobs of a queue that are not known, in order of name."""
    found = [row[0] for row in snapshot.cursor.execute(sql("kinds"), {"queue": query.queue}).fetchall()]
    return [kind for kind in found if isinstance(kind, str) and kind not in query.known]


def waiting(snapshot: Snapshot, query: queries.CountWaiting) -> list[KindStats]:
    """Count the pending jobs by queue and kind, in that order."""
    del query
    cursor = snapshot.cursor
    rows = cursor.execute(sql("waiting_by_kind"), {"earliest": EARLIEST, "latest": LATEST}).fetchall()
    found = readable_rows(rows, _kind_stats, "the count of a kind")
    return sorted(found + _raw_waiting(cursor, rows))


def _kind_stats(row: tuple[Any, ...]) -> KindStats:
    queue, kind, pending, oldest = row
    return KindStats(queue, kind, pending, moment(oldest))


def _raw_waiting(cursor: sqlite3.Cursor, others: Sequence[tuple[Any, ...]]) -> list[KindStats]:
    """Count the pending jobs without a kind, which have no index of their own: they are those that are left over."""
    left = {queue: pending for queue, _, _, pending, *_ in cursor.execute(sql("stats"), {"queue": None}).fetchall()}
    for queue, _, pending, _ in others:
        # a queue that no count knows is the damaged name of another one
        left[queue] = left.get(queue, 0) - pending
    return [
        KindStats(queue, "", pending, _oldest_raw(cursor, queue))
        for queue, pending in left.items()
        if pending > 0 and isinstance(queue, str)
    ]


def _oldest_raw(cursor: sqlite3.Cursor, queue: str) -> datetime | None:
    parameters = {"queue": queue, "earliest": EARLIEST, "latest": LATEST}
    return moment(cursor.execute(sql("oldest_raw"), parameters).fetchone()[0])


def minutes(snapshot: Snapshot, query: queries.GetMinutes) -> list[MinuteCounts]:
    """Return the counts of each minute."""
    parameters = {"since": to_micros(query.since), "until": to_micros(query.until)}
    rows = snapshot.cursor.execute(sql("minutes"), parameters).fetchall()
    return readable_rows(
        rows, lambda row: MinuteCounts(from_micros(row[0]), row[1], row[2], Totals(*row[3:])), "the counts of a minute"
    )


def timings(snapshot: Snapshot, query: queries.GetTimings) -> list[TimingCount]:
    """Return how long attempts took in each minute."""
    parameters = {"since": to_micros(query.since), "until": to_micros(query.until)}
    rows = snapshot.cursor.execute(sql("timings"), parameters).fetchall()
    return readable_rows(rows, lambda row: TimingCount(from_micros(row[0]), *row[1:]), "a count of timings")


def servers(snapshot: Snapshot, query: queries.ListServers) -> list[ServerRecord]:
    """Return every server."""
    del query
    return server_records(snapshot.cursor)


def server_records(cursor: sqlite3.Cursor) -> list[ServerRecord]:
    """Return the records of all servers that can be read."""
    rows = cursor.execute(sql("servers")).fetchall()
    return readable_rows(rows, _server, "the record of a server")


def _server(row: tuple[Any, ...]) -> ServerRecord:
    seen_at, record = row
    return replace(server_of(record), seen_at=from_micros(seen_at))


def audit(snapshot: Snapshot, query: queries.ListAudit) -> list[AuditEntry]:
    """Return what people did, the newest first."""
    rows = snapshot.cursor.execute(sql("audit"), {"limit": query.limit}).fetchall()
    return readable_rows(rows, _audit_entry, "an entry of the audit")


def _audit_entry(row: tuple[Any, ...]) -> AuditEntry:
    at, actor, action, target, detail = row
    return AuditEntry(from_micros(at), actor, action, target, _detail_decoder.decode(detail))


def stranded(snapshot: Snapshot, query: queries.CountStranded) -> int:
    """Count expired leases while no server is live."""
    cursor, now = snapshot
    parameters = {"now": to_micros(now), "since": to_micros(now - query.dead_after)}
    row = cursor.execute(sql("stranded"), parameters).fetchone()
    return int(row[0])


def get_kv(snapshot: Snapshot, query: queries.GetKv) -> list[bytes | None]:
    """Return the caller's own values."""
    rows = (snapshot.cursor.execute(sql("kv_get"), {"key": key}).fetchone() for key in query.keys)
    return [None if row is None else row[0] for row in rows]


def scan_kv(snapshot: Snapshot, query: queries.ScanKv) -> list[tuple[bytes, bytes]]:
    """Return the caller's own values whose key begins with the prefix."""
    prefix = query.prefix
    parameters = {"prefix": prefix, "past": _past(prefix), "after": query.after, "limit": query.limit}
    return snapshot.cursor.execute(sql("kv_scan"), parameters).fetchall()


def _past(prefix: bytes) -> bytes | None:
    """Return the first key that sorts after every key with this prefix; None when there is none."""
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else None


def data_version(cursor: sqlite3.Cursor) -> int:
    """Return a number that changes with every commit of others."""
    return int(cursor.execute("pragma data_version").fetchone()[0])


QUERIES: Final = table_of(
    queries.GetJobs.by(get),
    queries.GetGlances.by(glance),
    queries.ListJobs.by(jobs),
    queries.GetPosition.by(position),
    queries.GetDueTime.by(due_in),
    queries.GetStats.by(stats),
    queries.GetQueueSettings.by(queue_settings),
    queries.ListKinds.by(kinds),
    queries.CountWaiting.by(waiting),
    queries.GetMinutes.by(minutes),
    queries.GetTimings.by(timings),
    queries.ListServers.by(servers),
    queries.ListAudit.by(audit),
    queries.CountStranded.by(stranded),
    queries.GetKv.by(get_kv),
    queries.ScanKv.by(scan_kv),
)
"""The function that executes each query of this module."""
