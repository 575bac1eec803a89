import asyncio
import logging
from contextlib import suppress
from datetime import timedelta

import pytest

from tests.engine.given import LEASE, a_handler, an_attempt, settlements_of
from windlass.client.client import Client
from windlass.core.states import State
from windlass.engine.attempt import Attempt
from windlass.engine.attempt_stopper import PATIENCE, AttemptStopper, StopRequest
from windlass.handlers.registered import RunsIn
from windlass.testing import FakeClock

MINUTE = timedelta(minutes=1)


class Child:
    """As much of a child as somebody needs who ends it."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def tell(self, reason: StopRequest) -> None:
        self.heard.append(reason)

    def terminate(self) -> None:
        self.heard.append("SIGTERM")

    def kill(self) -> None:
        self.heard.append("SIGKILL")


async def running(client: Client, runs_in: RunsIn) -> Attempt:
    """Return an attempt whose code does not end by itself."""
    attempt = await an_attempt(client, a_handler(runs_in, timeout=MINUTE))
    attempt.task = asyncio.create_task(asyncio.Event().wait())  # type: ignore[arg-type]
    await asyncio.sleep(0)
    return attempt


async def over(attempt: Attempt) -> bool:
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert attempt.task is not None
    return attempt.task.cancelled()


async def test_a_late_coroutine_is_told_and_cancelled(client: Client, clock: FakeClock) -> None:
    attempt = await running(client, RunsIn.LOOP)

    AttemptStopper(settlements_of(client), clock).time_out(attempt)

    assert attempt.reason == "timeout"
    assert await over(attempt)


async def test_a_late_coroutine_that_goes_on_is_settled_before_its_lease_is_over(
    client: Client, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    settlements = settlements_of(client)
    stopper = AttemptStopper(settlements, clock)
    attempt = await an_attempt(client, a_handler(timeout=MINUTE), max_attempts=1)
    ends = asyncio.Event()

    async def stubborn() -> None:
        while not ends.is_set():
            with suppress(asyncio.CancelledError):
                await ends.wait()

    attempt.task = asyncio.create_task(stubborn())
    await asyncio.sleep(0)
    stopper.time_out(attempt)
    clock.advance(min(PATIENCE, LEASE / 2))
    await settlements.drain()

    assert stopper.stuck == {attempt}
    job = await client.get(attempt.job.id)
    assert job is not None
    assert (job.state, attempt.settled) == (State.DEAD, True)
    with caplog.at_level(logging.INFO):
        ends.set()
        await attempt.task
        stopper.ended(attempt)
    assert stopper.stuck == set()
    assert "settled before, has ended" in caplog.text


async def test_a_late_thread_is_settled_at_once_and_a_late_child_killed(client: Client, clock: FakeClock) -> None:
    settlements = settlements_of(client)
    stopper = AttemptStopper(settlements, clock)
    thread, process = await running(client, RunsIn.THREAD), await running(client, RunsIn.PROCESS)
    child = process.child = Child()  # type: ignore[assignment]

    stopper.time_out(thread)
    stopper.time_out(process)
    await settlements.drain()

    assert (stopper.stuck, thread.settled, await over(thread)) == ({thread}, True, False)
    assert child.heard == ["timeout", "SIGKILL"]
    for attempt in (thread, process):
        assert attempt.task is not None
        attempt.task.cancel()


@pytest.mark.parametrize("reason", ["cancel", "claim_lost"])
async def test_force_comes_some_seconds_after_the_word(client: Client, clock: FakeClock, reason: StopRequest) -> None:
    stopper = AttemptStopper(settlements_of(client), clock)
    loop, thread, process = [await running(client, runs_in) for runs_in in RunsIn]
    child = process.child = Child()  # type: ignore[assignment]

    for attempt in (loop, thread, process):
        stopper.request(attempt, reason)
        stopper.request(attempt, "claim_lost")
    clock.advance(PATIENCE - 0.1)
    assert [attempt.reason for attempt in (loop, thread, process)] == [reason] * 3
    assert not await over(loop)
    assert child.heard == [reason, "SIGTERM"]

    clock.advance(0.1)

    assert await over(loop)
    assert not await over(thread)
    assert child.heard == [reason, "SIGTERM", "SIGKILL"]
    for attempt in (thread, process):
        assert attempt.task is not None
        attempt.task.cancel()


async def test_nothing_is_settled_after_the_close(client: Client, clock: FakeClock) -> None:
    settlements = settlements_of(client)
    stopper = AttemptStopper(settlements, clock)
    attempt = await running(client, RunsIn.THREAD)

    stopper.close()
    stopper.time_out(attempt)

    assert (len(settlements), stopper.stuck) == (0, set())
    assert attempt.task is not None
    attempt.task.cancel()
