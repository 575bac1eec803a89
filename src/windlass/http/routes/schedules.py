"""Schedules: put and steered by people, declared and fired by servers."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from msgspec import UNSET

from windlass.api import calls, operations, schedule_calls
from windlass.api import schedules as shapes
from windlass.api.jobs import NewJob
from windlass.api.schedules import schedule_of, schedules_told
from windlass.client.schedules import Schedules
from windlass.codec import Encoded
from windlass.core.duration import moment
from windlass.core.errors import InvalidValue
from windlass.core.job import ORIGIN_FIELDS
from windlass.core.names import check_header, check_max_attempts, check_name, check_priority
from windlass.core.schedule import Firing, Schedule
from windlass.core.store import Store
from windlass.http.audit import write_down
from windlass.http.call import Call, Handled
from windlass.http.new_jobs import check_origin, new_job, prepared_jobs
from windlass.http.shown import shown_schedule


async def schedules(call: Call[schedule_calls.ScheduleIdsAsked]) -> shapes.Schedules:
    """List schedules."""
    ids = None if call.asked.ids is None else [check_name(each, "schedule id") for each in call.asked.ids]
    await call.reading.begin()
    now, found = await call.store.schedules(ids)
    call.reading.took(sum(map(_size_of, found)))
    call.reading.done_reading()
    shown = await call.reading.each(found, _size_of, lambda each: shown_schedule(each, call.identity))
    return shapes.Schedules(now=now, schedules=schedules_told(shown))


def _size_of(schedule: Schedule) -> int:
    return len(schedule.payload)


async def put_schedule(call: Call[shapes.SchedulePut]) -> shapes.Schedule:
    """Write a schedule, or replace its rule."""
    asked = call.asked
    _check_job(asked.job)
    made = await _schedules(call).put(
        asked.id,
        asked.rule,
        new_job(asked.job),
        timezone=asked.timezone,
        catch_up=asked.catch_up,
        overlap=asked.overlap,
    )
    await write_down(call, "put schedule", made.id, {"rule": made.rule, "timezone": made.timezone, "queue": made.queue})
    [told] = schedules_told([made])
    return told


async def pause_schedule(call: Call[schedule_calls.ScheduleAsked]) -> calls.Nothing:
    """Let a schedule make no jobs."""
    await _schedules(call).pause(call.asked.id)
    await write_down(call, "pause schedule", call.asked.id)
    return calls.Nothing()


async def resume_schedule(call: Call[schedule_calls.ScheduleAsked]) -> calls.Nothing:
    """Let a schedule make jobs again."""
    await _schedules(call).resume(call.asked.id)
    await write_down(call, "resume schedule", call.asked.id)
    return calls.Nothing()


async def run_schedule(call: Call[schedule_calls.ScheduleAsked]) -> schedule_calls.Ran:
    """Make a job of a schedule now."""
    done = await _schedules(call).run_now(call.asked.id)
    await write_down(call, "run schedule", call.asked.id, {"job": done.id})
    return schedule_calls.Ran(job_id=done.id)


async def write_schedule(call: Call[shapes.ScheduleWritten]) -> shapes.Revision:
    """Write a schedule if nobody has changed it."""
    schedule = _checked(schedule_of(call.asked.schedule), call)
    return shapes.Revision(revision=await call.store.write_schedule(schedule, expected=call.asked.expected))


async def fire(call: Call[shapes.Firing]) -> shapes.Fired:
    """Make the jobs of a schedule and move its next run on."""
    asked = call.asked
    firing = Firing(
        check_name(asked.id, "schedule id"),
        asked.revision,
        prepared_jobs(call.client.preparer, asked.jobs),
        _utc(asked.tick, "tick"),
        _utc(asked.next_run_at, "next_run_at"),
    )
    check_origin(call.identity, firing.jobs, schedule_id=firing.schedule_id)
    fired = await call.store.fire(firing)
    return shapes.Fired(outcome=fired.outcome, job_id=fired.job_id)


def _check_job(job: NewJob) -> None:
    """Refuse what no job of a schedule has; the rest is checked where it is put."""
    for name in ORIGIN_FIELDS:
        if getattr(job, name) not in (None, UNSET):
            message = f"the job of a schedule has no {name}: leave it out"
            raise InvalidValue(message)


def _schedules(call: Call[Any]) -> Schedules:
    async def reach() -> Store:
        return call.store

    return Schedules(reach, call.client.preparer)


def _checked(schedule: Schedule, call: Call[Any]) -> Schedule:
    """Return a schedule that a server declares, if all of it can be kept; a rule need not be readable here."""
    for what, name in (("schedule id", schedule.id), ("queue", schedule.queue), ("codec", schedule.codec)):
        check_name(name, what)
    for what, optional in (("kind", schedule.kind), ("tenant", schedule.tenant)):
        if optional is not None:
            check_name(optional, what)
    for key, value in schedule.headers.items():
        check_header(key, value)
    check_priority(schedule.priority)
    check_max_attempts(schedule.max_attempts)
    if len(schedule.rule) > shapes.MOST_RULE or len(schedule.timezone) > shapes.MOST_RULE:
        message = f"a rule and its time zone have at most {shapes.MOST_RULE:,} characters"
        raise InvalidValue(message)
    call.client.preparer.encode(Encoded(schedule.payload, schedule.codec), "payload")
    return replace(
        schedule,
        next_run_at=_utc(schedule.next_run_at, "next_run_at"),
        last_run_at=_utc(schedule.last_run_at, "last_run_at"),
    )


def _utc(at: datetime | None, what: str) -> datetime | None:
    return None if at is None else moment(at, what)


HANDLED: Final[Sequence[Handled[Any, Any]]] = (
    Handled(operations.SCHEDULES, schedules),
    Handled(operations.PUT_SCHEDULE, put_schedule),
    Handled(operations.PAUSE_SCHEDULE, pause_schedule),
    Handled(operations.RESUME_SCHEDULE, resume_schedule),
    Handled(operations.RUN_SCHEDULE, run_schedule),
    Handled(operations.WRITE_SCHEDULE, write_schedule),
    Handled(operations.FIRE, fire),
)
