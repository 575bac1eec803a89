"""Something may take so long, and not longer."""

import asyncio

import pytest

from windlass.http.patience import within
from windlass.testing import FakeClock


async def test_what_ends_in_time_is_returned_and_leaves_no_timer() -> None:
    clock = FakeClock()

    async def work() -> int:
        await clock.sleep(1)
        return 7

    doing = asyncio.ensure_future(within(2, work(), clock))
    await clock.let_pass(1)

    assert (await doing, clock.waiting) == (7, 0)


async def test_what_takes_longer_is_cancelled_and_has_ended_then() -> None:
    clock, ended = FakeClock(), asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    doing = asyncio.ensure_future(within(2, work(), clock))
    await clock.let_pass(2)

    with pytest.raises(TimeoutError):
        await doing
    assert ended.is_set()


async def test_who_gives_up_ends_the_work_too() -> None:
    clock, ended = FakeClock(), asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
            message = "nobody hears this"
            raise ValueError(message)

    doing = asyncio.ensure_future(within(2, work(), clock))
    await clock.let_pass(0)
    doing.cancel()

    with pytest.raises(asyncio.CancelledError):
        await doing
    assert (ended.is_set(), clock.waiting) == (True, 0)
