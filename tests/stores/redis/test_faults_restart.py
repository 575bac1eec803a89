"""The server is stopped, killed, hangs up on everybody, under those who work: they go on by themselves."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Final

import pytest

import windlass
from proofs.children import eventually
from tests.redis.keys import new_prefix, with_options
from tests.redis.private import DURABLE, PrivateRedis
from windlass import App, Client, Completed, Server, ServerConfig, State
from windlass.connect import open_store
from windlass.core.topics import queue_topic
from windlass.kit.timeout_option import SHORTEST
from windlass.testing.clock import FakeClock, turns
from windlass.testing.conformance.given import HOUR
from windlass.testing.conformance.served import serving
from windlass.testing.conformance.watched_store import WatchedStore

SOON: Final = 5.0
SPARE: Final = 5.0
"""Seconds for a machine that has much else to do."""
PATIENCE: Final = 60.0
LONGEST_PAUSE: Final = 30.0
"""Seconds between two tries of a service, when many have failed."""
OUTAGE: Final = 200.0
STEP: Final = 5.0


@pytest.fixture(scope="module")
def private() -> Iterator[PrivateRedis]:
    with PrivateRedis(conf=DURABLE) as private:
        yield private


@pytest.fixture
def url(private: PrivateRedis) -> str:
    return with_options(private.url, f"prefix={new_prefix()}")


@pytest.fixture
async def client(url: str) -> AsyncIterator[Client]:
    async with windlass.connect(url) as client:
        yield client


def restart(private: PrivateRedis) -> None:
    private.restart()


def kill(private: PrivateRedis) -> None:
    private.kill()
    private.start()


def hang_up(private: PrivateRedis) -> None:
    """End every connection, also those that hear."""
    ended = [private.ask("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes") for kind in ("normal", "pubsub")]
    assert min(ended) > 0


@pytest.mark.parametrize("fault", [restart, kill, hang_up])
async def test_a_server_works_on_and_no_job_runs_again(
    private: PrivateRedis, url: str, fault: Callable[[PrivateRedis], None]
) -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()
    app = App(url, lease=60)

    @app.job
    async def through_it_all() -> str:
        begun.set()
        await may_end.wait()
        return "done"

    @app.job
    async def at_once() -> None:
        pass

    async with asyncio.timeout(PATIENCE), app, Server(app, ServerConfig(rescue_interval=0.2)):
        running = await app.client.enqueue("default", {}, kind="through_it_all")
        later = await app.client.enqueue("default", {}, kind="at_once", delay=0.1)
        await begun.wait()
        await listens(private)

        await asyncio.to_thread(fault, private)
        back_at = time.monotonic()
        fresh = await app.client.enqueue("default", {}, kind="at_once")
        for job in (fresh, later):
            assert isinstance(await app.client.wait(job.id), Completed)
        took = time.monotonic() - back_at
        may_end.set()
        assert isinstance(await app.client.wait(running.id), Completed)
        jobs = [await app.client.get(each.id) for each in (running, later, fresh)]

    assert took < SOON + SPARE
    assert [(job.state, job.attempt, job.delivery) for job in jobs if job] == [(State.SUCCEEDED, 1, 1)] * 3
    async with windlass.connect(url) as client:
        assert await client.store.servers() == []
        assert (await client.stats()).totals.rescued == 0


async def listens(private: PrivateRedis) -> None:
    """Return when somebody hears."""
    assert await asyncio.to_thread(eventually, lambda: private.ask("CLIENT", "LIST", "TYPE", "pubsub") != "", SOON)


@pytest.mark.parametrize("fault", [restart, kill, hang_up])
async def test_what_was_acknowledged_is_there_and_what_was_claimed_can_be_settled(
    private: PrivateRedis, client: Client, fault: Callable[[PrivateRedis], None]
) -> None:
    ids = [(await client.enqueue("q", b"%d" % number)).id for number in range(20)]
    first = await client.claim("q", lease=600)
    await client.enqueue("q", b"once", unique="key")
    await client.kv.put("k", b"v")
    assert first is not None
    # somebody hears, and several connections are idle
    stop = client.store.listen([queue_topic("other")], lambda: None)
    await asyncio.gather(*(client.stats("q") for _ in range(5)))
    await listens(private)

    await asyncio.to_thread(fault, private)

    await client.renew(first)
    await client.ack(first)
    again = await client.enqueue("q", b"once", unique="key")
    claims = await client.claim_many("q", limit=100)
    stop()
    assert ([first.job.id, *(claim.job.id for claim in claims[:-1])], claims[-1].job.payload) == (ids, b"once")
    assert len({first.token, *(claim.token for claim in claims)}) == 21
    assert (again.created, await client.kv.get("k")) == (False, b"v")


@pytest.mark.parametrize("fault", [restart, kill, hang_up])
async def test_who_waits_is_woken_after_it(
    private: PrivateRedis, client: Client, url: str, fault: Callable[[PrivateRedis], None]
) -> None:
    waiting = asyncio.create_task(client.claim("q", wait=PATIENCE))
    await listens(private)

    await asyncio.to_thread(fault, private)
    async with windlass.connect(url) as other:
        began = time.monotonic()
        await other.enqueue("q", b"")
        claim = await waiting

    assert claim is not None
    assert time.monotonic() - began < SOON + SPARE


async def test_calls_that_are_made_while_the_server_is_down_are_done_when_it_is_back(
    private: PrivateRedis, client: Client
) -> None:
    await client.enqueue("q", b"")
    await asyncio.to_thread(private.kill)
    calls = [asyncio.create_task(client.enqueue("q", b"%d" % number)) for number in range(20)]
    claim = asyncio.create_task(client.claim("q"))
    await asyncio.sleep(0)

    await asyncio.to_thread(private.start)
    done = await asyncio.gather(*calls)

    assert all(each.created for each in done)
    assert await claim is not None
    assert (await client.stats("q")).totals.enqueued == 21


async def test_a_server_survives_an_outage_that_is_longer_than_its_longest_pause(
    private: PrivateRedis, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Services and workers pause by a clock that the test moves, who hears news by the real one."""
    clock = FakeClock()
    store: Any = WatchedStore(open_store(with_options(url, f"timeout={SHORTEST}"), clock=clock))
    app, patient = App(store, clock=clock, lease=HOUR), App(open_store(url, clock=clock), clock=clock)
    begun, may_end = asyncio.Event(), asyncio.Event()

    @app.job
    async def through_it_all() -> None:
        begun.set()
        await may_end.wait()

    @app.job
    async def at_once() -> None: ...

    async def goes_by(seconds: float) -> None:
        """Let whoever is woken try, and go to sleep again."""
        for _ in range(round(seconds / STEP)):
            await turns()
            while store.calls:  # noqa: ASYNC110 - nobody tells of every end
                await asyncio.sleep(0.001)
            clock.advance(STEP)

    async with asyncio.timeout(PATIENCE), patient, app:
        client = patient.client
        orphan = await client.enqueue("default", {}, kind="at_once")
        assert await client.claim("default", lease=LONGEST_PAUSE) is not None
        async with serving(app) as server:
            running = await client.enqueue("default", {}, kind="through_it_all")
            due_meanwhile = await client.enqueue("default", {}, kind="at_once", delay=LONGEST_PAUSE)
            await begun.wait()

            await asyncio.to_thread(private.kill)
            await goes_by(OUTAGE)
            assert any("has not answered a claim" in reason for reason in server.health().reasons)
            await asyncio.to_thread(private.start)
            fresh = await client.enqueue("default", {}, kind="at_once")
            may_end.set()
            await goes_by(2 * LONGEST_PAUSE)

            ends = [await client.wait(job.id) for job in (orphan, running, due_meanwhile, fresh)]
            assert server.health().ready

    assert [(end.job.state, end.job.delivery) for end in ends if isinstance(end, Completed) and end.job] == [
        (State.SUCCEEDED, deliveries) for deliveries in (2, 1, 1, 1)
    ]
    assert "cannot claim (7 times in a row)" in caplog.text
    assert "rescuer failed 7 times in a row" in caplog.text


@pytest.fixture(scope="module")
def careless() -> Iterator[PrivateRedis]:
    """One that keeps nothing."""
    with PrivateRedis() as careless:
        yield careless


async def test_a_claim_that_a_server_has_forgotten_is_lost_and_never_settles_another(careless: PrivateRedis) -> None:
    """No token is given out twice, whatever the server has lost."""
    tokens: set[str] = set()
    for _ in range(3):
        async with windlass.connect(careless.url) as client:
            done = await client.enqueue("q", b"", id="01900000-0000-7000-8000-000000000000")
            claim = await client.claim("q", lease=600)
            assert claim is not None
            tokens.add(claim.token)

            await asyncio.to_thread(careless.kill)
            await asyncio.to_thread(careless.start)

            await client.enqueue("q", b"", id=done.id)
            current = await client.claim("q", lease=600)
            assert current is not None
            with pytest.raises(windlass.ClaimLost):
                await client.ack(claim)
            await client.ack(current)
            assert (await client.stats("q")).totals.succeeded == 1
            tokens.add(current.token)
            careless.ask("FLUSHALL")

    assert len(tokens) == 6
