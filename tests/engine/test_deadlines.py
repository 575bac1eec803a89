from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from tests.engine.given import an_attempt
from windlass.client.client import Client
from windlass.engine.attempt import Attempt
from windlass.engine.attempt_stopper import Deadlines
from windlass.testing import FakeClock

SECOND = timedelta(seconds=1)
Make = Callable[[], Awaitable[Attempt]]


@pytest.fixture
def make(client: Client) -> Make:
    async def made() -> Attempt:
        return await an_attempt(client)

    return made


async def test_each_attempt_is_told_of_at_its_own_time(clock: FakeClock, make: Make) -> None:
    late: list[Attempt] = []
    deadlines = Deadlines(clock, late.append)
    attempts = [await make() for _ in range(4)]
    for attempt, seconds in zip(attempts, (30, 10, 20, 10), strict=True):
        deadlines.add(attempt, seconds * SECOND, clock.monotonic())

    clock.advance(9)
    assert late == []
    clock.advance(1)
    assert late == [attempts[1], attempts[3]]
    clock.advance(20)
    assert late == [attempts[1], attempts[3], attempts[2], attempts[0]]


async def test_one_that_has_ended_is_not_told_of(clock: FakeClock, make: Make) -> None:
    late: list[Attempt] = []
    deadlines = Deadlines(clock, late.append)
    ended, runs = await make(), await make()
    for attempt in (ended, runs):
        deadlines.add(attempt, SECOND, clock.monotonic())

    deadlines.discard(ended, SECOND)
    clock.advance(5)

    assert late == [runs]


async def test_one_timer_is_enough_for_all(clock: FakeClock, make: Make) -> None:
    deadlines = Deadlines(clock, lambda _: None)
    before = clock.waiting

    for seconds in (5, 3, 8, 3):
        deadlines.add(await make(), seconds * SECOND, clock.monotonic())

    assert clock.waiting == before + 1


async def test_nobody_is_told_of_after_the_close_and_an_end_after_it_is_harmless(clock: FakeClock, make: Make) -> None:
    late: list[Attempt] = []
    deadlines = Deadlines(clock, late.append)
    attempt = await make()
    deadlines.add(attempt, SECOND, clock.monotonic())

    deadlines.close()
    clock.advance(5)
    deadlines.discard(attempt, SECOND)

    assert late == []
