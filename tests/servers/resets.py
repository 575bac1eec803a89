"""A network that cuts connections again and again, at any byte, whatever is spoken through it."""

import asyncio
import random
from typing import Any, Final

import windlass
from tests.servers.proxy import Proxy
from windlass import App, Completed, NewJob, Server, ServerConfig
from windlass.core.filters import JobFilter
from windlass.core.states import State

RESETS: Final = 200
PATIENCE: Final = 80.0


async def check_that_consumption_goes_on(proxy: Proxy[Any], through: str, direct: str, *, longest: int = 600) -> None:
    """Cut a server and its producers off 200 times, each at one of `longest` bytes; every job is done once.

    `through` leads to the store at `direct` by the proxy.
    """
    chance = random.Random(46)
    ran: list[int] = []
    async with asyncio.timeout(PATIENCE), windlass.connect(direct) as outside:
        app = App(through, lease=60)

        @app.job
        async def work(number: int) -> int:
            ran.append(number)
            return number

        async with app, Server(app, ServerConfig(concurrency=5, poll_interval=0.05, rescue_interval=60)):
            for number in range(RESETS):
                proxy.cut_after(chance.randrange(longest), chance.choice(("requests", "answers")))
                producer = app.client if number % 2 else outside
                await producer.enqueue("default", {"number": number}, kind="work")
                # it was really cut: by this job, or by whatever else is going on
                while proxy.left:
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


async def check_that_nothing_is_lost_or_doubled(
    proxy: Proxy[Any], through: str, direct: str, *, answers: int = 7
) -> None:
    """Reset all connections over and over, each time after at most `answers`, while many produce and consume."""
    chance = random.Random(47)
    over = asyncio.Event()
    async with asyncio.timeout(PATIENCE), windlass.connect(direct) as outside:

        async def cut() -> int:
            times = 0
            while not over.is_set():
                proxy.reset()
                times += 1
                # something comes through each time, also where all is slow
                until = proxy.answers + chance.randint(1, answers)
                while proxy.answers < until and not over.is_set():  # noqa: ASYNC110 - a proxy tells nobody
                    await asyncio.sleep(0.001)
            return times

        async def produce(number: int) -> None:
            for each in range(10):
                await client.enqueue_many([NewJob("q", b"%d-%d-%d" % (number, each, one)) for one in range(3)])

        async def consume() -> None:
            while (await outside.stats("q")).totals.succeeded < 150:
                for claim in await client.claim_many("q", limit=7, lease=60):
                    await client.ack(claim)

        async with windlass.connect(through) as client:
            await client.stats()
            cutting = asyncio.create_task(cut())
            await asyncio.gather(*(produce(number) for number in range(5)), *(consume() for _ in range(3)))
            over.set()
            resets = await cutting
        jobs = await outside.jobs(JobFilter(queue="q"), limit=1000)

    assert {(job.state, job.attempt, job.delivery) for job in jobs} == {(State.SUCCEEDED, 1, 1)}
    assert len({job.payload for job in jobs}) == len(jobs) == 150
    assert resets > 20, resets
