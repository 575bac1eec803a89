"""Unpack: jobs of another store come in as they were there, each parcel once."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from windlass.core.commands import TakeKeys, UnpackJobs
from windlass.core.ids import JobId
from windlass.core.job import Job
from windlass.core.moving import HeldKey, Unpacked
from windlass.core.queries import GetUnpacked
from windlass.kit.records import STATES, headers_text, log_lines_of
from windlass.stores.postgres.moves import holds, steps
from windlass.stores.postgres.moves.delivery_ends import NO_FAILURE
from windlass.stores.postgres.moves.enqueue import check_ids
from windlass.stores.postgres.moves.marks import lower_marks
from windlass.stores.postgres.rows import json_text, plain_text
from windlass.stores.postgres.work import ENQUEUED, Changes, Row, Statement, Work, run

BYTES_AT_ONCE: Final = 32 * 1024 * 1024
LINES_AT_ONCE: Final = 5_000
"""What one statement takes of jobs, and of deliveries or lines."""
_DELIVERY_COLUMNS: Final = (
    "seqs", "deliveries", "attempts", "started_ats", "ended_ats", "workers", "outcomes", "messages", "types",
    "tracebacks", "modules", "retried_ats",
)  # fmt: skip
_LINE_COLUMNS: Final = ("seqs", "lines", "ats", "levels", "texts", "deliveries")


class _Come(NamedTuple):
    """A job that came in, with its number here."""

    seq: int
    job: Job


def unpack(changes: Changes, command: UnpackJobs) -> Work[bool]:
    """Put the jobs of a parcel in line, with their keys, history and log; False unless it is the next one.

    Raises `IdConflict` in the middle when another job has one of the ids, and then all must be undone.
    """
    parcel = command.parcel
    jobs = parcel.packed.jobs
    ids = [job.id for job in jobs]
    turn_of = {"move": parcel.move, "queue": parcel.queue, "number": parcel.number, "ids": ids}
    turn = yield Statement("take_turn", turn_of)
    if not turn:
        return False
    if not jobs:
        return True
    keys = {key.job_id: key for key in parcel.packed.keys}
    # they come to old places, which may be before a mark: the marks are held first, and lowered where that is so
    held = yield Statement("hold_marks", {"queues": [parcel.queue]})
    rows: list[Row] = []
    for part in _parts(jobs):
        parameters = {"now": changes.now, "queue": parcel.queue, **_columns(part, keys)}
        rows += yield from steps.starts_waiting(changes, part, run(Statement("unpack", parameters)))
    if len(rows) < len(jobs):
        yield from check_ids(jobs)
    if any(marks for (marks,) in held):
        yield from lower_marks(_places(parcel.queue, rows))
    known = {job.id: job for job in jobs}
    come = [_Come(seq, known[job_id]) for seq, job_id, *_ in rows]
    yield from _take_keys_of_jobs(changes, [keys[job.id] for _, job in come if job.id in keys])
    yield from _write_history(come)
    yield from _write_log(come)
    _count(changes, parcel.queue, rows)
    return True


def take_keys(changes: Changes, command: TakeKeys) -> Work[None]:
    """Let keys be held here, those that are free."""
    yield from holds.take_over(changes, command.keys)


def unpacked(changes: Changes, query: GetUnpacked) -> Work[Unpacked | None]:
    """Return the last parcel of a move and a queue."""
    del changes
    rows = yield Statement("unpacked", {"move": query.move, "queue": query.queue})
    return Unpacked(rows[0][0], [JobId(job_id) for job_id in rows[0][1]]) if rows else None


def _parts(jobs: Sequence[Job]) -> Iterator[Sequence[Job]]:
    """Part jobs into what single statements take."""
    part: list[Job] = []
    size = 0
    for job in jobs:
        if part and size + len(job.payload) > BYTES_AT_ONCE:
            yield part
            part, size = [], 0
        part.append(job)
        size += len(job.payload)
    if part:
        yield part


def _columns(jobs: Sequence[Job], keys: dict[JobId, HeldKey]) -> dict[str, object]:
    """Return the parameters of `unpack.sql` that jobs give, by column."""
    held = [keys.get(job.id) for job in jobs]
    return {
        "ids": [job.id for job in jobs],
        "kinds": [job.kind for job in jobs],
        "payloads": [job.payload for job in jobs],
        "codecs": [job.codec for job in jobs],
        "priorities": [job.priority for job in jobs],
        "states": [str(job.state) for job in jobs],
        "max_attempts": [job.max_attempts for job in jobs],
        "attempts": [job.attempt for job in jobs],
        "deliveries": [job.delivery for job in jobs],
        "created_ats": [job.created_at for job in jobs],
        "run_ats": [job.run_at for job in jobs],
        "headers": [headers_text(job.headers) if job.headers else None for job in jobs],
        "tenants": [job.tenant for job in jobs],
        "last_errors": [_text(job.last_error) for job in jobs],
        "progress": [None if job.progress is None else json_text(job.progress) for job in jobs],
        "cancel_requested": [job.cancel_requested for job in jobs],
        "unique_keys": [job.unique_key for job in jobs],
        "parent_ids": [job.parent_id for job in jobs],
        "schedule_ids": [job.schedule_id for job in jobs],
        "limit_keys": [job.limit_key for job in jobs],
        "holds": [None if key is None else key.name for key in held],
        "hold_untils": [None if key is None else key.until for key in held],
        "log_lines": [log_lines_of(job) for job in jobs],
    }


def _places(queue: str, rows: Sequence[Row]) -> list[Row]:
    """Return the places of pending jobs: scheduled jobs come after now, and so after any mark."""
    return [(queue, priority, run_at) for _, _, _, state, priority, run_at in rows if state == "pending"]


def _take_keys_of_jobs(changes: Changes, keys: Sequence[HeldKey]) -> Work[None]:
    """Take the keys of jobs that came in; those whose key another one holds go without it."""
    if not keys:
        return
    held = yield from holds.take_over(changes, keys)
    refused = [key.job_id for key in keys if held[key.name] != key.job_id]
    if refused:
        yield Statement("without_key", {"ids": refused})


def _write_history(come: Sequence[_Come]) -> Work[None]:
    rows: list[Row] = []
    for seq, job in come:
        for number, attempt, started_at, ended_at, worker, outcome, failure, retried_at in job.history:
            if ended_at is not None and outcome is not None:
                told = [_text(part) for part in failure or NO_FAILURE]
                rows.append((seq, number, attempt, started_at, ended_at, _text(worker), outcome, *told, retried_at))
    for columns in _by_column(rows):
        yield Statement("unpack_deliveries", dict(zip(_DELIVERY_COLUMNS, columns, strict=True)))


def _write_log(come: Sequence[_Come]) -> Work[None]:
    rows: list[Row] = []
    for seq, job in come:
        for line, (at, level, text, delivery) in enumerate(job.log, 1):
            rows.append((seq, line, at, plain_text(level), plain_text(text), delivery))
    for columns in _by_column(rows):
        yield Statement("unpack_log", dict(zip(_LINE_COLUMNS, columns, strict=True)))


def _by_column(rows: Sequence[Row]) -> Iterator[list[object]]:
    for first in range(0, len(rows), LINES_AT_ONCE):
        yield [list(column) for column in zip(*rows[first : first + LINES_AT_ONCE], strict=True)]


def _count(changes: Changes, queue: str, rows: Sequence[Row]) -> None:
    for _, _, kind, state, _, _ in rows:
        changes.moved(queue, None, STATES[state])
        changes.happened(queue, kind, ENQUEUED)
    changes.ready(queue)


def _text(text: str | None) -> str | None:
    return None if text is None else plain_text(text)
