"""What can be done with the keys of one queue alone, where every queue has a hash tag of its own."""

from collections.abc import Sequence
from typing import Final

from windlass.core.errors import NotAtomicHere
from windlass.core.job import PreparedJob, Token
from windlass.core.requests import Settlement

_APART: Final = "write the value by a call of its own"


def queue_of(token: Token) -> str | None:
    """Return the queue of the job that a token was made for."""
    return token.rpartition("|")[0] or None


def queue_of_key(name: str) -> str | None:
    """Return the queue that a unique key holds in, by the name of its hold; None for one over several queues."""
    scope, _, place, _ = name.split("|", 3)
    return place if scope == "queue" else None


def refusal(jobs: Sequence[PreparedJob], queue: str) -> NotAtomicHere | None:
    """Return why jobs cannot be enqueued in one step with those of `queue`."""
    for job in jobs:
        if job.queue != queue:
            return NotAtomicHere(f"jobs for the queues {queue!r} and {job.queue!r} in one call")
        if job.kv:
            return NotAtomicHere("kv= with a job", _APART)
        if job.unique is not None and not job.unique.name.startswith("queue|"):
            return NotAtomicHere("a unique key over several queues", "give it scope='queue'")
    return None


def refusal_of(settlement: Settlement) -> NotAtomicHere | None:
    """Return why a settlement cannot be written in one step."""
    if settlement.kv:
        return NotAtomicHere("kv= with a settlement", _APART)
    return refusal(settlement.then, queue_of(settlement.token) or "")
