"""Enqueue: jobs into line, all of a call or none."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import msgspec

from windlass.core.errors import IdConflict, StoreUnavailable, UniqueConflict
from windlass.core.ids import JobId, job_id
from windlass.core.job import Enqueued, PreparedJob
from windlass.core.unique import Hold
from windlass.kit.job_ids import Identified, check_repeat, check_repeats, conflict_of
from windlass.kit.records import STATES, headers_text
from windlass.kit.unique_keys import check_conflict
from windlass.stores.postgres.moves import holds, steps
from windlass.stores.postgres.moves.departure import or_moved, refuse_if
from windlass.stores.postgres.moves.receipts import names_of, receipt, reply_of, write_receipt_unless_moved
from windlass.stores.postgres.rows import Standing
from windlass.stores.postgres.work import Changes, Many, Statement, Work, run

CREATED: Final = True
AT_ONCE: Final = 10_000
"""Jobs that one statement takes."""
BYTES_AT_ONCE: Final = 32 * 1024 * 1024
_HERE_ANYWHERE: Final = {"store_id": None, "channel": None, "message": None, "lock_timeout": None}


class _Known(NamedTuple):
    """A job that is here; the columns of `known_ids.sql`."""

    id: JobId
    queue: str
    kind: str | None
    tenant: str | None


def is_plain(jobs: Iterable[PreparedJob]) -> bool:
    """Whether nothing but an id can be in its way and it brings no values, so that it can share a statement."""
    return all(job.unique is None and not job.kv for job in jobs)


def insert_plain(
    changes: Changes, jobs: Sequence[PreparedJob], request_id: str | None = None, *, patience: str | None = None
) -> Work[list[Enqueued]]:
    """Insert jobs without keys or kv by one statement; a job that is here already is left as it is.

    A request with a name is a call of its own, and raises `StoreMoved` in a store that was moved. Where another job may
    have one of the ids it fails as a whole, by `is_id_taken`. Without a name it is part of a transaction, which must be
    undone when it raises `IdConflict`. With `patience` it fails when a transaction that has brought one of the ids does
    not end within so many milliseconds; not where it is repeated, since that may be its own first try.
    """
    new = yield from steps.starts_waiting(changes, jobs, _insert_plain(changes, jobs, request_id, patience))
    return _answer(jobs, new)


def _insert_plain(
    changes: Changes, jobs: Sequence[PreparedJob], request_id: str | None, patience: str | None
) -> Work[Sequence[str] | None]:
    """Return the ids of the jobs that are new; None when all are."""
    new: Sequence[str] | None
    call = {"now": changes.now, "request_id": request_id, "lock_timeout": patience}
    if request_id is not None and changes.repeated:
        [(new, _, moved, *_)] = yield Statement("enqueue_here", {**call, **_columns(jobs), **_HERE_ANYWHERE})
    elif request_id is not None and len(jobs) == 1 and _is_common(jobs[0]):
        [(repeats, moved)] = yield Statement("enqueue_one", {**call, **_common_columns(jobs[0])})
        if repeats is False:
            refuse_if(moved)
            raise conflict_of(jobs[0])
        new = [] if repeats else None
    elif request_id is not None and _are_alike(jobs):
        [(new, moved, _)] = yield Statement("enqueue_alike", {**call, **_alike_columns(jobs)})
    else:
        [(new, moved, _)] = yield Statement("enqueue", {**call, **_columns(jobs)})
    refuse_if(moved)
    if request_id is None and new is not None:
        yield from check_ids(jobs)
    return new


def insert_here(
    changes: Changes,
    jobs: Sequence[PreparedJob],
    *,
    store_id: str,
    channel: str | None,
    payload: str | None,
    patience: str | None = None,
) -> Work[list[Enqueued] | None]:
    """Insert plain jobs in a caller's transaction, by one statement; None when it is open on another store.

    A transaction that has brought one of the ids is waited for no longer than `patience` milliseconds, or than the
    caller's own limit. With a channel given, whoever listens to it is told `payload` when the caller commits.
    In a store that was moved `StoreMoved` is raised, and nothing was written; likewise `IdConflict` when another job
    has one of the ids. Where that one came at the same moment, and a part of `jobs` was inserted, the caller's
    transaction can only be rolled back.
    """
    check_repeats(jobs)
    call = {"now": changes.now, "request_id": None, "lock_timeout": patience}
    place = {"store_id": store_id, "channel": channel, "message": payload}
    insert = _insert_here(jobs, Statement("enqueue_here", {**call, **_columns(jobs), **place}))
    here, new = yield from steps.starts_waiting(changes, jobs, insert)
    return _answer(jobs, new) if here else None


def _insert_here(jobs: Sequence[PreparedJob], statement: Statement) -> Work[tuple[bool, Sequence[str] | None]]:
    """Return whether the transaction is open on this store, and the ids of the jobs that are new; None for all."""
    [(new, here, moved, taken, *_)] = yield statement
    if not here:
        return False, None
    refuse_if(moved)
    if taken:
        raise conflict_of(next(job for job in jobs if job.id in taken))
    if new is not None:
        check = check_ids(jobs)
        yield from (_spoiled_if_refused(check) if new else check)
    return True, new


def insert_any(changes: Changes, jobs: Sequence[PreparedJob]) -> Work[list[Enqueued]]:
    """Insert jobs with their keys and kv; raises a `JobConflict` in the middle, and then all must be undone."""
    replaces = any(job.unique is not None and job.unique.on_conflict == "replace" for job in jobs)
    if replaces or len({job.id for job in jobs}) < len(jobs):
        yield from _wait_in_order(changes, jobs)
        done: list[Enqueued] = []
        for job in jobs:
            done += yield from _insert_batch(changes, [job])
        return done
    return (yield from _insert_batch(changes, jobs))


def enqueue_once(changes: Changes, jobs: Sequence[PreparedJob], request_id: str) -> Work[list[Enqueued]]:
    """Insert any jobs, and keep the answer for a caller who asks again; not in a store that was moved."""
    done = yield from or_moved(insert_any(changes, jobs))
    yield from changes.flush()
    yield from write_receipt_unless_moved(changes, request_id, msgspec.json.encode(done).decode())
    return done


def enqueued_before(request_id: str) -> Work[list[Enqueued] | None]:
    """Return what `enqueue_once` answered to this request, if it was done."""
    kept = yield from receipt(request_id)
    if kept is None or kept.reply is None:
        return None
    return reply_of(request_id, kept.reply, _enqueued)


def _enqueued(reply: str) -> list[Enqueued]:
    return [Enqueued(job_id(one), created) for one, created in msgspec.json.decode(reply, type=list[tuple[str, bool]])]


def inserted_before(jobs: Sequence[PreparedJob], request_id: str) -> Work[list[Enqueued]]:
    """Return what `insert_plain` answered to this request, which was done."""
    kept = yield from receipt(request_id)
    # the reply names those that were created, unless it was all of them
    new = None if kept is None or kept.reply is None else reply_of(request_id, kept.reply, names_of)
    return _answer(jobs, new)


def check_ids(jobs: Sequence[Identified]) -> Work[None]:
    """Raise `IdConflict` if one of `jobs` is not the job that is here under its id; some of them were here before."""
    known = yield from _known([job.id for job in jobs])
    for job in jobs:
        if job.id not in known:
            message = f"the job that had the id {job.id} was deleted at the same moment: try again"
            raise StoreUnavailable(message, retryable=True)
        check_repeat(job, known[job.id])


def write_kv(kv: Mapping[bytes, bytes | None] | None) -> Work[None]:
    """Write a caller's values; None deletes."""
    puts = [{"key": key, "value": value} for key, value in sorted((kv or {}).items()) if value is not None]
    gone = [{"key": key} for key, value in sorted((kv or {}).items()) if value is None]
    if puts:
        yield Many("kv_put", puts)
    if gone:
        yield Many("kv_delete", gone)


def _insert_batch(changes: Changes, jobs: Sequence[PreparedJob]) -> Work[list[Enqueued]]:
    """Take the keys first, then insert those jobs that have theirs."""
    keyed = [job for job in jobs if job.unique is not None]
    # also those without a key, so that the first refusal of the batch is the one that is told
    known = yield from _known([job.id for job in jobs] if keyed else [])
    held = yield from holds.take(changes, [job for job in keyed if job.id not in known])
    answers: dict[int, Enqueued] = {}
    new: list[tuple[int, PreparedJob]] = []
    for place, job in enumerate(jobs):
        if job.id in known:
            check_repeat(job, known[job.id])
            answers[place] = Enqueued(job.id, created=False)
        elif job.unique is not None and (holder := held[job.unique.name]).job_id != job.id:
            answers[place] = yield from _meet(changes, job, holder)
        else:
            new.append((place, job))
    made: list[Enqueued] = []
    for part in _parts([job for _, job in new]):
        made += yield from insert_plain(changes, part)
    for (place, job), done in zip(new, made, strict=True):
        answers[place] = done
        if done.created:
            yield from write_kv(job.kv)
    return [answers[place] for place in range(len(jobs))]


def _wait_in_order(changes: Changes, jobs: Sequence[PreparedJob]) -> Work[None]:
    """Take the free keys of a batch, and hold back the jobs that have the others, each in one order.

    One by one, in the order of the batch, two batches could wait for each other.
    """
    times = Counter(job.id for job in jobs)
    known = yield from _known([job.id for job in jobs if job.unique is not None])
    # of two with one id at most one is inserted: which one that is shows later, and who then comes first to its key
    later = {job.unique.name for job in jobs if job.unique is not None and times[job.id] > 1}
    sure = [job for job in jobs if job.unique is not None and job.unique.name not in later and job.id not in known]
    held = yield from holds.take(changes, sure)
    yield Statement("standing", {"ids": sorted({holder.job_id for holder in held.values()}), "lock_timeout": None})


def _parts(jobs: Sequence[PreparedJob]) -> Iterable[Sequence[PreparedJob]]:
    """Part a batch into what single statements take."""
    part: list[PreparedJob] = []
    size = 0
    for job in jobs:
        if part and (len(part) == AT_ONCE or size + len(job.payload) > BYTES_AT_ONCE):
            yield part
            part, size = [], 0
        part.append(job)
        size += len(job.payload)
    if part:
        yield part


def _known(ids: Sequence[JobId]) -> Work[dict[JobId, _Known]]:
    if not ids:
        return {}
    rows = yield Statement("known_ids", {"ids": ids})
    return {row[0]: _Known(*row) for row in rows}


def _spoiled_if_refused(check: Work[None]) -> Work[None]:
    """Do `check`; when it refuses what is partly written, let the caller's transaction end by a rollback alone."""
    try:
        yield from check
    except (IdConflict, StoreUnavailable) as refused:
        with suppress(Exception):
            yield Statement("spoil")
        refused.args = (f"{refused}; your transaction can only be rolled back now: begin it again",)
        raise


def _meet(changes: Changes, job: PreparedJob, holder: holds.Holder) -> Work[Enqueued]:
    """Answer a job whose key another one holds."""
    hold = job.unique
    assert hold is not None  # noqa: S101 - for the type checker: only keyed jobs come here
    check_conflict(hold, holder)
    if hold.on_conflict == "replace":
        return (yield from _replace(changes, job, hold, holder))
    return Enqueued(holder.job_id, created=False)


def _replace(changes: Changes, job: PreparedJob, hold: Hold, holder: holds.Holder) -> Work[Enqueued]:
    rows = yield Statement("standing", {"ids": [holder.job_id], "lock_timeout": None})
    standing = Standing(*rows[0]) if rows else None
    if standing is None or not standing.state.waiting:
        held = yield from holds.holders(changes, [hold.name])
        if hold.name in held and held[hold.name].job_id == holder.job_id:
            raise UniqueConflict(hold.key, holder.job_id, "claimed")
        # it was claimed or ended just now, and the key with it
        return (yield from _insert_batch(changes, [job]))[0]
    parameters = {
        "now": changes.now,
        "seq": standing.seq,
        "run_at": job.run_at,
        "delay": job.delay,
        "payload": job.payload,
        "codec": job.codec,
    }
    replace = run(Statement("replace", parameters))
    [(state,)] = yield from steps.starts_waiting(changes, [standing], replace)
    yield Statement("renew_hold", {"name": hold.name, "digest": hold.digest})
    changes.moved(standing.queue, standing.state, STATES[state])
    yield from write_kv(job.kv)
    return Enqueued(holder.job_id, created=False)


def _answer(jobs: Sequence[PreparedJob], new: Sequence[str] | None) -> list[Enqueued]:
    """Tell which jobs were created: all, or those of `new`; of two with one id the first."""
    if new is None:
        return [Enqueued(job.id, CREATED) for job in jobs]
    left = set(new)
    answers: list[Enqueued] = []
    for job in jobs:
        answers.append(Enqueued(job.id, job.id in left))
        left.discard(job.id)
    return answers


def _are_alike(jobs: Sequence[PreparedJob]) -> bool:
    """Whether jobs run at once, have none of the rarer things, and differ by id and payload alone."""
    _, queue, kind, _, codec, _, _, priority, most, *_ = jobs[0]
    for (
        _, a_queue, a_kind, _, a_codec, headers, tenant, a_priority, a_most, run_at, delay, hold, _, parent_id,
        schedule_id, limit_key,
    ) in jobs:  # fmt: skip
        if headers or tenant or hold or parent_id or schedule_id or limit_key or run_at or delay is not None:
            return False
        if (a_queue, a_kind, a_codec, a_priority, a_most) != (queue, kind, codec, priority, most):
            return False
    return True


def _is_common(job: PreparedJob) -> bool:
    """Whether a job runs at once, and has none of the rarer things."""
    _, _, _, _, _, headers, tenant, _, _, run_at, delay, hold, _, parent_id, schedule_id, limit_key = job
    return not (headers or tenant or hold or parent_id or schedule_id or limit_key or run_at or delay is not None)


def _common_columns(job: PreparedJob) -> dict[str, object]:
    """Return the parameters of `enqueue_one.sql` that a job gives."""
    id, queue, kind, payload, codec, _, _, priority, most, *_ = job
    return {
        "id": id,
        "queue": queue,
        "kind": kind,
        "payload": payload,
        "codec": codec,
        "priority": priority,
        "max_attempts": most,
    }


def _alike_columns(jobs: Sequence[PreparedJob]) -> dict[str, object]:
    """Return the parameters of `enqueue_alike.sql` that jobs give."""
    first = jobs[0]
    return {
        "ids": [job[0] for job in jobs],
        "payloads": [job[3] for job in jobs],
        "queue": first.queue,
        "kind": first.kind,
        "codec": first.codec,
        "priority": first.priority,
        "max_attempts": first.max_attempts,
    }


def _columns(jobs: Sequence[PreparedJob]) -> dict[str, object]:
    """Return the parameters of `enqueue.sql` and `enqueue_here.sql` that jobs give, by column."""
    wanted: list[datetime | None] = [job.run_at for job in jobs]
    delays: list[timedelta | None] = [job.delay for job in jobs]
    ids, queues, kinds, payloads, codecs, _, _, priorities, limits, *_ = map(list, zip(*jobs, strict=True))
    return {
        "ids": ids,
        "queues": queues,
        "kinds": kinds,
        "payloads": payloads,
        "codecs": codecs,
        "priorities": priorities,
        "max_attempts": limits,
        "run_ats": wanted,
        "delays": delays,
        "headers": [headers_text(job.headers) if job.headers else None for job in jobs],
        "tenants": [job.tenant for job in jobs],
        "unique_keys": [None if job.unique is None else job.unique.key for job in jobs],
        "parent_ids": [job.parent_id for job in jobs],
        "schedule_ids": [job.schedule_id for job in jobs],
        "limit_keys": [job.limit_key for job in jobs],
        "holds": [None if job.unique is None else job.unique.name for job in jobs],
        "hold_untils": [None if job.unique is None else job.unique.until for job in jobs],
    }
