"""Too few connections for all that is asked at once: calls wait for their turn, and renewals for nobody."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Final

import pytest

import windlass
from tests.postgres.cluster import cluster, schema_of
from tests.postgres.proxy import Proxy
from tests.postgres.ready import ready_schema
from tests.stores.postgres.shell import blocking
from windlass import App, Context, Enqueued, NewJob, Server, ServerConfig, State

LEASE: Final = 6.0
PATIENCE: Final = 60.0


@pytest.fixture
def url() -> Iterator[str]:
    with ready_schema() as url:
        yield url


async def test_fifty_callers_share_two_connections(url: str) -> None:
    async with Proxy(url) as proxy, windlass.connect(f"{proxy.url}&connections=2&notify=off") as client:

        async def live(number: int) -> None:
            queue = f"q{number}"
            await client.enqueue(queue, b"", unique="key")
            claim = await client.claim(queue)
            assert claim is not None
            await client.renew(claim)
            await client.ack(claim, {"number": number})

        await asyncio.gather(*(live(number) for number in range(50)))

        assert (await client.stats()).succeeded == 50
        assert len(proxy.clients) <= 2


async def test_callers_who_leave_in_the_middle_of_an_enqueue_take_no_connection_along(url: str) -> None:
    chance = random.Random(8)
    calls: dict[int, asyncio.Task[Enqueued]] = {}
    others = cluster().sessions()

    async with asyncio.timeout(PATIENCE), windlass.connect(f"{url}&connections=2&notify=off") as client:
        while sum(call.cancelled() for call in calls.values()) < 200:
            numbers = range(len(calls), len(calls) + 8)
            calls |= {number: asyncio.create_task(client.enqueue("default", number)) for number in numbers}
            for _ in range(chance.randrange(1, 40)):
                await asyncio.sleep(0)
            for number in numbers:
                calls[number].cancel()
            await asyncio.wait([calls[number] for number in numbers])
        last = await asyncio.gather(*(client.enqueue("default", "last") for _ in range(10)))
        # the server takes a moment to see that one was cut off
        while len(cluster().sessions() - others) > 2:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.01)
        jobs = await client.jobs(limit=1_000)

    found = Counter(job.payload for job in jobs)
    kept = [json.dumps(number).encode() for number, call in calls.items() if not call.cancelled()]
    assert len(last) == found.pop(b'"last"') == 10
    assert set(found.values()) == {1}
    assert set(kept) <= set(found)


async def test_leases_are_renewed_while_every_connection_is_in_use(url: str) -> None:
    begun, may_end, over = asyncio.Semaphore(0), asyncio.Event(), asyncio.Event()
    app = App(f"{url}&connections=2&timeout={PATIENCE:.0f}", lease=LEASE)

    @app.job
    async def hold_a_transaction(ctx: Context) -> None:
        async with ctx.transaction():
            begun.release()
            await may_end.wait()

    @app.job
    async def hold_nothing() -> None:
        begun.release()
        await may_end.wait()

    async def call_all_the_time() -> None:
        while not over.is_set():
            await app.client.stats("default")

    kinds = ["hold_a_transaction"] * 2 + ["hold_nothing"] * 5
    async with asyncio.timeout(2 * PATIENCE), app, Server(app, ServerConfig(concurrency=10, rescue_interval=0.2)):
        jobs = await app.client.enqueue_many([NewJob("default", {}, kind=kind) for kind in kinds])
        for _ in kinds:
            await begun.acquire()
        callers = [asyncio.create_task(call_all_the_time()) for _ in range(8)]
        first = await asyncio.to_thread(leases, url)
        # more than a lease later, each of them was renewed again and again, or somebody else would have it by now
        while min((await asyncio.to_thread(leases, url)).values()) - min(first.values()) < LEASE * 1.5:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        may_end.set()
        for job in jobs:
            await app.client.wait(job.id)
        over.set()
        await asyncio.gather(*callers)
        found = [await app.client.get(job.id) for job in jobs]

    assert [(job.state, job.attempt, job.delivery) for job in found if job] == [(State.SUCCEEDED, 1, 1)] * len(kinds)


def leases(url: str) -> dict[str, float]:
    """Return until when each job is held that is in no transaction, in seconds since 1970."""
    with blocking(url) as connection:
        rows: list[tuple[str, datetime]] = connection.execute(
            "select id::text, lease_expires_at from windlass_job where kind = 'hold_nothing' and state = 'running'"
        ).fetchall()
    assert len(rows) == 5, schema_of(url)
    return {job: at.timestamp() for job, at in rows}
