"""A job as people and programs see it."""

import base64
from collections.abc import Collection
from datetime import UTC, datetime
from typing import Any, Final

from windlass.cli.output import BAD, FAINT, GOOD, POOR, STRONG, Cell
from windlass.cli.times import distance, length, shown_at
from windlass.client.spoken import progress_text, took
from windlass.config.carried import in_text, payload_of, result_of
from windlass.config.hidden import hidden_headers
from windlass.core.duration import EPOCH
from windlass.core.job import Delivery, Job, LogLine, Progress
from windlass.core.names import shortened
from windlass.core.states import State

HEADS: Final = ("ID", "QUEUE", "KIND", "STATE", "ATTEMPT", "WHEN", "CREATED", "NOTE")
NARROW_HEADS: Final = ("ID", "STATE", "WHEN", "NOTE")
WIDE: Final = 140
"""How many columns a line with all heads needs, more or less."""
HISTORY_HEADS: Final = ("#", "ATTEMPT", "STARTED", "TOOK", "OUTCOME", "WORKER", "ERROR")
NARROW_HISTORY_HEADS: Final = ("#", "STARTED", "TOOK", "OUTCOME", "ERROR")
STYLES: Final = {
    State.SCHEDULED: FAINT,
    State.PENDING: "",
    State.RUNNING: "cyan",
    State.SUCCEEDED: GOOD,
    State.DEAD: BAD,
    State.CANCELLED: POOR,
}
_ID: Final = 36
_NOTE: Final = 72
_PAYLOAD: Final = 2_000


def row(job: Job, now: datetime) -> list[Cell]:
    """Return a job as a line of the list."""
    return [
        Cell(job.id, STRONG),
        Cell(job.queue),
        Cell(job.kind or ""),
        Cell(job.state, STYLES[job.state]),
        Cell(f"{job.attempt}/{job.max_attempts}"),
        Cell(_when(job, now)),
        Cell("-" if _is_stand_in(job, job.created_at) else distance(job.created_at, now), FAINT),
        Cell(_note(job)),
    ]


def narrow_row(job: Job, now: datetime) -> list[Cell]:
    """Return a job as two lines, where one has no room for all of it."""
    return [
        Cell(job.id, STRONG, below=shortened(f"{job.kind or '(raw)'} in {job.queue}", _ID)),
        Cell(job.state, STYLES[job.state], below=f"{job.attempt}/{job.max_attempts}"),
        Cell(_when(job, now)),
        Cell(shortened(_note(job), _NOTE)),
    ]


def _when(job: Job, now: datetime) -> str:
    ended_at = job.finished_at or job.created_at
    if _is_stand_in(job, job.run_at if job.state.waiting else ended_at):
        return "-"
    match job.state:
        case State.SCHEDULED:
            return distance(job.run_at, now)
        case State.PENDING:
            return f"waits {length(now - job.run_at)}" if now > job.run_at else "now"
        case State.RUNNING:
            return f"for {length(now - (job.claimed_at or now))}"
        case _:
            return distance(ended_at, now)


def _is_stand_in(job: Job, at: datetime) -> bool:
    """Whether `at` stands in for a time that cannot be read."""
    return job.damage is not None and at == EPOCH


def _note(job: Job) -> str:
    if job.damage is not None:
        return f"damaged record: {' '.join(job.damage.split())}"
    if job.state is State.RUNNING:
        asked = "asked to stop; " * job.cancel_requested
        return asked + (f"by {job.worker}" if job.progress is None else progress_text(job.progress))
    return " ".join((job.last_error or "").split())


def fields(job: Job, now: datetime, secrets: Collection[str] = ()) -> list[tuple[str, Cell | str]]:
    """Return all of a job but its history and log, line by line; what it has not is left out.

    `secrets` are paths of what is to be hidden beside those that are stored with the job.
    """
    known: list[tuple[str, Cell | str | None]] = [
        ("id", Cell(job.id, STRONG)),
        ("state", Cell(_state(job), STYLES[job.state])),
        ("damage", None if job.damage is None else Cell(job.damage, BAD)),
        ("queue", job.queue),
        ("kind", job.kind),
        ("attempt", f"{job.attempt} of {job.max_attempts}, claimed {_times(job.delivery)}"),
        ("priority", str(job.priority)),
        ("tenant", job.tenant),
        ("created", None if _is_stand_in(job, job.created_at) else _at(job.created_at, now)),
        ("run at", None if _is_stand_in(job, job.run_at) else _at(job.run_at, now)),
        ("claimed", _at(job.claimed_at, now)),
        ("lease until", _at(job.lease_expires_at, now)),
        ("finished", _at(job.finished_at, now)),
        ("worker", job.worker),
        ("unique key", job.unique_key),
        ("parent", job.parent_id),
        ("schedule", job.schedule_id),
        ("limit key", job.limit_key),
        ("progress", None if job.progress is None else progress_bar(job.progress) + progress_text(job.progress)),
        ("headers", " ".join(f"{name}={value}" for name, value in hidden_headers(job.headers).items()) or None),
        ("payload", shortened(in_text(payload_of(job, secrets)), _PAYLOAD) or "(empty)"),
        ("result", None if job.result is None else shortened(in_text(result_of(job)), _PAYLOAD)),
        ("last error", None if job.last_error is None else Cell(job.last_error, BAD)),
    ]
    return [(name, value) for name, value in known if value is not None]


def history_row(ended: Delivery, now: datetime) -> list[Cell]:
    """Return one claim in a job's life as a line."""
    failure = ended.failure
    return [
        Cell(str(ended.delivery)),
        Cell(str(ended.attempt)),
        Cell(shown_at(ended.started_at, UTC)),
        Cell(took(ended.started_at, ended.ended_at or now)),
        Cell(outcome_of(ended)),
        Cell(ended.worker or "", FAINT),
        Cell("" if failure is None else " ".join(failure.full_summary.split()), BAD),
    ]


def outcome_of(ended: Delivery) -> str:
    """Return how a delivery ended, and when an operator retried the job after it."""
    retried = "" if ended.retried_at is None else f", retried at {shown_at(ended.retried_at, UTC)}"
    return f"{ended.outcome or 'running'}{retried}"


def narrow_history_row(ended: Delivery, now: datetime) -> list[Cell]:
    """Return one claim in a job's life as two lines."""
    number, attempt, _, lasted, outcome, worker, error = history_row(ended, now)
    return [
        number,
        Cell(f"{ended.started_at:%Y-%m-%d %H:%M:%S}", below=f"attempt {attempt.text}"),
        lasted,
        Cell(outcome.text, below=worker.text),
        error,
    ]


def log_text(line: LogLine) -> str:
    """Return a line that a job wrote, with its time in UTC."""
    return f"{line.at:%Y-%m-%d %H:%M:%S} {line.level:<7} {line.text}"


def progress_bar(progress: Progress, width: int = 24) -> str:
    """Return how far a job says it is, drawn; nothing where there is no total."""
    if not progress.total:
        return ""
    full = round(width * max(0.0, min(1.0, progress.done / progress.total)))
    return f"[{'#' * full}{'.' * (width - full)}] "


def document(job: Job, secrets: Collection[str] = (), *, whole: bool = False) -> dict[str, Any]:
    """Return a job for programs, by the names of the HTTP API; with history and log when it is `whole`."""
    payload, payload_bytes = payload_of(job, secrets)
    result, result_bytes = result_of(job)
    told = job._asdict() | {
        "payload": payload,
        "payload_base64": _base64(payload_bytes),
        "result": result,
        "result_base64": _base64(result_bytes),
        "headers": hidden_headers(job.headers),
        "progress": None if job.progress is None else job.progress._asdict(),
        "history": [_delivery(each) for each in job.history],
        "log": [line._asdict() for line in job.log],
    }
    if not whole:
        del told["history"], told["log"]
    return told


def _delivery(ended: Delivery) -> dict[str, Any]:
    return ended._asdict() | {"failure": None if ended.failure is None else ended.failure._asdict()}


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _base64(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode("ascii")


def _state(job: Job) -> str:
    return f"{job.state}, asked to stop" if job.cancel_requested and not job.state.finished else job.state


def _at(at: datetime | None, now: datetime) -> str | None:
    return None if at is None else f"{shown_at(at, UTC)} ({distance(at, now)})"
