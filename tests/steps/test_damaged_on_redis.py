"""Damaged jobs on Redis: setting one aside is an end, through the same steps as any other."""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta

import pytest

from tests.steps.recording import ENDS, STOPS_RUNNING
from tests.steps.redis_recorder import RedisRecording, recorded_redis
from windlass.core.requests import ClaimRequest, RescueRequest
from windlass.core.retention import KEEP_ALL
from windlass.core.states import State
from windlass.core.store import Store
from windlass.testing import FakeClock
from windlass.testing.conformance.given import MINUTE, a_job


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def recording(clock: FakeClock) -> AsyncIterator[RedisRecording]:
    async with recorded_redis(clock) as recording:
        yield recording


async def claim(store: Store) -> object:
    return await store.claim(ClaimRequest(("q",), 9, MINUTE))


async def promote(store: Store) -> object:
    return await store.promote(limit=9)


async def rescue(store: Store) -> object:
    return await store.rescue(RescueRequest(force=True), KEEP_ALL)


@pytest.mark.parametrize(
    "delay, is_claimed, call, steps",
    [
        (None, False, claim, [ENDS]),
        (MINUTE, False, claim, [ENDS]),
        (MINUTE, False, promote, [ENDS]),
        (None, True, rescue, [STOPS_RUNNING, ENDS]),
    ],
)
async def test_a_damaged_job_is_set_aside_by_the_steps_of_an_end(
    recording: RedisRecording,
    clock: FakeClock,
    delay: timedelta | None,
    call: Callable[[Store], Awaitable[object]],
    steps: list[str],
    *,
    is_claimed: bool,
) -> None:
    job = a_job("q", delay=delay)
    await recording.store.enqueue([job])
    clock.advance(MINUTE)
    if is_claimed:
        await claim(recording.store)
    recording.write(job.id, "head", "text")
    recording.names()

    await call(recording.store)

    assert recording.names() == steps
    [found] = await recording.store.get([job.id])
    assert found is not None
    assert found.state is State.DEAD
