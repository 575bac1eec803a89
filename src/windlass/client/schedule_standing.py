"""Where a schedule stands: in one word, and by the due times that come."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Literal, TypeAlias

from windlass.client.claims import DEAD_AFTER
from windlass.client.server_details import is_live
from windlass.core.errors import InvalidValue
from windlass.core.looks import ServerRecord
from windlass.core.rule import read_rule
from windlass.core.schedule import Schedule
from windlass.zone import zone

Standing: TypeAlias = Literal["active", "paused", "orphaned", "over", "damaged"]


def standing(schedule: Schedule) -> Standing:
    """Return where a schedule stands, in one word."""
    if schedule.damage is not None:
        return "damaged"
    if schedule.paused:
        return "paused"
    if schedule.orphaned:
        return "orphaned"
    return "over" if schedule.next_run_at is None else "active"


def with_orphans(
    schedules: Iterable[Schedule],
    servers: Iterable[ServerRecord],
    now: datetime,
    dead_after: timedelta = DEAD_AFTER,
) -> list[Schedule]:
    """Return the schedules, those marked that code declares and no live server does, at the time `now` of the store."""
    declared = {name for server in servers if is_live(server, now, dead_after) for name in server.schedules}
    return [replace(each, orphaned=True) if each.declared and each.id not in declared else each for each in schedules]


def next_run(schedule: Schedule) -> datetime | None:
    """Return when a schedule is due next; None while it is paused or damaged, since it comes another time then."""
    return None if schedule.paused or schedule.damage is not None else schedule.next_run_at


def runs_after(schedule: Schedule, most: int) -> Sequence[datetime]:
    """Return up to `most` due times that follow the next run; none where the rule or its zone is not known here."""
    at = next_run(schedule)
    return () if at is None else _following(schedule.rule, schedule.timezone, at, most)


# whoever watches looks each second, and a next run stays for minutes
@lru_cache(maxsize=2_000)
def _following(text: str, timezone: str, at: datetime, most: int) -> tuple[datetime, ...]:
    try:
        rule = read_rule(text, zone(timezone))
    except InvalidValue:
        return ()
    found: list[datetime] = []
    due = rule.following(at)
    while due is not None and len(found) < most:
        found.append(due)
        due = rule.following(due)
    return tuple(found)
