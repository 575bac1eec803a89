"""Enqueue: jobs into line, all of a call or none."""

from collections.abc import Mapping, Sequence
from itertools import chain, groupby, islice
from typing import NamedTuple

import msgspec

from windlass.core.duration import later, to_micros
from windlass.core.errors import UniqueConflict, WindlassError
from windlass.core.ids import JobId
from windlass.core.job import Enqueued, PreparedJob
from windlass.core.states import State
from windlass.kit.records import headers_text
from windlass.kit.unique_keys import check_conflict
from windlass.stores.sqlite.moves import holds
from windlass.stores.sqlite.moves.gate import refusal
from windlass.stores.sqlite.moves.receipts import receipt, write_receipt
from windlass.stores.sqlite.rows import Standing, json_list
from windlass.stores.sqlite.statements import sql
from windlass.stores.sqlite.transaction import ENQUEUED, Transaction

_PENDING = str(State.PENDING)
_SCHEDULED = str(State.SCHEDULED)
_STATE_AT = 7
_BARE = 11
_CREATED = True


class EnqueueCall(NamedTuple):
    """One caller's batch."""

    jobs: Sequence[PreparedJob]
    request_id: str | None = None

    @property
    def plain(self) -> bool:
        """Whether nothing in it can be refused, so that it can share its statements with others."""
        return all(job.unique is None and not job.kv for job in self.jobs)


def enqueue(tx: Transaction, calls: list[EnqueueCall]) -> list[list[Enqueued] | WindlassError]:
    """Put the jobs of every call in line; a call that is refused is its error, and the others are not touched."""
    if not tx.takes_jobs():
        return [_repeated(tx, call) or refusal(tx) for call in calls]
    shared = _shared(tx, calls)
    if not shared:
        return [_enqueue_alone(tx, call) for call in calls]
    done = insert_plain(tx, list(chain.from_iterable(call.jobs for call in shared.values())))
    if len(calls) == 1:
        write_receipt(tx, calls[0].request_id, done)
        return [done]
    each = iter(done)
    answers = {place: list(islice(each, len(call.jobs))) for place, call in shared.items()}
    for place, call in shared.items():
        write_receipt(tx, call.request_id, answers[place])
    return [answers[place] if place in shared else _enqueue_alone(tx, call) for place, call in enumerate(calls)]


def insert_plain(tx: Transaction, jobs: Sequence[PreparedJob]) -> list[Enqueued]:
    """Insert jobs without keys or kv; an id that is here already is left as it is."""
    if not jobs:
        return []
    first = tx.reserve(len(jobs))
    rows = [_row(tx, seq, job) for seq, job in enumerate(jobs, first)]
    if _insert_rows(tx, rows) == len(rows):
        _count(tx, jobs, rows)
        return [Enqueued(job.id, _CREATED) for job in jobs]
    return _sort_out(tx, jobs, rows, first)


def insert_any(tx: Transaction, jobs: Sequence[PreparedJob]) -> list[Enqueued]:
    """Insert jobs one by one, with their keys and kv; raises `UniqueConflict` in the middle."""
    return [_insert(tx, job) for job in jobs]


def write_kv(tx: Transaction, kv: Mapping[bytes, bytes | None] | None) -> None:
    """Write a caller's values; None deletes."""
    for key, value in (kv or {}).items():
        if value is None:
            tx.run("kv_delete", (key,))
        else:
            tx.run("kv_put", (key, value))


def _shared(tx: Transaction, calls: list[EnqueueCall]) -> dict[int, EnqueueCall]:
    """Return, by their places, the plain calls that were not served before; a repeat of one beside it is left out."""
    shared: dict[int, EnqueueCall] = {}
    names: set[str] = set()
    for place, call in enumerate(calls):
        name = call.request_id
        if call.plain and (name is None or (name not in names and receipt(tx, name) is None)):
            shared[place] = call
        if name is not None:
            names.add(name)
    return shared


def _enqueue_alone(tx: Transaction, call: EnqueueCall) -> list[Enqueued] | WindlassError:
    if (done := _repeated(tx, call)) is not None:
        return done
    mark = tx.mark()
    try:
        done = insert_any(tx, call.jobs)
    except UniqueConflict as conflict:
        tx.back_to(mark)
        return conflict
    finally:
        tx.accept()
    write_receipt(tx, call.request_id, done)
    return done


def _repeated(tx: Transaction, call: EnqueueCall) -> list[Enqueued] | None:
    """Return the answer to a call that was served before."""
    reply = receipt(tx, call.request_id)
    if reply is None:
        return None
    return [Enqueued(JobId(job_id), created) for job_id, created in msgspec.json.decode(reply)]


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
    if tx.row("standing", (job.id,)) is not None:
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
    row = tx.row("standing", (found.job_id,))
    standing = None if row is None else Standing(*row)
    if standing is None or not standing.state.waiting:
        raise UniqueConflict(hold.key, found.job_id, "claimed")
    state, run_at = _when(tx, job)
    tx.run(
        "replace",
        {"seq": standing.seq, "state": state, "run_at": run_at, "payload": job.payload, "codec": job.codec},
    )
    tx.run("take_hold", (hold.name, found.job_id, found.expires_at, hold.digest))
    tx.moved(standing.queue, standing.state, State(state))
    tx.ready(standing.queue)
    write_kv(tx, job.kv)


def _when(tx: Transaction, job: PreparedJob) -> tuple[str, int]:
    if job.delay is not None:
        run_at = to_micros(later(tx.moment, job.delay))
    elif job.run_at is not None:
        run_at = to_micros(job.run_at)
    else:
        return _PENDING, tx.now
    return (_SCHEDULED, run_at) if run_at > tx.now else (_PENDING, tx.now)


def _row(tx: Transaction, seq: int, job: PreparedJob) -> tuple[object, ...]:
    """Return the values of `enqueue.sql`, or of `enqueue_bare.sql` for a job that has none of the rarer things."""
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


def _insert_rows(tx: Transaction, rows: Sequence[tuple[object, ...]]) -> int:
    """Insert rows of either length; return how many were."""
    done = 0
    for bare, group in groupby(rows, key=_is_bare):
        tx.cursor.executemany(sql("enqueue_bare" if bare else "enqueue"), group)
        done += tx.cursor.rowcount
    return done


def _is_bare(row: tuple[object, ...]) -> bool:
    return len(row) == _BARE


def _count(tx: Transaction, jobs: Sequence[PreparedJob], rows: Sequence[tuple[object, ...]]) -> None:
    counts: dict[tuple[str, str | None, str], int] = {}
    for job, row in zip(jobs, rows, strict=True):
        key = (job.queue, job.kind, str(row[_STATE_AT]))
        counts[key] = counts.get(key, 0) + 1
    for (queue, kind, state), count in counts.items():
        tx.moved(queue, None, State(state), count)
        tx.happened(queue, kind, ENQUEUED, count)
        tx.ready(queue)


def _sort_out(
    tx: Transaction, jobs: Sequence[PreparedJob], rows: Sequence[tuple[object, ...]], first: int
) -> list[Enqueued]:
    """Tell the jobs that were inserted from those whose id was here already: only the first have our number."""
    ids = json_list([job.id for job in jobs])
    seqs: dict[str, int] = dict(tx.execute(sql("seqs_of"), (ids,)).fetchall())
    created = [seqs[job.id] == seq for seq, job in enumerate(jobs, first)]
    new = [(job, row) for job, row, made in zip(jobs, rows, created, strict=True) if made]
    _count(tx, [job for job, _ in new], [row for _, row in new])
    return [Enqueued(job.id, made) for job, made in zip(jobs, created, strict=True)]
