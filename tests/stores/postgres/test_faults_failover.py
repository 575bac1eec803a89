"""The primary is lost and its standby takes over, while the store is in use: clients find the one that writes."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator
from typing import Final, Literal

import pytest

import windlass
from proofs.children import eventually
from tests.postgres.pair import Pair, run_on, url_of
from tests.postgres.private import PrivateCluster
from windlass import App, Client, Completed, NewJob, Server, ServerConfig, State
from windlass.core.topics import queue_topic
from windlass.stores.postgres.connections import Connections
from windlass.stores.postgres.listener import Listener
from windlass.stores.postgres.options import Options

PATIENCE: Final = 60.0
SOON: Final = 10.0
"""Seconds for what takes one, on a machine that has much else to do."""


@pytest.fixture(scope="module")
def both() -> Iterator[Pair]:
    with Pair(synchronous=True, conf={"fsync": "off"}) as pair:
        yield pair


@pytest.fixture
def pair(both: Pair) -> Iterator[Pair]:
    """Two servers for one failover; the next test finds them whole again."""
    before = both.primary
    yield both
    if both.primary is not before:
        both.join()


@pytest.fixture
def url(pair: Pair) -> str:
    """A store that is not there yet; the server that is the primary now stands first."""
    return f"{url_of(pair.primary, pair.standby)}?schema=test_{secrets.token_hex(6)}"


@pytest.fixture
async def client(url: str) -> AsyncIterator[Client]:
    async with windlass.connect(url) as client:
        await client.stats()
        yield client


@pytest.fixture
async def other(client: Client, url: str) -> AsyncIterator[Client]:  # noqa: ARG001 - who has made the schema
    """Another process, for all that the database knows."""
    async with windlass.connect(url) as other:
        yield other


def fail_over(pair: Pair, mode: Literal["immediate", "kill"] = "kill") -> None:
    pair.fence(mode)
    pair.promote()


def fail_over_softly(pair: Pair) -> None:
    """Let the standby take over from a primary that stays and keeps its sessions, but takes no writes."""
    pair.refuse_writes()
    pair.promote()


def sessions(server: PrivateCluster, like: str = "%") -> int:
    """Return how many sessions of Windlass a server has, whose last statement was like that."""
    [(count,)] = run_on(
        server, "select count(*) from pg_stat_activity where application_name = 'windlass' and query ilike %s", like
    )
    return int(count)


async def comes_to_listen(server: PrivateCluster) -> bool:
    return await asyncio.to_thread(eventually, lambda: sessions(server, "listen %") == 1, PATIENCE, 0.02)


@pytest.mark.parametrize("mode", ["immediate", "kill"])
async def test_a_store_goes_on_with_the_standby(pair: Pair, client: Client, mode: Literal["immediate", "kill"]) -> None:
    await client.enqueue("q", b"before")

    await asyncio.to_thread(fail_over, pair, mode)
    await client.enqueue("q", b"after")
    claims = await client.claim_many("q", limit=10)
    for claim in claims:
        await client.ack(claim)

    assert [claim.job.payload for claim in claims] == [b"before", b"after"]
    assert (await client.stats("q")).succeeded == 2


async def test_a_claim_of_before_is_renewed_and_settled_after(pair: Pair, client: Client) -> None:
    done = await client.enqueue("q", b"")
    claim = await client.claim("q", lease=PATIENCE)
    assert claim is not None

    await asyncio.to_thread(fail_over, pair)
    await client.renew(claim, PATIENCE)
    await client.ack(claim)

    job = await client.get(done.id)
    assert job is not None
    assert (job.state, job.attempt, job.delivery) == (State.SUCCEEDED, 1, 1)


async def test_a_listener_hears_again(pair: Pair, client: Client, other: Client) -> None:
    rung = asyncio.Event()
    stop = client.store.listen([queue_topic("q")], rung.set)
    assert await comes_to_listen(pair.primary)

    await asyncio.to_thread(fail_over, pair)
    assert await comes_to_listen(pair.primary)
    # those who listen are rung once when the session is there; what comes now is told by a notification alone
    rung.clear()
    await other.enqueue("q", b"")
    async with asyncio.timeout(SOON):
        await rung.wait()
    stop()


async def test_an_old_primary_that_returns_read_only_gets_no_writes(pair: Pair, client: Client, url: str) -> None:
    await client.enqueue("q", b"before")
    await asyncio.to_thread(fail_over, pair)

    # it is the first of the URL
    await asyncio.to_thread(pair.return_read_only)
    await client.enqueue("q", b"by one who was there")
    async with windlass.connect(url) as fresh:
        await fresh.enqueue("q", b"by one who comes now")
        assert (await fresh.stats("q")).pending == 3

    async with windlass.connect(f"{url_of(pair.standby)}?{url.partition('?')[2]}&target_session_attrs=any") as old:
        assert (await old.stats("q")).pending == 1


@pytest.mark.parametrize("attribute", ["", "&target_session_attrs=read-write", "&target_session_attrs=primary"])
async def test_a_standby_that_is_named_first_is_passed_by(pair: Pair, attribute: str) -> None:
    schema = f"schema=test_{secrets.token_hex(6)}"

    async with windlass.connect(f"{url_of(pair.standby, pair.primary)}?{schema}{attribute}") as client:
        await client.enqueue("q", b"")

        assert (await client.stats("q")).pending == 1


async def test_sessions_with_a_server_that_no_longer_takes_writes_are_dropped(pair: Pair, client: Client) -> None:
    await asyncio.gather(*(client.stats(f"q{number}") for number in range(5)))
    old = pair.primary
    assert await asyncio.to_thread(sessions, old) > 1

    await asyncio.to_thread(fail_over_softly, pair)
    await client.enqueue("q", b"")

    assert (await client.stats("q")).pending == 1
    assert await asyncio.to_thread(eventually, lambda: sessions(old) == 0, SOON)


async def test_one_answer_of_a_server_that_no_longer_takes_writes_ends_the_older_sessions_too(pair: Pair) -> None:
    connections = Connections(Options(url_of(pair.primary, pair.standby)))
    deadline = asyncio.get_running_loop().time() + PATIENCE
    older, newer = await connections.take(deadline), await connections.take(deadline)
    connections.give(older)
    connections.give(newer)

    await asyncio.to_thread(fail_over_softly, pair)
    async with connections.session(deadline) as session:
        await session.fetch("answer")
        assert session is newer

    assert (older.closed, newer.closed) == (True, True)
    await connections.close()


async def test_who_only_looks_leaves_a_server_that_no_longer_takes_writes(
    pair: Pair, client: Client, other: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Listener, "check_after", 0.2)
    done = await client.enqueue("q", b"")
    claim = await other.claim("q", lease=PATIENCE)
    assert claim is not None
    waiting = asyncio.create_task(client.wait(done.id))
    assert await comes_to_listen(pair.primary)

    await asyncio.to_thread(fail_over_softly, pair)
    await other.ack(claim)

    async with asyncio.timeout(SOON):
        assert isinstance(await waiting, Completed)
        # one look may still tell what was true when the old one took its last write
        await client.stats("q")
        assert (await client.stats("q")).succeeded == 1


async def test_a_listener_leaves_a_server_that_no_longer_takes_writes(
    pair: Pair, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Listener, "check_after", 0.2)
    stop = client.store.listen([queue_topic("q")], lambda: None)
    assert await comes_to_listen(pair.primary)
    old = pair.primary

    await asyncio.to_thread(fail_over_softly, pair)

    assert await comes_to_listen(pair.primary)
    assert await asyncio.to_thread(sessions, old, "listen %") == 0
    stop()


async def test_a_server_finishes_all_its_jobs_and_none_is_charged_for_it(pair: Pair, url: str) -> None:
    begun = asyncio.Semaphore(0)
    may_end = asyncio.Event()
    app = App(url, lease=PATIENCE)

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

        await asyncio.to_thread(fail_over, pair)
        jobs += await app.client.enqueue_many([NewJob("default", {}, kind="at_once")] * 20)
        may_end.set()
        for job in jobs:
            assert isinstance(await app.client.wait(job.id), Completed)
        found = [await app.client.get(job.id) for job in jobs]
        totals = (await app.client.stats()).totals

    assert {(job.state, job.attempt, job.delivery) for job in found if job} == {(State.SUCCEEDED, 1, 1)}
    assert (len(found), totals.succeeded, totals.rescued) == (75, 75, 0)


async def test_what_no_replica_has_is_not_told_as_done_by_whoever_repeats_the_call(pair: Pair, client: Client) -> None:
    pair.standby.stop("fast")
    enqueue = asyncio.create_task(client.enqueue("email", b""))
    [(pid,)] = await asyncio.to_thread(_waits_for_replica, pair.primary)

    run_on(pair.primary, "select pg_terminate_backend(%s)", pid)
    await asyncio.to_thread(_waits_for_replica, pair.primary, pid)
    assert not enqueue.done()

    pair.standby.start()
    assert (await asyncio.wait_for(enqueue, PATIENCE)).created
    assert (await client.stats("email")).pending == 1


def _waits_for_replica(server: PrivateCluster, but: int = 0) -> list[tuple[int]]:
    """Return the sessions whose commit waits for a replica, when there are some."""
    found: list[tuple[int]] = []

    def look() -> bool:
        found[:] = run_on(server, "select pid from pg_stat_activity where wait_event = 'SyncRep' and pid <> %s", but)
        return bool(found)

    assert eventually(look, PATIENCE, 0.02)
    return found
