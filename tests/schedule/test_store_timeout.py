import asyncio

import pytest

from windlass import StoreUnavailable
from windlass.schedule.store_timeout import STORE_TIMEOUT, call_store
from windlass.testing import FakeClock


async def test_what_answers_in_time_is_returned_or_raised() -> None:
    clock = FakeClock()

    async def answer() -> int:
        await clock.sleep(STORE_TIMEOUT - 1)
        return 7

    async def fail() -> int:
        raise RuntimeError("no")

    asked = asyncio.ensure_future(call_store(answer(), "how many", clock))
    await clock.timers(2)
    clock.advance(STORE_TIMEOUT - 1)

    assert await asked == 7
    with pytest.raises(RuntimeError, match="no"):
        await call_store(fail(), "how many", clock)
    assert clock.waiting == 0


async def test_what_hangs_is_given_up_and_told() -> None:
    clock, ended = FakeClock(), asyncio.Event()

    async def hang() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    asked = asyncio.ensure_future(call_store(hang(), "how many there are", clock))
    await clock.timers(1)
    clock.advance(STORE_TIMEOUT)

    with pytest.raises(StoreUnavailable, match="has not answered within 10 s: how many there are") as caught:
        await asked
    assert caught.value.retryable
    await ended.wait()


async def test_a_question_that_is_given_up_ends_with_whoever_asked() -> None:
    clock, begun, ended = FakeClock(), asyncio.Event(), asyncio.Event()

    async def hang() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    asked = asyncio.ensure_future(call_store(hang(), "how many there are", clock))
    await begun.wait()
    asked.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asked
    await ended.wait()
    assert clock.waiting == 0
