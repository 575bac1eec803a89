"""Unique keys: who holds them, and when they are taken and freed."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from windlass.core.ids import JobId
from windlass.core.job import PreparedJob
from windlass.core.moving import HeldKey
from windlass.core.queries import ListTimedKeys
from windlass.core.unique import Hold, digest, key_of
from windlass.kit.unique_keys import NO_KEY, Kept, as_it_was
from windlass.stores.postgres.rows import Standing
from windlass.stores.postgres.work import Changes, Statement, Work


class Holder(NamedTuple):
    """The job that holds a key now."""

    job_id: JobId
    expires_at: datetime | None
    digest: bytes


def holders(changes: Changes, names: Sequence[str]) -> Work[dict[str, Holder]]:
    """Return who holds these keys, those that somebody still holds."""
    if not names:
        return {}
    rows = yield Statement("holders", {"now": changes.now, "names": names})
    return {row[0]: Holder(JobId(row[1]), row[2], bytes(row[3])) for row in rows}


def take(changes: Changes, jobs: Sequence[PreparedJob]) -> Work[dict[str, Holder]]:
    """Give the keys of `jobs` to them where they are free, the first of each; return who holds each of them then."""
    wanted: dict[str, tuple[PreparedJob, Hold]] = {}
    for job in jobs:
        if job.unique is not None:
            wanted.setdefault(job.unique.name, (job, job.unique))
    wishes = {name: _Wish(job.id, hold.hold_for, None, hold.digest) for name, (job, hold) in wanted.items()}
    return (yield from _take_free(changes, wishes))


def take_over(changes: Changes, keys: Sequence[HeldKey]) -> Work[dict[str, JobId]]:
    """Give keys that were held in another store to the same jobs where they are free; return who holds each then."""
    wishes = {key.name: _Wish(key.job_id, None, key.expires_at, key.digest) for key in keys}
    held = yield from _take_free(changes, wishes)
    return {name: holder.job_id for name, holder in held.items()}


def timed(changes: Changes, query: ListTimedKeys) -> Work[list[HeldKey]]:
    """Return keys that only time frees, and that it has not freed yet."""
    rows = yield Statement("timed_keys", {"now": changes.now, "limit": query.limit})
    return [HeldKey(name, JobId(job_id), "time", at, bytes(text)) for name, job_id, at, text in rows]


class _Wish(NamedTuple):
    """What `take_holds.sql` writes beside the name of a key."""

    job_id: JobId
    hold_for: timedelta | None
    expires_at: datetime | None
    digest: bytes


def _take_free(changes: Changes, wishes: dict[str, _Wish]) -> Work[dict[str, Holder]]:
    """Take the keys that are free; return who holds each of them then, all at one moment.

    Waits for a foreign transaction that is about to take the same key. A key that is another's is only read, never
    locked: this transaction may stay open for long, and the holder's claim and end must be able to free the key
    meanwhile. So it is read last, when there is nothing to wait for any more.
    """
    mine: dict[str, Holder] = {}
    refused: set[str] = set()
    while left := [name for name in wishes if name not in mine]:
        others = yield from holders(changes, left)
        free = [name for name in left if name not in others]
        if not free:
            return mine | others
        if over := [name for name in free if name in refused]:
            # time has freed them, or somebody did just now: with the rows out of the way they can be taken
            yield Statement("drop_holds", {"now": changes.now, "names": over})
        taken = [wishes[name] for name in free]
        parameters = {
            "now": changes.now,
            "names": free,
            "job_ids": [wish.job_id for wish in taken],
            "hold_fors": [wish.hold_for for wish in taken],
            "expires_ats": [wish.expires_at for wish in taken],
            "digests": [wish.digest for wish in taken],
        }
        rows = yield Statement("take_holds", parameters)
        mine |= {row[0]: Holder(JobId(row[1]), row[2], bytes(row[3])) for row in rows}
        refused = {name for name in free if name not in mine}
    return mine


def free(held: Sequence[tuple[str, JobId]]) -> Work[None]:
    """Free keys, each if it is the named job that holds it."""
    if held:
        yield Statement("free_holds", {"names": [name for name, _ in held], "job_ids": [job_id for _, job_id in held]})


def free_at_end(jobs: Sequence[Standing]) -> Work[None]:
    """Free the keys of jobs that have ended; time alone frees one that is held by time."""
    yield from free([(job.hold, job.id) for job in jobs if job.hold is not None and job.hold_until != "time"])


def after_release(changes: Changes, jobs: Sequence[Standing]) -> Work[list[Kept]]:
    """Claims that never started take their keys back, those that are still free."""
    freed = [job for job in jobs if job.hold_until == "claimed" and job.hold is not None]
    held = yield from _take_back(changes, freed)
    return [
        as_it_was(job)
        if job.hold_until != "claimed" or job.hold is None
        else Kept(key_of(job.hold), job.hold, job.hold_until)
        if held[job.hold] == job.id
        else NO_KEY
        for job in jobs
    ]


def take_again(changes: Changes, jobs: Sequence[Standing]) -> Work[set[JobId]]:
    """Take the keys that finished jobs show, for their new life; return the jobs whose key another one holds."""
    keyed = [job for job in jobs if job.unique_key is not None and job.hold is not None]
    by_time = [job for job in keyed if job.hold_until == "time"]
    held = yield from _take_back(changes, [job for job in keyed if job.hold_until != "time"])
    others = yield from holders(changes, [job.hold for job in by_time if job.hold is not None])
    held |= {name: holder.job_id for name, holder in others.items()}
    return {job.id for job in keyed if job.hold is not None and held.get(job.hold, job.id) != job.id}


def _take_back(changes: Changes, jobs: Sequence[Standing]) -> Work[dict[str, JobId]]:
    """Take keys for jobs that are here already; return who holds each of them then."""
    if not jobs:
        return {}
    first = {job.hold: job for job in reversed(jobs) if job.hold is not None}
    payloads = yield Statement("payloads", {"seqs": [job.seq for job in first.values()]})
    digests = {row[0]: digest(bytes(row[1])) for row in payloads}
    wishes = {name: _Wish(job.id, None, None, digests[job.seq]) for name, job in first.items()}
    held = yield from _take_free(changes, wishes)
    return {name: holder.job_id for name, holder in held.items()}
