import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import timedelta

import pytest

from tests.engine.given import an_attempt
from windlass.client.client import Client
from windlass.core.job import Token
from windlass.engine.attempt import Attempt
from windlass.engine.flags import FlagWatch
from windlass.system import TaskSpawn
from windlass.testing import FakeClock


class Watch:
    """A running watch, and what it tells."""

    def __init__(self, client: Client) -> None:
        self.held: dict[Token, Attempt] = {}
        self.requested: list[Attempt] = []
        self.lost: list[Attempt] = []
        self.service = FlagWatch(
            client.store,
            self.held,
            requested=self.requested.append,
            lost=self.lost.append,
            poll_interval=timedelta(seconds=1),
            clock=client.clock,
            rng=client.rng,
            spawn=TaskSpawn(),
        )

    def hold(self, attempt: Attempt) -> Attempt:
        self.held[attempt.token] = attempt
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
    await until(lambda: watch.requested == [flagged])

    assert watch.lost == []
    assert other.reason is None


async def test_an_attempt_whose_job_was_taken_back_is_told_of(client: Client, watch: Watch) -> None:
    """B36: by its claim, not by its job."""
    loser = watch.hold(await an_attempt(client))
    await client.rescue(force=True)
    await until(lambda: watch.lost == [loser])

    loser.tell("claim_lost")
    winner = watch.hold(await an_attempt(client, enqueue=False))
    await client.cancel(winner.job.id)
    await until(lambda: watch.requested == [winner])

    assert watch.lost == [loser]


async def test_what_was_settled_meanwhile_is_nobodys_loss(client: Client, watch: Watch) -> None:
    settled, flagged = watch.hold(await an_attempt(client)), watch.hold(await an_attempt(client))
    settled.settled = True

    await client.rescue(["default"], force=True)
    await until(lambda: watch.lost == [flagged])


async def test_without_news_it_looks_once_in_a_while(client: Client, watch: Watch, clock: FakeClock) -> None:
    flagged = await an_attempt(client)
    await client.cancel(flagged.job.id)
    for _ in range(10):
        await asyncio.sleep(0)
    watch.hold(flagged)

    clock.advance(29)
    await asyncio.sleep(0)
    assert watch.requested == []
    clock.advance(1)
    await until(lambda: watch.requested == [flagged])
