import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Collection
from datetime import timedelta
from typing import Any

import pytest

import windlass
from tests.client.rated_store import RatedStore
from windlass import App, ClaimLost, Client, InvalidValue, QueueSettings, State
from windlass.core.job import Claim
from windlass.core.requests import Claimed, ClaimRequest
from windlass.core.topics import Topic
from windlass.testing import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def client(clock: FakeClock) -> AsyncIterator[Client]:
    async with windlass.connect("memory://", clock=clock) as client:
        yield client


async def asleep(task: asyncio.Task[object], clock: FakeClock) -> None:
    await clock.timers(1)
    assert not task.done()


async def test_a_waiting_claim_wakes_when_a_job_comes(client: Client, clock: FakeClock) -> None:
    waiting = asyncio.create_task(client.claim("email", wait=60))
    await asleep(waiting, clock)

    done = await client.enqueue("email")

    claim = await waiting
    assert claim is not None
    assert claim.job.id == done.id


async def test_a_waiting_claim_wakes_when_a_job_comes_due(client: Client, clock: FakeClock) -> None:
    done = await client.enqueue("email", delay=10)
    waiting = asyncio.create_task(client.claim("email", wait=60))
    await asleep(waiting, clock)

    clock.advance(10)

    claim = await waiting
    assert claim is not None
    assert claim.job.id == done.id


@pytest.fixture
def rated(clock: FakeClock) -> RatedStore:
    return RatedStore(clock)


async def test_a_waiting_claim_is_tried_again_when_the_store_has_said(rated: RatedStore, clock: FakeClock) -> None:
    async with App(rated, clock=clock) as app:
        done = await app.client.enqueue("email")
        rated.open_in(7)
        waiting = asyncio.create_task(app.client.claim_many(["email", "sms"], lease=5, wait=20))
        await asleep(waiting, clock)

        clock.advance(7)

        [claim] = await waiting
    assert claim.job.id == done.id
    assert rated.refused == 1


async def test_a_waiting_claim_is_not_tried_without_end_when_the_clocks_differ(
    rated: RatedStore, clock: FakeClock
) -> None:
    rated.own_clock = FakeClock(clock.now() - timedelta(seconds=8))
    rated.open_in(7)
    async with App(rated, clock=clock) as app:
        waiting = asyncio.create_task(app.client.claim("email", wait=1))
        for _ in range(10):
            await asleep(waiting, clock)
            clock.advance(0.1)

        assert await waiting is None
    assert rated.refused == 11


async def test_a_waiting_claim_ends_with_its_time(client: Client, clock: FakeClock) -> None:
    waiting = asyncio.create_task(client.claim("email", wait=5))
    await asleep(waiting, clock)

    clock.advance(5)

    assert await waiting is None


async def test_the_close_ends_a_waiting_claim(client: Client, clock: FakeClock) -> None:
    waiting = asyncio.create_task(client.claim("email", wait=60))
    await asleep(waiting, clock)

    await client.close()

    with pytest.raises(windlass.ClientClosed):
        await waiting


async def test_many_wait_and_each_job_goes_to_one(client: Client, clock: FakeClock) -> None:
    waiting = [asyncio.create_task(client.claim("email", wait=60)) for _ in range(5)]
    await clock.timers(5)

    await client.enqueue_many([windlass.NewJob("email") for _ in range(5)])

    claims = await asyncio.gather(*waiting)
    assert len({claim.job.id for claim in claims if claim is not None}) == 5


async def test_claims_come_strictly_in_the_order_of_queues_also_when_leases_differ(clock: FakeClock) -> None:
    long = QueueSettings(lease=300)
    async with windlass.connect("memory://", clock=clock, queues={"long": long}) as client:
        for queue in ("b", "long", "a"):
            await client.enqueue_many([windlass.NewJob(queue), windlass.NewJob(queue)])

        claims = await client.claim_many(["a", "long", "b"], limit=5)

    assert [claim.job.queue for claim in claims] == ["a", "a", "long", "long", "b"]
    assert [_lease(claim) for claim in claims] == [30, 30, 300, 300, 30]


async def test_a_given_lease_holds_for_all_queues(client: Client) -> None:
    await client.enqueue("a")
    await client.enqueue("b")

    claims = await client.claim_many(["a", "b"], limit=2, lease=timedelta(seconds=7))

    assert [_lease(claim) for claim in claims] == [7, 7]


async def test_a_claim_names_its_worker(clock: FakeClock) -> None:
    async with windlass.connect("memory://", clock=clock, worker="press-1") as client:
        await client.enqueue("email")

        claim = await client.claim("email")

    assert claim is not None
    assert claim.job.worker == "press-1"


async def test_what_comes_after_the_caller_has_gone_is_given_back(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = await client.enqueue("email")
    begun, go_on = asyncio.Event(), asyncio.Event()
    claim_now = client.store.claim

    async def slow(request: ClaimRequest, *, request_id: str | None = None) -> Claimed:
        begun.set()
        await go_on.wait()
        return await claim_now(request, request_id=request_id)

    monkeypatch.setattr(client.store, "claim", slow)
    caller = asyncio.create_task(client.claim("email"))
    await begun.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller

    go_on.set()
    await client.close()

    [job] = await client.store.get([done.id])
    assert job is not None
    assert (job.state, job.attempt, job.delivery) == (State.PENDING, 0, 1)


async def test_what_was_claimed_from_the_first_queue_is_given_back_when_the_second_fails(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with windlass.connect("memory://", clock=clock, queues={"b": QueueSettings(lease=5)}) as client:
        done = await client.enqueue("a")
        claim_now = client.store.claim

        async def broken(request: ClaimRequest, *, request_id: str | None = None) -> Claimed:
            if "b" in request.queues:
                raise windlass.StoreUnavailable("gone", retryable=True)
            return await claim_now(request, request_id=request_id)

        monkeypatch.setattr(client.store, "claim", broken)
        with pytest.raises(windlass.StoreUnavailable):
            await client.claim_many(["a", "b"], limit=2)

    [job] = await client.store.get([done.id])
    assert job is not None
    assert (job.state, job.attempt) == (State.PENDING, 0)


async def test_listening_comes_before_looking_and_ends_with_the_call(
    client: Client, monkeypatch: pytest.MonkeyPatch, clock: FakeClock
) -> None:
    steps: list[str] = []
    listen_now, claim_now = client.store.listen, client.store.claim

    def listen(topics: Collection[Topic], ring: Callable[[], None]) -> Callable[[], None]:
        steps.append("listen")
        stop_now = listen_now(topics, ring)

        def stop() -> None:
            steps.append("stop")
            stop_now()

        return stop

    async def claim(request: ClaimRequest, *, request_id: str | None = None) -> Claimed:
        steps.append("look")
        return await claim_now(request, request_id=request_id)

    monkeypatch.setattr(client.store, "listen", listen)
    monkeypatch.setattr(client.store, "claim", claim)
    waiting = asyncio.create_task(client.claim("email", wait=5))
    await asleep(waiting, clock)
    clock.advance(5)
    await waiting

    assert steps == ["listen", "look", "look", "stop"]


async def test_stranded_leases_are_said_once(
    client: Client, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    await client.enqueue("email")
    await client.claim("email", lease=1)
    clock.advance(60)

    with caplog.at_level(logging.WARNING, "windlass"):
        for _ in range(5):
            await client.claim("email")
            clock.advance(11)

    [record] = caplog.records
    assert record.getMessage().startswith("1 leases have run out and no server is alive to rescue them")


async def test_stranded_leases_are_looked_for_at_most_every_ten_seconds(
    client: Client, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[timedelta] = []

    async def stranded(*, dead_after: timedelta) -> int:
        looks.append(dead_after)
        return 0

    monkeypatch.setattr(client.store, "stranded", stranded)
    for _ in range(21):
        await client.claim("email")
        clock.advance(1)

    assert len(looks) == 3


async def test_the_services_of_a_client_run_at_the_intervals_that_it_is_given(clock: FakeClock) -> None:
    given: Any = {"rescue_interval": 0.5, "prune_interval": 7, "heartbeat_interval": timedelta(seconds=3)}
    async with windlass.connect("memory://", clock=clock, services=True, **given) as client:
        await clock.timers(4)

        await client.enqueue("email", b"")
        claim = await client.claim("email", lease=0.1)
        assert claim is not None
        clock.advance(0.5)
        assert await client.claim("email", wait=1) is not None

        with pytest.raises(ClaimLost):
            await client.ack(claim)


@pytest.mark.parametrize("name", ["rescue_interval", "prune_interval", "heartbeat_interval"])
def test_an_interval_of_services_that_would_do_nothing_is_refused(name: str) -> None:
    given: Any = {name: 1}
    zero: Any = {name: 0}

    with pytest.raises(InvalidValue, match=f"{name} changes nothing without services=True"):
        windlass.connect("memory://", **given)
    with pytest.raises(InvalidValue, match=f"{name} must be greater than zero"):
        windlass.connect("memory://", services=True, **zero)


async def test_a_client_with_services_rescues_by_itself_and_warns_of_nothing(
    clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    async with windlass.connect("memory://", clock=clock, services=True) as client:
        done = await client.enqueue("email")
        await client.claim("email", lease=1)
        waiting = asyncio.create_task(client.claim("email", wait=60))
        # four services, and the one who waits
        await clock.timers(5)

        clock.advance(5)

        claim = await waiting
        [server] = await client.store.servers()
    assert claim is not None
    assert claim.job.id == done.id
    assert claim.job.delivery == 2
    assert "no server is alive" not in caplog.text
    assert server.id.startswith(f"{server.name}#")
    assert await client.store.servers() == []


def _lease(claim: Claim) -> float:
    assert claim.job.lease_expires_at is not None
    assert claim.job.claimed_at is not None
    return (claim.job.lease_expires_at - claim.job.claimed_at).total_seconds()


async def close_at(turns: int) -> None:
    """Close a client so many turns of the loop after the caller of a claim has gone."""
    async with windlass.connect("memory://") as client:
        waiting = asyncio.create_task(client.claim("q", wait=60))
        await asyncio.sleep(0)
        waiting.cancel()
        for _ in range(turns):
            await asyncio.sleep(0)


@pytest.mark.parametrize("turns", range(12))
def test_a_client_closes_at_any_moment_after_a_caller_has_gone(turns: int) -> None:
    # in a thread: a loop that never yields could not be ended by a timeout of its own
    closing = threading.Thread(target=lambda: asyncio.run(close_at(turns)), daemon=True)
    closing.start()

    closing.join(20)

    assert not closing.is_alive()
