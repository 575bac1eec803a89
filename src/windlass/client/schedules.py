"""Schedules: rules in the store that make jobs in time, put and steered at run time."""

from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final, NoReturn, TypeAlias

from windlass.client.prepare import Preparer
from windlass.client.schedule_standing import with_orphans
from windlass.client.wanted import Call, Terms, Wanted, checked_terms, wanted
from windlass.core.errors import InvalidValue, ScheduleNotFound, StoreCorrupt, StoreUnavailable
from windlass.core.job import Enqueued, NewJob
from windlass.core.names import check_name
from windlass.core.rule import read_rule, same_rule
from windlass.core.schedule import CatchUp, FireOutcome, Firing, Overlap, Schedule, prepared
from windlass.core.store import Store
from windlass.zone import zone

TRIES: Final = 100
"""How often a change is begun again because somebody else was faster."""

Listed: TypeAlias = list[Schedule]
Decide: TypeAlias = Callable[[Schedule | None, datetime], Schedule]
"""Returns what a schedule is to be, from what it is and the store's time."""


class Schedules:
    """The schedules of a store. A server makes their jobs; without one they wait.

    ```python
    from datetime import timedelta

    import windlass
    from windlass import NewJob

    client = windlass.connect("memory://")
    await client.schedules.put("nightly", "30 2 * * *", NewJob("reports"), timezone="Europe/Berlin")
    await client.schedules.put("poll", timedelta(minutes=5), NewJob("mail"), overlap="skip")
    for schedule in await client.schedules.list():
        print(schedule.id, schedule.rule, schedule.next_run_at)
    await client.close()
    ```
    """

    def __init__(self, reach: Callable[[], Awaitable[Store]], preparer: Preparer) -> None:
        """Work on the store that `reach` gives, with jobs that `preparer` checks."""
        self._reach = reach
        self._preparer = preparer

    async def put(
        self,
        id: str,
        rule: str | timedelta | float,
        job: NewJob | Call,
        *,
        timezone: str = "UTC",
        catch_up: CatchUp = "one",
        overlap: Overlap = "allow",
    ) -> Schedule:
        """Write a schedule, new or over the one with this id; all is checked before anything is written.

        `rule` is a cron expression, an interval as `timedelta`, or a number of seconds. While rule and time zone stay
        the same, the next run does too, also one that is overdue; else it is the first due time from now. A pause, the
        last run and the last job are kept.
        """
        terms = checked_terms(rule, timezone=timezone, catch_up=catch_up, overlap=overlap)
        asked_for = wanted(id, terms, job, self._preparer)
        return await put_schedule(await self._reach(), asked_for, declared=False)

    async def remove(self, id: str) -> bool:
        """Remove a schedule; return whether it was there. The jobs that it made stay."""
        name = check_name(id, "schedule id")
        return await (await self._reach()).remove_schedule(name)

    async def pause(self, id: str) -> None:
        """Make no more jobs, until `resume`; harmless when it is paused. Raises `ScheduleNotFound`."""
        await self._change(id, lambda schedule, _: replace(schedule, paused=True))

    async def resume(self, id: str) -> None:
        """Go on with the first due time from now: those of the pause are never caught up. Raises `ScheduleNotFound`.

        A schedule that is not paused is left as it is.
        """
        await self._change(id, _resumed)

    async def run_now(self, id: str) -> Enqueued:
        """Make one job now, also of a paused schedule; the next run stays. Raises `ScheduleNotFound`.

        With `overlap="skip"` and a last job that is unfinished, that one is returned with `created=False`.
        """
        name = check_name(id, "schedule id")
        store = await self._reach()
        # made before the first try: however often it is repeated, it is one job
        job_id = self._preparer.new_id()
        for _ in range(TRIES):
            _, schedule = await _look(store, name)
            if schedule is None:
                await _refuse(store, name)
            _check_sound(schedule)
            fired = await store.fire(Firing(name, schedule.revision, [prepared(schedule, job_id)]))
            if fired.outcome is not FireOutcome.LOST:
                return Enqueued(fired.job_id or job_id, created=fired.outcome is FireOutcome.DONE)
        raise _too_busy(name)

    async def get(self, id: str) -> Schedule | None:
        """Return a schedule, or None."""
        found = await self._seen([check_name(id, "schedule id")])
        return found[0] if found else None

    async def list(self) -> Listed:
        """Return all schedules in order of id; `orphaned` tells those that code declares and no live server does."""
        return await self._seen(None)

    async def _seen(self, ids: Collection[str] | None) -> Listed:
        store = await self._reach()
        now, schedules = await store.schedules(ids)
        if not any(schedule.declared for schedule in schedules):
            return schedules
        return with_orphans(schedules, await store.servers(), now)

    async def _change(self, id: str, change: Callable[[Schedule, datetime], Schedule]) -> None:
        name = check_name(id, "schedule id")

        def decide(found: Schedule | None, now: datetime) -> Schedule:
            if found is None:
                raise ScheduleNotFound(name)
            _check_sound(found)
            return change(found, now)

        store = await self._reach()
        try:
            await _rewrite(store, name, decide)
        except ScheduleNotFound:
            await _refuse(store, name)


async def put_schedule(store: Store, asked_for: Wanted, *, declared: bool) -> Schedule:
    """Write a schedule as it is wanted, and return it as it is now; nothing is written when nothing would change."""
    return await _rewrite(store, asked_for.id, lambda found, now: replaced(found, asked_for, now, declared=declared))


async def _rewrite(store: Store, schedule_id: str, decide: Decide) -> Schedule:
    for _ in range(TRIES):
        now, found = await _look(store, schedule_id)
        schedule = decide(found, now)
        if schedule == found:
            return schedule
        revision = await store.write_schedule(schedule, expected=None if found is None else found.revision)
        if revision is not None:
            return replace(schedule, revision=revision)
    raise _too_busy(schedule_id)


async def _look(store: Store, schedule_id: str) -> tuple[datetime, Schedule | None]:
    now, found = await store.schedules([schedule_id])
    return now, found[0] if found else None


def replaced(found: Schedule | None, asked_for: Wanted, now: datetime, *, declared: bool) -> Schedule:
    """Return what `found` is to be where a schedule is wanted like this; the same when nothing would change."""
    schedule_id, terms, job = asked_for
    kept = found if found is not None and _goes_on(found, terms) else None
    next_run_at = None if kept is None else kept.next_run_at
    return Schedule(
        id=schedule_id,
        rule=terms.rule.text,
        timezone=terms.timezone,
        queue=job.queue,
        kind=job.kind,
        payload=job.payload,
        codec=job.codec,
        headers=job.headers,
        tenant=job.tenant,
        priority=job.priority,
        max_attempts=job.max_attempts,
        catch_up=terms.catch_up,
        overlap=terms.overlap,
        declared=declared,
        paused=found is not None and found.paused,
        next_run_at=next_run_at or terms.rule.following(now),
        last_run_at=None if found is None else found.last_run_at,
        last_job_id=None if found is None else found.last_job_id,
        revision=0 if found is None else found.revision,
    )


def _goes_on(found: Schedule, terms: Terms) -> bool:
    """Whether the due times stay the same, however the rule is written; the zone is a part of it where it counts."""
    # a rule that this release cannot read is another one
    with suppress(InvalidValue):
        return same_rule(read_rule(found.rule, zone(found.timezone)), terms.rule)
    return False


def _resumed(schedule: Schedule, now: datetime) -> Schedule:
    if not schedule.paused:
        return schedule
    rule = read_rule(schedule.rule, zone(schedule.timezone))
    return replace(schedule, paused=False, next_run_at=rule.following(now))


async def _refuse(store: Store, schedule_id: str) -> NoReturn:
    raise ScheduleNotFound(schedule_id, [schedule.id for schedule in (await store.schedules()).schedules])


def _check_sound(schedule: Schedule) -> None:
    if schedule.damage is not None:
        raise StoreCorrupt(
            f"schedule {schedule.id!r} is damaged: {schedule.damage}. Nothing was done: put it again, or remove it"
        )


def _too_busy(schedule_id: str) -> StoreUnavailable:
    message = f"schedule {schedule_id!r} was changed by others {TRIES} times meanwhile, nothing was written: try again"
    return StoreUnavailable(message, retryable=True)
