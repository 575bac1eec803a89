"""A round through all queues, of which some do not answer."""

import asyncio

import pytest

from windlass.core.errors import ClientClosed, StoreUnavailable
from windlass.stores.redis.failures import Failures


async def says(answer: int | Exception) -> int:
    await asyncio.sleep(0)
    if isinstance(answer, Exception):
        raise answer
    return answer


async def test_queues_that_are_away_stand_in_the_way_of_no_other() -> None:
    failures = Failures()
    away = StoreUnavailable("it is away", retryable=True)

    assert await failures.gather([says(1), says(away), says(2)]) == [1, 2]

    failures.throw_unless(done=True)
    with pytest.raises(StoreUnavailable, match="it is away"):
        failures.throw_unless(done=False)


async def test_what_is_no_absence_is_told_at_once() -> None:
    with pytest.raises(ClientClosed):
        await Failures().gather([says(1), says(ClientClosed())])


async def test_a_round_that_is_cancelled_at_its_first_step_leaves_no_call_behind() -> None:
    round_of_calls = asyncio.ensure_future(Failures().gather([says(1), says(2)]))
    await asyncio.sleep(0)

    # before any of its calls has had a turn: one that never has is warned of, and warnings are errors
    round_of_calls.cancel()

    with pytest.raises(asyncio.CancelledError):
        await round_of_calls
