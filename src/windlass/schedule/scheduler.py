"""The service that makes the jobs of schedules when they are due."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final, NamedTuple

from windlass.client.bell import Bell
from windlass.client.client import Client
from windlass.core.duration import ZERO, to_millis
from windlass.core.errors import Fenced
from windlass.core.ids import ID_BYTES, new_ids
from windlass.core.looks import SERVED, SERVES, ServerRecord
from windlass.core.rule import Rule, read_rule
from windlass.core.schedule import FireOutcome, Firing, Schedule, prepared
from windlass.core.ticks import Ticks, ticks
from windlass.core.topics import SCHEDULES
from windlass.engine.heart import SCHEDULING
from windlass.engine.served import Around
from windlass.engine.service import Service, backoff, trace_of
from windlass.schedule.aside import Aside
from windlass.schedule.counted import Counted
from windlass.schedule.declared import Declared
from windlass.schedule.declared_here import DeclaredHere
from windlass.schedule.declarer import Declarer
from windlass.schedule.store_timeout import call_store
from windlass.schedule.watch import Watch
from windlass.zone import zone

logger = logging.getLogger("windlass")

LONGEST_SLEEP: Final = timedelta(seconds=10)
"""Looks of a server that lives are never further apart: so a longer break tells that nobody was there."""
LATE: Final = timedelta(seconds=10)
"""How late a server that lives may be. What came due so shortly before a newcomer's watch began was not missed, if
another server was there: it makes a job, by whoever is first, and `catch_up` has no say in it."""
UNREADABLE_FOR: Final = 60.0
"""Seconds after which a schedule that cannot be read is tried, and told of, again."""
LOST_FOR: Final = 1.0
"""Seconds after which a schedule is tried again that the store did not let fire, and that nobody has changed since."""
LAST_MOMENT: Final = 0.5
"""Seconds that calls on their way to the store have at the stop."""
MOST_FIRING: Final = 100
"""How many schedules fire at once."""


class _Seen(NamedTuple):
    """What a look has shown, and when it was begun by the clock of this process that never steps back."""

    now: datetime
    due: list[Schedule]
    next_run_at: datetime | None
    since: datetime
    at: float

    @property
    def cut(self) -> bool:
        """Whether more is due than was asked for."""
        return self.next_run_at is not None and self.next_run_at <= self.now

    def moment(self, at: datetime) -> float:
        """Return when the store's clock will show `at`, by the clock of this process."""
        return self.at + (at - self.now).total_seconds()


class Scheduler(Service):
    """Makes the jobs of all schedules that are due in the store; of those that code declares, of those that count here.

    Every server has one and none leads: each sees what is due, and the store lets one of them fire. The store's clock
    judges what is due; the clock of this process only measures how long to sleep. Each schedule fires in a call of its
    own, so that one that fails or hangs stops no other.
    """

    name = "scheduler"
    interval = ZERO

    def __init__(self, client: Client, counted: Counted, around: Around) -> None:
        """Fire what is in the store of `client`, and of what code declares what is `counted`."""
        super().__init__(clock=around.clock, rng=around.rng, spawn=around.spawn)
        self._store = store = client.store
        self._server_id = around.server_id
        config = around.config
        self._beat = config.heartbeat_interval
        longest = LONGEST_SLEEP if store.features.misses_no_news else config.poll_interval
        self._longest = min(longest, LONGEST_SLEEP, config.dead_after / 3).total_seconds()
        self._counted = counted
        self._watch = Watch(config.dead_after)
        self._aside = Aside()
        self._firing: dict[str, asyncio.Task[None]] = {}
        self._bell = Bell(around.clock)
        self._stop_listening: Callable[[], None] | None = None

    async def start(self) -> None:
        """Begin the loop; if the store answers, what is declared here is written by then, and the watch has begun.

        Raises `Fenced`, and nothing has begun then.
        """
        if not self.running:
            try:
                await self._counted.look()
                await self._look()
            except Fenced:
                raise
            except Exception as error:
                text = "%s could not look around at its start; it goes on: %s"
                logger.error(text, self.name, error, exc_info=trace_of(error))  # noqa: TRY400
        await super().start()

    async def tick(self) -> None:
        """Look, let fire what is due, and sleep until there may be more."""
        if self._stop_listening is None:
            self._stop_listening = self._store.listen((SCHEDULES,), self._bell.ring)
        self._bell.clear()
        await self._counted.look()
        seen = await self._look()
        await self._fire_what_is_due(seen)
        await self._counted.uphold()
        await self._bell.wait(self._sleep(seen))

    def look(self) -> None:
        """Look now, and not when there was to be something to do: which schedules count may have changed."""
        self._bell.ring()

    async def leave(self) -> None:
        """Listen and watch no more, and let what is on its way to the store arrive."""
        if self._stop_listening is not None:
            self._stop_listening()
            self._stop_listening = None
        self._watch.end()
        over = asyncio.Event()
        timer = self._clock.call_later(LAST_MOMENT, over.set)
        firing = asyncio.gather(*self._firing.values(), return_exceptions=True)
        firing.add_done_callback(lambda _: over.set())
        try:
            await over.wait()
        finally:
            timer.cancel()
            firing.cancel()

    async def _look(self) -> _Seen:
        # those that are left alone may be the longest due, and are not to hide the others
        limit = MOST_FIRING + len(self._aside)
        # counted from before the question: so the next one reaches the store at the due time, not after it
        asked_at = self._clock.monotonic()
        look = self._store.due_schedules(self._counted.ids, limit=limit)
        now, due, next_run_at = await call_store(look, "which schedules are due", self._clock)
        return _Seen(now, due, next_run_at, self._watch.look(now), asked_at)

    async def _fire_what_is_due(self, seen: _Seen) -> None:
        self._aside.keep([schedule.id for schedule in seen.due])
        others: Sequence[ServerRecord] | None = None
        for schedule in seen.due:
            if len(self._firing) >= MOST_FIRING:
                return
            if schedule.id in self._firing or self._left_alone(schedule):
                continue
            if schedule.damage is not None:
                self._leave_unreadable(schedule, seen, f"its stored record is damaged: {schedule.damage}")
                continue
            since = self._since(schedule, seen)
            try:
                plan = _plan(schedule, seen, since)
            except Exception as error:  # noqa: BLE001 - whatever a newer release has written
                self._leave_unreadable(schedule, seen, error)
                continue
            if plan.dropped:
                others = await self._others(seen) if others is None else others
                plan = _plan(schedule, seen, _watched_since(schedule, since, others))
            self._firing[schedule.id] = asyncio.ensure_future(self._fire(schedule, plan))

    def _leave_unreadable(self, schedule: Schedule, seen: _Seen, why: object) -> None:
        self._aside.leave(schedule, seen.at + UNREADABLE_FOR)
        text = "schedule %r cannot be read here and is left alone: %s. Put it again, or update this server"
        logger.error(text, schedule.id, why)

    def _since(self, schedule: Schedule, seen: _Seen) -> datetime:
        """Return since when this one has watched `schedule`."""
        counted = self._counted.since(schedule.id) if schedule.declared else None
        return seen.since if counted is None else max(seen.since, counted)

    def _left_alone(self, schedule: Schedule) -> bool:
        until = self._aside.until(schedule)
        return until is not None and self._clock.monotonic() < until

    async def _others(self, seen: _Seen) -> list[ServerRecord]:
        """Return the other servers that make jobs of schedules, or have it done, and were there as the watch began."""
        servers = await call_store(self._store.servers(), "which servers there are", self._clock)
        return [
            each
            for each in servers
            if each.id != self._server_id
            and each.details.get(SCHEDULING) != "off"
            and each.seen_at > seen.since - self._beat - LATE
        ]

    async def _fire(self, schedule: Schedule, plan: Ticks) -> None:
        try:
            firing = self._store.fire(self._firing_of(schedule, plan))
            fired = await call_store(firing, f"to fire schedule {schedule.id!r}", self._clock)
        except Fenced:
            # the look that follows raises it again, where it ends the loop
            self._aside.leave(schedule, float("inf"))
        except Exception as error:  # noqa: BLE001 - it is told of, and stops no other schedule
            self._failed(schedule, error)
        else:
            if fired.outcome is FireOutcome.LOST:
                self._aside.leave(schedule, self._clock.monotonic() + LOST_FOR)
            else:
                _tell(schedule, plan, fired.outcome)
        finally:
            del self._firing[schedule.id]
            # what comes next is known to the store
            self._bell.ring()

    def _firing_of(self, schedule: Schedule, plan: Ticks) -> Firing:
        count = len(plan.made)
        randomness = self._rng.token_bytes(ID_BYTES * count)
        ids = new_ids(count, millis=to_millis(self._clock.now()), randomness=randomness)
        jobs = [prepared(schedule, job_id, due_at) for job_id, due_at in zip(ids, plan.made, strict=True)]
        return Firing(schedule.id, schedule.revision, jobs, plan.last, plan.next_run_at)

    def _failed(self, schedule: Schedule, error: Exception) -> None:
        failures = self._aside.failures(schedule) + 1
        self._aside.leave(schedule, self._clock.monotonic() + backoff(failures, self._rng), failures=failures)
        logger.error(
            "schedule %r failed to fire %d times in a row; it is tried again: %s",
            schedule.id,
            failures,
            error,
            exc_info=trace_of(error),
        )

    def _sleep(self, seen: _Seen) -> float:
        """Return how many seconds there is nothing to do, unless somebody rings."""
        wake = [seen.at + self._longest, self._counted.again_at]
        if len(self._firing) < MOST_FIRING:
            # while there is no room, whoever makes some rings
            wake += [self._aside.until(schedule) for schedule in seen.due if schedule.id not in self._firing]
            wake.append(None if seen.next_run_at is None else seen.moment(seen.next_run_at))
        elif seen.next_run_at is not None and not seen.cut:
            wake.append(seen.moment(seen.next_run_at))
        return max(0.0, min(at for at in wake if at is not None) - self._clock.monotonic())


def _plan(schedule: Schedule, seen: _Seen, watched_since: datetime) -> Ticks:
    return ticks(
        _rule(schedule.rule, schedule.timezone),
        schedule.next_run_at or seen.now,
        now=seen.now,
        watched_since=watched_since,
        catch_up=schedule.catch_up,
        overlap=schedule.overlap,
    )


@lru_cache(maxsize=1_000)
def _rule(text: str, timezone: str) -> Rule:
    return read_rule(text, zone(timezone))


def _watched_since(schedule: Schedule, since: datetime, others: Sequence[ServerRecord]) -> datetime:
    """Return since when a server has watched `schedule`: the one that asks, `since` then, or another."""
    earliest = since - LATE
    firing = [each for each in others if SERVED not in each.details]
    begun = [_begun(each, earliest) for each in firing if not schedule.declared or schedule.id in each.schedules]
    if schedule.declared:
        # one that only works has it fired by whoever serves the store: the two watch together
        serving = [_begun(each, earliest) for each in firing if SERVES in each.details]
        declaring = [_begun(each, earliest) for each in others if schedule.id in each.schedules]
        begun += [max(min(serving), min(declaring))] if serving and declaring else []
    return min(since, max(earliest, min(begun, default=since)))


def _begun(server: ServerRecord, earliest: datetime) -> datetime:
    # a start after the last beat is told by a clock that is ahead of the store's, and tells nothing
    return server.started_at if server.started_at <= server.seen_at else earliest


def _tell(schedule: Schedule, plan: Ticks, outcome: FireOutcome) -> None:
    if outcome is FireOutcome.OVERLAPS:
        logger.debug("schedule %r makes no job: its last one, %s, is unfinished", schedule.id, schedule.last_job_id)
        return
    missed = plan.missed
    if missed is not None:
        logger.info(
            "schedule %r was due since %s and no server was there: jobs made for that time: %d, as catch_up=%r says%s",
            schedule.id,
            schedule.next_run_at,
            sum(due_at <= missed for due_at in plan.made),
            schedule.catch_up,
            ", and the due times before are dropped" if plan.dropped else "",
        )


def make_schedule_service(declared: Sequence[Declared], around: Around) -> Service:
    """Return what writes the schedules that an app declares, and fires them unless whoever serves the store does."""
    if around.client.store.features.served:
        return Declarer(around.client, declared, around)
    return Scheduler(around.client, DeclaredHere(around.client, declared, around), around)
