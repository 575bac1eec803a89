"""Queues that are spread, whose names were lost at home with its last moments: they go on, and are known again."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any, Final

import pytest

from tests.redis.asking import ask
from tests.redis.keys import keys_of, prefix_of, servers_of, with_options
from tests.redis.server import new_url
from tests.stores.redis.calls import opened, settlement, wanting
from windlass.core.errors import StoreUnavailable
from windlass.core.filters import JobFilter
from windlass.core.job import Note, Token
from windlass.core.looks import ServerRecord
from windlass.core.requests import RescueRequest, Settled
from windlass.core.retention import KEEP_ALL
from windlass.core.states import State
from windlass.core.store import Store
from windlass.stores.redis import queues
from windlass.stores.redis.line import Refused
from windlass.stores.redis.runner import Runner
from windlass.stores.redis.wire import Wire
from windlass.testing.conformance.given import MINUTE, a_job, claim_one

NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def url() -> Iterator[str]:
    with new_url() as url:
        yield with_options(url, "spread=queues")


@pytest.fixture
async def store(url: str) -> AsyncIterator[Store]:
    """One that has never heard of any queue."""
    async with opened(url) as store:
        yield store


@pytest.fixture
async def other(url: str) -> AsyncIterator[Store]:
    """Another one."""
    async with opened(url) as other:
        yield other


def lose(url: str, *names: str) -> None:
    """Let home lose the names of queues, as a failover does that loses its last moments."""
    [server] = servers_of(url)
    home = f"{{{prefix_of(url)}}}|"
    ask(server, "SREM", f"{home}queues", *names)
    ask(server, "HDEL", f"{home}queue_numbers", *names)


def known(url: str) -> dict[str, str]:
    """Return the queues that home knows, with their numbers."""
    [server] = servers_of(url)
    home = f"{{{prefix_of(url)}}}|"
    numbers = dict(ask(server, "HGETALL", f"{home}queue_numbers"))
    return {name: numbers[name] for name in ask(server, "SMEMBERS", f"{home}queues")}


async def enqueue(url: str, *names: str) -> None:
    """Let there be two jobs in each of these queues, by a process that is gone then."""
    async with opened(url) as store:
        for name in names:
            await store.enqueue([a_job(name), a_job(name)])


async def test_a_claim_of_a_queue_that_home_has_lost_is_settled_by_any_process(
    url: str, store: Store, other: Store
) -> None:
    await enqueue(url, "q")
    first, second = (await store.claim(wanting("q", limit=2))).jobs
    lose(url, "q")

    assert await other.note([Note(first.job.id, first.token, lines=[("info", "line")])]) == [True]
    [renewed] = await other.renew([(first.job.id, first.token)], MINUTE)
    assert renewed is not None
    follower = a_job("q")
    ended = [settlement(first), settlement(second, then=[follower])]
    assert await other.settle(ended) == [Settled.DONE] * 2

    assert known(url) == {"q": "0"}
    jobs = await other.jobs(JobFilter(), after=None, limit=10)
    assert jobs[-1].id == follower.id
    assert {job.seq % queues.MOST_QUEUES for job in jobs} == {0}


async def test_whoever_is_given_a_job_makes_its_queue_known_again_by_the_same_number(url: str, store: Store) -> None:
    await enqueue(url, "a", "b", "c")
    lose(url, "a", "b", "c")

    for queue in ("c", "b", "a"):
        await claim_one(store, queue)

    assert known(url) == {"a": "0", "b": "1", "c": "2"}


async def test_a_new_queue_gets_no_number_that_another_has(url: str, store: Store) -> None:
    await enqueue(url, "a", "b", "c")
    lose(url, "a")
    await claim_one(store, "a")
    lose(url, "b")

    await store.enqueue([a_job("d")])

    assert known(url) == {"a": "0", "c": "2", "d": "3"}


async def test_a_server_makes_the_queues_known_that_it_works_and_has_claims_of(
    url: str, store: Store, other: Store
) -> None:
    await enqueue(url, "q")
    await store.claim(wanting("q", limit=2, lease=MINUTE * 0))
    lose(url, "q")
    assert await other.rescue(RescueRequest(), KEEP_ALL) == []

    await other.beat(ServerRecord("s#1", "s", "host", 1, "1.0", NOW, NOW, queues=("q", "never")))

    assert known(url) == {"q": "0"}
    assert {one.state for one in await other.rescue(RescueRequest(), KEEP_ALL)} == {State.PENDING}


async def test_a_process_that_knows_a_queue_sees_it_and_makes_it_known_again(
    url: str, store: Store, other: Store
) -> None:
    await enqueue(url, "first")
    await store.enqueue([a_job("q")])
    lose(url, "q")
    assert await other.stats() == await other.stats("first")

    assert [stats.queue for stats in await store.stats()] == ["first", "q"]

    assert known(url) == {"first": "0", "q": "1"}
    assert [stats.queue for stats in await other.stats()] == ["first", "q"]


async def test_a_process_that_only_enqueues_looks_now_and_then_whether_its_queues_are_known(
    monkeypatch: pytest.MonkeyPatch, url: str, store: Store
) -> None:
    monkeypatch.setattr(queues, "COMPARED_EVERY", 0.0)
    await store.enqueue([a_job("q")])
    lose(url, "q")

    await store.enqueue([a_job("q")])

    assert known(url) == {"q": "0"}


async def test_a_stale_token_of_a_queue_that_is_not_there_writes_nothing(url: str, store: Store, other: Store) -> None:
    await enqueue(url, "q")
    claim = await claim_one(store, "q")
    before = keys_of(url)

    stale = settlement(claim, then=[a_job("nobody")])._replace(token=Token("nobody|0-1"))
    assert await other.settle([stale]) == [Settled.LOST]

    assert keys_of(url) == before


async def test_a_round_tries_home_for_a_moment_and_passes_it_by_for_a_while_then(
    monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    home = f"{{{prefix_of(url)}}}|"
    sent = 0
    run_on = Runner.run_on

    async def loading_at_home(where: Runner, wire: Wire, call: Any, deadline: float) -> bytes:  # noqa: ANN401 - a private type
        nonlocal sent
        if call.prefix == home:
            sent += 1
            raise Refused("LOADING the server of home alone, as of a shard for itself")
        return await run_on(where, wire, call, deadline)

    async with opened(with_options(url, "timeout=30")) as store:
        await store.enqueue([a_job("q"), a_job("q")])
        await store.claim(wanting("q", limit=2, lease=MINUTE * 0))
        monkeypatch.setattr(Runner, "run_on", loading_at_home)

        async with asyncio.timeout(15):
            rescued = await store.rescue(RescueRequest(), KEEP_ALL)
        tried, sent = sent, 0

        assert (len(rescued), tried > 0) == (2, True)
        with pytest.raises(StoreUnavailable, match="passed by"):
            await store.promote(limit=5)
        with pytest.raises(StoreUnavailable, match="passed by"):
            await store.rescue(RescueRequest(queues=["q", "never"]), KEEP_ALL)
        assert sent == 0
