"""One claim in the life of a job, as a page writes it."""

from datetime import datetime
from typing import Final, NamedTuple

from windlass.client.spoken import took
from windlass.core.job import Delivery
from windlass.core.states import State

SUMMARY: Final = 300
"""Characters of an error that stand on the page; the rest of it is folded away."""


class ShownDelivery(NamedTuple):
    """A delivery: what stands on the page, and what is folded away."""

    delivery: int
    attempt: int
    started_at: datetime
    took: str | None
    """None while it runs."""
    worker: str | None
    outcome: str
    look: str
    error: str | None
    detail_is: str
    detail: str | None
    retried_at: datetime | None


def shown_delivery(each: Delivery) -> ShownDelivery:
    """Return a delivery with its error cut to a few lines, and all of it, with the traceback, as its detail."""
    failure = each.failure
    error = None if failure is None else failure.full_summary.strip()
    is_long = error is not None and (len(error) > SUMMARY or "\n" in error)
    parts = [error if is_long else None, None if failure is None else failure.traceback]
    detail = "\n\n".join(part for part in parts if part) or None
    return ShownDelivery(
        each.delivery,
        each.attempt,
        each.started_at,
        None if each.ended_at is None else took(each.started_at, each.ended_at),
        each.worker,
        each.outcome or "running",
        _look(each),
        _cut(error) if error else None,
        "Traceback" if failure is not None and failure.traceback else "All of the error",
        detail,
        each.retried_at,
    )


def _look(each: Delivery) -> str:
    if each.outcome is None:
        return "busy"
    if each.outcome == State.CANCELLED:
        return "poor"
    if each.failure is not None:
        return "bad"
    return "good" if each.outcome == State.SUCCEEDED else "rest"


def _cut(error: str) -> str:
    line = error.partition("\n")[0]
    return line if len(line) <= SUMMARY else f"{line[:SUMMARY]}…"
