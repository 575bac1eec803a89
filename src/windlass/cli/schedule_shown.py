"""A schedule as people and programs see it."""

import json
from datetime import datetime, tzinfo
from typing import Any, Final

from windlass.cli.output import BAD, FAINT, GOOD, POOR, STRONG, Cell
from windlass.cli.times import distance, shown_at
from windlass.client.schedule_standing import next_run, runs_after, standing
from windlass.codec import JSON, RAW
from windlass.config.hidden import hidden_headers, hidden_payload
from windlass.core.errors import DecodeError, InvalidValue
from windlass.core.names import shortened
from windlass.core.schedule import Schedule
from windlass.handlers.secret_paths import secret_headers
from windlass.zone import zone

HEADS: Final = ("ID", "RULE", "TIME ZONE", "STATE", "NEXT RUN", "LAST RUN", "JOB")
NARROW_HEADS: Final = ("ID", "RULE", "STATE", "NEXT RUN", "LAST RUN")
WIDE: Final = 140
"""How many columns a line with all heads needs, more or less."""
PREVIEWED: Final = 3
_STYLES: Final = {"active": GOOD, "paused": POOR, "orphaned": POOR, "over": FAINT, "damaged": BAD}
_MOST_SHOWN: Final = 500


def row(schedule: Schedule, now: datetime) -> list[Cell]:
    """Return a schedule as a line of the list."""
    word = standing(schedule)
    return [
        Cell(schedule.id, STRONG),
        Cell(schedule.rule),
        Cell(schedule.timezone),
        Cell(word, _STYLES[word]),
        Cell(_when(schedule, next_run(schedule), now)),
        Cell(_when(schedule, schedule.last_run_at, now), FAINT),
        Cell(_job(schedule)),
    ]


def narrow_row(schedule: Schedule, now: datetime) -> list[Cell]:
    """Return a schedule as two lines, where one has no room for all of it."""
    word, at, place = standing(schedule), next_run(schedule), place_of(schedule)
    return [
        Cell(schedule.id, STRONG, below=_job(schedule)),
        Cell(schedule.rule, below=schedule.timezone),
        Cell(word, _STYLES[word]),
        Cell("") if at is None else Cell(f"{at.astimezone(place):%Y-%m-%d %H:%M:%S}", below=distance(at, now)),
        Cell("" if schedule.last_run_at is None else distance(schedule.last_run_at, now), FAINT),
    ]


def _job(schedule: Schedule) -> str:
    return f"{schedule.kind or '(raw)'} in {schedule.queue}"


def fields(schedule: Schedule, now: datetime) -> list[tuple[str, Cell | str]]:
    """Return all of a schedule, line by line."""
    word = standing(schedule)
    lines: list[tuple[str, Cell | str]] = [
        ("id", Cell(schedule.id, STRONG)),
        ("rule", schedule.rule),
        ("time zone", schedule.timezone),
        ("state", Cell(word, _STYLES[word])),
        *(() if schedule.damage is None else [("damage", Cell(schedule.damage, BAD))]),
        ("declared", "by code" if schedule.declared else "no, it was put at run time"),
        ("next run", _when(schedule, next_run(schedule), now) or "-"),
        *(("then", _when(schedule, at, now)) for at in runs_after(schedule, PREVIEWED)),
        ("last run", _when(schedule, schedule.last_run_at, now) or "-"),
        ("last job", schedule.last_job_id or "-"),
        ("catch up", schedule.catch_up),
        ("overlap", schedule.overlap),
        ("queue", schedule.queue),
        ("kind", schedule.kind or "-"),
        ("payload", shortened(_payload_text(schedule), _MOST_SHOWN) or "-"),
        ("headers", " ".join(f"{name}={value}" for name, value in hidden_headers(schedule.headers).items()) or "-"),
        ("tenant", schedule.tenant or "-"),
        ("priority", str(schedule.priority)),
        ("max attempts", str(schedule.max_attempts)),
    ]
    return lines


def document(schedule: Schedule) -> dict[str, Any]:
    """Return all of a schedule, for programs; what is secret is hidden."""
    return {
        "id": schedule.id,
        "rule": schedule.rule,
        "timezone": schedule.timezone,
        "state": standing(schedule),
        "declared": schedule.declared,
        "next_run_at": schedule.next_run_at,
        "last_run_at": schedule.last_run_at,
        "last_job_id": schedule.last_job_id,
        "catch_up": schedule.catch_up,
        "overlap": schedule.overlap,
        "queue": schedule.queue,
        "kind": schedule.kind,
        "payload": _payload(schedule),
        "codec": schedule.codec,
        "headers": hidden_headers(schedule.headers),
        "tenant": schedule.tenant,
        "priority": schedule.priority,
        "max_attempts": schedule.max_attempts,
        "damage": schedule.damage,
    }


def place_of(schedule: Schedule) -> tzinfo:
    """Return the zone that a schedule goes by, UTC where this machine does not know it."""
    try:
        return zone(schedule.timezone)
    except InvalidValue:
        return zone("UTC")


def _when(schedule: Schedule, at: datetime | None, now: datetime) -> str:
    return "" if at is None else f"{shown_at(at, place_of(schedule))} ({distance(at, now)})"


def _payload(schedule: Schedule) -> Any:  # noqa: ANN401 - the JSON edge
    if schedule.codec == JSON.name:
        try:
            return hidden_payload(JSON.decode(schedule.payload), secret_headers(schedule.headers, schedule.damage))
        except DecodeError:
            pass
    if schedule.codec == RAW and not schedule.payload:
        return None
    return schedule.payload.decode(errors="backslashreplace")


def _payload_text(schedule: Schedule) -> str:
    payload = _payload(schedule)
    if payload is None and not schedule.payload:
        return ""
    return payload if schedule.codec != JSON.name and isinstance(payload, str) else json.dumps(payload)
