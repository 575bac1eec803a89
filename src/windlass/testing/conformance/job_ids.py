"""An id belongs to one job: a second job under it is refused, unless queue, kind and tenant are the same."""

import asyncio
from collections.abc import Callable
from typing import Any, Final
from uuid import uuid4

import pytest

from windlass.borrow import borrow
from windlass.client.client import Client
from windlass.core.errors import IdConflict
from windlass.core.job import Enqueued, NewJob, PreparedJob
from windlass.core.requests import Settled
from windlass.core.schedule import Fired, FireOutcome
from windlass.core.states import State
from windlass.core.store import Store
from windlass.core.unique import Unique
from windlass.testing.clock import FakeClock
from windlass.testing.conformance.given import (
    a_job,
    a_schedule,
    claim_one,
    claimed,
    firing,
    found,
    kept,
    made,
    settlement,
    wanting,
    written,
)
from windlass.testing.conformance.reach import Reach, everything

Change = Callable[[PreparedJob, Reach], PreparedJob]
CHANGES: Final[dict[str, Change]] = {
    # where a call reaches one queue alone, an id is looked up in that queue
    "queue": lambda job, reach: job._replace(queue=reach.queue("other"), kind="send" if reach.over_queues else "other"),
    "kind": lambda job, _: job._replace(kind="other"),
    "no kind": lambda job, _: job._replace(kind=None),
    "tenant": lambda job, _: job._replace(tenant="other"),
    "no tenant": lambda job, _: job._replace(tenant=None),
}
OTHER = pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
"""Another job of the same id."""


def _first() -> PreparedJob:
    return a_job(kind="send", payload=b"first")._replace(tenant="acme")


def _facts(error: IdConflict) -> tuple[str, str, str | None, str | None]:
    return error.job_id, error.queue, error.kind, error.tenant


@OTHER
@pytest.mark.parametrize("keyed", [False, True], ids=["plain", "keyed"])
async def test_an_id_of_another_job_refuses_the_whole_batch(
    store: Store, reach: Reach, change: Change, *, keyed: bool
) -> None:
    first = _first()
    await store.enqueue([first])
    second = change(first, reach)._replace(payload=b"second", kv=reach.kv({b"k": b"v"}) if keyed else {})
    beside = [a_job(second.queue, unique=Unique(key) if keyed else None) for key in ("1", "2")]
    before = await everything(store)

    with pytest.raises(IdConflict) as refused:
        await store.enqueue([beside[0], second, beside[1]])

    assert _facts(refused.value) == (first.id, second.queue, second.kind, second.tenant)
    assert await everything(store) == before
    assert await store.enqueue(beside) == [Enqueued(job.id, created=True) for job in beside]


@OTHER
async def test_an_id_of_another_job_refuses_a_job_that_comes_alone(store: Store, reach: Reach, change: Change) -> None:
    first = _first()
    await store.enqueue([first])
    before = await everything(store)

    with pytest.raises(IdConflict):
        await store.enqueue([change(first, reach)])

    assert await everything(store) == before


@pytest.mark.parametrize("kind", [None, "send"])
async def test_a_bare_job_is_refused_under_the_id_of_one_with_a_tenant(store: Store, kind: str | None) -> None:
    job = a_job(kind=kind)
    await store.enqueue([job._replace(tenant="acme")])

    with pytest.raises(IdConflict):
        await store.enqueue([job])

    assert [each and each.tenant for each in await store.get([job.id])] == ["acme"]


@OTHER
@pytest.mark.parametrize("keyed", [False, True], ids=["plain", "keyed"])
async def test_two_jobs_of_one_id_in_a_batch_refuse_it(
    store: Store, reach: Reach, change: Change, *, keyed: bool
) -> None:
    first = _first()
    beside = a_job(unique=Unique("k") if keyed else None)
    before = await everything(store)

    with pytest.raises(IdConflict):
        await store.enqueue([beside, first, change(first, reach)])

    assert await everything(store) == before


async def test_the_same_queue_kind_and_tenant_are_the_same_job_whatever_else_differs(store: Store) -> None:
    first = _first()
    await store.enqueue([first])
    again = first._replace(payload=b"second", priority=1, max_attempts=9, headers={"a": "b"})

    assert await store.enqueue([again]) == [Enqueued(first.id, created=False)]
    assert (
        await store.enqueue([again, a_job()._replace(id=again.id, kind="send", tenant="acme")])
        == [Enqueued(first.id, created=False)] * 2
    )

    [job] = await store.get([first.id])
    assert job is not None
    assert job.payload == b"first"


@pytest.mark.parametrize("state", [State.RUNNING, State.SUCCEEDED])
async def test_an_id_is_taken_whatever_the_state_of_its_job(store: Store, state: State) -> None:
    job = a_job()
    await store.enqueue([job])
    claim = await claim_one(store)
    if state is State.SUCCEEDED:
        await store.settle([settlement(claim)])

    with pytest.raises(IdConflict):
        await store.enqueue([job._replace(kind="other")])

    assert (await store.glance([job.id]))[job.id].state is state


async def test_a_job_whose_id_is_taken_takes_no_key_and_replaces_nothing(store: Store) -> None:
    first, waiting = a_job(), a_job(payload=b"1", unique=Unique("k"))
    await store.enqueue([first, waiting])
    before = await everything(store)
    replacing = Unique("k", on_conflict="replace")

    for job in (a_job(kind="x", unique=Unique("free")), a_job(kind="x", payload=b"2", unique=replacing)):
        with pytest.raises(IdConflict):
            await store.enqueue([job._replace(id=first.id)])

    assert await everything(store) == before
    assert await store.enqueue([free := a_job(unique=Unique("free"))]) == [Enqueued(free.id, created=True)]


async def test_a_job_that_a_unique_key_leaves_out_gives_its_id_to_another(store: Store) -> None:
    """What is enqueued under one id is judged in the order of the batch, as if each came alone."""
    holder = a_job(unique=Unique("k"))
    await store.enqueue([holder])
    left_out = a_job(unique=Unique("k"))

    done = await store.enqueue([left_out, a_job(kind="other")._replace(id=left_out.id)])

    assert done == [Enqueued(holder.id, created=False), Enqueued(left_out.id, created=True)]


async def test_a_taken_id_fails_no_other_caller(store: Store) -> None:
    """Calls that come at once may share a commit; each hears of its own."""
    taken = a_job()
    await store.enqueue([taken])
    good = [a_job() for _ in range(20)]
    bad = [taken._replace(kind="other") for _ in range(3)]
    calls = [store.enqueue([job]) for job in [*good[:10], *bad, taken, *good[10:]]]

    answers: list[Any] = await asyncio.gather(*calls, return_exceptions=True)

    assert [type(answer) for answer in answers[10:13]] == [IdConflict] * 3
    assert answers[13] == [Enqueued(taken.id, created=False)]
    assert [*answers[:10], *answers[14:]] == [[Enqueued(job.id, created=True)] for job in good]
    assert (await store.stats())[0].totals.enqueued == 21


async def test_of_two_callers_with_one_id_one_has_the_job(store: Store, reach: Reach) -> None:
    for _ in range(10):
        one = a_job("one", kind="1")
        other = one._replace(queue=reach.queue("other", "one"), kind="2")

        answers: list[Any] = await asyncio.gather(
            *[store.enqueue([job, a_job(job.queue)]) for job in (one, other)], return_exceptions=True
        )

        [conflict] = [answer for answer in answers if isinstance(answer, IdConflict)]
        [job] = await store.get([one.id])
        assert job is not None
        assert conflict.kind != job.kind
        [done] = [answer for answer in answers if answer is not conflict]
        assert all(each.created for each in done)


@pytest.mark.parametrize("name", ["request-1", None])
async def test_a_refused_call_may_be_repeated_once_the_id_is_free(store: Store, name: str | None) -> None:
    taken = a_job()
    await store.enqueue([taken])
    other = taken._replace(kind="other")
    for _ in range(2):
        with pytest.raises(IdConflict):
            await store.enqueue([other], request_id=name)
    [claim] = (await store.claim(wanting())).jobs
    await store.settle([settlement(claim, keep=False)])

    assert await store.enqueue([other], request_id=name) == [Enqueued(other.id, created=True)]
    assert await store.enqueue([other], request_id=name) == [Enqueued(other.id, created=name is not None)]


async def test_a_follow_up_whose_id_is_taken_refuses_its_settlement_alone(store: Store, reach: Reach) -> None:
    await store.enqueue([a_job() for _ in range(3)])
    first, second, third = (await store.claim(wanting(limit=3))).jobs
    other = a_job(reach.queue("next"), kind="other")._replace(id=first.job.id)
    refused = settlement(second)._replace(then=[a_job(other.queue), other], kv=reach.kv({b"k": b"v"}))
    asked = [settlement(first), refused, settlement(third)]

    answers = await store.settle(asked, request_id="settle-1")

    assert answers[0] is answers[2] is Settled.DONE
    assert isinstance(answers[1], IdConflict)
    assert _facts(answers[1]) == (first.job.id, other.queue, "other", None)
    [row] = await store.stats("default")
    assert (row.succeeded, row.running, row.totals.enqueued) == (2, 1, 3)
    assert await store.kv_get([b"k"]) == [None]
    [_, again, _] = await store.settle(asked, request_id="settle-1")
    assert isinstance(again, IdConflict)
    assert (str(again), _facts(again)) == (str(answers[1]), _facts(answers[1]))


async def test_a_follow_up_may_have_the_id_of_the_job_that_goes_with_its_end(store: Store) -> None:
    await store.enqueue([a_job()])
    claim = await claim_one(store)
    following = a_job(kind="other")._replace(id=claim.job.id)

    assert await store.settle([settlement(claim, keep=False)._replace(then=[following])]) == [Settled.DONE]

    [job] = await store.get([following.id])
    assert job is not None
    assert job.kind == "other"


async def test_a_firing_whose_id_is_taken_neither_makes_jobs_nor_moves_on(store: Store, clock: FakeClock) -> None:
    schedule = await written(store, a_schedule(next_run_at=clock.now()))
    taken = a_job(kind="other")
    await store.enqueue([taken])

    with pytest.raises(IdConflict):
        await store.fire(firing(schedule, a_job(), taken._replace(kind=None)))

    assert await kept(store, "nightly") == schedule
    assert await made(store) == []
    fired = await store.fire(firing(schedule, last := a_job()))
    assert fired == Fired(FireOutcome.DONE, last.id)


@pytest.mark.parametrize("keyed", [False, True], ids=["plain", "keyed"])
async def test_a_taken_id_leaves_the_callers_transaction_as_it_was(transactional: Store, *, keyed: bool) -> None:
    store, taken, before, after = transactional, a_job(), a_job(), a_job()
    await store.enqueue([taken])
    beside, twice = a_job(unique=Unique("k") if keyed else None), a_job()

    async with store.transaction() as connection:
        joined = store.join(borrow(connection))
        await joined.enqueue([before])
        with pytest.raises(IdConflict):
            await joined.enqueue([beside, taken._replace(kind="other")])
        with pytest.raises(IdConflict):
            await joined.enqueue([twice, twice._replace(queue="other")])
        assert await joined.enqueue([taken]) == [Enqueued(taken.id, created=False)]
        await joined.enqueue([after])

    jobs = await store.get([before.id, beside.id, twice.id, after.id])
    assert [job is not None for job in jobs] == [True, False, False, True]
    [row] = await store.stats()
    assert (row.queue, row.pending, row.totals.enqueued) == ("default", 3, 3)


async def test_a_settlement_in_a_transaction_is_refused_by_a_taken_id(transactional: Store) -> None:
    store = transactional
    await store.enqueue([a_job(), a_job()])
    first, second = (await store.claim(wanting(limit=2))).jobs
    other = a_job("next", kind="other")._replace(id=first.job.id)

    async with store.transaction() as connection:
        joined = store.join(borrow(connection))
        answers = await joined.settle([settlement(first)._replace(then=[other]), settlement(second)])

    assert isinstance(answers[0], IdConflict)
    assert answers[1] is Settled.DONE
    assert [row.queue for row in await store.stats()] == ["default"]


async def test_the_error_says_what_was_asked_for_and_nothing_of_the_other_job(client: Client, reach: Reach) -> None:
    job_id = uuid4()
    await client.enqueue("email", b"", id=job_id, kind="mine", tenant="hidden")

    with pytest.raises(IdConflict, match="give each job an id of its own") as refused:
        await client.enqueue_many([NewJob(reach.queue("other", "email"), b"", id=job_id, kind="theirs")])

    assert _facts(refused.value) == (str(job_id), reach.queue("other", "email"), "theirs", None)
    assert "hidden" not in str(refused.value)
    assert "mine" not in str(refused.value)
    assert (await found(client, (await claimed(client, "email")).job.id)).kind == "mine"
