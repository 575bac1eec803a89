"""The rules that make jobs in time."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, tzinfo
from functools import lru_cache
from typing import Annotated, ClassVar, Final, NamedTuple, get_args

import msgspec
from msgspec import Meta

from windlass.api.jobs import JSON
from windlass.api.operations import SCHEDULES
from windlass.api.shape import Asked, Name
from windlass.client.claims import DEAD_AFTER
from windlass.client.schedule_standing import Standing, next_run, runs_after, standing, with_orphans
from windlass.client.server_details import is_live
from windlass.client.spoken import length
from windlass.core.errors import InvalidValue
from windlass.core.looks import SERVED, ServerRecord
from windlass.core.rule import Interval, read_rule
from windlass.core.schedule import Schedule
from windlass.engine.heart import SCHEDULING
from windlass.http.dashboard.seen import Seen
from windlass.http.dashboard.view import Facts, View
from windlass.http.shown import hidden_schedule
from windlass.zone import zone

MOST: Final = 200
"""How many are shown; of more a part is found by its text."""
THEN: Final = 2
"""How many runs after the next one a row shows."""
OPENED_THEN: Final = 5
"""How many runs after the next one are shown of the schedule that is opened."""
MOST_PAYLOAD: Final = 20_000
"""Characters of a payload that are shown."""


class SchedulesAsked(Asked, kw_only=True):
    """Which schedules, and which of them is opened."""

    text: Annotated[str, Meta(max_length=200)] | None = None
    state: Standing | None = None
    id: Name | None = None


class Listed(NamedTuple):
    """A schedule as a row shows it."""

    schedule: Schedule
    state: Standing
    next: datetime | None
    then: Sequence[datetime]
    words: str
    """What there is to say of its rule."""

    @property
    def removable(self) -> bool:
        """Whether a removal lasts: what a live server declares is written again at its next start."""
        return not self.schedule.declared or self.schedule.orphaned or self.schedule.damage is not None


class Opened(NamedTuple):
    """What only the schedule shows that is opened: without what is secret."""

    id: str
    runs: Sequence[tuple[datetime, str | None]]
    """Its next runs, with what the clocks of its zone show then."""
    headers: Mapping[str, str]
    payload: str
    cut: bool
    """Whether the payload goes on."""


class Schedules(View[SchedulesAsked]):
    """All schedules in order of id, or those that are looked for."""

    name: ClassVar = "schedules"
    title: ClassVar = "Schedules"
    path: ClassVar = "/schedules"
    roles: ClassVar = SCHEDULES.roles
    asks = SchedulesAsked
    regions: ClassVar = ("states", "schedules")

    async def look(self, seen: Seen, asked: SchedulesAsked) -> Facts:
        """Return what is looked for, and what is opened wherever it stands."""
        now, found = await seen.once("schedules", seen.store.schedules)
        # whoever is limited to some queues may not see the server that declares a schedule of theirs: it is live still
        servers = await seen.once("all servers", seen.client.store.servers)
        known = with_orphans(found, servers, now)
        fitting = [each for each in known if _has(each, asked.text)]
        chosen = [each for each in fitting if asked.state in (None, standing(each))]
        opened = next((each for each in known if each.id == asked.id), None)
        return {
            "listed": [_listed(each, now) for each in _with(opened, chosen[:MOST])],
            "opened": None if opened is None else await _look_into(seen, opened, now),
            "standings": _counted(fitting),
            "fitting": len(fitting),
            "found": len(chosen),
            "known": len(known),
            "most": MOST,
            "idle": not any(_fires(server, now) for server in servers),
        }


def _has(schedule: Schedule, text: str | None) -> bool:
    if text is None:
        return True
    looked_at = (schedule.id, schedule.rule, schedule.timezone, schedule.queue, schedule.kind, schedule.tenant)
    return any(text.casefold() in each.casefold() for each in looked_at if each is not None)


def _with(opened: Schedule | None, shown: Sequence[Schedule]) -> Sequence[Schedule]:
    return shown if opened is None or opened in shown else [opened, *shown]


def _counted(schedules: Iterable[Schedule]) -> dict[Standing, int]:
    counts = Counter(standing(each) for each in schedules)
    return {state: counts[state] for state in get_args(Standing)}


def _fires(server: ServerRecord, now: datetime) -> bool:
    """Whether a live server makes jobs of schedules."""
    makes = server.details.get(SCHEDULING) != "off" and SERVED not in server.details
    return makes and is_live(server, now, DEAD_AFTER)


def _listed(schedule: Schedule, now: datetime) -> Listed:
    then = _runs_to_come(schedule, THEN, now)
    return Listed(schedule, standing(schedule), next_run(schedule), then, _words(schedule.rule, schedule.timezone))


def _runs_to_come(schedule: Schedule, most: int, now: datetime) -> Sequence[datetime]:
    # those that have passed while nobody was there make no job each
    return [at for at in runs_after(schedule, most) if at > now]


@lru_cache(maxsize=2_000)
def _words(text: str, timezone: str) -> str:
    place = _place(timezone)
    if place is None:
        return f"{timezone}, a zone that is not known here"
    try:
        rule = read_rule(text, place)
    except InvalidValue:
        return "a rule that this release cannot read"
    return f"every {length(rule.every)}" if isinstance(rule, Interval) else timezone


# one that is not known is looked for among all zones, for advice
@lru_cache(maxsize=1_000)
def _place(timezone: str) -> tzinfo | None:
    with suppress(InvalidValue):
        return zone(timezone)
    return None


async def _look_into(seen: Seen, schedule: Schedule, now: datetime) -> Opened:
    return await seen.reading.work(len(schedule.payload), lambda: _opened(hidden_schedule(schedule), now))


def _opened(schedule: Schedule, now: datetime) -> Opened:
    at, place = next_run(schedule), _place(schedule.timezone)
    runs = [] if at is None else [at, *_runs_to_come(schedule, OPENED_THEN, now)]
    payload = _payload(schedule)
    return Opened(
        schedule.id,
        [(run, _clock_of(place, run)) for run in runs],
        schedule.headers,
        payload[:MOST_PAYLOAD],
        len(payload) > MOST_PAYLOAD,
    )


def _clock_of(place: tzinfo | None, at: datetime) -> str | None:
    # a day that is the last one there is has no next one, which it may be elsewhere
    with suppress(OverflowError):
        return None if place is None else f"{at.astimezone(place):%a %H:%M:%S %Z}"
    return None


def _payload(schedule: Schedule) -> str:
    data = schedule.payload
    if schedule.codec == JSON:
        with suppress(msgspec.MsgspecError, RecursionError):
            data = msgspec.json.format(data, indent=2)
    return data.decode(errors="backslashreplace")
