"""The fence: which token may still settle a job."""

from windlass.core.failpoint import removed
from windlass.core.job import Token
from windlass.core.requests import Settled
from windlass.core.states import State


def refusal(state: State, kept: Token | None, shown: str) -> Settled | None:
    """Return why a token that is `shown` may not settle a job that keeps another or has ended; None when it may."""
    if state is State.RUNNING:
        return None if kept == shown or removed("fence") else Settled.LOST
    return Settled.REPEATED if kept == shown else Settled.LOST
