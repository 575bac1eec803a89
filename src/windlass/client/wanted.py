"""A schedule as somebody wants it, checked: when it makes jobs, and which."""

import difflib
from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Final, NamedTuple, Protocol

from windlass.client.prepare import Preparer
from windlass.core.errors import InvalidValue
from windlass.core.job import NewJob, PreparedJob
from windlass.core.names import check_name, shortened
from windlass.core.rule import Rule, read_rule
from windlass.core.schedule import DUE_AT, CatchUp, Overlap
from windlass.zone import zone

CATCH_UP: Final[Mapping[str, CatchUp]] = {"one": "one", "none": "none", "all": "all"}
OVERLAP: Final[Mapping[str, Overlap]] = {"allow": "allow", "skip": "skip"}
REFUSED: Final[Mapping[str, str]] = {
    "id": "each of its jobs gets an id of its own",
    "run_at": "its rule says when they run",
    "delay": "its rule says when they run",
    "unique": "with overlap='skip' it makes no job while its last one is unfinished",
    "kv": "let the job write it when it runs",
}


class Call(Protocol):
    """A call of a handler that is still to be enqueued: what `handler.call(...)` gives."""

    def new_job(self) -> NewJob:
        """Return the job as the client takes it."""
        ...


class Terms(NamedTuple):
    """When a schedule makes jobs."""

    rule: Rule
    timezone: str
    catch_up: CatchUp
    overlap: Overlap


class Wanted(NamedTuple):
    """A schedule: its id, its terms, and a job like those that it makes, whose own id means nothing."""

    id: str
    terms: Terms
    job: PreparedJob


def checked_terms(rule: str | timedelta | float, *, timezone: str, catch_up: str, overlap: str) -> Terms:
    """Return the terms of a schedule; raises `InvalidValue` for what cannot mean anything."""
    return Terms(
        read_rule(rule, zone(timezone)),
        timezone,
        CATCH_UP[_choice(catch_up, "catch_up", CATCH_UP)],
        OVERLAP[_choice(overlap, "overlap", OVERLAP)],
    )


def wanted(id: str, terms: Terms, job: NewJob | Call, preparer: Preparer) -> Wanted:
    """Return a schedule that makes jobs like `job`; what that leaves out is taken from the preparer's settings."""
    return Wanted(check_name(id, "schedule id"), terms, preparer.one(_checked(_new_job(job))))


def _choice(value: object, what: str, choices: Collection[str]) -> str:
    if isinstance(value, str) and value in choices:
        return value
    near = difflib.get_close_matches(value, choices, n=1) if isinstance(value, str) else []
    advice = f": did you mean {near[0]!r}?" if near else ""
    message = f"{what} is one of {', '.join(choices)}, not {shortened(repr(value), 60)}{advice}"
    raise InvalidValue(message)


def _new_job(job: object) -> NewJob:
    if isinstance(job, NewJob):
        return job
    made = getattr(job, "new_job", None)
    new = made() if callable(made) else None
    if isinstance(new, NewJob):
        return new
    message = f"the job of a schedule is a NewJob, or a call of a handler, handler.call(...), not {type(job).__name__}"
    raise InvalidValue(message)


def _checked(job: NewJob) -> NewJob:
    for name, why in REFUSED.items():
        if getattr(job, name) is not None:
            message = f"the job of a schedule has no {name}: {why}"
            raise InvalidValue(message)
    if isinstance(job.headers, Mapping) and DUE_AT in job.headers:
        message = f"header {DUE_AT!r} is written by schedules: choose another name"
        raise InvalidValue(message)
    return job
