"""A Cluster that changes under those who work: a slot moves, nobody has it, its master is killed, a node is away."""

import asyncio
import time
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import urlsplit

import pytest

import windlass
from tests.redis.keys import new_prefix, prefix_of, with_options
from tests.redis.ports import free_port
from tests.redis.private import PrivateRedis
from tests.redis.private_cluster import PrivateCluster
from tests.redis.proxy import Proxy
from tests.stores.redis.calls import opened
from windlass import App, Client, Completed, NewJob, Server, ServerConfig, State, StoreUnavailable
from windlass.stores.redis import runner
from windlass.testing.conformance.given import a_job

PATIENCE: Final = 60.0
SOON: Final = 10.0
SPARE: Final = 4.0
"""Seconds for a machine that has much else to do."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[PrivateCluster]:
    with PrivateCluster(replicas=1) as cluster:
        yield cluster


@pytest.fixture
def url(cluster: PrivateCluster) -> str:
    return with_options(cluster.url, f"timeout=30&prefix={new_prefix()}")


@pytest.fixture
async def client(url: str) -> AsyncIterator[Client]:
    async with windlass.connect(url) as client:
        yield client


def slot_of(cluster: PrivateCluster, url: str) -> int:
    return cluster.slot_of(f"{{{prefix_of(url)}}}|")


async def test_a_slot_that_has_moved_is_followed(cluster: PrivateCluster, client: Client, url: str) -> None:
    slot = slot_of(cluster, url)
    waiting = asyncio.create_task(client.claim("later", wait=PATIENCE))
    ids = [(await client.enqueue("q", b"%d" % number)).id for number in range(10)]
    claim = await client.claim("q", lease=600)
    assert claim is not None

    for _ in range(2):
        to = cluster.another_master(slot)
        await asyncio.to_thread(cluster.move_slot, slot, to)
        await client.renew(claim)
        ids.append((await client.enqueue("q", b"after")).id)

    await client.ack(claim)
    claims = await client.claim_many("q", limit=100)
    assert [claim.job.id, *(each.job.id for each in claims)] == ids
    # who hears does so wherever the slot is
    async with windlass.connect(url) as other:
        await other.enqueue("later", b"")
    assert await asyncio.wait_for(waiting, SOON) is not None


@contextmanager
def in_motion(cluster: PrivateCluster, slot: int, *keys: str) -> Generator[PrivateRedis]:
    """Open a slot for its move, with some of its keys on their way; in the end all have arrived."""
    to = cluster.another_master(slot)
    cluster.begin_move(slot, to)
    try:
        if keys:
            cluster.move_keys(slot, to, *keys)
        yield to
    finally:
        cluster.move_keys(slot, to)
        cluster.end_move(slot, to)


@pytest.mark.parametrize("moved", [[], ["meta"], ["seq", "queues", "jobs|q"]], ids=["none", "one", "some"])
async def test_a_slot_in_motion_is_waited_for_and_nobody_sees_half_of_a_store(
    cluster: PrivateCluster, client: Client, url: str, moved: list[str]
) -> None:
    slot = slot_of(cluster, url)
    await client.enqueue_many([NewJob("q", b"%d" % number) for number in range(5)])
    claim = await client.claim("q", lease=600)
    assert claim is not None
    # who gets the slot knows all scripts: nothing but its own answer keeps it from running them on what it has
    await teach(cluster, url)
    names = [f"{{{prefix_of(url)}}}|{name}" for name in moved]

    async with windlass.connect(url.replace("timeout=30", "timeout=0.5")) as hurried:
        with in_motion(cluster, slot, *names) as to:
            calls: list[asyncio.Future[Any]] = [
                asyncio.ensure_future(client.enqueue("q", b"in motion")),
                asyncio.ensure_future(client.ack(claim)),
                asyncio.ensure_future(client.stats("q")),
            ]
            with pytest.raises(StoreUnavailable, match="is moving the slot of these keys") as told:
                await hurried.enqueue("q", b"")
            assert [call.done() for call in calls] == [False] * 3
            assert sorted(to.ask("CLUSTER", "GETKEYSINSLOT", slot, 1000)) == sorted(names)
        await asyncio.gather(*calls)

    assert told.value.retryable
    stats = await client.stats("q")
    assert (stats.pending, stats.succeeded, stats.totals.enqueued) == (5, 1, 6)
    claims = await client.claim_many("q", limit=10)
    assert [each.job.payload for each in claims] == [b"1", b"2", b"3", b"4", b"in motion"]


async def teach(cluster: PrivateCluster, url: str) -> None:
    """Let every master know the scripts."""
    options = url.partition("?")[2].replace(prefix_of(url), "{}")
    slots = {slot_of(cluster, url)}
    while len({cluster.master_of(slot) for slot in slots}) < 3:
        other = f"{cluster.url}?{options.format(new_prefix())}"
        slots.add(slot_of(cluster, other))
        async with windlass.connect(other) as client:
            await client.enqueue("q", b"")
            claim = await client.claim("q")
            assert claim is not None
            await client.ack(claim)
            await client.stats("q")


async def test_a_slot_that_nobody_has_is_waited_for(cluster: PrivateCluster, client: Client, url: str) -> None:
    await client.enqueue("q", b"first")
    slot = slot_of(cluster, url)
    had_it = cluster.master_of(slot)
    with cluster.without_slot(slot):
        began = time.monotonic()
        call = asyncio.ensure_future(client.enqueue("q", b"second"))
        with pytest.raises(StoreUnavailable, match=r"has no server for these keys: .*look whether all") as told:
            await windlass.connect(
                f"redis+cluster://127.0.0.1:{had_it.port}?timeout=0.5&prefix={prefix_of(url)}"
            ).open()
        took = time.monotonic() - began
        assert not call.done()
    await call

    assert told.value.retryable
    assert took < 0.5 + SPARE
    assert [claim.job.payload for claim in await client.claim_many("q", limit=10)] == [b"first", b"second"]


async def test_a_server_works_on_when_a_replica_takes_over(cluster: PrivateCluster, url: str) -> None:
    slot = slot_of(cluster, url)
    begun, may_end = asyncio.Event(), asyncio.Event()
    app = App(with_options(url, "wait=1"), lease=PATIENCE)

    @app.job
    async def through_it_all() -> None:
        begun.set()
        await may_end.wait()

    @app.job
    async def at_once() -> None:
        pass

    async with asyncio.timeout(PATIENCE), app, Server(app, ServerConfig(rescue_interval=0.2)):
        jobs = await app.client.enqueue_many([NewJob("default", {}, kind="at_once")] * 10)
        jobs.append(await app.client.enqueue("default", {}, kind="through_it_all"))
        await begun.wait()
        for job in jobs[:-1]:
            assert isinstance(await app.client.wait(job.id), Completed)

        killed = await asyncio.to_thread(cluster.kill_master, slot)
        enqueue = asyncio.create_task(app.client.enqueue("default", {}, kind="at_once"))
        await asyncio.to_thread(cluster.wait_until_replaced, killed)
        # it comes back as a replica; every write waits for one
        await asyncio.to_thread(cluster.join, killed)
        jobs.append(await enqueue)
        may_end.set()
        for job in jobs:
            assert isinstance(await app.client.wait(job.id), Completed)
        found = [await app.client.get(job.id) for job in jobs]
        totals = (await app.client.stats()).totals
        # who listens does so where the slot is now
        while not await is_heard(app.client):
            pass

    assert {(job.state, job.attempt, job.delivery) for job in found if job} == {(State.SUCCEEDED, 1, 1)}
    assert (len(found), totals.succeeded, totals.rescued) == (12, 12, 0)


async def is_heard(client: Client) -> bool:
    return any(finding.name == "news" and finding.level == "ok" for finding in await client.store.check())


@pytest.mark.parametrize("spread", ["", "&spread=queues"], ids=["one tag", "spread"])
async def test_nodes_of_the_url_that_are_not_there_are_passed_by(
    cluster: PrivateCluster, url: str, spread: str
) -> None:
    there = cluster.url.removeprefix("redis+cluster://")
    options = f"{url.partition('?')[2]}{spread}"

    async with opened(f"redis+cluster://127.0.0.1:{free_port()},127.0.0.1:1,{there}?{options}") as store:
        for number in range(5):
            assert (await store.enqueue([a_job(f"q{number}")]))[0].created
        assert len(await store.stats()) == 5


async def test_a_node_that_says_nothing_is_passed_by_in_time(
    cluster: PrivateCluster, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "ONE_OF_SEVERAL", 0.2)
    there = cluster.url.removeprefix("redis+cluster://")
    async with Proxy(cluster.servers[0].url) as silent:
        silent.hold()
        silent_url = f"redis+cluster://127.0.0.1:{urlsplit(silent.url).port},{there}?prefix={prefix_of(url)}&timeout=5"

        async with opened(silent_url) as store:
            assert (await store.enqueue([a_job("q")]))[0].created


async def test_the_node_that_has_the_keys_is_looked_at_before_the_first_job(cluster: PrivateCluster, url: str) -> None:
    has_it = cluster.master_of(slot_of(cluster, url))
    has_it.ask("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    try:
        with pytest.raises(StoreUnavailable, match="allkeys-lru"):
            await windlass.connect(url).open()
    finally:
        has_it.ask("CONFIG", "SET", "maxmemory-policy", "noeviction")


async def test_a_replica_that_is_named_first_leads_to_its_master(cluster: PrivateCluster, url: str) -> None:
    slot = slot_of(cluster, url)
    [replica] = [server for server in cluster.servers if follows(server, cluster.master_of(slot))]

    async with opened(f"redis+cluster://127.0.0.1:{replica.port}?{url.partition('?')[2]}") as store:
        assert (await store.enqueue([a_job("q")]))[0].created
        assert (await store.stats("q"))[0].pending == 1


def follows(server: PrivateRedis, master: PrivateRedis) -> bool:
    role: list[object] = server.ask("ROLE")
    return role[:3] == ["slave", "127.0.0.1", master.port]
