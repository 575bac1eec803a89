"""What a look costs: the server does nothing else while a script runs."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from statistics import median_low
from typing import Any, TypeVar

import pytest

from tests.redis.asking import ask
from tests.redis.private import PrivateRedis
from tests.redis.proxy import Proxy
from tests.stores.redis.calls import a_claim, opened, settlement, wanting
from windlass.core.filters import JobFilter
from windlass.core.job import Failure
from windlass.core.looks import death_of
from windlass.core.retention import KEEP_ALL
from windlass.core.states import State
from windlass.core.stats import TimingCount
from windlass.core.store import Store
from windlass.core.verdict import ToDead
from windlass.stores.redis import queries
from windlass.testing.conformance.given import HOUR, MINUTE, a_job

T = TypeVar("T")


async def requests_of(proxy: Proxy, store: Store, look: Callable[[Store], Awaitable[T]]) -> tuple[T, int]:
    """Return what a look brings, and how many requests it makes where its script is known."""
    await look(store)
    async with opened(proxy.url) as through:
        before = proxy.requests
        return await look(through), proxy.requests - before


async def one_of(store: Store, state: State) -> str:
    """Let there be one job in a state; return its id."""
    if state is State.SCHEDULED:
        [made] = await store.enqueue([a_job("q", delay=HOUR)])
        return made.id
    if state in (State.PENDING, State.CANCELLED):
        [made] = await store.enqueue([a_job("q", kind="rare")])
        if state is State.CANCELLED:
            await store.cancel([made.id], KEEP_ALL)
        return made.id
    claim = await a_claim(store, "q")
    if state is not State.RUNNING:
        verdict = ToDead(Failure("no")) if state is State.DEAD else None
        await store.settle([settlement(claim, verdict)])
    return claim.job.id


@pytest.mark.parametrize("state", State)
async def test_what_is_rare_is_found_without_a_look_at_all_others(store: Store, proxy: Proxy, state: State) -> None:
    rare = await one_of(store, state)
    common = [a_job("q", kind="common", delay=HOUR if state is State.PENDING else None) for _ in range(1_000)]
    await store.enqueue(common)
    chosen = JobFilter(queue="q", state=state)

    page, requests = await requests_of(proxy, store, lambda store: store.newest(chosen, before=None, limit=10, most=10))

    assert ([job.id for job in page.jobs], page.next, requests) == ([rare], None, 1)


async def test_a_look_for_the_newest_is_made_of_small_scripts(
    monkeypatch: pytest.MonkeyPatch, store: Store, proxy: Proxy
) -> None:
    monkeypatch.setattr(queries, "LOOKED_AT", 100)
    for queue in ("a", "b"):
        await store.enqueue([a_job(queue) for _ in range(300)])
    chosen = JobFilter(text="nobody")

    page, requests = await requests_of(
        proxy, store, lambda store: store.newest(chosen, before=None, limit=10, most=400)
    )

    assert (page.jobs, page.next, requests) == ([], 201, 4)


async def test_dead_jobs_of_many_queues_are_shown_in_order_however_few_are_read_at_a_time(
    monkeypatch: pytest.MonkeyPatch, store: Store, proxy: Proxy
) -> None:
    await store.enqueue([a_job(f"q{number % 5 if number % 3 else 0}") for number in range(100)])
    queues = [f"q{number}" for number in range(5)]
    # many die at the same time, by one call, and others one by one
    claims = (await store.claim(wanting(*queues, limit=60))).jobs
    await store.settle([settlement(claim, ToDead(Failure("no"))) for claim in claims])
    for claim in (await store.claim(wanting(*queues, limit=40))).jobs:
        await store.settle([settlement(claim, ToDead(Failure("no")))])
    _, requests = await requests_of(proxy, store, lambda store: store.dead(None, before=None, limit=20))

    every = await store.dead(None, before=None, limit=1_000)
    monkeypatch.setattr(queries, "LOOKED_AT", 7)
    first = await store.dead(None, before=None, limit=50)
    second = await store.dead(None, before=first[-1].death, limit=1_000)
    of_one = await store.dead("q0", before=None, limit=1_000)

    assert requests == 1
    assert [each.death for each in every] == sorted((death_of(each.job) for each in every), reverse=True)
    assert (len(every), [*first, *second]) == (100, every)
    assert of_one == [each for each in every if each.job.queue == "q0"]


async def test_jobs_of_many_queues_are_shown_in_order_however_few_are_read_at_a_time(
    monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    monkeypatch.setattr(queries, "LOOKED_AT", 7)
    # now and then many of one queue, then one each of several
    jobs = [a_job(f"q{number % 5 if number % 3 else number // 60}") for number in range(300)]
    for job in jobs:
        await store.enqueue([job])
    ids = [job.id for job in jobs]

    forward = await store.jobs(JobFilter(), after=None, limit=200)
    forward += await store.jobs(JobFilter(), after=forward[-1].seq, limit=200)
    first = await store.newest(JobFilter(), before=None, limit=200, most=1_000)
    second = await store.newest(JobFilter(), before=first.next, limit=200, most=1_000)

    assert [job.id for job in forward] == ids
    assert [job.id for job in (*first.jobs, *second.jobs)] == ids[::-1]
    assert second.next is None


async def test_a_look_through_many_queues_costs_about_as_much_as_one_through_a_single_one() -> None:
    with PrivateRedis() as redis:
        async with opened(redis.url) as store:
            await store.enqueue([a_job("one") for _ in range(3_000)])
            # more than a command in a script takes
            ask(redis.url, "CONFIG", "SET", "slowlog-log-slower-than", 300, "slowlog-max-len", 10_000)
            alone = await usual_cost(redis, store)
            for number in range(100):
                await store.enqueue([a_job(f"q{number}") for _ in range(500)])

            # each of them is read a little of
            assert await usual_cost(redis, store) < 6 * alone


async def usual_cost(redis: PrivateRedis, store: Store) -> int:
    """Return how long the server is mostly busy with one script of a look that finds nothing."""
    ask(redis.url, "SLOWLOG", "RESET")
    assert await store.jobs(JobFilter(tenant="nobody"), after=None, limit=10) == []
    slow: list[Any] = ask(redis.url, "SLOWLOG", "GET", -1)
    return median_low([int(micros) for _, _, micros, (command, *_), *_ in slow if command == "EVALSHA"])


async def test_counts_of_many_minutes_are_read_in_parts(
    monkeypatch: pytest.MonkeyPatch, store: Store, proxy: Proxy
) -> None:
    monkeypatch.setattr(queries, "COUNTS_LOOKED_AT", 10)
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    rows = [
        TimingCount(now - minute * MINUTE, "q", kind, "ran", number, 1)
        for minute in range(4)
        for kind in ("a", "b")
        for number in range(4)
    ]
    await store.write_timings(rows)

    found, requests = await requests_of(
        proxy, store, lambda store: store.timings(since=now - 3 * MINUTE, until=now + MINUTE)
    )

    assert (found, requests) == (sorted(rows), 2)


async def test_timings_that_nobody_could_read_are_not_kept(store: Store) -> None:
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    old = TimingCount(now - timedelta(days=9), "q", "", "ran", 0, 1)

    await store.write_timings([old, old._replace(minute=now + timedelta(seconds=30))])

    found = await store.timings(since=old.minute, until=now + HOUR)
    assert found == [old._replace(minute=now)]


async def test_those_ahead_of_a_job_are_counted_over_all_kinds_by_one_script(store: Store, proxy: Proxy) -> None:
    jobs = [a_job("q", kind=f"k{number % 7}") for number in range(700)]
    await store.enqueue(jobs)
    await store.claim(wanting("q", limit=100))

    place, requests = await requests_of(proxy, store, lambda store: store.place(jobs[-1].id))

    assert place is not None
    assert (place.ahead, requests) == (599, 1)
