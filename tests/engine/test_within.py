"""Waiting that ends."""

import asyncio

from windlass.engine.within import ends_within
from windlass.testing import FakeClock


async def test_a_task_that_ends_in_time_is_waited_for() -> None:
    go = asyncio.Event()
    task = asyncio.create_task(go.wait())
    waiting = asyncio.create_task(ends_within(task, 1, FakeClock()))
    await asyncio.sleep(0)

    go.set()

    assert await waiting
    assert task.done()


async def test_a_task_that_does_not_end_in_time_goes_on() -> None:
    clock, go = FakeClock(), asyncio.Event()
    task = asyncio.create_task(go.wait())
    waiting = asyncio.create_task(ends_within(task, 1, clock))
    await clock.timers(1)

    clock.advance(1)

    assert not await waiting
    assert not task.done()
    go.set()
    assert await task


async def test_a_task_that_has_ended_needs_no_time() -> None:
    clock = FakeClock()
    task = asyncio.create_task(asyncio.sleep(0))
    await task

    assert await ends_within(task, 60, clock)
    assert clock.waiting == 0
