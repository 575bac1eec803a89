"""Unique keys: who holds them, and when they are taken and freed."""

from collections.abc import Mapping
from typing import NamedTuple

from windlass.core.duration import to_micros
from windlass.core.errors import StoreCorrupt
from windlass.core.ids import JobId
from windlass.core.job import PreparedJob
from windlass.core.unique import Hold, digest, key_of
from windlass.kit.damage import Unreadable
from windlass.kit.unique_keys import NO_KEY, Kept, as_it_was
from windlass.stores.sqlite.damaged import has_unreadable
from windlass.stores.sqlite.rows import ClaimedRow, Standing, json_list
from windlass.stores.sqlite.transaction import Transaction


class Holder(NamedTuple):
    """The job that holds a key now."""

    job_id: JobId
    expires_at: int | None
    digest: bytes


def holder(tx: Transaction, name: str) -> Holder | None:
    """Return who holds the key, if anybody still does."""
    row = tx.row("holder", {"name": name, "now": tx.now})
    if row is None:
        return None
    if isinstance(row[0], Unreadable):
        raise StoreCorrupt(f"who holds the unique key {name!r} cannot be read: its job_id {row[0].why}")
    return Holder(*row)


def take(tx: Transaction, job: PreparedJob, hold: Hold) -> None:
    """Give the key to a job that is being enqueued."""
    expires_at = None if hold.hold_for is None else to_micros(tx.moment + hold.hold_for)
    tx.run("take_hold", {"name": hold.name, "job_id": job.id, "expires_at": expires_at, "digest": hold.digest})


def free_at_claim(tx: Transaction, job: ClaimedRow) -> None:
    """Free a key that was held until the first claim."""
    tx.run("free_hold", {"name": job.hold, "job_id": job.id})
    tx.run("empty_unique_key", {"seq": job.seq})


def free_at_end(tx: Transaction, job_id: JobId, name: str | None, until: str | None) -> None:
    """Free the key of a job that has ended; time alone frees one that is held by time."""
    if has_unreadable((name, until)):
        tx.run("free_holds_of_id", {"job_id": job_id})
    elif name is not None and until != "time":
        tx.run("free_hold", {"name": name, "job_id": job_id})


def free_all_of(tx: Transaction, damaged: Mapping[int, object]) -> None:
    """Free the keys of damaged jobs, whatever of their own records can be read; time alone frees one held by time.

    `damaged` has by the sequence number of each job the name of its key, as far as that can be read.
    """
    tx.run("free_holds_of", {"seqs": json_list(list(damaged))})
    for name in damaged.values():
        if isinstance(name, str):
            tx.run("free_lost_hold", {"name": name})


def after_release(tx: Transaction, job: Standing) -> Kept:
    """A claim that never started takes its key back, if it is still free."""
    if job.hold_until != "claimed" or job.hold is None:
        return as_it_was(job)
    if holder(tx, job.hold) is not None:
        return NO_KEY
    _take_until_end(tx, job)
    return Kept(key_of(job.hold), job.hold, job.hold_until)


def take_again(tx: Transaction, job: Standing) -> bool:
    """Take the key that a finished job shows, for its new life; False when another job holds it."""
    if job.unique_key is None or job.hold is None or has_unreadable((job.unique_key, job.hold, job.hold_until)):
        # the next claim sets it aside again, if it was not repaired by then
        return True
    found = holder(tx, job.hold)
    if found is not None and found.job_id != job.id:
        return False
    if found is None and job.hold_until != "time":
        _take_until_end(tx, job)
    return True


def _take_until_end(tx: Transaction, job: Standing) -> None:
    stored = digest(tx.row("payload", {"seq": job.seq})[0])
    tx.run("take_hold", {"name": job.hold, "job_id": job.id, "expires_at": None, "digest": stored})
