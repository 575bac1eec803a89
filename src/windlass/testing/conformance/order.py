"""Within a queue by priority, then by run time, then by the order of enqueue."""

from datetime import timedelta

from windlass.client.client import Client
from windlass.core.job import PRIORITY_HIGH, PRIORITY_LOW, PRIORITY_NORMAL, NewJob
from windlass.core.requests import ClaimRequest
from windlass.core.store import Store
from windlass.testing.clock import FakeClock
from windlass.testing.conformance.fixtures import OpenClient
from windlass.testing.conformance.given import (
    AT_ONCE,
    MINUTE,
    SECOND,
    a_job,
    claimed,
    enqueue_each,
    released,
    wanting,
)
from windlass.testing.conformance.reach import at_once

MIB = 1024 * 1024


async def _payloads(client: Client, count: int) -> list[bytes]:
    return [(await claimed(client, "email")).job.payload for _ in range(count)]


async def test_first_in_is_first_out(client: Client) -> None:
    for payload in (b"1", b"2", b"3"):
        await client.enqueue("email", payload)

    assert await _payloads(client, 3) == [b"1", b"2", b"3"]


async def test_a_lower_number_is_more_urgent(client: Client) -> None:
    for priority in (PRIORITY_LOW, PRIORITY_NORMAL, PRIORITY_HIGH):
        await client.enqueue("email", str(priority).encode(), priority=priority)

    assert await _payloads(client, 3) == [b"100", b"1000", b"10000"]


async def test_jobs_of_one_priority_are_first_in_first_out(client: Client) -> None:
    for payload in (b"1", b"2"):
        await client.enqueue("email", payload, priority=PRIORITY_HIGH)

    assert await _payloads(client, 2) == [b"1", b"2"]


async def test_a_retried_job_keeps_its_priority(open_client: OpenClient) -> None:
    client = await open_client(AT_ONCE)
    high = await client.enqueue("email", b"", priority=PRIORITY_HIGH)
    await client.enqueue("email", b"")
    claim = await claimed(client, "email")

    await client.nack(claim, "boom")

    again = await claimed(client, "email")
    assert (again.job.id, again.job.priority) == (high.id, PRIORITY_HIGH)


async def test_a_record_carries_its_priority(client: Client) -> None:
    await client.enqueue("email", b"", priority=42)

    assert (await claimed(client, "email")).job.priority == 42


async def test_an_earlier_run_time_goes_first_whenever_it_was_enqueued(client: Client, clock: FakeClock) -> None:
    await client.enqueue("email", b"later", delay=2)
    await client.enqueue("email", b"sooner", delay=1)
    clock.advance(3)
    await client.enqueue("email", b"now")

    assert await _payloads(client, 3) == [b"sooner", b"later", b"now"]


async def test_a_run_time_in_the_past_counts_as_now(client: Client, clock: FakeClock) -> None:
    await client.enqueue("email", b"first")
    await client.enqueue("email", b"second", run_at=clock.now() - timedelta(days=1))

    assert await _payloads(client, 2) == [b"first", b"second"]


async def test_the_id_has_no_part_in_the_order(client: Client) -> None:
    for first in ("f", "0", "8"):
        await client.enqueue("email", first.encode(), id=f"{first}0000000-0000-7000-8000-000000000000")

    assert await _payloads(client, 3) == [b"f", b"0", b"8"]


async def test_a_released_job_keeps_its_place(client: Client, clock: FakeClock) -> None:
    for payload in (b"1", b"2"):
        await client.enqueue("email", payload)
    claim = await claimed(client, "email")
    clock.advance(SECOND)

    await client.release(claim)

    assert await _payloads(client, 2) == [b"1", b"2"]


async def test_jobs_that_are_released_together_keep_their_places(store: Store) -> None:
    jobs = [a_job() for _ in range(5)]
    await store.enqueue(jobs)
    claims = (await store.claim(wanting(limit=3))).jobs

    await store.settle([released(claim) for claim in reversed(claims)])

    assert [claim.job.id for claim in (await store.claim(wanting(limit=5))).jobs] == [job.id for job in jobs]


async def test_a_retried_job_goes_to_the_end(open_client: OpenClient, clock: FakeClock) -> None:
    client = await open_client(AT_ONCE)
    for payload in (b"1", b"2"):
        await client.enqueue("email", payload)
    claim = await claimed(client, "email")
    clock.advance(SECOND)

    await client.nack(claim, "boom")

    assert await _payloads(client, 2) == [b"2", b"1"]


async def test_a_snoozed_and_a_rescued_job_go_to_the_end(client: Client, clock: FakeClock) -> None:
    for payload in (b"1", b"2", b"3"):
        await client.enqueue("email", payload)
    snoozed, _ = await claimed(client, "email"), await claimed(client, "email", lease=0)
    clock.advance(SECOND)

    await client.rescue()
    clock.advance(SECOND)
    await client.snooze(snoozed, 0)

    assert await _payloads(client, 3) == [b"3", b"2", b"1"]


async def test_a_retry_by_an_operator_goes_to_the_end(client: Client, clock: FakeClock) -> None:
    dead = await client.enqueue("email", b"dead")
    await client.dead_letter(await claimed(client, "email"), "no")
    await client.enqueue("email", b"waiting")
    clock.advance(SECOND)

    await client.retry(dead.id)

    assert await _payloads(client, 2) == [b"waiting", b"dead"]


async def test_jobs_of_a_batch_keep_their_order_among_others(client: Client) -> None:
    await client.enqueue("email", b"a")
    await client.enqueue_many([NewJob("email", b"b"), NewJob("email", b"c", priority=1), NewJob("email", b"d")])
    await client.enqueue("email", b"e")

    assert await _payloads(client, 5) == [b"c", b"a", b"b", b"d", b"e"]


def _merged(*queues: str, limit: int = 10, kinds: list[str] | None = None) -> ClaimRequest:
    return ClaimRequest(queues, limit, MINUTE, kinds, by_priority=True)


async def test_by_priority_the_most_urgent_of_all_queues_come_first(store: Store, clock: FakeClock) -> None:
    first, second = a_job("b"), a_job("a")
    low, high = a_job("a")._replace(priority=PRIORITY_LOW), a_job("b")._replace(priority=PRIORITY_HIGH)
    await enqueue_each(store, first, low)
    clock.advance(SECOND)
    await enqueue_each(store, second, high)

    async with at_once(store):
        claims = (await store.claim(_merged("a", "b"))).jobs

        assert [claim.job.id for claim in claims] == [high.id, first.id, second.id, low.id]


async def test_by_priority_jobs_of_one_moment_go_by_their_enqueue(store: Store) -> None:
    jobs = [a_job(queue) for queue in ("c", "a", "b", "a", "c")]

    async with at_once(store):
        await store.enqueue(jobs)

        claims = [(await store.claim(_merged("a", "b", "c", limit=2))).jobs for _ in range(3)]

        assert [claim.job.id for page in claims for claim in page] == [job.id for job in jobs]


async def test_by_priority_paused_queues_give_nothing_and_other_queues_are_left_alone(store: Store) -> None:
    await enqueue_each(store, *(a_job(queue)._replace(priority=1) for queue in ("paused", "other")), a_job("a"))
    await store.set_paused("paused", paused=True)

    async with at_once(store):
        claims = (await store.claim(_merged("paused", "a", "unknown", "a"))).jobs

        assert [claim.job.queue for claim in claims] == ["a"]


async def test_by_priority_only_the_kinds_that_were_asked_for_are_given(store: Store) -> None:
    ahead = [a_job(queue, kind=kind)._replace(priority=1) for queue in ("a", "b") for kind in (None, "x")]
    wanted = [a_job(queue, kind=kind) for queue, kind in (("b", "y"), ("a", "z"), ("b", "z"))]
    await enqueue_each(store, *ahead, *wanted)

    async with at_once(store):
        claims = (await store.claim(_merged("a", "b", kinds=["y", "z"]))).jobs

        assert [claim.job.id for claim in claims] == [job.id for job in wanted]


async def test_by_priority_what_has_come_due_is_given(store: Store, clock: FakeClock) -> None:
    late, soon = a_job("a", delay=2 * SECOND), a_job("b", delay=SECOND)
    await enqueue_each(store, late, soon)
    clock.advance(2 * SECOND)

    async with at_once(store):
        claims = (await store.claim(_merged("a", "b"))).jobs

        assert [claim.job.id for claim in claims] == [soon.id, late.id]


async def test_a_claim_by_priority_that_is_repeated_gives_the_same_claims(store: Store) -> None:
    await enqueue_each(store, a_job("a"), a_job("b"), a_job("a"))

    async with at_once(store):
        first = (await store.claim(_merged("a", "b", limit=2), request_id="r")).jobs
        again = (await store.claim(_merged("a", "b", limit=2), request_id="r")).jobs

        assert [(claim.job.id, claim.token) for claim in again] == [(claim.job.id, claim.token) for claim in first]
        assert len((await store.claim(_merged("a", "b"))).jobs) == 1


async def test_by_priority_one_queue_gives_its_most_urgent_first(store: Store) -> None:
    jobs = [a_job("a", kind=kind)._replace(priority=priority) for kind, priority in (("x", 2), ("y", 1), ("x", 1))]
    await store.enqueue(jobs)
    await enqueue_each(store, a_job("b")._replace(priority=0))

    claims = (await store.claim(_merged("a", "a"), request_id="r")).jobs
    again = (await store.claim(_merged("a", "a"), request_id="r")).jobs

    assert [claim.job.id for claim in claims] == [jobs[1].id, jobs[2].id, jobs[0].id]
    assert [claim.token for claim in again] == [claim.token for claim in claims]


async def test_large_jobs_are_given_in_order_however_many_a_claim_gives(store: Store) -> None:
    """A store may give fewer than it is asked for where jobs are large: then those behind them wait."""
    jobs = [*(a_job("a", payload=b"." * MIB) for _ in range(18)), a_job("b")]
    await enqueue_each(store, *jobs)

    given: list[str] = []
    while claims := (await store.claim(wanting("a", "b", limit=100))).jobs:
        # what there was no room for is still in line, or was given back: it was charged nothing
        assert {claim.job.attempt for claim in claims} == {1}
        given += [claim.job.id for claim in claims]

    assert given == [job.id for job in jobs]
