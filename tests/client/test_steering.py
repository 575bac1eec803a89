from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

import windlass
from windlass import (
    ClaimLost,
    Client,
    InvalidValue,
    JobFilter,
    JobId,
    JobNotFound,
    NewJob,
    QueueSettings,
    State,
    Unique,
    UniqueConflict,
    WrongState,
)
from windlass.testing import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def client(clock: FakeClock) -> AsyncIterator[Client]:
    async with windlass.connect("memory://", clock=clock) as client:
        yield client


async def dead_jobs(client: Client, count: int, queue: str = "email", unique: Unique | None = None) -> list[JobId]:
    done = await client.enqueue_many([NewJob(queue, unique=unique) for _ in range(count)])
    for claim in await client.claim_many(queue, limit=count):
        await client.dead_letter(claim, "no")
    return [one.id for one in done]


async def test_pages_follow_each_other_by_job_or_by_id(client: Client) -> None:
    ids = (await dead_jobs(client, 5))[::-1]

    first = await client.dead_jobs("email", limit=2)
    second = await client.dead_jobs("email", after=first[-1], limit=2)
    third = await client.dead_jobs("email", after=second[-1].id, limit=2)

    assert [[job.id for job in page] for page in (first, second, third)] == [ids[:2], ids[2:4], ids[4:]]


async def test_a_page_after_a_job_that_is_gone_is_refused(client: Client) -> None:
    with pytest.raises(JobNotFound):
        await client.jobs(after=uuid4())


async def test_by_id_what_is_not_there_or_in_another_state_is_said(client: Client) -> None:
    waiting = (await client.enqueue("email")).id
    [dead] = await dead_jobs(client, 1, "other")

    for call in (client.retry, client.delete, client.requeue_dead, client.run_now):
        with pytest.raises(JobNotFound):
            await call(uuid4())
    for call in (client.retry, client.delete, client.requeue_dead):
        with pytest.raises(WrongState, match="is pending"):
            await call(waiting)
    with pytest.raises(WrongState, match="is dead"):
        await client.run_now(dead)


async def test_requeue_dead_takes_no_cancelled_job_and_retry_does(client: Client) -> None:
    job_id = (await client.enqueue("email")).id
    await client.cancel(job_id)

    with pytest.raises(WrongState, match="is cancelled; this needs one that is dead"):
        await client.requeue_dead(job_id)

    assert await client.retry(job_id) == 1


async def test_by_filter_every_job_that_can_be_changed_is_counted(client: Client) -> None:
    await dead_jobs(client, 2500)
    await dead_jobs(client, 3, "other")
    await client.enqueue("email")

    assert await client.retry(JobFilter(queue="email")) == 2500
    assert await client.retry(JobFilter(queue="email")) == 0
    assert await client.retry(JobFilter(state=State.PENDING)) == 0
    assert await client.delete(JobFilter()) == 3
    assert (await client.stats()).pending == 2501


async def test_by_filter_waiting_jobs_are_cancelled_and_running_ones_asked_to_stop(client: Client) -> None:
    await client.enqueue_many([NewJob("email"), NewJob("email", delay=60), NewJob("email"), NewJob("other")])
    claim = await client.claim("email")
    assert claim is not None
    assert not claim.cancelled.is_set()

    assert await client.cancel_many(JobFilter(queue="email")) == 3
    assert await client.cancel_many(JobFilter(state=State.DEAD)) == 0

    assert claim.cancelled.reason == "cancel"
    stats = await client.stats()
    assert (stats.cancelled, stats.running, stats.pending) == (2, 1, 1)
    with pytest.raises(windlass.InvalidValue, match="chosen by a JobFilter"):
        await client.cancel_many(claim.job.id)  # type: ignore[arg-type]


async def test_a_retry_whose_key_is_held_is_refused_by_id_and_left_out_by_filter(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    key = Unique("key", until="finished")
    [dead] = await dead_jobs(client, 1, unique=key)
    await client.enqueue("email", unique=key)

    with pytest.raises(UniqueConflict) as conflict:
        await client.retry(dead)
    count = await client.retry(JobFilter(queue="email"))

    assert conflict.value.key == "key"
    assert count == 0
    assert "left out 1 jobs" in caplog.text


async def test_a_job_can_be_moved_in_time(client: Client, clock: FakeClock) -> None:
    job_id = (await client.enqueue("email")).id

    await client.reschedule(job_id, clock.now() + timedelta(hours=1))
    later = await client.get(job_id)
    await client.run_now(job_id)
    now = await client.get(job_id)

    assert later is not None
    assert now is not None
    assert (later.state, now.state) == (State.SCHEDULED, State.PENDING)


async def test_the_stats_of_a_queue_that_nobody_knows_are_zero(client: Client) -> None:
    assert await client.stats("nowhere") == windlass.QueueStats("nowhere")
    assert (await client.stats()).queue is None


async def test_a_rescue_of_no_queue_does_nothing(client: Client) -> None:
    await client.enqueue("email")
    await client.claim("email")

    assert await client.rescue([], force=True, to="dead") == 0
    assert await client.rescue("email", force=True, to="dead") == 1


async def test_an_operator_rescues_the_claims_of_servers_that_have_ended(clock: FakeClock) -> None:
    url = "memory://rescue-of-servers"
    async with (
        windlass.connect(url, clock=clock, worker="web#1") as gone,
        windlass.connect(url, clock=clock, worker="web#2") as live,
    ):
        await gone.enqueue_many([NewJob("email", b"one"), NewJob("email", b"two")])
        lost, kept = await gone.claim("email"), await live.claim("email")
        assert lost is not None
        assert kept is not None

        assert await live.rescue(servers=[]) == 0
        assert await live.rescue("other", servers="web#1") == 0
        assert await live.rescue(servers=["web#1", "web"]) == 1

        await live.ack(kept)
        with pytest.raises(ClaimLost):
            await gone.ack(lost)


@pytest.mark.parametrize("wrong", [7, {"web#1"}, ["no good"], [""]])
async def test_what_names_no_server_is_refused(client: Client, wrong: object) -> None:
    given: Any = wrong

    with pytest.raises(InvalidValue, match="server"):
        await client.rescue(servers=given)


async def test_each_queue_is_counted_by_itself_in_order_of_name(client: Client) -> None:
    await client.enqueue_many([NewJob("b", b""), NewJob("a", b""), NewJob("b", b"")])

    assert [(each.queue, each.pending) for each in await client.stats_by_queue()] == [("a", 1), ("b", 2)]


async def test_promotion_and_rescue_go_on_over_pages(client: Client, clock: FakeClock) -> None:
    await client.enqueue_many([NewJob("email", delay=1) for _ in range(2500)])
    clock.advance(1)

    promoted = await client.promote()
    await client.claim_many("email", limit=2500, lease=0)
    rescued = await client.rescue()

    assert (promoted, rescued) == (2500, 2500)


async def test_pruning_takes_the_settings_and_what_is_given_over_them(clock: FakeClock) -> None:
    queues = {"long": QueueSettings(keep_dead=None)}
    async with windlass.connect("memory://", clock=clock, keep_dead=60, queues=queues) as client:
        await dead_jobs(client, 2, "short")
        await dead_jobs(client, 3, "long")
        early = await client.prune()
        clock.advance(60)

        assert early == 0
        assert await client.prune(keep_dead=None) == 0
        assert await client.prune() == 2
        assert await client.prune(keep_max=2) == 1
        assert await client.prune(keep_dead=0) == 2


async def test_kv_values_are_written_compared_and_scanned(client: Client) -> None:
    await client.kv.put("a/1", b"one")
    await client.kv.put(b"a/2", b"two")
    await client.kv.put("b", b"three")

    assert await client.kv.compare_and_set("a/1", b"one", b"1")
    assert not await client.kv.compare_and_set("a/1", None, b"2")
    assert await client.kv.compare_and_set("new", None, b"4")
    assert not await client.kv.compare_and_delete("b", b"other")
    assert await client.kv.compare_and_delete("b", b"three")
    await client.kv.delete("new")
    assert await client.kv.scan("a/") == [(b"a/1", b"1"), (b"a/2", b"two")]
    assert await client.kv.scan(after="a/1") == [(b"a/2", b"two")]
    assert await client.kv.scan(limit=0) == []


async def test_the_most_records_of_the_settings_hold_unless_prune_is_given_others() -> None:
    async with windlass.connect("memory://", keep_max=2) as client:
        for _ in range(5):
            done = await client.enqueue("email")
            await client.cancel(done.id)

        assert await client.prune() == 3
        assert await client.prune(keep_max=1) == 1


async def test_a_cancel_is_true_in_a_condition_when_something_was_done(client: Client) -> None:
    await dead_jobs(client, 1)
    waiting, running = [(await client.enqueue("email")).id for _ in range(2)]
    [claim] = await client.claim_many("email", limit=1)
    assert claim.job.id == waiting

    assert not await client.cancel(uuid4())
    assert await client.cancel(waiting) is windlass.REQUESTED
    assert await client.cancel(running)
    assert await client.cancel(waiting)
    assert not await client.cancel(running)
    with windlass.connect_sync("memory://") as blocking:
        assert not blocking.cancel(uuid4())
