"""A wait that looks first, and again at each ring and after each pause."""

import asyncio

import pytest

from windlass.client.bell import Bell
from windlass.testing import FakeClock


class Looks:
    """What each look finds, and how many looks there were."""

    def __init__(self, *found: list[int]) -> None:
        self.found = list(found)
        self.count = 0

    async def __call__(self) -> list[int]:
        self.count += 1
        return self.found.pop(0) if self.found else []


async def a_minute(_: object) -> float:
    return 60.0


async def no_time(_: object) -> float:
    return 0.0


async def test_what_is_there_is_found_without_a_wait() -> None:
    clock = FakeClock()

    assert await Bell(clock).find(Looks([7]), timeout=0, pause=a_minute) == [7]
    assert clock.waiting == 0


async def test_nothing_is_found_when_the_time_is_over() -> None:
    clock, looks = FakeClock(), Looks()
    finding = asyncio.ensure_future(Bell(clock).find(looks, timeout=90, pause=a_minute))

    for seconds in (60, 30):
        await clock.timers(1)
        clock.advance(seconds)

    assert await finding == []
    assert looks.count == 3


async def test_a_ring_during_a_look_is_a_new_look() -> None:
    looks, bell = Looks([], [7]), Bell(FakeClock())

    async def look() -> list[int]:
        found = await looks()
        bell.ring()
        return found

    assert await asyncio.wait_for(bell.find(look, timeout=90, pause=a_minute), 10) == [7]


async def test_a_ring_during_the_wait_is_a_new_look() -> None:
    looks, clock = Looks([], [7]), FakeClock()
    bell = Bell(clock)
    finding = asyncio.ensure_future(bell.find(looks, timeout=90, pause=a_minute))
    await clock.timers(1)

    bell.ring()

    assert await asyncio.wait_for(finding, 10) == [7]
    assert clock.waiting == 0


async def test_without_a_pause_the_next_look_follows_at_once() -> None:
    clock = FakeClock()

    assert await Bell(clock).find(Looks([], [], [7]), timeout=1, pause=no_time) == [7]
    assert clock.waiting == 0


async def test_a_bell_that_was_ended_ends_the_wait_by_its_error() -> None:
    bell = Bell(FakeClock())
    bell.end(ConnectionError("closed"))

    with pytest.raises(ConnectionError, match="closed"):
        await bell.find(Looks(), timeout=90, pause=a_minute)
