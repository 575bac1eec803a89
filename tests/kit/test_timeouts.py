"""Timeouts by a clock, for tasks and for calls."""

import asyncio

import pytest

from windlass.kit.timeouts import call_with_timeout, wait_for_task
from windlass.testing import FakeClock


async def test_a_task_that_ends_in_time_is_waited_for() -> None:
    go = asyncio.Event()
    task = asyncio.create_task(go.wait())
    waiting = asyncio.create_task(wait_for_task(task, 1, FakeClock()))
    await asyncio.sleep(0)

    go.set()

    assert await waiting
    assert task.done()


async def test_a_task_that_does_not_end_in_time_goes_on() -> None:
    clock, go = FakeClock(), asyncio.Event()
    task = asyncio.create_task(go.wait())
    waiting = asyncio.create_task(wait_for_task(task, 1, clock))
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

    assert await wait_for_task(task, 60, clock)
    assert clock.waiting == 0


async def test_a_call_that_ends_in_time_is_returned_and_leaves_no_timer() -> None:
    clock = FakeClock()

    async def work() -> int:
        await clock.sleep(1)
        return 7

    doing = asyncio.ensure_future(call_with_timeout(work(), 2, clock))
    await clock.let_pass(1)

    assert (await doing, clock.waiting) == (7, 0)


async def test_a_call_that_takes_longer_is_cancelled_and_has_ended_then() -> None:
    clock, ended = FakeClock(), asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    doing = asyncio.ensure_future(call_with_timeout(work(), 2, clock))
    await clock.let_pass(2)

    with pytest.raises(TimeoutError):
        await doing
    assert ended.is_set()


async def test_a_caller_who_gives_up_ends_the_call_too() -> None:
    clock, ended = FakeClock(), asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
            message = "nobody hears this"
            raise ValueError(message)

    doing = asyncio.ensure_future(call_with_timeout(work(), 2, clock))
    await clock.let_pass(0)
    doing.cancel()

    with pytest.raises(asyncio.CancelledError):
        await doing
    assert (ended.is_set(), clock.waiting) == (True, 0)
