"""Unique keys: who holds them, and when they are taken and freed."""

from typing import NamedTuple

from windlass.core.duration import to_micros
from windlass.core.ids import JobId
from windlass.core.job import PreparedJob
from windlass.core.unique import Hold, digest, key_of
from windlass.kit.unique_keys import NO_KEY, Kept, as_it_was
from windlass.stores.sqlite.rows import ClaimedRow, Standing
from windlass.stores.sqlite.transaction import Transaction


class Holder(NamedTuple):
    """The job that holds a key now."""

    job_id: JobId
    expires_at: int | None
    digest: bytes


def holder(tx: Transaction, name: str) -> Holder | None:
    """Return who holds the key, if anybody still does."""
    row = tx.row("holder", (name, tx.now))
    return None if row is None else Holder(*row)


def take(tx: Transaction, job: PreparedJob, hold: Hold) -> None:
    """Give the key to a job that is being enqueued."""
    expires_at = None if hold.hold_for is None else to_micros(tx.moment + hold.hold_for)
    tx.run("take_hold", (hold.name, job.id, expires_at, hold.digest))


def free_at_claim(tx: Transaction, job: ClaimedRow) -> None:
    """Free a key that was held until the first claim."""
    tx.run("free_hold", (job.hold, job.id))
    tx.run("empty_unique_key", (job.seq,))


def free_at_end(tx: Transaction, job_id: JobId, name: str | None, until: str | None) -> None:
    """Free the key of a job that has ended; time alone frees one that is held by time."""
    if name is not None and until != "time":
        tx.run("free_hold", (name, job_id))


def after_release(tx: Transaction, job: Standing) -> Kept:
    """A claim that never started takes its key back, if it is still free."""
    if job.hold_until != "claimed" or job.hold is None:
        return as_it_was(job)
    if holder(tx, job.hold) is not None:
        return NO_KEY
    tx.run("take_hold", (job.hold, job.id, None, _digest_of(tx, job.seq)))
    return Kept(key_of(job.hold), job.hold, job.hold_until)


def take_again(tx: Transaction, job: Standing) -> bool:
    """Take the key that a finished job shows, for its new life; False when another job holds it."""
    if job.unique_key is None or job.hold is None:
        return True
    found = holder(tx, job.hold)
    if found is not None and found.job_id != job.id:
        return False
    if found is None and job.hold_until != "time":
        tx.run("take_hold", (job.hold, job.id, None, _digest_of(tx, job.seq)))
    return True


def _digest_of(tx: Transaction, seq: int) -> bytes:
    return digest(tx.row("payload", (seq,))[0])
