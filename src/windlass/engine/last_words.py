"""What is written for a server whose event loop does not come back, by the process that then ends."""

from collections.abc import Sequence

from windlass.core.requests import Settlement
from windlass.core.store import Store
from windlass.core.verdict import GivenBack, Outcome, Raised
from windlass.engine.attempt import Attempt
from windlass.engine.outcomes import if_flagged, timed_out


def cut_off(attempt: Attempt, now: float) -> Outcome:
    """Return how an attempt ends with its process: what is past its timeout has failed, and all else is released."""
    until = attempt.renew_until
    outcome: Outcome = GivenBack(started=attempt.started_at is not None)
    if until is not None and until - attempt.lease <= now:
        outcome = Raised(timed_out(attempt.timeout))
    return if_flagged(outcome) if attempt.reason == "cancel" else outcome


async def write_last_words(store: Store, settlements: Sequence[Settlement], server_id: str) -> None:
    """Settle what is left, and take the server out."""
    await store.settle(settlements)
    await store.leave(server_id)
