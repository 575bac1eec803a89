import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import timedelta

import pytest

from tests.engine.given import an_attempt, settlements_of
from windlass.client.client import Client
from windlass.engine.attempt import Attempt
from windlass.engine.attempt_stopper import AttemptStopper
from windlass.engine.flags import FlagWatch
from windlass.system import TaskSpawn
from windlass.testing import FakeClock


class Watch:
    """A running watch of held claims."""

    def __init__(self, client: Client) -> None:
        settlements = settlements_of(client)
        self.held = settlements.held
        self.service = FlagWatch(
            client.store,
            self.held,
            AttemptStopper(settlements, client.clock),
            poll_interval=timedelta(seconds=1),
            clock=client.clock,
            rng=client.rng,
            spawn=TaskSpawn(),
        )

    def hold(self, attempt: Attempt) -> Attempt:
        self.held.add([attempt])
        return attempt


@pytest.fixture
async def watch(client: Client) -> AsyncIterator[Watch]:
    made = Watch(client)
    await made.service.start()
    yield made
    await made.service.stop()


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not true():  # noqa: ASYNC110 - nobody else says so
            await asyncio.sleep(0)


async def test_a_flag_is_told_at_once(client: Client, watch: Watch) -> None:
    flagged, other = watch.hold(await an_attempt(client)), watch.hold(await an_attempt(client))

    await client.cancel(flagged.job.id)
    await until(lambda: flagged.reason is not None)

    assert (flagged.reason, other.reason) == ("cancel", None)


async def test_an_attempt_whose_job_was_taken_back_is_told_of(client: Client, watch: Watch) -> None:
    """By its claim, not by its job."""
    loser = watch.hold(await an_attempt(client))
    await client.rescue(force=True)
    await until(lambda: loser.reason is not None)

    winner = watch.hold(await an_attempt(client, enqueue=False))
    await client.cancel(winner.job.id)
    await until(lambda: winner.reason is not None)

    assert (loser.reason, winner.reason) == ("claim_lost", "cancel")


async def test_what_was_settled_meanwhile_is_nobodys_loss(client: Client, watch: Watch) -> None:
    settled, flagged = watch.hold(await an_attempt(client)), watch.hold(await an_attempt(client))
    settled.settled = True

    await client.rescue(["default"], force=True)
    await until(lambda: flagged.reason is not None)

    assert (settled.reason, flagged.reason) == (None, "claim_lost")


async def test_without_news_it_looks_once_in_a_while(client: Client, watch: Watch, clock: FakeClock) -> None:
    flagged = await an_attempt(client)
    await client.cancel(flagged.job.id)
    for _ in range(10):
        await asyncio.sleep(0)
    watch.hold(flagged)

    clock.advance(29)
    await asyncio.sleep(0)
    assert flagged.reason is None
    clock.advance(1)
    await until(lambda: flagged.reason is not None)

    assert flagged.reason == "cancel"
