"""Pack: the waiting jobs of a queue as they are, for another store; and letting go of those that it has."""

from collections.abc import Sequence
from typing import Final

from windlass.core.commands import DeleteMoved
from windlass.core.ids import JobId
from windlass.core.moving import HeldKey, Packed
from windlass.core.queries import PackJobs
from windlass.core.states import WAITING
from windlass.core.topics import SCHEDULES
from windlass.stores.postgres.moves import delivery_ends, holds
from windlass.stores.postgres.moves.departure import goes_by
from windlass.stores.postgres.queries import whole_job
from windlass.stores.postgres.rows import Standing
from windlass.stores.postgres.work import Changes, Many, Row, Statement, Work

LOOKED_AT: Final = 50_000
"""Records that are looked at from where the last parcel began, before all waiting jobs of the queue are."""
BYTES_AT_ONCE: Final = 32 * 1024 * 1024
"""A parcel with more than this is cut."""
_KEY_COLUMNS: Final = 4


def pack(changes: Changes, query: PackJobs, *, near: int | None) -> Work[Packed]:
    """Return the first waiting jobs of a queue with the keys that they hold.

    With `near`, the number that the last parcel began with, those behind it come first, so that not all have to be
    looked at for every parcel. Damaged jobs are left out.
    """
    damaged: list[int] = []
    while found := (yield from _first(query.queue, near, query.limit, damaged)):
        rows = yield Statement("pack", {"now": changes.now, "seqs": _cut(found)})
        whole = [(whole_job(row[:-_KEY_COLUMNS]), row[-_KEY_COLUMNS:]) for row in rows]
        sound = [(job, key) for job, key in whole if job.damage is None]
        if sound:
            keys = [_key(job.id, key) for job, key in sound]
            return Packed([job for job, _ in sound], [key for key in keys if key is not None])
        damaged += [seq for seq, *_ in rows]
    return Packed((), ())


def let_go(changes: Changes, command: DeleteMoved) -> Work[bool]:
    """Forget what another store has now; of jobs only those that wait."""
    if not (yield from goes_by(command.move)):
        return False
    if command.jobs:
        yield from _let_go_jobs(changes, command.jobs)
    if command.keys:
        yield Statement("let_go_keys", {"names": list(command.keys)})
    if command.kv:
        yield Many("kv_delete", [{"key": key} for key in sorted(command.kv)])
    if command.schedules:
        yield Many("remove_schedule", [{"id": schedule_id} for schedule_id in sorted(command.schedules)])
        changes.topics.add(SCHEDULES)
    return True


def _first(queue: str, near: int | None, limit: int, without: Sequence[int]) -> Work[Sequence[Row]]:
    parameters = {"queue": queue, "limit": limit, "without": without}
    if near is not None:
        rows = yield Statement("waiting_near", {**parameters, "near": near, "looked_at": LOOKED_AT})
        if rows:
            return rows
    return (yield Statement("waiting_first", parameters))


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
    rows = yield Statement("standing", {"ids": sorted(set(ids)), "lock_timeout": None})
    waiting = [job for job in map(Standing._make, rows) if job.state in WAITING]
    yield from holds.free([(job.hold, job.id) for job in waiting if job.hold is not None])
    yield from delivery_ends.forget([job.seq for job in waiting])
    for job in waiting:
        changes.moved(job.queue, job.state, None)
