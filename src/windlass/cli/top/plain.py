"""One frame as plain text, and as one document."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from windlass.cli.output import Cell, print_table, room, say
from windlass.cli.top.frame import Frame, Rate, ended_by_minute
from windlass.cli.top.rows import Table, dead_groups, dead_table, job_table, queue_table, server_table
from windlass.cli.top.summary import summary
from windlass.client.error_groups import error_name
from windlass.client.server_details import Presence, presence, slots_of
from windlass.core.job import Job
from windlass.core.looks import ServerRecord
from windlass.core.stats import QueueStats

SHOWN = 10
"""How many rows of each table a frame of plain text has."""


def print_frame(frame: Frame, rates: Mapping[str, Rate], *, dead_after: timedelta, wanted: str) -> None:
    """Print a frame, table after table."""
    width = min(room(), 10_000)
    say(summary(frame, rates, dead_after))
    for table in (
        queue_table(frame, rates, width),
        job_table(frame, width, wanted),
        server_table(frame, width, dead_after),
        dead_table(frame, width),
    ):
        _print(table)


def _print(table: Table) -> None:
    if not table.rows:
        return
    say("")
    say(table.title)
    heads = [column.head for column in table.columns]
    rows = [[Cell(cell.text.strip(), cell.style) for cell in row.cells] for row in table.rows[:SHOWN]]
    print_table(heads, rows, folds=[column.head for column in table.columns if not column.width])
    if len(table.rows) > SHOWN:
        say(f"and {len(table.rows) - SHOWN:,} more")


def document(frame: Frame, rates: Mapping[str, Rate], *, dead_after: timedelta) -> dict[str, Any]:
    """Return a frame as programs read it."""
    return {
        "now": frame.now,
        "moved_to": None if frame.moved is None else frame.moved.to,
        "queues": [_queue(frame, row, rates.get(row.queue or "", Rate())) for row in frame.queues],
        "jobs": [_job(job) for job in frame.jobs],
        "servers": [_server(server, presence(server, frame.now, dead_after)) for server in frame.servers],
        "dead": [
            {"error": error_name(jobs[0].last_error), "queue": jobs[0].queue, "kind": jobs[0].kind, "count": len(jobs)}
            for jobs in dead_groups(frame.dead).values()
        ],
    }


def _queue(frame: Frame, row: QueueStats, rate: Rate) -> dict[str, Any]:
    return {
        "queue": row.queue,
        "paused": row.paused,
        "scheduled": row.scheduled,
        "pending": row.pending,
        "running": row.running,
        "succeeded": row.succeeded,
        "dead": row.dead,
        "cancelled": row.cancelled,
        "oldest_waiting": row.oldest_waiting,
        "enqueued_per_second": round(rate.enqueued, 3),
        "ended_per_second": round(rate.ended, 3),
        "ended_by_minute": ended_by_minute(frame, row.queue),
    }


def _server(server: ServerRecord, state: Presence) -> dict[str, Any]:
    return {
        "id": server.id,
        "name": server.name,
        "host": server.host,
        "pid": server.pid,
        "version": server.version,
        "state": state,
        "started_at": server.started_at,
        "seen_at": server.seen_at,
        "running": server.running,
        "slots": slots_of(server),
        "queues": server.queues,
        "kinds": server.kinds,
    }


def _job(job: Job) -> dict[str, Any]:
    """Return a job without its payload and result: a look at many shows no data."""
    return {
        "id": job.id,
        "queue": job.queue,
        "kind": job.kind,
        "state": job.state,
        "attempt": job.attempt,
        "max_attempts": job.max_attempts,
        "created_at": job.created_at,
        "run_at": job.run_at,
        "claimed_at": job.claimed_at,
        "finished_at": job.finished_at,
        "worker": job.worker,
        "progress": job.progress,
        "last_error": job.last_error,
        "cancel_requested": job.cancel_requested,
    }
