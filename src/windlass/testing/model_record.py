"""One job in the model of a store: what is kept of it, and how it begins."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from windlass.core.job import STORED_FIELDS, Job, PreparedJob, Token
from windlass.core.states import State
from windlass.core.unique import Hold


@dataclass
class Record:
    """One job as readers see it, and what the store alone knows of it."""

    job: Job
    key: Hold | None
    """The key that the job shows: the one that it holds, or could hold again."""
    freed: Hold | None = None
    """The key that the running claim freed: a release before the start may take it back."""
    token: Token | None = None
    settled_by: Token | None = None


def new_job(new: PreparedJob, seq: int, now: datetime, wanted: datetime | None) -> Job:
    """Return a job as it is enqueued, wanted at a time or at once."""
    state, run_at = waiting_place(wanted, now)
    nothing: dict[str, Any] = dict.fromkeys(field.name for field in STORED_FIELDS)
    given = {name: value for name, value in new._asdict().items() if name in Job._fields}
    begins: dict[str, Any] = {
        "seq": seq,
        "state": state,
        "created_at": now,
        "run_at": run_at,
        "attempt": 0,
        "delivery": 0,
        "cancel_requested": False,
        "unique_key": None if new.unique is None else new.unique.key,
    }
    return Job(**nothing | given | begins)


def waiting_place(run_at: datetime | None, now: datetime) -> tuple[State, datetime]:
    """Return where a job waits that is wanted at a time or at once, and since or until when."""
    return (State.PENDING, now) if run_at is None or run_at <= now else (State.SCHEDULED, run_at)
