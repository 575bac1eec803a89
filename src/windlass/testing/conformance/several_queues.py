"""What needs several queues at once is one step, or it is refused and nothing is written; within one queue all goes."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

import pytest

from windlass.app.app import App
from windlass.client.client import Client
from windlass.core.errors import NotAtomicHere
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.job import Claim, Failure, NewJob, Note, PreparedJob
from windlass.core.requests import CancelOutcome, Changed, ClaimRequest, RescueRequest, Settled, Settlement
from windlass.core.retention import KEEP_ALL
from windlass.core.schedule import Fired, FireOutcome, Firing, Schedule
from windlass.core.states import State
from windlass.core.store import Store
from windlass.core.unique import Unique
from windlass.core.verdict import ToCancelled, ToDead, ToReleased, ToRetry, ToSnoozed, ToSucceeded, Verdict
from windlass.engine.context import Context
from windlass.testing.clock import FakeClock
from windlass.testing.conformance.given import (
    HOUR,
    MINUTE,
    SECOND,
    UNKNOWN,
    a_job,
    a_schedule,
    claim_one,
    claimed,
    enqueue_each,
    kept,
    settlement,
    wanting,
    written,
)
from windlass.testing.conformance.reach import Reach, at_once, everything
from windlass.testing.conformance.served import ended, serving

Kv: TypeAlias = dict[bytes, bytes | None]

FAR: list[tuple[list[PreparedJob], Kv]] = [
    ([a_job("other")], {}),
    ([a_job(), a_job("other")], {}),
    ([], {b"k": b"v"}),
    ([a_job(kv={b"k": b"v"})], {}),
    ([a_job(kind="x", unique=Unique("k", scope="kind"))], {}),
    ([a_job(unique=Unique("k", scope="global"))], {}),
]
"""What a call about the default queue brings, and needs beside that queue: another one, or the caller's own values."""
NAMES = ["another queue", "both queues", "kv", "kv of a job", "a key of a kind", "a key of all"]
EVERY_NEED = pytest.mark.parametrize(("then", "kv"), FAR, ids=NAMES)
VERDICTS: list[Verdict] = [
    ToSucceeded(),
    ToRetry(SECOND, Failure("no")),
    ToDead(Failure("no")),
    ToSnoozed(SECOND),
    ToReleased(),
    ToCancelled("no"),
]
EVERY_END = pytest.mark.parametrize("verdict", VERDICTS, ids=lambda verdict: type(verdict).__name__)


def _ended(claim: Claim, then: Sequence[PreparedJob], kv: Kv, verdict: Verdict | None = None) -> Settlement:
    return Settlement(claim.job.id, claim.token, verdict or ToSucceeded(), then=then, kv=kv)


async def test_a_job_and_a_value_can_be_written_one_after_the_other(client: Client, store: Store) -> None:
    async with at_once(store):
        await client.enqueue("email", b"", id=UNKNOWN, kv={"k": b"v"})

    await client.enqueue("email", b"", id=UNKNOWN)
    await client.kv.put("k", b"v")

    assert (await client.stats("email")).totals.enqueued == 1
    assert await client.kv.scan() == [(b"k", b"v")]


async def test_a_batch_of_one_queue_is_one_step(store: Store) -> None:
    await store.enqueue([a_job("other")])
    jobs = [a_job(unique=Unique("k")), a_job(unique=Unique("k")), a_job()]

    done = await store.enqueue(jobs)

    assert [each.created for each in done] == [True, False, True]


@EVERY_END
@EVERY_NEED
async def test_a_settlement_that_needs_more_than_its_queue_is_one_step_or_refused(
    store: Store, reach: Reach, then: list[PreparedJob], kv: Kv, verdict: Verdict
) -> None:
    await store.enqueue([a_job()])
    claim = await claim_one(store)
    before = await everything(store)

    [answer] = await store.settle([_ended(claim, then, kv, verdict)])

    if reach.over_queues:
        assert answer is Settled.DONE
        assert None not in await store.get([job.id for job in then])
        pairs = [*kv.items(), *(pair for job in then for pair in job.kv.items())]
        assert await store.kv_scan(b"", after=None, limit=10) == pairs
        return
    assert isinstance(answer, NotAtomicHere)
    assert await everything(store) == before
    assert await store.settle([settlement(claim, verdict)]) == [Settled.DONE]


@EVERY_END
async def test_follow_up_jobs_in_the_same_queue_commit_with_the_settlement(store: Store, verdict: Verdict) -> None:
    parent = a_job()
    await store.enqueue([parent])
    jobs = [a_job(unique=Unique("k")), a_job(unique=Unique("k")), a_job(delay=HOUR)]
    follow_ups = [job._replace(parent_id=parent.id) for job in jobs]

    assert await store.settle([_ended(await claim_one(store), follow_ups, {}, verdict)]) == [Settled.DONE]

    first, second, third = await store.get([job.id for job in follow_ups])
    assert first is not None
    assert third is not None
    assert (first.parent_id, first.state, third.state, second) == (parent.id, State.PENDING, State.SCHEDULED, None)


@EVERY_NEED
async def test_a_settlement_that_needs_more_than_its_queue_leaves_the_others_of_its_batch(
    store: Store, reach: Reach, then: list[PreparedJob], kv: Kv
) -> None:
    await store.enqueue([a_job() for _ in range(3)])
    first, second, third = (await store.claim(wanting(limit=3))).jobs

    answers = await store.settle([settlement(first), _ended(second, then, kv), settlement(third)])

    assert answers[0] is answers[2] is Settled.DONE
    assert answers[1] is Settled.DONE if reach.over_queues else isinstance(answers[1], NotAtomicHere)
    [row] = await store.stats("default")
    assert row.succeeded == (3 if reach.over_queues else 2)


@EVERY_NEED
async def test_a_stale_settlement_that_needs_more_than_its_queue_changes_nothing(
    store: Store, reach: Reach, then: list[PreparedJob], kv: Kv
) -> None:
    await store.enqueue([a_job()])
    stale = await claim_one(store)
    await store.rescue(RescueRequest(force=True), KEEP_ALL)
    before = await everything(store)

    [answer] = await store.settle([_ended(stale, then, kv)])

    # what can never be done is refused whoever asks
    assert answer is Settled.LOST if reach.over_queues else isinstance(answer, NotAtomicHere)
    assert await everything(store) == before


async def test_calls_about_jobs_of_several_queues_do_their_part_in_each(store: Store, clock: FakeClock) -> None:
    """None of them needs the queues at once: each job is a step of its own."""
    jobs = {queue: [a_job(queue) for _ in range(4)] for queue in ("a", "b")}
    for batch in jobs.values():
        await store.enqueue(batch)
    claims = (await store.claim(wanting("b", "a", limit=6))).jobs
    assert [claim.job.queue for claim in claims] == ["b"] * 4 + ["a"] * 2
    mixed = [claims[0], claims[4], claims[1], claims[5]]

    renewed = await store.renew([(claim.job.id, claim.token) for claim in mixed], HOUR)
    noted = await store.note([Note(claim.job.id, claim.token, lines=[("info", "begun")]) for claim in mixed])
    settled = await store.settle([settlement(claim, ToDead(Failure("no"))) for claim in mixed])
    cancelled = await store.cancel([jobs["a"][2].id, claims[2].job.id, UNKNOWN, jobs["a"][3].id], KEEP_ALL)

    assert [each and each.lease_expires_at for each in renewed] == [clock.now() + HOUR] * 4
    assert noted == [True] * 4
    assert settled == [Settled.DONE] * 4
    assert cancelled == [
        CancelOutcome.REMOVED,
        CancelOutcome.REQUESTED,
        CancelOutcome.NOT_FOUND,
        CancelOutcome.REMOVED,
    ]
    clock.advance(MINUTE)
    rescued = await store.rescue(RescueRequest(), KEEP_ALL)
    assert {each.id for each in rescued} == {claim.job.id for claim in claims[2:4]}
    ids: list[JobId] = [claims[0].job.id, claims[4].job.id, claims[3].job.id]
    assert await store.retry(ids) == [Changed.DONE, Changed.DONE, Changed.WRONG_STATE]
    assert await store.delete([claims[1].job.id, claims[5].job.id]) == [Changed.DONE] * 2
    assert await store.reschedule(ids, None) == [Changed.DONE] * 3
    read = await store.get([claims[5].job.id, *ids])
    assert [job and job.queue for job in read] == [None, "b", "a", "b"]


async def test_jobs_of_several_queues_are_claimed_again_by_the_same_request(store: Store) -> None:
    await enqueue_each(store, a_job("a"), a_job("b"), a_job("b"))

    first = (await store.claim(wanting("a", "b", limit=2), request_id="r")).jobs
    again = (await store.claim(wanting("a", "b", limit=2), request_id="r")).jobs

    assert [claim.job.queue for claim in first] == ["a", "b"]
    assert [claim.token for claim in again] == [claim.token for claim in first]
    assert len((await store.claim(ClaimRequest(["a", "b"], 10, MINUTE))).jobs) == 1


async def test_a_schedule_may_move_to_another_queue(store: Store, clock: FakeClock) -> None:
    before = await written(store, a_schedule("s", clock.now()))
    moved = replace(before, queue="other")

    async with at_once(store):
        assert await store.write_schedule(moved, expected=before.revision) is not None
        assert (await kept(store, "s")).queue == "other"

    # whoever cannot move it removes it first
    assert await store.remove_schedule("s")
    revision = await store.write_schedule(moved, expected=None)
    assert revision is not None
    assert (await store.schedules()).schedules == [replace(moved, revision=revision)]
    assert (await store.due_schedules([], limit=10)).due == [replace(moved, revision=revision)]


async def test_whoever_has_not_read_a_schedule_moves_it_nowhere(store: Store, clock: FakeClock) -> None:
    before = await written(store, a_schedule("s", clock.now()))
    await store.write_schedule(replace(before, rule="every 60s"), expected=before.revision)
    now = await kept(store, "s")

    assert await store.write_schedule(replace(before, queue="other"), expected=before.revision) is None
    assert await store.write_schedule(replace(before, queue="other"), expected=None) is None
    assert await store.write_schedule(a_schedule("unknown"), expected=before.revision) is None

    assert (await store.schedules()).schedules == [now]


async def test_no_two_schedules_have_one_revision(store: Store) -> None:
    """Also in two queues, and when one is removed and comes back in another: what was read before is stale."""
    schedules = [replace(a_schedule(f"s{number}"), queue=queue) for number in range(3) for queue in ("a", "b")]
    given: list[int | None] = []
    for schedule in schedules:
        given.append(await store.write_schedule(schedule, expected=None))
        await store.remove_schedule(schedule.id)

    assert None not in given
    assert len(set(given)) == len(schedules)


async def test_a_schedule_that_came_back_in_another_queue_does_not_fire_as_it_was(
    store: Store, clock: FakeClock
) -> None:
    schedule = await written(store, a_schedule(next_run_at=clock.now()))
    await store.remove_schedule(schedule.id)
    back = await written(store, replace(a_schedule(next_run_at=clock.now()), queue="other"))

    with_job, without = _firing(schedule, a_job()), _firing(schedule)
    assert [await store.fire(each) for each in (with_job, without)] == [Fired(FireOutcome.LOST)] * 2

    assert await store.jobs(JobFilter(), after=None, limit=10) == []
    assert (await store.schedules()).schedules == [back]
    job = a_job("other")
    assert await store.fire(_firing(back, job)) == Fired(FireOutcome.DONE, job.id)


@EVERY_NEED
async def test_a_firing_that_needs_more_than_its_queue_is_one_step_or_refused(
    store: Store, clock: FakeClock, then: list[PreparedJob], kv: Kv
) -> None:
    schedule = await written(store, a_schedule(next_run_at=clock.now()))
    jobs = then or [a_job(kv=kv)]

    async with at_once(store):
        assert await store.fire(_firing(schedule, *jobs)) == Fired(FireOutcome.DONE, jobs[-1].id)

    # it has fired, or it can still fire for its own queue
    again = await store.fire(_firing(schedule, a_job()))
    assert again.outcome is (FireOutcome.LOST if store.features.atomic_across_queues else FireOutcome.DONE)


def _firing(schedule: Schedule, *jobs: PreparedJob) -> Firing:
    return Firing(schedule.id, schedule.revision, list(jobs), schedule.next_run_at)


async def test_a_handler_that_needs_more_than_its_queue_is_told(app: App, client: Client, reach: Reach) -> None:
    @app.job(max_attempts=1)
    async def work(ctx: Context, *, far: bool) -> None:
        ctx.then(NewJob("next" if far else "default", b"follows"), kv={"k": b"v"} if far else {})

    async with serving(app, queues=["default"]):
        near = await ended(await work.enqueue(far=False))
        far = await ended(await work.enqueue(far=True))

    assert near.state is State.SUCCEEDED
    assert far.state is (State.SUCCEEDED if reach.over_queues else State.DEAD)
    assert reach.over_queues or (far.last_error or "").startswith("NotAtomicHere: ")
    followers = [job.queue for job in await client.jobs() if job.payload == b"follows"]
    assert sorted(followers) == (["default", "next"] if reach.over_queues else ["default"])
    assert await client.kv.get("k") == reach.kv({"k": b"v"}).get("k")


async def test_a_claim_whose_ack_was_refused_can_be_settled_by_its_holder(client: Client, store: Store) -> None:
    await client.enqueue("email", b"")
    claim = await claimed(client, "email")

    async with at_once(store):
        await client.ack(claim, then=[NewJob("next", b"")])
        assert await client.queues() == ["email", "next"]

    await client.ack(claim)
    assert (await client.stats("email")).totals.succeeded == 1
