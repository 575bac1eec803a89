"""A server that stands still with everything under way, and goes on: nothing is lost, nothing is done twice."""

import asyncio
import os
import signal
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, Final

import pytest

from tests.redis.keys import new_prefix, with_options
from tests.redis.private import PrivateRedis
from windlass import App, Claim, Completed, OutcomeUnknown, Server, ServerConfig, State, StoreUnavailable
from windlass.core.ids import JobId

SHORT: Final = 2.0
"""Seconds of a standstill that calls wait for."""
DEADLINE: Final = 1.0
SPARE: Final = 4.0
"""Seconds for a machine that has much else to do."""
PATIENCE: Final = 60.0
JOBS: Final = 20
HELD: Final = 5


@pytest.fixture(scope="module")
def private() -> Iterator[PrivateRedis]:
    with PrivateRedis() as private:
        yield private


@pytest.fixture(params=["", "&spread=queues"], ids=["one tag", "spread"])
def url(request: pytest.FixtureRequest, private: PrivateRedis) -> str:
    return with_options(private.url, f"prefix={new_prefix()}{request.param}")


@contextmanager
def standing_still(private: PrivateRedis, *, seconds: float | None = None) -> Generator[None]:
    """Let a server do nothing, whose connections stay: for so long, or until the end of the block."""
    pid = private.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        if seconds is not None:
            asyncio.get_running_loop().call_later(seconds, os.kill, pid, signal.SIGCONT)
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


class Work:
    """An app whose handlers tell how often each ran."""

    def __init__(self, url: str) -> None:
        self.app = App(url, lease=60)
        self.begun, self.may_end = asyncio.Event(), asyncio.Event()
        self.runs: dict[int, int] = {}

        @self.app.job
        async def through_it_all() -> None:
            self.begun.set()
            await self.may_end.wait()

        @self.app.job
        async def at_once(number: int) -> None:
            self.runs[number] = self.runs.get(number, 0) + 1

    async def completed(self, *ids: str) -> list[tuple[State, int]]:
        """Return how jobs ended, with their deliveries, when they have."""
        ends = [await self.app.client.wait(job_id) for job_id in ids]
        return [(end.job.state, end.job.delivery) for end in ends if isinstance(end, Completed) and end.job]


async def held_by_nobody_else(app: App) -> list[Claim]:
    """Return claims of a queue that no server works."""
    for number in range(HELD):
        await app.client.enqueue("raw", b"%d" % number)
    claims = await app.client.claim_many("raw", limit=HELD, lease=600)
    assert len(claims) == HELD
    return claims


async def test_who_calls_while_a_server_stands_still_for_less_than_the_deadline_notices_nothing(
    private: PrivateRedis, url: str
) -> None:
    work = Work(url)
    client = work.app.client
    async with asyncio.timeout(PATIENCE), work.app, Server(work.app, ServerConfig(rescue_interval=0.2)):
        running = await client.enqueue("default", {}, kind="through_it_all")
        await work.begun.wait()
        claims = await held_by_nobody_else(work.app)

        began = time.monotonic()
        with standing_still(private, seconds=SHORT):
            given, _, none = await asyncio.gather(
                asyncio.gather(*(client.enqueue("default", {"number": n}, kind="at_once") for n in range(JOBS))),
                asyncio.gather(*(client.ack(claim) for claim in claims)),
                client.claim("raw"),
            )
        took = time.monotonic() - began
        work.may_end.set()
        ends = await work.completed(running.id, *(each.id for each in given))
        totals = (await client.stats()).totals

    assert (took >= SHORT, none) == (True, None)
    assert ends == [(State.SUCCEEDED, 1)] * (JOBS + 1)
    assert work.runs == dict.fromkeys(range(JOBS), 1)
    assert (totals.enqueued, totals.succeeded, totals.rescued) == (JOBS + HELD + 1, JOBS + HELD + 1, 0)


async def test_who_calls_while_a_server_stands_still_for_longer_is_told_in_time_and_may_do_it_again(
    private: PrivateRedis, url: str
) -> None:
    work = Work(with_options(url, f"timeout={DEADLINE}"))
    client = work.app.client
    ids = [JobId(f"01900000-0000-7000-8000-0000000000{number:02}") for number in range(JOBS)]
    async with asyncio.timeout(PATIENCE), work.app, Server(work.app, ServerConfig(rescue_interval=0.2)):
        running = await client.enqueue("default", {}, kind="through_it_all")
        await work.begun.wait()
        claims = await held_by_nobody_else(work.app)
        # its claim is under way: what it is given then is nobody's until the lease ends
        late = await client.enqueue("late", b"")

        def calls() -> list[Any]:
            return [
                *(
                    client.enqueue("default", {"number": number}, kind="at_once", id=ids[number])
                    for number in range(JOBS)
                ),
                *(client.ack(claim) for claim in claims),
            ]

        began = time.monotonic()
        with standing_still(private):
            told = await asyncio.gather(client.claim("late", lease=0.5), *calls(), return_exceptions=True)
        took = time.monotonic() - began

        await asyncio.gather(*calls())
        work.may_end.set()
        ends = await work.completed(running.id, *ids)
        claim = await client.claim("late", wait=PATIENCE)
        assert claim is not None
        await client.ack(claim)
        totals = (await client.stats()).totals

    assert took < DEADLINE + SPARE
    assert [error for error in told if not isinstance(error, StoreUnavailable | OutcomeUnknown)] == []
    assert [error for error in told if isinstance(error, StoreUnavailable) and not error.retryable] == []
    assert claim.job.id == late.id
    assert ends == [(State.SUCCEEDED, 1)] * (JOBS + 1)
    assert work.runs == dict.fromkeys(range(JOBS), 1)
    assert totals.enqueued == totals.succeeded == JOBS + HELD + 2
