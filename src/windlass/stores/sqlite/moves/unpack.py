"""Unpack: jobs of another store into line, as they are."""

from collections.abc import Sequence

import msgspec

from windlass.core.duration import to_micros
from windlass.core.job import Job
from windlass.core.moving import HeldKey, Parcel
from windlass.core.states import State
from windlass.kit.records import headers_text
from windlass.kit.unique_keys import NO_KEY, Kept
from windlass.stores.sqlite.moves import holds
from windlass.stores.sqlite.rows import json_list
from windlass.stores.sqlite.statements import sql
from windlass.stores.sqlite.transaction import ENQUEUED, Transaction


def unpack(tx: Transaction, parcels: list[Parcel]) -> list[bool]:
    """Put the jobs of each parcel that is the next one in line."""
    return [_unpack(tx, parcel) for parcel in parcels]


def take_keys(tx: Transaction, calls: list[Sequence[HeldKey]]) -> list[None]:
    """Let keys be held until their time is over, those that are free."""
    for keys in calls:
        for key in keys:
            if key.expires_at is not None:
                _take(tx, key)
    return [None] * len(calls)


def _unpack(tx: Transaction, parcel: Parcel) -> bool:
    last = tx.row("unpacked", (parcel.move, parcel.queue))
    if parcel.number != (0 if last is None else last[0]) + 1:
        return False
    new = _not_here(tx, parcel.packed.jobs)
    keys = {key.job_id: key for key in parcel.packed.keys}
    for seq, job in enumerate(new, tx.reserve(len(new))):
        _put(tx, seq, job, keys.get(job.id))
    ids = json_list([job.id for job in parcel.packed.jobs])
    tx.run("write_parcel", (parcel.move, parcel.queue, parcel.number, ids))
    return True


def _not_here(tx: Transaction, jobs: Sequence[Job]) -> list[Job]:
    """Return each job whose id is not here yet, once."""
    here = {row[0] for row in tx.execute(sql("seqs_of"), (json_list([job.id for job in jobs]),)).fetchall()}
    return list({job.id: job for job in jobs if job.id not in here}.values())


def _put(tx: Transaction, seq: int, job: Job, key: HeldKey | None) -> None:
    run_at = to_micros(job.run_at)
    state = State.SCHEDULED if job.state is State.SCHEDULED and run_at > tx.now else State.PENDING
    kept = _kept(tx, job, key)
    tx.run(
        "unpack",
        (
            seq, job.id, job.queue, job.kind, job.payload, job.codec,
            headers_text(job.headers) if job.headers else None, job.tenant, job.priority, str(state), job.attempt,
            job.max_attempts, job.delivery, to_micros(job.created_at), run_at, job.last_error,
            None if job.progress is None else msgspec.json.encode(job.progress).decode(), int(job.cancel_requested),
            kept.unique_key, job.parent_id, job.schedule_id, job.limit_key, kept.hold, kept.hold_until, len(job.log),
        ),
    )  # fmt: skip
    _put_traces(tx, seq, job)
    tx.moved(job.queue, None, state)
    tx.happened(job.queue, job.kind, ENQUEUED)
    tx.ready(job.queue)


def _put_traces(tx: Transaction, seq: int, job: Job) -> None:
    deliveries = [
        (seq, number, attempt, to_micros(started), to_micros(ended), worker, outcome, *(failure or (None, None, None)))
        for number, attempt, started, ended, worker, outcome, failure in job.history
        if ended is not None
    ]
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
    tx.run("take_hold", (key.name, key.job_id, expires_at, key.digest))
    return True
