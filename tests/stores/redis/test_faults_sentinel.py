"""The master is lost or told to step back, and its replica takes over: clients find the one that the Sentinels name."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from typing import Final
from urllib.parse import urlsplit

import pytest

import windlass
from tests.redis.keys import new_prefix, with_options
from tests.redis.ports import free_port
from tests.redis.private import PrivateRedis
from tests.redis.process import Process
from tests.redis.proxy import Proxy
from tests.redis.sentinels import Sentinels
from tests.stores.redis.calls import opened
from tests.stores.redis.saying import a_server_that_says, bulk
from windlass import App, Client, Completed, NewJob, Server, ServerConfig, State, StoreReadOnly, StoreUnavailable
from windlass.core.topics import queue_topic
from windlass.stores.redis.options import Options, Place
from windlass.stores.redis.places import BySentinel
from windlass.testing.conformance.given import a_job

PATIENCE: Final = 60.0
PASSWORD: Final = "of-both"  # noqa: S105 - it guards nothing
"""Of both servers: Sentinels have none."""
SOON: Final = 10.0
SPARE: Final = 4.0
"""Seconds for a machine that has much else to do."""


@pytest.fixture(scope="module")
def sentinels() -> Iterator[Sentinels]:
    with Sentinels(conf={"appendonly": "yes", "requirepass": PASSWORD}) as sentinels:
        yield sentinels


@pytest.fixture
def url(sentinels: Sentinels) -> str:
    return with_options(sentinels.url, f"timeout=20&prefix={new_prefix()}")


@pytest.fixture
async def client(url: str) -> AsyncIterator[Client]:
    async with windlass.connect(url) as client:
        yield client


def url_of(*ports: int | None) -> str:
    """Return the URL of a store of its own, by way of Sentinels on these ports."""
    places = ",".join(f"127.0.0.1:{port}" for port in ports)
    return f"redis+sentinel://:{PASSWORD}@{places}/jobs/0?prefix={new_prefix()}"


def commands(server: PrivateRedis) -> int:
    """Return how many scripts a server has run."""
    stats = server.ask("INFO", "commandstats")
    return sum(int(stats.get(name, {"calls": 0})["calls"]) for name in ("cmdstat_evalsha", "cmdstat_eval"))


async def test_sentinels_are_asked_once_and_not_by_every_call(sentinels: Sentinels, client: Client) -> None:
    await client.enqueue("q", b"")
    before = [sentinel.ask("INFO", "stats")["total_connections_received"] for sentinel in sentinels.sentinels]

    for _ in range(20):
        await client.enqueue("q", b"")

    after = [sentinel.ask("INFO", "stats")["total_connections_received"] for sentinel in sentinels.sentinels]
    # those who ask here are counted too, and sentinels each other
    assert sum(after) - sum(before) < 15
    assert (await client.stats("q")).pending == 21


async def test_a_master_that_nobody_knows_is_told_of_at_once(sentinels: Sentinels) -> None:
    began = time.monotonic()

    with pytest.raises(
        StoreUnavailable, match="no Sentinel knows a master 'others': check the name in the URL"
    ) as told:
        await windlass.connect(sentinels.url.replace("/jobs", "/others")).open()

    assert not told.value.retryable
    assert time.monotonic() - began < SOON


@pytest.mark.parametrize("given", ["", "&sentinel_password=another-canary"], ids=["none", "another"])
async def test_sentinels_may_ask_for_a_password_of_their_own(sentinels: Sentinels, given: str) -> None:
    lines = [f"sentinel monitor jobs 127.0.0.1 {sentinels.master.port} 1"]
    with Process(program=None, conf={"requirepass": PASSWORD[::-1]}, lines=lines, flags=["--sentinel"]) as guarded:
        url = url_of(guarded.port)
        async with opened(f"{url}&sentinel_password={PASSWORD[::-1]}") as store:
            assert (await store.enqueue([a_job("q")]))[0].created
        with pytest.raises(StoreUnavailable, match="refused user or password") as told:
            await windlass.connect(f"{url}{given}").open()

    assert not told.value.retryable
    shown = f"{told.value!r} {told.value.__cause__!r}"
    assert [secret for secret in ("another-canary", PASSWORD, PASSWORD[::-1]) if secret in shown] == []


async def test_sentinels_that_are_not_there_or_say_nothing_are_passed_by(sentinels: Sentinels) -> None:
    [first, *_] = sentinels.sentinels
    async with Proxy(first.url) as silent:
        silent.hold()

        async with opened(url_of(free_port(), urlsplit(silent.url).port, first.port)) as store:
            assert (await store.enqueue([a_job("q")]))[0].created


async def test_when_no_sentinel_answers_a_call_ends_by_its_deadline(sentinels: Sentinels) -> None:
    async with AsyncExitStack() as stack:
        proxies = [await stack.enter_async_context(Proxy(sentinel.url)) for sentinel in sentinels.sentinels]
        for proxy in proxies:
            proxy.hold()
        url = url_of(*(urlsplit(proxy.url).port for proxy in proxies))
        began = time.monotonic()

        with pytest.raises(StoreUnavailable) as told:
            await windlass.connect(with_options(url, "timeout=1")).open()

    assert told.value.retryable
    assert time.monotonic() - began < 1 + SPARE


def naming(server: PrivateRedis) -> dict[bytes, bytes]:
    """Return how a Sentinel answers for whom this one is the master, whatever the others say."""
    return {b"SENTINEL": b"*2\r\n" + bulk(b"127.0.0.1") + bulk(b"%d" % server.port)}


async def test_a_sentinel_that_has_not_heard_the_news_is_not_believed(sentinels: Sentinels) -> None:
    old = sentinels.replica
    before = commands(old)
    others = [sentinel.port for sentinel in sentinels.sentinels]
    async with a_server_that_says(naming(old)) as stale, opened(url_of(urlsplit(stale).port, *others)) as store:
        # whoever only looks would never notice: a replica answers
        assert await store.stats("q") == []
        assert (await store.enqueue([a_job("q")]))[0].created

    assert commands(old) == before


async def test_a_master_that_is_none_any_more_is_told_at_the_deadline(sentinels: Sentinels) -> None:
    async with a_server_that_says(naming(sentinels.replica)) as stale:
        began = time.monotonic()
        with pytest.raises(StoreReadOnly, match="is not the master any more") as told:
            await windlass.connect(with_options(url_of(urlsplit(stale).port), "timeout=0.5")).open()

    assert told.value.retryable
    assert time.monotonic() - began < 0.5 + SPARE


async def test_many_who_look_for_the_master_together_ask_once(sentinels: Sentinels) -> None:
    async with Proxy(sentinels.sentinels[0].url) as proxy:
        place = Place("127.0.0.1", urlsplit(proxy.url).port or 0)
        places = BySentinel(Options("sentinel", (place,), master=sentinels.name))
        deadline = asyncio.get_running_loop().time() + PATIENCE

        found = await asyncio.gather(*(places.find("any", deadline) for _ in range(50)))

        assert (set(found), proxy.requests) == ({Place("127.0.0.1", sentinels.master.port)}, 1)


async def test_a_replica_that_is_named_as_a_server_takes_no_writes(
    sentinels: Sentinels, client: Client, url: str
) -> None:
    await client.enqueue("q", b"")
    options = url.partition("?")[2].replace("timeout=20", "timeout=0.5")
    sentinels.master.ask("WAIT", 1, 5000)

    async with opened(f"{sentinels.replica.url}?{options}") as replica:
        with pytest.raises(StoreReadOnly, match="name the master in the URL"):
            await replica.enqueue([a_job("q")])


@pytest.mark.parametrize("killed", [True, False], ids=["killed", "told to"])
async def test_a_server_finishes_all_its_jobs_after_a_failover_and_none_is_charged_for_it(
    sentinels: Sentinels, url: str, killed: object
) -> None:
    begun = asyncio.Semaphore(0)
    may_end = asyncio.Event()
    app = App(with_options(url, "wait=1"), lease=PATIENCE)

    @app.job
    async def through_it_all() -> None:
        begun.release()
        await may_end.wait()

    @app.job
    async def at_once() -> None:
        pass

    async with asyncio.timeout(PATIENCE), app, Server(app, ServerConfig(concurrency=10, rescue_interval=0.2)):
        kinds = ["through_it_all"] * 5 + ["at_once"] * 50
        jobs = await app.client.enqueue_many([NewJob("default", {}, kind=kind) for kind in kinds])
        for _ in range(5):
            await begun.acquire()
        for job in jobs[5:]:
            assert isinstance(await app.client.wait(job.id), Completed)

        await asyncio.to_thread(sentinels.kill_master if killed else sentinels.failover)
        await asyncio.to_thread(sentinels.wait_until_promoted)
        # an old master comes back as a replica; every write waits for one
        await asyncio.to_thread(sentinels.join)
        jobs += await app.client.enqueue_many([NewJob("default", {}, kind="at_once")] * 20)
        may_end.set()
        for job in jobs:
            assert isinstance(await app.client.wait(job.id), Completed)
        found = [await app.client.get(job.id) for job in jobs]
        totals = (await app.client.stats()).totals

        # who was there listens to the new one, and so does who comes now
        heard = asyncio.Event()
        stop = app.client.store.listen([queue_topic("heard")], heard.set)
        async with windlass.connect(url) as other:
            heard.clear()
            await other.enqueue("heard", b"")
            async with asyncio.timeout(SOON):
                await heard.wait()
            assert (await other.stats("default")).succeeded == 75
        stop()

    assert {(job.state, job.attempt, job.delivery) for job in found if job} == {(State.SUCCEEDED, 1, 1)}
    assert (len(found), totals.succeeded, totals.rescued) == (75, 75, 0)


async def test_the_store_is_used_while_all_sentinels_are_gone(sentinels: Sentinels, url: str) -> None:
    async with opened(url) as store:
        await store.enqueue([a_job("q")])
        for sentinel in sentinels.sentinels:
            sentinel.stop()
        try:
            await store.enqueue([a_job("q")])
            [stats] = await store.stats("q")
        finally:
            for sentinel in sentinels.sentinels:
                sentinel.start()

    assert stats.pending == 2
