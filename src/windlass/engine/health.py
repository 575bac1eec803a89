"""Whether a server can do its work, and why not."""

from collections.abc import Sequence
from typing import NamedTuple

from windlass.engine.attempt import Attempt


class Health(NamedTuple):
    """`ready` is False when no new work should be expected of a server; `reasons` say why, for people.

    `replace` says that it will not get well by itself: jobs hold on to it that cannot be ended but with their process.
    """

    ready: bool
    reasons: tuple[str, ...] = ()
    replace: bool = False


def health(
    *,
    running: bool,
    stopping: bool,
    slots: int,
    stuck: Sequence[Attempt],
    overdue: Sequence[Attempt],
    not_claimed_for: float | None,
    not_settled_for: float | None,
) -> Health:
    """Judge a server by what is known of it."""
    reasons: list[str] = []
    if not running:
        reasons.append("the server does not run")
    if stopping:
        reasons.append("the server is stopping")
    if not_claimed_for is not None:
        reasons.append(f"the store has not answered a claim for {not_claimed_for:.0f} s")
    if not_settled_for is not None:
        reasons.append(f"the store has not taken a settlement for {not_settled_for:.0f} s")
    held = bool(stuck) and 2 * len(stuck) >= slots
    if held:
        reasons.append(f"{len(stuck)} of {slots} slots are held by jobs past their timeout: {_names(stuck)}")
    if overdue:
        reasons.append(f"jobs run past their timeout and a lease, and do not end: {_names(overdue)}")
    return Health(not reasons, tuple(reasons), replace=held or bool(overdue))


def _names(attempts: Sequence[Attempt]) -> str:
    return ", ".join(f"{attempt.job.id} ({attempt.handler.name})" for attempt in attempts)
