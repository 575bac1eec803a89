"""Pack: the waiting jobs of a queue as they are, for another store; and letting go of those that it has."""

from collections.abc import Sequence
from typing import Final

from windlass.core.ids import JobId
from windlass.core.moving import HeldKey, Packed
from windlass.core.states import WAITING
from windlass.core.topics import SCHEDULES
from windlass.stores.postgres.looks import whole_job
from windlass.stores.postgres.moves import ends, holds
from windlass.stores.postgres.moves.departure import goes_by
from windlass.stores.postgres.rows import Standing
from windlass.stores.postgres.work import Changes, Many, Row, Statement, Work

LOOKED_AT: Final = 50_000
"""Records that are looked at from where the last parcel began, before all waiting jobs of the queue are."""
BYTES_AT_ONCE: Final = 32 * 1024 * 1024
"""A parcel with more than this is cut."""
_KEY_COLUMNS: Final = 4


def pack(changes: Changes, queue: str, *, near: int | None, limit: int) -> Work[Packed]:
    """Return the first waiting jobs of `queue` with the keys that they hold.

    With `near`, the number that the last parcel began with, those behind it come first, so that not all have to be
    looked at for every parcel.
    """
    found = yield from _first(queue, near, limit)
    if not found:
        return Packed((), ())
    rows = yield Statement("pack", [changes.now, _cut(found)])
    jobs = [whole_job(row[:-_KEY_COLUMNS]) for row in rows]
    keys = [_key(job.id, row[-_KEY_COLUMNS:]) for job, row in zip(jobs, rows, strict=True)]
    return Packed(jobs, [key for key in keys if key is not None])


def let_go(
    changes: Changes,
    *,
    move: str | None = None,
    jobs: Sequence[JobId] = (),
    keys: Sequence[str] = (),
    kv: Sequence[bytes] = (),
    schedules: Sequence[str] = (),
) -> Work[bool]:
    """Forget what another store has now; of jobs only those that wait."""
    if not (yield from goes_by(move)):
        return False
    if jobs:
        yield from _let_go_jobs(changes, jobs)
    if keys:
        yield Statement("let_go_keys", [list(keys)])
    if kv:
        yield Many("kv_delete", [(key,) for key in sorted(kv)])
    if schedules:
        yield Many("remove_schedule", [(schedule_id,) for schedule_id in sorted(schedules)])
        changes.topics.add(SCHEDULES)
    return True


def _first(queue: str, near: int | None, limit: int) -> Work[Sequence[Row]]:
    if near is not None and (rows := (yield Statement("waiting_near", [queue, near, LOOKED_AT, limit]))):
        return rows
    return (yield Statement("waiting_first", [queue, limit]))


def _cut(found: Sequence[Row]) -> list[int]:
    """Return the numbers of those that fit one parcel, one at least."""
    chosen: list[int] = []
    left = BYTES_AT_ONCE
    for seq, size in found:
        left -= size
        if chosen and left < 0:
            break
        chosen.append(seq)
    return chosen


def _key(job_id: JobId, row: Row) -> HeldKey | None:
    name, until, expires_at, digest = row
    return None if name is None else HeldKey(name, job_id, until, expires_at, bytes(digest))


def _let_go_jobs(changes: Changes, ids: Sequence[JobId]) -> Work[None]:
    rows = yield Statement("standing", [sorted(set(ids)), None])
    waiting = [job for job in map(Standing._make, rows) if job.state in WAITING]
    yield from holds.free([(job.hold, job.id) for job in waiting if job.hold is not None])
    yield from ends.forget([job.seq for job in waiting])
    for job in waiting:
        changes.moved(job.queue, job.state, None)
