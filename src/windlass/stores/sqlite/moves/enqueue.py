"""Enqueue: jobs into line, all of a request or none."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, groupby, islice
from typing import Any, NamedTuple

from windlass.core.commands import EnqueueJobs
from windlass.core.duration import later, to_micros
from windlass.core.errors import JobConflict, UniqueConflict, WindlassError
from windlass.core.ids import JobId
from windlass.core.job import Enqueued, PreparedJob
from windlass.core.states import State
from windlass.kit.job_ids import Identified, check_repeat
from windlass.kit.records import STATES, headers_text
from windlass.kit.unique_keys import check_conflict
from windlass.stores.sqlite.moves import holds, steps
from windlass.stores.sqlite.moves.moved_check import moved_error
from windlass.stores.sqlite.moves.receipts import SqliteRequest, receipt, write_receipt
from windlass.stores.sqlite.moves.set_aside import standing
from windlass.stores.sqlite.rows import BARE_COLUMNS, json_list
from windlass.stores.sqlite.statements import sql
from windlass.stores.sqlite.transaction import Transaction

_PENDING = str(State.PENDING)
_SCHEDULED = str(State.SCHEDULED)
_STATE_AT = BARE_COLUMNS.index("state")
_BARE = len(BARE_COLUMNS)
_CREATED = True


class _Known(NamedTuple):
    """A job that is here; the columns of `seqs_of.sql`."""

    id: JobId
    seq: int
    queue: str
    kind: str | None
    tenant: str | None


def enqueue(tx: Transaction, requests: Sequence[SqliteRequest[EnqueueJobs]]) -> list[list[Enqueued] | WindlassError]:
    """Put the jobs of every request in line; a request that is refused is its error, and the others are not touched."""
    if not tx.takes_jobs():
        return [_repeated(tx, request) or moved_error(tx) for request in requests]
    shared = _shared(tx, requests)
    if not shared:
        return [_enqueue_alone(tx, request) for request in requests]
    try:
        done = insert_plain(tx, list(chain.from_iterable(request.command.jobs for request in shared.values())))
    except JobConflict as conflict:
        # only whose job it is hears of it
        return [conflict] if len(requests) == 1 else [_enqueue_alone(tx, request) for request in requests]
    if len(requests) == 1:
        if requests[0].request_id is not None:
            write_receipt(tx, requests[0].request_id, done)
        return [done]
    each = iter(done)
    answers = {place: list(islice(each, len(request.command.jobs))) for place, request in shared.items()}
    for place, request in shared.items():
        write_receipt(tx, request.request_id, answers[place])
    return [
        answers[place] if place in shared else _enqueue_alone(tx, request) for place, request in enumerate(requests)
    ]


def insert_plain(tx: Transaction, jobs: Sequence[PreparedJob]) -> list[Enqueued]:
    """Insert jobs without keys or kv; a job that is here already is left as it is.

    Raises `IdConflict` when another job has one of the ids, and has inserted none then.
    """
    if not jobs:
        return []
    first = tx.reserve(len(jobs))
    rows = [_row(tx, seq, job) for seq, job in enumerate(jobs, first)]
    if _insert_rows(tx, rows) == len(rows):
        _start_waiting(tx, jobs, rows)
        return [Enqueued(job.id, _CREATED) for job in jobs]
    return _sort_out(tx, jobs, rows, first)


def insert_any(tx: Transaction, jobs: Sequence[PreparedJob]) -> list[Enqueued]:
    """Insert jobs one by one, with their keys and kv; raises a `JobConflict` in the middle."""
    return [_insert(tx, job) for job in jobs]


def known_jobs(tx: Transaction, jobs: Iterable[Identified]) -> dict[JobId, _Known]:
    """Return the jobs that are here under the ids of `jobs`."""
    rows = tx.execute(sql("seqs_of"), {"ids": json_list([job.id for job in jobs])}).fetchall()
    return {row[0]: _Known(*row) for row in rows}


def write_kv(tx: Transaction, kv: Mapping[bytes, bytes | None] | None) -> None:
    """Write a caller's values; None deletes."""
    for key, value in (kv or {}).items():
        if value is None:
            tx.run("kv_delete", {"key": key})
        else:
            tx.run("kv_put", {"key": key, "value": value})


def _is_plain(command: EnqueueJobs) -> bool:
    """Whether nothing but an id can be in its way, so that it can share its statements with others."""
    return all(job.unique is None and not job.kv for job in command.jobs)


def _shared(tx: Transaction, requests: Sequence[SqliteRequest[EnqueueJobs]]) -> dict[int, SqliteRequest[EnqueueJobs]]:
    """Return, by their places, the plain calls that were not served before; a repeat of one beside it is left out."""
    shared: dict[int, SqliteRequest[EnqueueJobs]] = {}
    names: set[str] = set()
    for place, request in enumerate(requests):
        name = request.request_id
        if _is_plain(request.command) and (
            name is None or (name not in names and receipt(tx, name, list[Enqueued]) is None)
        ):
            shared[place] = request
        if name is not None:
            names.add(name)
    return shared


def _enqueue_alone(tx: Transaction, request: SqliteRequest[EnqueueJobs]) -> list[Enqueued] | WindlassError:
    if (done := _repeated(tx, request)) is not None:
        return done
    mark = tx.mark()
    try:
        done = insert_any(tx, request.command.jobs)
    except JobConflict as conflict:
        tx.back_to(mark)
        return conflict
    finally:
        tx.accept()
    write_receipt(tx, request.request_id, done)
    return done


def _repeated(tx: Transaction, request: SqliteRequest[EnqueueJobs]) -> list[Enqueued] | None:
    """Return the answer to a request that was served before."""
    return receipt(tx, request.request_id, list[Enqueued])


def _insert(tx: Transaction, job: PreparedJob) -> Enqueued:
    if job.unique is None:
        [done] = insert_plain(tx, [job])
    else:
        done = _insert_unique(tx, job)
    if done.created:
        write_kv(tx, job.kv)
    return done


def _insert_unique(tx: Transaction, job: PreparedJob) -> Enqueued:
    hold = job.unique
    assert hold is not None  # noqa: S101 - for the type checker: only keyed jobs come here
    if (known := known_jobs(tx, [job]).get(job.id)) is not None:
        check_repeat(job, known)
        return Enqueued(job.id, created=False)
    found = holds.holder(tx, hold.name)
    if found is None:
        [done] = insert_plain(tx, [job])
        holds.take(tx, job, hold)
        return done
    check_conflict(hold, found)
    if hold.on_conflict == "replace":
        _replace(tx, job, found)
    return Enqueued(found.job_id, created=False)


def _replace(tx: Transaction, job: PreparedJob, found: holds.Holder) -> None:
    hold = job.unique
    assert hold is not None  # noqa: S101 - for the type checker: only keyed jobs come here
    replaced = standing(tx, found.job_id)
    if replaced is None or not replaced.state.waiting:
        raise UniqueConflict(hold.key, found.job_id, "claimed")
    state, run_at = _when(tx, job)
    tx.run(
        "replace",
        {"seq": replaced.seq, "state": state, "run_at": run_at, "payload": job.payload, "codec": job.codec},
    )
    tx.run(
        "take_hold",
        {"name": hold.name, "job_id": found.job_id, "expires_at": found.expires_at, "digest": hold.digest},
    )
    steps.starts_waiting(tx, steps.group_of(replaced), State(state))
    write_kv(tx, job.kv)


def _when(tx: Transaction, job: PreparedJob) -> tuple[str, int]:
    if job.delay is not None:
        run_at = to_micros(later(tx.moment, job.delay))
    elif job.run_at is not None:
        run_at = to_micros(job.run_at)
    else:
        return _PENDING, tx.now
    return (_SCHEDULED, run_at) if run_at > tx.now else (_PENDING, tx.now)


def _row(tx: Transaction, seq: int, job: PreparedJob) -> tuple[Any, ...]:
    """Return the values of `ENQUEUED_COLUMNS`, or of `BARE_COLUMNS` for a job that has none of the rarer things."""
    (
        job_id, queue, kind, payload, codec, headers, tenant, priority, max_attempts,
        run_at, delay, hold, _, parent_id, schedule_id, limit_key,
    ) = job  # fmt: skip
    state, at = (_PENDING, tx.now) if run_at is None and delay is None else _when(tx, job)
    bare = (seq, job_id, queue, kind, payload, codec, priority, state, max_attempts, tx.now, at)
    if not (headers or tenant or hold or parent_id or schedule_id or limit_key):
        return bare
    key, name, until = (None, None, None) if hold is None else (hold.key, hold.name, hold.until)
    more = (headers_text(headers) if headers else None, tenant, key, parent_id, schedule_id, limit_key, name, until)
    return bare + more


def _insert_rows(tx: Transaction, rows: Sequence[tuple[Any, ...]]) -> int:
    """Insert rows of either length; return how many were."""
    done = 0
    for bare, group in groupby(rows, key=_is_bare):
        tx.cursor.executemany(sql("enqueue_bare" if bare else "enqueue"), group)
        done += tx.cursor.rowcount
    return done


def _is_bare(row: tuple[Any, ...]) -> bool:
    return len(row) == _BARE


def _start_waiting(tx: Transaction, jobs: Sequence[PreparedJob], rows: Sequence[tuple[Any, ...]]) -> None:
    groups: dict[tuple[str, str | None, str], list[int]] = {}
    for job, row in zip(jobs, rows, strict=True):
        groups.setdefault((job.queue, job.kind, row[_STATE_AT]), []).append(row[0])
    for (queue, kind, state), seqs in groups.items():
        steps.starts_waiting(tx, steps.Group(queue, kind, None, len(seqs), seqs), STATES[state])


def _sort_out(
    tx: Transaction, jobs: Sequence[PreparedJob], rows: Sequence[tuple[Any, ...]], first: int
) -> list[Enqueued]:
    """Tell the jobs that were inserted from those whose id was here already: only the first have our number."""
    known = known_jobs(tx, jobs)
    try:
        for job in jobs:
            check_repeat(job, known[job.id])
    except JobConflict:
        # nothing but these rows was written so far
        tx.run("take_out", {"first": first, "past": first + len(jobs)})
        raise
    created = [known[job.id].seq == seq for seq, job in enumerate(jobs, first)]
    new = [(job, row) for job, row, made in zip(jobs, rows, created, strict=True) if made]
    _start_waiting(tx, [job for job, _ in new], [row for _, row in new])
    return [Enqueued(job.id, made) for job, made in zip(jobs, created, strict=True)]
