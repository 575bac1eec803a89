"""All jobs that a list shows, to be changed at once: in words, and as the API is told of them."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from windlass.client.spoken import at_utc, counted
from windlass.core.filters import JobFilter
from windlass.core.job import Job
from windlass.core.states import ENDS

WORDS: Final = {
    "queue": "in the queue",
    "kind": "of the kind",
    "tenant": "of the tenant",
    "error_type": "with the error",
    "schedule_id": "made by the schedule",
    "parent_id": "enqueued by the job",
    "since": "made since",
    "until": "made before",
}
"""How each field by which a list chooses is said."""


class JobsBulk(NamedTuple):
    """What is changed, with its number, and the body of the call."""

    meant: str
    is_exact: bool
    """Whether there are no more than that."""
    body: Mapping[str, Any]


def bulk_of(chosen: JobFilter, jobs: Sequence[Job], count: int | None) -> JobsBulk | None:
    """Return the change of all jobs that match: `jobs` are the newest of them, `count` is how many there are, if known.

    None where nothing is offered: jobs that have not ended are steered one by one.
    """
    if chosen.state not in ENDS or not jobs:
        return None
    given = {name: getattr(chosen, name) for name in WORDS if getattr(chosen, name) is not None}
    many = (
        f"at least {counted(len(jobs), f'{chosen.state} job')}"
        if count is None
        else counted(count, f"{chosen.state} job")
    )
    words = ", ".join(f"{WORDS[name]} {_said(value)}" for name, value in given.items())
    # up to the newest that was seen: what comes while somebody thinks is not meant
    until = jobs[0].created_at + timedelta(microseconds=1)
    until = until if chosen.until is None else min(chosen.until, until)
    body = {"state": chosen.state, **{name: _sent(value) for name, value in given.items()}, "until": until.isoformat()}
    return JobsBulk(f"{many} {words}".rstrip(), count is not None, {"filter": body})


def _said(value: str | datetime) -> str:
    return at_utc(value) if isinstance(value, datetime) else value


def _sent(value: str | datetime) -> str:
    return value.isoformat() if isinstance(value, datetime) else value
