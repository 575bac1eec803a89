"""What people see of a record, and of a store."""

from collections.abc import Iterable
from typing import Final

from windlass.core.filters import JobFilter
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
    return (
        chosen.queue in {None, record.queue}
        and chosen.kind in {None, record.kind}
        and chosen.state in {None, record.state}
        and chosen.tenant in {None, record.tenant}
        and chosen.schedule_id in {None, record.schedule_id}
        and chosen.parent_id in {None, record.parent_id}
        and chosen.unique_key in {None, record.unique_key}
        and (chosen.since is None or chosen.since <= record.created_at)
        and (chosen.until is None or record.created_at < chosen.until)
        and (chosen.error is None or chosen.error in (record.last_error or ""))
        and (chosen.error_type is None or _is_of_type(record.last_error, chosen.error_type))
        and (chosen.text is None or _mentions(record, chosen.text))
        and (chosen.payload_text is None or chosen.payload_text.encode() in record.payload)
    )


def _is_of_type(error: str | None, error_type: str) -> bool:
    return error is not None and (error == error_type or error.startswith(f"{error_type}:"))


def _mentions(record: Record, text: str) -> bool:
    shown = (record.id, record.kind, record.unique_key, record.tenant, record.last_error)
    return any(text in part for part in shown if part is not None)
