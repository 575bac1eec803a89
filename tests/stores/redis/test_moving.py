"""A store whose jobs come and go: what the conformance suite cannot see of it."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest

from tests.redis.asking import ask
from tests.redis.keys import prefix_of, with_options
from tests.redis.private import PrivateRedis
from tests.redis.proxy import Proxy
from tests.redis.server import new_url
from tests.stores.redis.calls import a_claim, opened, settlement, wanting
from tests.stores.redis.owners import strays
from windlass.connect import open_store
from windlass.core.commands import UnpackJobs
from windlass.core.errors import StoreMoved
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.job import Failure
from windlass.core.moving import HeldKey, Moved, Parcel
from windlass.core.requests import RescueRequest
from windlass.core.retention import KEEP_ALL
from windlass.core.states import State
from windlass.core.store import Store
from windlass.core.topics import PAUSES, queue_topic
from windlass.core.unique import Unique
from windlass.core.verdict import ToRetry
from windlass.stores.redis import store_move
from windlass.testing import FakeClock, SeededRng
from windlass.testing.conformance.given import HOUR, MINUTE, UNKNOWN, a_job

AWAY: Final = Moved("sqlite:///elsewhere.db", "move")


@pytest.fixture
async def spread(url: str) -> AsyncIterator[Store]:
    async with opened(with_options(url, "spread=queues")) as store:
        yield store


@asynccontextmanager
async def at(url: str, clock: FakeClock) -> AsyncGenerator[Store]:
    """Give an open store of this time."""
    store = open_store(url, clock=clock, rng=SeededRng())
    await store.open()
    try:
        yield store
    finally:
        await store.close()


async def packed(store: Store, queue: str = "q", limit: int = 100) -> list[JobId]:
    return [job.id for job in (await store.pack(queue, limit=limit)).jobs]


async def ended(store: Store, number: int) -> None:
    """Let there be jobs that have ended, before all others."""
    await store.enqueue([a_job("q") for _ in range(number)])
    await store.settle([settlement(claim) for claim in (await store.claim(wanting("q", limit=number))).jobs])


async def test_a_call_that_was_lost_and_then_refused_is_not_in_doubt(url: str, proxy: Proxy, store: Store) -> None:
    await store.set_moved(AWAY)
    async with opened(proxy.url) as through:
        for fault in (proxy.drop_request, proxy.drop_reply):
            lost = fault(1)
            with pytest.raises(StoreMoved) as told:
                await through.enqueue([a_job("q")])
            assert (lost.is_set(), told.value.to, told.value.retryable) == (True, AWAY.to, False)

    assert ask(url, "EXISTS", f"{{{prefix_of(url)}}}|seq") == 0


async def test_who_waits_in_another_process_is_woken_by_every_step_of_a_move(url: str, store: Store) -> None:
    await store.enqueue([a_job("q")])
    parcel = Parcel("move", "q", 1, await store.pack("q", limit=10))
    await store.let_go(jobs=[job.id for job in parcel.packed.jobs])
    async with opened(url) as other, asyncio.timeout(20):
        rung = asyncio.Event()
        stop = other.listen([PAUSES, queue_topic("q")], rung.set)
        # everybody is woken once when the listener has begun to hear
        await rung.wait()
        for step in (store.set_moved(AWAY), store.set_moved(None), store.unpack(parcel)):
            rung.clear()
            await step
            await rung.wait()
        stop()


async def test_a_parcel_whose_reply_was_lost_was_unpacked_once(proxy: Proxy, store: Store) -> None:
    await store.enqueue([a_job("q"), a_job("q")])
    parcel = Parcel("move", "q", 1, await store.pack("q", limit=10))
    await store.let_go(jobs=[job.id for job in parcel.packed.jobs])
    async with opened(proxy.url) as through:
        lost = proxy.drop_reply(1)

        assert await through.unpack(parcel)

    assert lost.is_set()
    assert (await store.stats("q"))[0].totals.enqueued == 4


@pytest.mark.parametrize("options", ["timeout=10", "spread=queues"], ids=["one tag", "spread"])
async def test_a_parcel_that_is_repeated_under_its_request_id_gets_its_first_reply(url: str, options: str) -> None:
    async with opened(with_options(url, options)) as store:
        waiting = [a_job("q") for _ in range(2)]
        await store.enqueue(waiting)
        taken = await store.pack("q", limit=10)
        await store.let_go(jobs=[job.id for job in taken.jobs])
        unpack = UnpackJobs(Parcel("move", "q", 1, taken))

        assert await store.do(unpack, request_id="r")
        assert await store.do(unpack, request_id="r")
        assert not await store.do(unpack, request_id="another")

        assert await packed(store) == [job.id for job in waiting]


async def test_jobs_leave_a_server_whose_memory_is_full(url: str) -> None:
    with PrivateRedis() as private:
        async with opened(with_options(private.url, url.partition("?")[2])) as store:
            await store.enqueue([a_job("q", unique=Unique("k", until="finished"))])
            private.ask("CONFIG", "SET", "maxmemory", "1mb")

            await store.set_moved(AWAY)
            await store.let_go(jobs=await packed(store))

            assert (await store.moved(), await packed(store)) == (AWAY, [])


async def test_jobs_that_have_ended_are_looked_at_once_however_many_parcels_are_packed(
    monkeypatch: pytest.MonkeyPatch, proxy: Proxy, store: Store
) -> None:
    monkeypatch.setattr(store_move, "LOOKED_AT", 10)
    await ended(store, 60)
    waiting = [a_job("q") for _ in range(30)]
    await store.enqueue(waiting)
    # a script that the server does not know yet is sent twice
    await store.let_go(jobs=[*await packed(store, limit=1), a_job("q").id][1:])
    requests: list[int] = []
    async with opened(proxy.url) as through:
        for _ in range(3):
            before = proxy.requests
            await through.let_go(jobs=await packed(through, limit=9))
            requests.append(proxy.requests - before)

        assert requests == [8, 2, 2]
        assert await packed(through, limit=9) == [job.id for job in waiting[27:]]


async def test_a_job_that_waits_again_behind_what_was_packed_comes_along_in_the_end(store: Store) -> None:
    running = await a_claim(store, "q")
    waiting = [a_job("q") for _ in range(4)]
    await store.enqueue(waiting)
    await store.set_moved(AWAY)
    await store.let_go(jobs=await packed(store, limit=2))
    await store.settle([settlement(running, ToRetry(MINUTE, Failure("no")))])

    assert await packed(store, limit=1) == [waiting[2].id]
    assert await packed(store, limit=3) == [running.job.id, waiting[2].id, waiting[3].id]
    await store.let_go(jobs=[waiting[2].id, waiting[3].id])
    assert await packed(store, limit=1) == [running.job.id]


async def test_a_parcel_is_full_when_it_is_large(monkeypatch: pytest.MonkeyPatch, store: Store) -> None:
    monkeypatch.setattr(store_move, "PARCEL_BYTES", 2_500)
    jobs = [a_job("q", payload=bytes(1_000)) for _ in range(5)]
    await store.enqueue(jobs)

    parcels: list[int] = []
    while some := await packed(store):
        parcels.append(len(some))
        await store.let_go(jobs=some)

    assert parcels == [3, 2]


async def test_keys_whose_time_is_over_do_not_gather(url: str) -> None:
    clock = FakeClock()
    async with at(url, clock) as store:
        for number in range(40):
            await store.enqueue([a_job("q", unique=Unique(f"{number}", until=MINUTE))])
            clock.advance(MINUTE)
        for name, until in (("short", MINUTE), ("long", HOUR), ("middle", 2 * MINUTE)):
            await store.enqueue([a_job("q", unique=Unique(name, until=until))])

    timed = f"{{{prefix_of(url)}}}|timed"
    assert ask(url, "ZRANGE", timed, 0, -1) == [f"queue||q|{name}" for name in ("short", "middle", "long")]
    # they go together, with the last of them
    assert ask(url, "TTL", timed) > HOUR.total_seconds()


@pytest.mark.parametrize("ahead", [-HOUR, HOUR])
async def test_a_job_is_ready_that_was_so_or_is_due_by_the_clock_here(url: str, ahead: timedelta) -> None:
    now, later = (FakeClock(), FakeClock())
    later.advance(HOUR)
    here, there = (later, now) if ahead > timedelta(0) else (now, later)
    ready, due = a_job("q"), a_job("q", delay=MINUTE)
    with new_url() as elsewhere:
        async with at(elsewhere, there) as store:
            await store.enqueue([ready, due])
            parcel = Parcel("move", "q", 1, await store.pack("q", limit=10))
    async with at(url, here) as store:
        await store.unpack(parcel)
        states = {job.id: job.state for job in await store.jobs(JobFilter(), after=None, limit=10)}

    assert states[ready.id] is State.PENDING
    assert states[due.id] is (State.PENDING if ahead > timedelta(0) else State.SCHEDULED)


async def test_no_queue_comes_to_be_known_while_all_are_closed(spread: Store, url: str) -> None:
    begun = asyncio.Event()

    async def enqueue(store: Store, name: str) -> list[str]:
        """Enqueue a job for one new queue after the other, until that is refused; return the queues."""
        done: list[str] = []
        for number in range(1_000):
            try:
                await store.enqueue([a_job(f"{name}{number}")])
            except StoreMoved:
                return done
            done.append(f"{name}{number}")
            begun.set()
        raise AssertionError("it was never refused")

    async with opened(with_options(url, "spread=queues")) as other:
        calls = [
            asyncio.ensure_future(enqueue(store, name)) for store, name in zip((spread, other) * 2, "abcd", strict=True)
        ]
        await begun.wait()
        await spread.set_moved(AWAY)
        known = {stats.queue: stats.pending for stats in await other.stats()}
        done = {queue for queues in await asyncio.gather(*calls) for queue in queues}

    assert done
    assert known == dict.fromkeys(done, 1)


async def test_of_two_jobs_with_one_id_the_one_that_was_packed_is_let_go(spread: Store) -> None:
    """Where queues are spread an id is one job in its queue."""
    job = a_job("b")
    await spread.enqueue([job])
    await spread.enqueue([job._replace(queue="a")])

    await spread.let_go(jobs=await packed(spread, "b"))

    assert [await packed(spread, queue) for queue in ("a", "b")] == [[job.id], []]


async def test_a_store_whose_queues_were_closed_by_half_says_so_and_is_closed_again(spread: Store, url: str) -> None:
    for queue in ("a", "b"):
        await spread.enqueue([a_job(queue)])
    await spread.set_moved(AWAY)
    ask(url, "DEL", f"{{{prefix_of(url)}|b}}|moved")

    with pytest.raises(StoreMoved):
        await spread.enqueue([a_job("a")])
    await spread.enqueue([a_job("b")])
    [finding] = [finding for finding in await spread.check() if finding.name == "moved"]
    assert (finding.level, finding.message.endswith("some queues take jobs, and others do not")) == ("error", True)

    # whoever goes on with a move closes the store again
    assert await spread.moved() == AWAY
    await spread.set_moved(AWAY)

    with pytest.raises(StoreMoved):
        await spread.enqueue([a_job("b")])


@pytest.mark.parametrize("option", ["", "spread=queues"], ids=["one tag", "spread"])
async def test_the_doctor_tells_of_a_store_that_was_moved(url: str, option: str) -> None:
    async with opened(with_options(url, option) if option else url) as store:
        await store.set_moved(AWAY)
        [finding] = [finding for finding in await store.check() if finding.name == "moved"]
        await store.set_moved(None)
        after = {finding.name for finding in await store.check()}

    assert (finding.level, finding.advice) == ("warning", f"let programs connect to {AWAY.to}")
    assert "moved" not in after


async def test_a_key_over_several_queues_goes_through_a_spread_store_and_out_of_it(spread: Store, url: str) -> None:
    """Nobody there can ask for it, but it is still held when the job goes on to where somebody can."""
    until = datetime.now(UTC) + HOUR
    uniques = [Unique("k", scope="global", until=HOUR), Unique("l", scope="global")]
    with new_url() as elsewhere:
        async with opened(elsewhere) as store:
            await store.enqueue([a_job("q", unique=unique) for unique in uniques])
            there = await store.pack("q", limit=10)
    await spread.unpack(Parcel("move", "q", 1, there))
    await spread.take_keys([HeldKey("global|||m", UNKNOWN, "time", until, b"digest")])

    timed = sorted(await spread.timed_keys(limit=10))
    onward = await spread.pack("q", limit=10)

    assert [key.name for key in timed] == ["global|||k", "global|||m"]
    assert sorted(onward.keys) == sorted(there.keys)
    await spread.let_go(jobs=[job.id for job in onward.jobs], keys=["global|||m"])
    assert await spread.timed_keys(limit=10) == []
    assert strays(url) == []


async def test_a_job_that_waits_for_another_attempt_is_worked_as_if_it_had_never_moved(store: Store) -> None:
    claim = await a_claim(store, "q", max_attempts=2)
    await store.settle([settlement(claim, ToRetry(timedelta(0), Failure("no")))])
    parcel = Parcel("move", "q", 1, await store.pack("q", limit=10))
    await store.let_go(jobs=[claim.job.id])
    await store.unpack(parcel)

    [again] = (await store.claim(wanting("q", lease=timedelta(0)))).jobs
    # who held it in the other store has nothing to settle here
    late = await store.settle([settlement(claim)])
    [rescued] = await store.rescue(RescueRequest(), KEEP_ALL)

    assert (again.job.attempt, again.job.delivery, rescued.state) == (2, 2, State.DEAD)
    assert [result.name for result in late if not isinstance(result, Exception)] == ["LOST"]
