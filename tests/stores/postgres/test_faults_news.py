"""Notifications that are lost, their connection too, and many who hear of one job."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from typing import Final

import pytest

import windlass
from tests.postgres.cluster import cluster
from tests.postgres.proxy import Proxy
from tests.postgres.ready import ready_schema
from tests.stores.postgres.shell import blocking
from windlass import App, Client, Server, ServerConfig
from windlass.core.topics import queue_topic
from windlass.stores.postgres.channels import channels_of

SOON: Final = 5.0
WAITERS: Final = 200
LISTENING: Final = "select pid from pg_stat_activity where query ilike 'listen%%' and query like %s"


@pytest.fixture
def url() -> Iterator[str]:
    with ready_schema() as url:
        yield url


@pytest.fixture
async def other(url: str) -> AsyncIterator[Client]:
    """Another process, for all that the database knows."""
    async with windlass.connect(url) as client:
        yield client


async def listener(url: str, but: int | None = None) -> int:
    """Return the session that hears of a store's news, as soon as there is one beside `but`."""
    with blocking(url) as connection:
        [(store_id,)] = connection.execute("select value from windlass_meta where name = 'store'").fetchall()
    name = channels_of(store_id).ready.removesuffix("ready")
    async with asyncio.timeout(20):
        while True:
            for (pid,) in cluster().run(LISTENING, [f"%{name}%"]):
                if pid != but:
                    return int(pid)
            await asyncio.sleep(0.01)


async def test_whoever_waits_is_woken_soon_after_the_listening_session_was_ended(url: str, other: Client) -> None:
    async with windlass.connect(url) as client:
        waiting = asyncio.create_task(client.claim("q", wait=60))
        ended = await listener(url)

        cluster().run("select pg_terminate_backend(%s)", [ended])
        began = time.monotonic()
        await other.enqueue("q", b"first")
        claim = await waiting

        assert claim is not None
        assert time.monotonic() - began < SOON
        await listener(url, but=ended)


async def test_after_its_session_is_back_a_listener_hears_at_once(url: str, other: Client) -> None:
    async with windlass.connect(url) as client:
        waiting = asyncio.create_task(client.claim("q", wait=60))
        ended = await listener(url)
        cluster().run("select pg_terminate_backend(%s)", [ended])
        await listener(url, but=ended)
        # those who waited look once when the session is back; what comes now is told by a notification alone
        rung = asyncio.Event()
        stop = client.store.listen([queue_topic("q")], rung.set)

        await other.enqueue("q", b"first")

        claim = await waiting
        async with asyncio.timeout(SOON):
            await rung.wait()
        stop()
        assert claim is not None


async def test_a_job_that_nobody_was_told_of_is_found_by_polling(url: str) -> None:
    done = asyncio.Event()
    app = App(url)

    @app.job
    async def work() -> None:
        done.set()

    async with app, Server(app, ServerConfig(poll_interval=0.5)), windlass.connect(f"{url}&notify=off") as silent:
        await listener(url)

        await silent.enqueue("default", {}, kind="work")

        async with asyncio.timeout(SOON):
            await done.wait()


async def test_one_job_among_two_hundred_who_wait_is_one_claim_and_no_storm(url: str, other: Client) -> None:
    async with Proxy(url) as proxy, windlass.connect(proxy.url, poll_interval=60) as client:
        waiting = [asyncio.create_task(client.claim("q", wait=60)) for _ in range(WAITERS)]
        await quiet(proxy, at_least=2 * WAITERS)
        before = proxy.requests

        await other.enqueue("q", b"only")
        done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        await quiet(proxy)

        assert [claim.job.payload for claim in [task.result() for task in done] if claim] == [b"only"]
        # each looks once in vain, and asks then how long to sleep
        assert proxy.requests - before <= WAITERS * 2 + 20
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert (await other.stats("q")).running == 1


async def quiet(proxy: Proxy, at_least: int = 0) -> None:
    """Return when nothing was asked through the proxy for a while, and at least so much before."""
    before = -1
    async with asyncio.timeout(60):
        while proxy.requests != before or proxy.requests < at_least:
            before = proxy.requests
            await asyncio.sleep(0.5)
