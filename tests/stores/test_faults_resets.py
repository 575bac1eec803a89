"""A network that cuts connections again and again, at any byte: consumption goes on, nothing is done twice.

It is cut by a proxy that reads what goes through it: there is one for Postgres and one for Redis.
"""

import asyncio
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Final

import pytest

import windlass
from tests.each_store import new_url
from tests.postgres.proxy import Proxy as PostgresProxy
from tests.redis.keys import with_options
from tests.redis.proxy import Proxy as RedisProxy
from tests.servers.proxy import Proxy
from windlass import App, Completed, NewJob, Server, ServerConfig
from windlass.core.filters import JobFilter
from windlass.core.states import State

RESETS: Final = 200
PATIENCE: Final = 80.0


@dataclass(frozen=True)
class Cut:
    """A store at `direct`, and by a proxy that cuts `through` it.

    A message of its protocol has up to `longest` bytes: on Redis some hundred, on Postgres a greeting has so many, and
    a statement that is new to a connection some thousand. At most so many `answers` come before all is cut: each
    connection that is opened takes some of them.
    """

    proxy: Proxy[Any]
    through: str
    direct: str
    longest: int
    answers: int


@pytest.fixture(params=["postgres", "redis"])
async def cut(request: pytest.FixtureRequest) -> AsyncIterator[Cut]:
    with new_url(request.param) as url:
        if request.param == "postgres":
            async with PostgresProxy(url) as proxy:
                yield Cut(proxy, f"{proxy.url}&timeout=20", url, longest=4_000, answers=30)
        else:
            async with RedisProxy(url) as redis_proxy:
                yield Cut(redis_proxy, with_options(redis_proxy.url, "timeout=20"), url, longest=600, answers=7)


async def test_consumption_goes_on_through_two_hundred_resets_at_random_bytes(cut: Cut) -> None:
    chance = random.Random(46)
    ran: list[int] = []
    async with asyncio.timeout(PATIENCE), windlass.connect(cut.direct) as outside:
        app = App(cut.through, lease=60)

        @app.job
        async def work(number: int) -> int:
            ran.append(number)
            return number

        async with app, Server(app, ServerConfig(concurrency=5, poll_interval=0.05, rescue_interval=60)):
            for number in range(RESETS):
                cut.proxy.cut_after(chance.randrange(cut.longest), chance.choice(("requests", "answers")))
                producer = app.client if number % 2 else outside
                await producer.enqueue("default", {"number": number}, kind="work")
                # it was really cut: by this job, or by whatever else is going on
                while cut.proxy.left:
                    await app.client.stats("default")
            jobs = await outside.jobs(JobFilter(), limit=2 * RESETS)
            for job in jobs:
                assert isinstance(await outside.wait(job.id), Completed)
            jobs = await outside.jobs(JobFilter(), limit=2 * RESETS)
            # and it goes on as ever
            last = await outside.enqueue("default", {"number": RESETS}, kind="work")
            assert isinstance(await outside.wait(last.id), Completed)
            totals = (await outside.stats()).totals

    assert sorted(ran) == list(range(RESETS + 1))
    assert {(job.state, job.attempt, job.delivery) for job in jobs} == {(State.SUCCEEDED, 1, 1)}
    assert (len(jobs), totals.enqueued, totals.succeeded, totals.rescued) == (RESETS, RESETS + 1, RESETS + 1, 0)


async def test_many_producers_and_consumers_lose_and_double_nothing_while_all_is_reset(cut: Cut) -> None:
    chance = random.Random(47)
    over = asyncio.Event()
    async with asyncio.timeout(PATIENCE), windlass.connect(cut.direct) as outside:

        async def reset() -> int:
            times = 0
            while not over.is_set():
                cut.proxy.reset()
                times += 1
                # something comes through each time, also where all is slow
                until = cut.proxy.answers + chance.randint(1, cut.answers)
                while cut.proxy.answers < until and not over.is_set():  # noqa: ASYNC110 - a proxy tells nobody
                    await asyncio.sleep(0.001)
            return times

        async def produce(number: int) -> None:
            for each in range(10):
                await client.enqueue_many([NewJob("q", b"%d-%d-%d" % (number, each, one)) for one in range(3)])

        async def consume() -> None:
            while (await outside.stats("q")).totals.succeeded < 150:
                for claim in await client.claim_many("q", limit=7, lease=60):
                    await client.ack(claim)

        async with windlass.connect(cut.through) as client:
            await client.stats()
            cutting = asyncio.create_task(reset())
            await asyncio.gather(*(produce(number) for number in range(5)), *(consume() for _ in range(3)))
            over.set()
            resets = await cutting
        jobs = await outside.jobs(JobFilter(queue="q"), limit=1000)

    assert {(job.state, job.attempt, job.delivery) for job in jobs} == {(State.SUCCEEDED, 1, 1)}
    assert len({job.payload for job in jobs}) == len(jobs) == 150
    assert resets > 20, resets
