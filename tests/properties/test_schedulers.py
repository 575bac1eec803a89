"""Several schedulers on one store come, look, hang back and die at random: each due time that one saw makes one job."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Literal, TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.schedule.given import JOB, a_client, a_scheduler, due_times
from windlass.core.rule import read_rule
from windlass.core.schedule import CatchUp
from windlass.schedule.scheduler import Scheduler
from windlass.testing import FakeClock
from windlass.testing.clock import turns

SCHEDULERS = 3
RULES = ("* * * * * *", "*/7 * * * * *", "30 * * * * *", "every 1s", "every 2.5s", "every 45s")
NEAR = st.integers(1, 45_000)
FAR = st.integers(100_000, 900_000)

Step: TypeAlias = tuple[Literal["start", "kill"], int] | tuple[Literal["pass", "leap"], int]
"""Somebody comes or goes, or so many milliseconds pass: one timer after the other, or all at once."""

steps = st.lists(
    st.one_of(
        st.tuples(st.just("start"), st.integers(0, SCHEDULERS - 1)),
        st.tuples(st.just("kill"), st.integers(0, SCHEDULERS - 1)),
        st.tuples(st.just("pass"), NEAR),
        st.tuples(st.just("leap"), NEAR | FAR),
    ),
    min_size=1,
    max_size=25,
)

Watched: TypeAlias = list[tuple[datetime, datetime]]
"""From when until when somebody was there, both included."""


async def live_through(
    given_steps: list[Step], rule: str, catch_up: CatchUp
) -> tuple[datetime, Watched, list[datetime]]:
    """Return the end, when somebody watched, and the due times that made jobs."""
    clock = FakeClock()
    client = a_client(clock)
    schedulers: list[Scheduler | None] = [None] * SCHEDULERS
    watched: Watched = []
    async with client:
        await client.schedules.put("beat", rule, JOB, catch_up=catch_up)
        for what, number in given_steps:
            before = clock.now()
            if what == "start" and schedulers[number] is None:
                schedulers[number] = started = a_scheduler(client, server_id=f"s{number}#1")
                await started.start()
            elif what == "kill" and (killed := schedulers[number]) is not None:
                await killed.stop()
                schedulers[number] = None
            elif what == "pass":
                await clock.let_pass(timedelta(milliseconds=number))
            elif what == "leap":
                clock.advance(timedelta(milliseconds=number))
            await turns()
            if any(schedulers):
                # nobody looked during a far leap, and whoever is there afterwards begins anew
                far = clock.now() - before > timedelta(seconds=60) and what == "leap"
                watched.append((clock.now() if far else before, clock.now()))
        made = await due_times(client.store, "beat")
        for scheduler in schedulers:
            if scheduler is not None:
                await scheduler.stop()
    return clock.now(), watched, made


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(steps, st.sampled_from(RULES), st.sampled_from(["none", "one", "all"]))
def test_each_due_time_makes_one_job_at_most_and_exactly_one_while_somebody_watches(
    given_steps: list[Step], rule: str, catch_up: CatchUp
) -> None:
    end, watched, made = asyncio.run(live_through(given_steps, rule, catch_up))

    read = read_rule(rule, UTC)
    first = read.following(FakeClock().now())
    assert first is not None
    every = read.latest(first, end + timedelta(microseconds=1), 1_000_000)
    seen = [each for each in every if any(begun <= each <= ended for begun, ended in watched)]
    assert made == sorted(set(made))
    assert set(seen) <= set(made) <= set(every)
    if catch_up == "none":
        assert made == seen
