"""Counts: exact at every moment, and totals that never fall."""

from datetime import UTC, datetime, timedelta

import pytest

from windlass.client.client import Client
from windlass.core.job import PreparedJob
from windlass.core.requests import ClaimRequest, RescueRequest
from windlass.core.retention import KEEP_ALL
from windlass.core.settings import QueueSettings
from windlass.core.states import State
from windlass.core.stats import KindStats, QueueStats, Totals
from windlass.core.store import Store
from windlass.testing.clock import FakeClock
from windlass.testing.conformance.fixtures import OpenClient
from windlass.testing.conformance.given import (
    AT_ONCE,
    DAY,
    HOUR,
    MINUTE,
    SECOND,
    a_job,
    claim_one,
    claimed,
    enqueue_each,
    found,
    settlement,
    wanting,
)


async def test_counts_follow_a_job_through_its_life(client: Client) -> None:
    seen: list[tuple[int, int]] = []

    async def look() -> None:
        stats = await client.stats("email")
        seen.append((stats.pending, stats.running))

    await client.enqueue("email", b"")
    await client.enqueue("email", b"")
    await look()
    claim = await claimed(client, "email")
    await look()
    await client.ack(claim)
    await look()

    assert seen == [(2, 0), (1, 1), (1, 0)]
    assert (await client.stats("email")).totals.succeeded == 1


async def test_a_dead_job_is_counted_as_dead_alone(open_client: OpenClient) -> None:
    client = await open_client(QueueSettings(max_attempts=1))
    await client.enqueue("email", b"")

    await client.nack(await claimed(client, "email"), "boom")

    stats = await client.stats("email")
    assert (stats.pending, stats.running, stats.dead) == (0, 0, 1)


async def test_every_queue_is_listed_by_name(client: Client) -> None:
    for queue in ("gamma", "alpha", "beta"):
        await client.enqueue(queue, b"")

    assert await client.queues() == ["alpha", "beta", "gamma"]


async def test_a_queue_stays_known_when_it_is_empty(open_client: OpenClient) -> None:
    client = await open_client(QueueSettings(keep_succeeded=0))
    await client.enqueue("email", b"")

    await client.ack(await claimed(client, "email"))

    assert await client.queues() == ["email"]


async def test_a_queue_that_nobody_knows_counts_nothing(client: Client, store: Store) -> None:
    assert await client.stats("nobody") == QueueStats("nobody")
    assert await client.stats() == QueueStats(None)
    assert await store.stats("nobody") == []
    assert await client.queues() == []


async def test_totals_count_every_way_a_job_can_go(client: Client) -> None:
    for _ in range(6):
        await client.enqueue("email", b"")
    await client.ack(await claimed(client, "email"))
    await client.dead_letter(await claimed(client, "email"), "no")
    await client.cancel_claim(await claimed(client, "email"), "no")
    await client.nack(await claimed(client, "email"), "boom", delay=1)
    await client.snooze(await claimed(client, "email"), 1)
    await claimed(client, "email", lease=0)
    await client.rescue()

    totals = (await client.stats("email")).totals
    assert totals == Totals(enqueued=6, succeeded=1, dead=1, cancelled=1, retried=1, rescued=1)


async def test_totals_never_fall(open_client: OpenClient) -> None:
    client = await open_client(QueueSettings(keep_succeeded=0, keep_dead=0, keep_cancelled=0))
    for _ in range(3):
        await client.enqueue("email", b"")
    await client.ack(await claimed(client, "email"))
    await client.dead_letter(await claimed(client, "email"), "no")
    await client.cancel((await claimed(client, "email")).job.id)
    before = (await client.stats("email")).totals

    await client.rescue(force=True, to="dead")
    await client.prune()

    after = await client.stats("email")
    assert before == Totals(enqueued=3, succeeded=1, dead=1)
    assert after.totals == Totals(enqueued=3, succeeded=1, dead=2, rescued=1)
    assert (after.succeeded, after.dead, after.cancelled) == (0, 0, 0)


async def test_an_operators_retry_and_delete_leave_the_totals(client: Client) -> None:
    done = await client.enqueue("email", b"")
    await client.dead_letter(await claimed(client, "email"), "no")
    await client.retry(done.id)
    await client.cancel(done.id)
    await client.delete(done.id)

    stats = await client.stats("email")
    assert stats.totals == Totals(enqueued=1, dead=1, cancelled=1)
    assert (stats.pending, stats.dead, stats.cancelled) == (0, 0, 0)


async def test_the_sum_over_all_queues(client: Client, clock: FakeClock) -> None:
    first = clock.now()
    await client.enqueue("a", b"")
    clock.advance(SECOND)
    await client.enqueue("b", b"")
    await client.enqueue("b", b"", delay=5)

    stats = await client.stats()

    assert (stats.queue, stats.pending, stats.scheduled, stats.paused) == (None, 2, 1, False)
    assert (stats.oldest_waiting, stats.totals.enqueued) == (first, 3)


async def test_the_oldest_waiting_job_is_told(client: Client, clock: FakeClock) -> None:
    assert (await client.stats("email")).oldest_waiting is None
    first = clock.now()
    await client.enqueue("email", b"", priority=9_999)
    clock.advance(SECOND)
    second = clock.now()
    await client.enqueue("email", b"", priority=1)
    assert (await client.stats("email")).oldest_waiting == first

    await claimed(client, "email")
    assert (await client.stats("email")).oldest_waiting == first
    claim = await claimed(client, "email")

    assert (await client.stats("email")).oldest_waiting is None
    await client.release(claim)
    assert (await client.stats("email")).oldest_waiting == first
    assert second > first


async def test_a_job_for_later_is_not_the_oldest_waiting(client: Client, clock: FakeClock) -> None:
    await client.enqueue("email", b"", delay=5)
    assert (await client.stats("email")).oldest_waiting is None

    clock.advance(10)
    await client.promote()

    assert (await client.stats("email")).oldest_waiting == clock.now() - timedelta(seconds=5)


async def test_what_waits_is_counted_by_queue_and_kind(store: Store, clock: FakeClock) -> None:
    kinds = [None, "send", "archive", "send", None, "run", "done", "later"]
    await store.enqueue([a_job(kind=kind, delay=SECOND if kind == "later" else None) for kind in kinds])
    await enqueue_each(store, a_job("a/raw"), a_job("b", kind="send"))
    [claim] = (await store.claim(ClaimRequest(["default"], 1, MINUTE, ["done"]))).jobs
    await store.settle([settlement(claim)])
    await store.claim(ClaimRequest(["default"], 1, MINUTE, ["run"]))
    await store.set_paused("b", paused=True)
    begun = clock.now()

    assert await store.waiting() == [
        KindStats("a/raw", "", 1, begun),
        KindStats("b", "send", 1, begun),
        KindStats("default", "", 2, begun),
        KindStats("default", "archive", 1, begun),
        KindStats("default", "send", 2, begun),
    ]


async def test_the_oldest_waiting_job_of_a_kind_is_that_which_was_due_first(store: Store, clock: FakeClock) -> None:
    """Whatever its priority and its place in the order of enqueues, and whatever other kinds are ahead of it."""
    begun = clock.now()
    places = [(3, 5), (1, 7), (2, 9_999)]
    send = [_at(begun, "send", second, priority) for second, priority in places]
    raw = [_at(begun, None, second + 10, priority) for second, priority in places]
    await store.enqueue([_at(begun, "other", 2, 1), *send, *raw])
    await store.enqueue([a_job("late", delay=MINUTE)])
    clock.advance(MINUTE)
    assert await store.promote(limit=10) == 8

    assert await store.waiting() == [
        KindStats("default", "", 3, begun + 11 * SECOND),
        KindStats("default", "other", 1, begun + 2 * SECOND),
        KindStats("default", "send", 3, begun + SECOND),
        KindStats("late", "", 1, begun + MINUTE),
    ]


def _at(begun: datetime, kind: str | None, second: int, priority: int) -> PreparedJob:
    return a_job(kind=kind, run_at=begun + second * SECOND)._replace(priority=priority)


async def test_nothing_waits_when_all_is_claimed_or_cancelled(store: Store) -> None:
    assert await store.waiting() == []
    jobs = [a_job(kind=kind) for kind in ("send", None, "archive")]
    await store.enqueue(jobs)

    await store.claim(wanting(limit=2))
    await store.cancel([jobs[2].id], KEEP_ALL)

    assert await store.waiting() == []


async def test_what_happened_is_counted_by_minute_queue_and_kind(open_client: OpenClient, store: Store) -> None:
    client = await open_client(AT_ONCE)
    start = (await _enqueue_three(client)).replace(second=0, microsecond=0)

    await client.ack(await claimed(client, "email"))
    await client.nack(await claimed(client, "email"), "boom")

    rows = await store.minutes(since=start, until=start + MINUTE)
    assert {(row.queue, row.kind): row.counts for row in rows} == {
        ("email", "x"): Totals(enqueued=1, succeeded=1),
        ("email", ""): Totals(enqueued=1, retried=1),
        ("sms", "x"): Totals(enqueued=1),
    }
    assert {row.minute for row in rows} == {start}


async def _enqueue_three(client: Client) -> datetime:
    await client.enqueue("email", b"", kind="x")
    await client.enqueue("sms", b"", kind="x")
    done = await client.enqueue("email", b"")
    job = await client.get(done.id)
    assert job is not None
    return job.created_at


async def test_each_minute_has_counts_of_its_own(store: Store, clock: FakeClock) -> None:
    start = clock.now().replace(second=0, microsecond=0)
    await store.enqueue([a_job()])
    clock.advance(MINUTE)
    claim = await claim_one(store)
    clock.advance(MINUTE)
    await store.settle([settlement(claim)])

    rows = await store.minutes(since=start, until=start + 3 * MINUTE)
    counted = {row.minute: row.counts for row in rows if any(row.counts)}
    assert counted == {start: Totals(enqueued=1), start + 2 * MINUTE: Totals(succeeded=1)}
    assert await store.minutes(since=start + 3 * MINUTE, until=start + 9 * MINUTE) == []
    [only] = await store.minutes(since=start, until=start + MINUTE)
    assert only.counts == Totals(enqueued=1)


async def test_a_look_at_the_minutes_of_all_time_finds_those_of_many_days(store: Store, clock: FakeClock) -> None:
    for _ in range(3):
        await store.enqueue([a_job()])
        clock.advance(2 * DAY)

    rows = await store.minutes(since=datetime(1970, 1, 1, tzinfo=UTC), until=datetime.max.replace(tzinfo=UTC))

    today = clock.now().replace(second=0, microsecond=0)
    assert [row.minute for row in rows] == [today - days * DAY for days in (6, 4, 2)]


async def test_counts_add_up_over_a_thousand_jobs_in_every_state(store: Store) -> None:
    await store.enqueue([a_job(max_attempts=1, delay=SECOND if n % 5 == 0 else None) for n in range(1_000)])
    claims = [await claim_one(store) for _ in range(100)]
    await store.settle([settlement(claim) for claim in claims[:50]])
    await store.rescue(RescueRequest(force=True, limit=30), KEEP_ALL)

    [row] = await store.stats()
    assert (row.scheduled, row.pending, row.running) == (200, 700, 20)
    assert (row.succeeded, row.dead, row.cancelled) == (50, 30, 0)


async def test_states_of_jobs_and_counts_are_of_one_moment(client: Client) -> None:
    done = await client.enqueue("email", b"")

    await client.cancel(done.id)

    job = await client.get(done.id)
    assert job is not None
    assert job.state is State.CANCELLED
    assert (await client.stats("email")).cancelled == 1


@pytest.mark.parametrize("end", ["ack", "dead_letter", "cancel_claim", "nack", "rescue"])
async def test_a_finished_job_is_nowhere_else(
    open_client: OpenClient, store: Store, clock: FakeClock, end: str
) -> None:
    """Nobody finds it among those that run or wait, also when its lease would be over."""
    client = await open_client(QueueSettings(max_attempts=1))
    await client.enqueue("email", b"")
    claim = await claimed(client, "email", lease=1)
    match end:
        case "ack":
            await client.ack(claim)
        case "nack":
            await client.nack(claim, "boom")
        case "rescue":
            await client.rescue(force=True)
        case _:
            await (client.dead_letter if end == "dead_letter" else client.cancel_claim)(claim, "no")
    ended = await found(client, claim.job.id)
    assert ended.finished_at is not None
    counted = await client.stats("email")

    clock.advance(HOUR)

    assert (await client.rescue(), await client.rescue(force=True), await client.promote()) == (0, 0, 0)
    assert await client.claim("email") is None
    assert await store.renew([(ended.id, claim.token)], MINUTE) == [None]
    assert (await store.stranded(dead_after=MINUTE), await store.due_in(["email"])) == (0, None)
    assert await found(client, ended.id) == ended
    assert await client.stats("email") == counted
    assert (counted.scheduled, counted.pending, counted.running) == (0, 0, 0)
    assert counted.succeeded + counted.dead + counted.cancelled == 1
