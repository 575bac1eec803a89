"""Unpack: jobs of another store into line, as they are."""

from collections.abc import Callable
from operator import itemgetter
from typing import Any, Final

import msgspec

from windlass.core.commands import TakeKeys, UnpackJobs
from windlass.core.duration import to_micros
from windlass.core.errors import IdConflict, WindlassError
from windlass.core.job import WAITING_FIELDS, Job
from windlass.core.moving import HeldKey
from windlass.core.states import State
from windlass.kit.job_ids import check_repeats
from windlass.kit.records import headers_text, log_lines_of
from windlass.kit.unique_keys import NO_KEY, Kept
from windlass.stores.sqlite.moves import holds, steps
from windlass.stores.sqlite.moves.delivery_ends import NO_FAILURE
from windlass.stores.sqlite.moves.enqueue import known_jobs
from windlass.stores.sqlite.rows import MOVED_COLUMNS, json_list
from windlass.stores.sqlite.statements import sql
from windlass.stores.sqlite.transaction import Transaction

_values: Final[Callable[[Job], tuple[Any, ...]]] = itemgetter(
    *[Job._fields.index(field.name) for field in WAITING_FIELDS]
)
_column: Final = MOVED_COLUMNS.index
_SEQ, _STATE, _UNIQUE_KEY = _column("seq"), _column("state"), _column("unique_key")
_CREATED_AT, _RUN_AT = _column("created_at"), _column("run_at")
_HEADERS, _PROGRESS = _column("headers"), _column("progress")
"""What a row has in another form than the job."""


def take_keys(tx: Transaction, command: TakeKeys) -> None:
    """Let keys be held until their time is over, those that are free."""
    for key in command.keys:
        if key.expires_at is not None:
            _take(tx, key)


def unpack(tx: Transaction, command: UnpackJobs) -> bool | WindlassError:
    """Enqueue the jobs of a parcel, if it is the next one; a job whose id another job has refuses the parcel."""
    parcel = command.parcel
    last = tx.row("unpacked", {"move": parcel.move, "queue": parcel.queue})
    if parcel.number != (0 if last is None else last[0]) + 1:
        return False
    here = known_jobs(tx, parcel.packed.jobs)
    try:
        check_repeats(parcel.packed.jobs, here)
    except IdConflict as conflict:
        return conflict
    # each job once
    new = {job.id: job for job in parcel.packed.jobs if job.id not in here}.values()
    keys = {key.job_id: key for key in parcel.packed.keys}
    for seq, job in enumerate(new, tx.reserve(len(new))):
        _put(tx, seq, job, keys.get(job.id))
    ids = json_list([job.id for job in parcel.packed.jobs])
    tx.run("write_parcel", {"move": parcel.move, "queue": parcel.queue, "number": parcel.number, "ids": ids})
    return True


def _put(tx: Transaction, seq: int, job: Job, key: HeldKey | None) -> None:
    run_at = to_micros(job.run_at)
    state = State.SCHEDULED if job.state is State.SCHEDULED and run_at > tx.now else State.PENDING
    kept = _kept(tx, job, key)
    row = [*_values(job), kept.hold, kept.hold_until, log_lines_of(job)]
    row[_SEQ], row[_STATE], row[_UNIQUE_KEY] = seq, str(state), kept.unique_key
    row[_CREATED_AT], row[_RUN_AT] = to_micros(job.created_at), run_at
    row[_HEADERS] = headers_text(job.headers) if job.headers else None
    row[_PROGRESS] = None if job.progress is None else msgspec.json.encode(job.progress).decode()
    tx.run("unpack", row)
    _put_traces(tx, seq, job)
    steps.starts_waiting(tx, steps.Group(job.queue, job.kind, None, 1, (seq,)), state)


def _put_traces(tx: Transaction, seq: int, job: Job) -> None:
    deliveries = [
        (
            seq, number, attempt, to_micros(started), to_micros(ended), worker, outcome, *(failure or NO_FAILURE),
            None if retried is None else to_micros(retried),
        )
        for number, attempt, started, ended, worker, outcome, failure, retried in job.history
        if ended is not None
    ]  # fmt: skip
    lines = [(seq, line, to_micros(at), *rest) for line, (at, *rest) in enumerate(job.log, 1)]
    if deliveries:
        tx.cursor.executemany(sql("write_delivery"), deliveries)
    if lines:
        tx.cursor.executemany(sql("write_log_line"), lines)


def _kept(tx: Transaction, job: Job, key: HeldKey | None) -> Kept:
    """Let a job hold its key if it is free; one that it holds no more is shown as it was."""
    if key is None:
        return NO_KEY._replace(unique_key=job.unique_key)
    return Kept(job.unique_key, key.name, key.until) if _take(tx, key) else NO_KEY


def _take(tx: Transaction, key: HeldKey) -> bool:
    """Take a key for its job; False when another job holds it. One whose time is over holds nothing off."""
    found = holds.holder(tx, key.name)
    if found is not None:
        return found.job_id == key.job_id
    expires_at = None if key.expires_at is None else to_micros(key.expires_at)
    tx.run("take_hold", {"name": key.name, "job_id": key.job_id, "expires_at": expires_at, "digest": key.digest})
    return True
