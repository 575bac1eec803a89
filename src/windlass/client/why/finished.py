"""How a job ended, and what a retry of it would meet; and what can be said of one that is not here."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from windlass.client.spoken import at_utc, counted, distance
from windlass.client.why.known import Fact, Known, Reason
from windlass.client.why.waiting import error_of, rescues
from windlass.core.job import Job
from windlass.core.states import State
from windlass.core.verdict import ORPHANED

_TIMED: Final = 7
"""The version of ids that begin with the time of their making."""
_MOST_MILLIS: Final = 253_402_300_799_999
"""The last of the year 9999."""


def not_found(known: Known) -> Iterator[Reason]:
    """Tell what may have become of a job that is not here."""
    made = made_at(known.id)
    when = "" if made is None else f"; its id was made {distance(made, known.now)}, at {at_utc(made)}"
    if known.near:
        named = " or ".join(known.near)
        yield Reason(
            "near_id",
            f"no job has this id, but one that differs by a character or two is here: {named}",
            f"look at that one: windlass why {known.near[0]}",
            {"near": " ".join(known.near)},
        )
    if known.moved is not None:
        yield moved(known)
    yield Reason(
        "not_found",
        f"there is no job {known.id} here: it was enqueued into another store, or its transaction was rolled back, or "
        f"it has ended and its record was deleted or pruned{when}",
        "look at --url; finished records are kept as long as keep_succeeded, keep_dead and keep_cancelled say "
        "(windlass config); windlass audit tells what people deleted",
        {"made_at": made},
    )


def moved(known: Known) -> Reason:
    """Tell where the jobs of the store went."""
    to = "" if known.moved is None else known.moved.to
    return Reason(
        "store_moved",
        f"this store was moved to {to}: nothing is claimed here any more, and what waits goes there",
        f"look there: windlass why {known.id} --url {to}; an interrupted move goes on when it is called again",
        {"to": to},
    )


def finished(known: Known, job: Job) -> Iterator[Reason]:
    """Tell how a job ended."""
    if job.state is State.SUCCEEDED:
        yield Reason("succeeded", f"it succeeded{_ended(known, job)}, in attempt {_attempt(job)}", None, _facts(job))
        return
    yield _dead(known, job) if job.state is State.DEAD else _cancelled(known, job)
    if known.key_holder is not None and known.key_holder != job.id:
        key = "" if job.unique_key is None else f" {job.unique_key!r}"
        yield Reason(
            "key_held",
            f"its unique key{key} is held by job {known.key_holder}: a retry is refused until that one lets go of it",
            f"look at that one: windlass why {known.key_holder}",
            {"key": job.unique_key, "holder": known.key_holder},
        )


def _dead(known: Known, job: Job) -> Reason:
    retry = f"mend the cause, then: windlass jobs retry {job.id}"
    when, facts, times = _ended(known, job, "since"), _facts(job), rescues(job)
    last = job.history[-1].outcome if job.history else None
    if job.last_error == ORPHANED.summary:
        return Reason(
            "dead_orphaned",
            f"it was ended as an orphan{_ended(known, job)}: nobody was left to settle it",
            retry,
            facts,
        )
    if last == "rescued":
        return Reason(
            "dead_rescued",
            f"it is dead{when}: {counted(times, 'attempt')} of {job.max_attempts:,} ended with their server, the last "
            "one too; it may be what kills its process",
            f"look into the log of its last server ({job.history[-1].worker}), and for a lack of memory; {retry}",
            {**facts, "rescued": times, "worker": job.history[-1].worker},
        )
    if (job.last_error or "").startswith("UnknownKind:"):
        return Reason("dead_unknown_kind", f"it is dead{when}: {error_of(job)}", retry, {**facts, "kind": job.kind})
    if job.attempt >= job.max_attempts:
        spent = "its only attempt" if job.max_attempts == 1 else f"all {counted(job.max_attempts, 'attempt')}"
        return Reason(
            "dead_out_of_attempts", f"it is dead{when}: {spent} failed, last with {error_of(job)}", retry, facts
        )
    return Reason(
        "dead_given_up",
        f"it is dead{when}: it was given up in attempt {_attempt(job)}, which no retry could mend: {error_of(job)}",
        retry,
        facts,
    )


def _cancelled(known: Known, job: Job) -> Reason:
    who = next((entry for entry in known.audit if entry.action.startswith("cancel")), None)
    by = "" if who is None else f" by {who.actor}"
    why = "" if job.last_error is None else f" ({error_of(job)})"
    begun = "" if job.delivery else ", before it ever ran"
    return Reason(
        "cancelled",
        f"it was cancelled{by}{_ended(known, job)}{begun}{why}",
        f"to run it after all: windlass jobs retry {job.id}",
        {**_facts(job), "by": None if who is None else who.actor},
    )


def _ended(known: Known, job: Job, word: str = "at") -> str:
    at = job.finished_at
    return "" if at is None else f" {word} {at_utc(at)} ({distance(at, known.now)})"


def _attempt(job: Job) -> str:
    return f"{job.attempt:,} of {job.max_attempts:,}"


def _facts(job: Job) -> dict[str, Fact]:
    return {
        "finished_at": job.finished_at,
        "attempt": job.attempt,
        "max_attempts": job.max_attempts,
        "error": job.last_error,
    }


def made_at(job_id: str) -> datetime | None:
    """Return when an id was made, if it tells."""
    made = UUID(job_id)
    millis = made.int >> 80
    if made.version != _TIMED or millis > _MOST_MILLIS:
        return None
    return datetime.fromtimestamp(millis / 1000, UTC)
