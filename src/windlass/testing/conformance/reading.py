"""Looking jobs up: by id, by filter, page by page."""

from datetime import timedelta

import pytest

from windlass.client.client import Client
from windlass.core.duration import to_micros
from windlass.core.errors import InvalidValue, JobNotFound, WrongState
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.job import Job, NewJob
from windlass.core.looks import NO_TIME, Death
from windlass.core.requests import ClaimRequest
from windlass.core.settings import QueueSettings
from windlass.core.states import State
from windlass.core.store import Store
from windlass.testing.clock import FakeClock
from windlass.testing.conformance.fixtures import OpenClient
from windlass.testing.conformance.given import SECOND, UNKNOWN, a_dead_job, a_job, claimed, enqueue_each, found
from windlass.testing.conformance.reach import Reach


async def test_a_lookup_follows_a_job_through_its_life(open_client: OpenClient) -> None:
    client = await open_client(QueueSettings(keep_succeeded=60))
    done = await client.enqueue("email", b"")
    states = [(await found(client, done.id)).state]
    claim = await claimed(client, "email")
    states.append((await found(client, done.id)).state)
    await client.ack(claim)
    states.append((await found(client, done.id)).state)

    assert states == [State.PENDING, State.RUNNING, State.SUCCEEDED]


async def test_an_unknown_id_gives_nothing(client: Client) -> None:
    assert await client.get(UNKNOWN) is None


async def test_a_lookup_shows_that_a_job_is_dead(open_client: OpenClient) -> None:
    client = await open_client(QueueSettings(max_attempts=1))
    done = await client.enqueue("email", b"")

    await client.nack(await claimed(client, "email"), "boom")

    assert (await found(client, done.id)).state is State.DEAD


async def test_jobs_are_read_in_the_order_of_the_ids(store: Store) -> None:
    jobs = [a_job(), a_job()]
    await store.enqueue(jobs)

    read = await store.get([jobs[1].id, UNKNOWN, jobs[0].id, jobs[1].id])

    assert [job and job.id for job in read] == [jobs[1].id, None, jobs[0].id, jobs[1].id]


async def test_an_id_may_be_written_in_any_form(client: Client) -> None:
    done = await client.enqueue("email", b"")

    assert (await found(client, JobId(done.id.upper()))).id == done.id
    with pytest.raises(InvalidValue):
        await client.get("not-an-id")


async def test_dead_jobs_are_paged_by_the_last_id(client: Client) -> None:
    """The jobs died at one time, so the last to be enqueued comes first."""
    dead = [await a_dead_job(client) for _ in range(5)][::-1]

    pages: list[list[JobId]] = []
    after = None
    for _ in range(4):
        page = await client.dead_jobs("email", after=after, limit=2)
        pages.append([job.id for job in page])
        after = page[-1].id if page else after

    assert pages == [dead[:2], dead[2:4], dead[4:], []]
    assert await client.dead_jobs("email", limit=0) == []


async def test_dead_jobs_are_those_of_the_queue(client: Client) -> None:
    mine, other = await a_dead_job(client), await a_dead_job(client, "sms")
    await client.enqueue("email", b"")

    assert [job.id for job in await client.dead_jobs("email")] == [mine]
    assert {job.id for job in await client.dead_jobs()} == {mine, other}
    assert await client.dead_jobs("nobody") == []


async def test_the_last_job_to_die_comes_first(client: Client, clock: FakeClock) -> None:
    done = [await client.enqueue(queue) for queue in ("b", "a", "b", "c", "a")]
    claims = {claim.job.id: claim for queue in "abc" for claim in await client.claim_many(queue, limit=2)}
    for number in (3, 0, 4, 2, 1):
        clock.advance(SECOND)
        await client.dead_letter(claims[done[number].id], "no")

    latest = [done[number].id for number in (1, 2, 4, 0, 3)]
    assert [job.id for job in await client.dead_jobs()] == latest
    assert [job.id for job in await _dead_page_by_page(client, 2)] == latest
    assert [job.id for job in await client.dead_jobs("a")] == [done[1].id, done[4].id]
    assert [job.id for job in await client.dead_jobs("b")] == [done[2].id, done[0].id]
    assert [job.id for job in await client.dead_jobs(limit=1)] == latest[:1]


@pytest.mark.parametrize("size", [1, 2, 3, 7])
async def test_jobs_that_died_at_the_same_time_come_by_their_number(
    client: Client, clock: FakeClock, size: int
) -> None:
    done = [await client.enqueue(queue, b"") for queue in ("a", "b", "a", "a", "b", "a", "b", "a")]
    claims = [claim for queue in "ab" for claim in await client.claim_many(queue, limit=8)]
    earlier = {done[6].id, done[7].id}
    for claim in claims:
        if claim.job.id in earlier:
            await client.dead_letter(claim, "no")
    clock.advance(SECOND)
    for claim in claims:
        if claim.job.id not in earlier:
            await client.dead_letter(claim, "no")

    dead = await client.dead_jobs()

    assert [job.seq for job in dead[:6]] == sorted((job.seq for job in dead[:6]), reverse=True)
    assert [job.seq for job in dead[6:]] == sorted((job.seq for job in dead[6:]), reverse=True)
    assert {job.id for job in dead[6:]} == earlier
    assert {job.id for job in dead} == {each.id for each in done}
    assert await _dead_page_by_page(client, size) == dead
    assert await _dead_page_by_page(client, size, "a") == [job for job in dead if job.queue == "a"]


async def test_a_job_that_died_again_comes_first(client: Client, clock: FakeClock) -> None:
    again, once = await a_dead_job(client), await a_dead_job(client)
    clock.advance(SECOND)
    await client.retry(again)

    assert [job.id for job in await client.dead_jobs("email")] == [once]

    clock.advance(SECOND)
    await client.dead_letter(await claimed(client, "email"), "no")

    assert [job.id for job in await client.dead_jobs("email")] == [again, once]
    assert [job.id for job in await client.dead_jobs()] == [again, once]


async def test_a_page_of_dead_jobs_goes_on_past_a_job_that_has_gone(client: Client, clock: FakeClock) -> None:
    dead: list[JobId] = []
    for _ in range(5):
        dead.insert(0, await a_dead_job(client))
        clock.advance(SECOND)
    first = await client.dead_jobs("email", limit=2)
    await client.delete(dead[1])
    await client.delete(dead[3])

    assert [job.id for job in await client.dead_jobs("email", after=first[-1])] == [dead[2], dead[4]]
    assert [job.id for job in await client.dead_jobs(after=first[-1])] == [dead[2], dead[4]]
    assert [job.id for job in await client.dead_jobs("email", after=dead[2].upper())] == [dead[4]]
    with pytest.raises(JobNotFound):
        await client.dead_jobs("email", after=dead[1])


async def test_a_job_that_dies_meanwhile_is_on_no_later_page(client: Client, clock: FakeClock) -> None:
    dead: list[JobId] = []
    for _ in range(3):
        dead.insert(0, await a_dead_job(client))
        clock.advance(SECOND)
    first = await client.dead_jobs(limit=1)
    await a_dead_job(client, "sms")
    await client.retry(dead[2])

    assert [job.id for job in await client.dead_jobs(after=first[0])] == dead[1:2]


async def test_dead_jobs_are_listed_past_one_that_is_dead(client: Client) -> None:
    waiting = await client.enqueue("email", b"")
    listed = await found(client, waiting.id)

    for after in (waiting.id, listed):
        with pytest.raises(WrongState, match="pending; this needs one that is dead"):
            await client.dead_jobs("email", after=after)


async def test_the_position_of_a_dead_job_is_told_with_it(client: Client, store: Store, clock: FakeClock) -> None:
    job = await found(client, await a_dead_job(client))

    [dead] = await store.dead(None, before=None, limit=10)

    assert (dead.job.id, dead.death) == (job.id, Death(to_micros(clock.now()), job.seq))
    assert Death.read(str(dead.death)) == dead.death
    assert await store.dead("email", before=dead.death, limit=10) == []
    assert await store.dead("email", before=Death(NO_TIME, 1), limit=10) == []
    assert await store.dead("email", before=Death(-NO_TIME, 1), limit=10) == [dead]
    assert await store.dead("email", before=None, limit=0) == []


async def _dead_page_by_page(client: Client, size: int, queue: str | None = None) -> list[Job]:
    found: list[Job] = []
    while page := await client.dead_jobs(queue, after=found[-1] if found else None, limit=size):
        found += page
    return found


async def test_jobs_are_paged_in_the_order_of_their_enqueue(client: Client) -> None:
    done = await client.enqueue_many([NewJob("email", delay=10 - n, priority=n) for n in range(7)])

    first = await client.jobs(limit=3)
    second = await client.jobs(after=first[-1], limit=3)
    third = await client.jobs(after=second[-1].id, limit=3)

    assert [job.id for job in first + second + third] == [each.id for each in done]
    assert await client.jobs(limit=0) == []


async def test_a_page_of_no_jobs_is_empty(store: Store, client: Client) -> None:
    await client.enqueue("email")

    assert await store.jobs(JobFilter(), after=None, limit=0) == []


async def test_jobs_are_listed_however_many_there_are(client: Client) -> None:
    done = [each.id for each in await client.enqueue_many([NewJob("email") for _ in range(250)])]

    assert [job.id for job in await client.jobs()] == done
    assert [job.id async for job in client.jobs(after=done[9])] == done[10:]
    assert [job.id for job in await client.jobs(limit=150)] == done[:150]


async def test_dead_jobs_are_listed_however_many_there_are(client: Client) -> None:
    await client.enqueue_many([NewJob("email") for _ in range(250)])
    for claim in await client.claim_many("email", limit=250):
        await client.dead_letter(claim, "no")

    assert len(await client.dead_jobs("email")) == 250
    assert len([job async for job in client.dead_jobs()]) == 250


async def test_a_page_goes_on_after_a_job_that_moved(client: Client) -> None:
    done = await client.enqueue_many([NewJob("email") for _ in range(4)])
    first = await client.jobs(limit=2)
    await client.dead_letter(await claimed(client, "email"), "no")
    await client.retry(done[0].id)

    second = await client.jobs(after=first[-1], limit=5)

    assert [job.id for job in second] == [each.id for each in done[2:]]


async def test_a_cursor_that_is_not_here_is_refused(client: Client) -> None:
    with pytest.raises(JobNotFound):
        await client.jobs(after=UNKNOWN)


async def _chosen(client: Client, chosen: JobFilter) -> list[bytes]:
    return [job.payload for job in await client.jobs(chosen)]


async def test_the_jobs_of_all_queues_are_in_the_order_of_their_enqueue(client: Client, reach: Reach) -> None:
    """Where each queue is for itself, those of one moment are so within their queue alone."""
    for payload, queue in ((b"1", "b"), (b"2", "b"), (b"3", "a"), (b"4", "b"), (b"5", "c"), (b"6", "a")):
        await client.enqueue(queue, payload)

    jobs = await client.jobs()

    wanted = [b"1", b"2", b"3", b"4", b"5", b"6"]
    assert sorted(job.payload for job in jobs) == wanted
    lines = [jobs] if reach.over_queues else [[job for job in jobs if job.queue == queue] for queue in "abc"]
    assert all([job.payload for job in line] == sorted(job.payload for job in line) for line in lines)
    assert [job.id for job in await _page_by_page(client, 2)] == [job.id for job in jobs]


async def test_jobs_of_all_queues_are_in_the_order_of_their_time(client: Client, clock: FakeClock) -> None:
    for payload, queue in ((b"1", "b"), (b"2", "b"), (b"3", "a"), (b"4", "b"), (b"5", "c"), (b"6", "a")):
        await client.enqueue(queue, payload)
        clock.advance(SECOND)

    assert await _chosen(client, JobFilter()) == [b"1", b"2", b"3", b"4", b"5", b"6"]


async def _page_by_page(client: Client, size: int) -> list[Job]:
    found: list[Job] = []
    while page := await client.jobs(after=found[-1] if found else None, limit=size):
        found += page
    return found


async def test_jobs_are_chosen_by_queue_kind_state_and_tenant(client: Client, clock: FakeClock) -> None:
    await client.enqueue("email", b"1", kind="x", tenant="t")
    await client.enqueue("email", b"2", kind="y", delay=5)
    clock.advance(SECOND)
    await client.enqueue("sms", b"3", kind="x")

    assert await _chosen(client, JobFilter()) == [b"1", b"2", b"3"]
    assert await _chosen(client, JobFilter(queue="email")) == [b"1", b"2"]
    assert await _chosen(client, JobFilter(kind="x")) == [b"1", b"3"]
    assert await _chosen(client, JobFilter(state=State.SCHEDULED)) == [b"2"]
    assert await _chosen(client, JobFilter(state="pending")) == [b"1", b"3"]
    assert await _chosen(client, JobFilter(tenant="t")) == [b"1"]
    assert await _chosen(client, JobFilter(queue="email", kind="x", state=State.PENDING, tenant="t")) == [b"1"]
    assert await _chosen(client, JobFilter(queue="sms", kind="y")) == []
    assert await _chosen(client, JobFilter(queue="nobody")) == []


async def test_jobs_are_chosen_by_the_time_of_their_enqueue(client: Client, clock: FakeClock) -> None:
    start = clock.now()
    for payload in (b"1", b"2", b"3"):
        await client.enqueue("email", payload)
        clock.advance(SECOND)

    assert await _chosen(client, JobFilter(since=start + SECOND)) == [b"2", b"3"]
    assert await _chosen(client, JobFilter(until=start + SECOND)) == [b"1"]
    assert await _chosen(client, JobFilter(since=start + SECOND, until=start + 2 * SECOND)) == [b"2"]
    assert await _chosen(client, JobFilter(since=start + timedelta(days=1))) == []


async def test_jobs_are_chosen_by_a_part_of_their_error(client: Client) -> None:
    for payload, error in ((b"1", "connection refused"), (b"2", "50% of 100_000 lost"), (b"3", "Connection reset")):
        await client.enqueue("email", payload)
        await client.dead_letter(await claimed(client, "email"), error)
    await client.enqueue("email", b"4")

    assert await _chosen(client, JobFilter(error="refused")) == [b"1"]
    assert await _chosen(client, JobFilter(error="50%")) == [b"2"]
    assert await _chosen(client, JobFilter(error="100_000")) == [b"2"]
    assert await _chosen(client, JobFilter(error="100X000")) == []
    assert await _chosen(client, JobFilter(error="%")) == [b"2"]


async def test_jobs_are_chosen_by_a_text_in_what_names_them(client: Client) -> None:
    first = await client.enqueue("email", b"1", kind="send_welcome")
    await client.enqueue("email", b"2", unique="order:42")
    await client.enqueue("email", b"3", tenant="acme")
    await client.dead_letter(await claimed(client, "email"), "no such user")

    assert await _chosen(client, JobFilter(text=first.id)) == [b"1"]
    assert await _chosen(client, JobFilter(text=first.id[9:20])) != []
    assert await _chosen(client, JobFilter(text="welcome")) == [b"1"]
    assert await _chosen(client, JobFilter(text="order:42")) == [b"2"]
    assert await _chosen(client, JobFilter(text="acme")) == [b"3"]
    assert await _chosen(client, JobFilter(text="such user")) == [b"1"]
    assert await _chosen(client, JobFilter(text="%")) == []
    assert await _chosen(client, JobFilter(text="'; drop table jobs; --")) == []


async def test_jobs_are_chosen_by_the_schedule_that_made_them(store: Store) -> None:
    made = a_job(schedule_id="nightly")
    await store.enqueue([a_job(), made, a_job(schedule_id="hourly")])

    [job] = await store.jobs(JobFilter(schedule_id="nightly"), after=None, limit=10)

    assert (job.id, job.schedule_id) == (made.id, "nightly")


async def test_a_listing_leaves_history_and_log_to_the_lookup(client: Client) -> None:
    done = await client.enqueue("email", b"")
    await client.ack(await claimed(client, "email"))

    [listed] = await client.jobs()

    assert (listed.history, listed.log) == ((), ())
    assert len((await found(client, done.id)).history) == 1


async def test_the_kinds_that_wait_in_a_queue_are_told_once_each(store: Store) -> None:
    kinds = ["send", None, "archive", "send", "run"]
    await store.enqueue([a_job(kind=kind) for kind in kinds])
    await enqueue_each(store, a_job("other", kind="other"), a_job(kind="later", delay=SECOND))
    await store.claim(ClaimRequest(["default"], 1, SECOND, ["run"]))

    assert await store.kinds("default") == ["archive", "send"]
    assert await store.kinds("default", {"archive", "run"}) == ["send"]
    assert await store.kinds("default", {"send", "zebra"}) == ["archive"]
    assert await store.kinds("default", {"archive", "other", "send"}) == []
    assert await store.kinds("unknown") == []
