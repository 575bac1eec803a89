"""What people see of a record, and of a store."""

from collections.abc import Iterable
from typing import Final, cast

from windlass.core.filters import JobFilter
from windlass.core.job import Job
from windlass.core.looks import Finding, Glance
from windlass.core.moving import Moved
from windlass.core.queue_settings import SettingsRow
from windlass.core.states import State
from windlass.kit.moves.record import Record

STRANDED_MOST: Final = 1_000
"""Leases that ran out are counted up to this many."""
AHEAD_MOST: Final = 1_000
"""Jobs that stand before another one in line are counted up to this many."""


def of_move(moved: Moved | None) -> list[Finding]:
    """Return what `doctor` says of a store whose jobs go to another one."""
    if moved is None:
        return []
    said = f"nothing new begins here: its jobs go to {moved.to}"
    return [Finding("moved", "warning", said, f"let programs connect to {moved.to}")]


def of_settings(rows: Iterable[tuple[str, SettingsRow]]) -> list[Finding]:
    """Return what `doctor` says of queues whose settings cannot be read."""
    return [
        Finding(
            "settings",
            "error",
            f"the settings of queue {queue!r} are damaged ({' and '.join(row.damaged)}): what is damaged is not set",
            f"set them again, for example by `windlass queues pause {queue}` or `windlass queues resume {queue}`",
        )
        for queue, row in rows
        if row.damaged
    ]


def glance(record: Record) -> Glance:
    """Return where a job stands; the token is that of the claim which holds it."""
    token = record.token if record.state is State.RUNNING else None
    return Glance(record.state, record.cancel_requested, token)


def matches(record: Record, chosen: JobFilter) -> bool:
    """Whether a job is among those that are meant."""
    # a record has these fields of a job, and a job is not made for each that is looked at
    return chosen.matches(cast("Job", record))
