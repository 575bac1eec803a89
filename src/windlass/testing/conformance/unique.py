"""Unique keys: one holder, in its scope, for its time, also under races."""

import asyncio
from contextlib import nullcontext
from datetime import timedelta

import pytest

from windlass.client.client import Client
from windlass.core.ids import JobId
from windlass.core.job import Enqueued
from windlass.core.settings import QueueSettings
from windlass.core.states import State
from windlass.core.store import Store
from windlass.core.unique import OnConflict, Scope, Unique, Until
from windlass.testing.clock import FakeClock
from windlass.testing.conformance.fixtures import OpenClient
from windlass.testing.conformance.given import (
    AT_ONCE,
    HOUR,
    SECOND,
    a_job,
    claim_one,
    claimed,
    found,
    released,
)
from windlass.testing.conformance.reach import Reach, at_once

FINISHED = Unique("k", until="finished")
BY_TIME = Unique("k", until=HOUR)


async def test_of_two_jobs_with_one_id_only_the_first_takes_its_key(store: Store) -> None:
    keyed = a_job(unique=Unique("k"))

    both = await store.enqueue([keyed._replace(unique=None), keyed])
    another = await store.enqueue([a_job(unique=Unique("k"))])

    assert [one.created for one in (*both, *another)] == [True, False, True]


@pytest.mark.parametrize("on_conflict", ["keep", "replace"])
async def test_a_job_whose_id_comes_twice_takes_its_key_before_a_later_one(
    store: Store, on_conflict: OnConflict
) -> None:
    key = Unique("k", until="claimed", on_conflict=on_conflict)
    first, second = a_job(unique=key), a_job(unique=key)

    done = await store.enqueue([first, second, a_job()._replace(id=first.id)])

    assert done == [Enqueued(first.id, created=True), *[Enqueued(first.id, created=False)] * 2]
    assert await store.get([second.id]) == [None]


async def test_a_job_whose_id_came_before_leaves_its_key_to_a_later_one(store: Store) -> None:
    key = Unique("k", on_conflict="replace", until="claimed")
    first, second = a_job(), a_job(unique=key)

    done = await store.enqueue([first, a_job(unique=key)._replace(id=first.id), second])

    assert done == [
        Enqueued(first.id, created=True),
        Enqueued(first.id, created=False),
        Enqueued(second.id, created=True),
    ]


async def test_a_second_job_with_a_held_key_is_the_first(client: Client) -> None:
    first = await client.enqueue("email", b"1", unique="k")

    second = await client.enqueue("email", b"2", unique="k")

    assert (second.id, second.created) == (first.id, False)
    assert (await client.stats("email")).pending == 1
    assert (await found(client, first.id)).payload == b"1"


async def test_the_first_claim_frees_the_key(client: Client) -> None:
    first = await client.enqueue("email", b"", unique="k")
    claim = await claimed(client, "email")

    second = await client.enqueue("email", b"", unique="k")

    assert claim.job.unique_key is None
    assert (second.created, second.id == first.id) == (True, False)
    assert (await client.stats("email")).pending == 1


async def test_a_retried_job_does_not_take_its_key_again(open_client: OpenClient) -> None:
    client = await open_client(AT_ONCE)
    await client.enqueue("email", b"1", unique="k")
    claim = await claimed(client, "email")
    assert claim.job.unique_key is None
    await client.nack(claim, "boom")
    second = await client.enqueue("email", b"2", unique="k")
    assert (await claimed(client, "email")).job.payload == b"1"

    third = await client.enqueue("email", b"3", unique="k")

    assert (third.id, third.created) == (second.id, False)
    assert (await claimed(client, "email")).job.id == second.id
    assert (await client.stats("email")).pending == 0


async def test_a_snooze_or_a_rescue_does_not_take_the_key_again(client: Client) -> None:
    done = await client.enqueue("email", b"", unique="k")
    await client.snooze(await claimed(client, "email"), 0)
    assert (await found(client, done.id)).unique_key is None
    await claimed(client, "email", lease=0)
    await client.rescue()

    second = await client.enqueue("email", b"", unique="k")

    assert second.created
    assert (await found(client, done.id)).unique_key is None


async def test_two_jobs_without_a_key_are_two_jobs(client: Client, reach: Reach) -> None:
    key = Unique("k", scope=reach.scope("kind"))
    keyed = [await client.enqueue("email", b"", kind="x", unique=key) for _ in range(2)]
    plain = [await client.enqueue("email", b"", kind="x") for _ in range(2)]

    assert len({each.id for each in keyed}) == 1
    assert len({each.id for each in plain}) == 2
    assert (await client.stats("email")).pending == 3


async def test_a_key_holds_in_its_queue(client: Client) -> None:
    await client.enqueue("email", b"", kind="x", unique="k")

    assert (await client.enqueue("sms", b"", kind="x", unique="k")).created
    assert not (await client.enqueue("email", b"", kind="y", unique="k")).created


async def test_a_key_may_hold_for_its_kind_over_all_queues(client: Client, store: Store) -> None:
    key = Unique("k", scope="kind")
    async with at_once(store):
        await client.enqueue("email", b"", kind="x", unique=key)

        assert not (await client.enqueue("sms", b"", kind="x", unique=key)).created
        assert (await client.enqueue("email", b"", kind="y", unique=key)).created
        assert (await client.enqueue("email", b"", unique=key)).created


async def test_a_key_may_hold_for_all(client: Client, store: Store) -> None:
    key = Unique("k", scope="global")
    async with at_once(store):
        await client.enqueue("email", b"", kind="x", unique=key)

        assert not (await client.enqueue("sms", b"", kind="y", unique=key)).created


async def test_the_scopes_do_not_meet(client: Client, store: Store) -> None:
    assert (await client.enqueue("k", b"", kind="k", unique=Unique("k", scope="queue"))).created
    async with at_once(store):
        assert (await client.enqueue("k", b"", kind="k", unique=Unique("k", scope="kind"))).created
    async with at_once(store):
        assert (await client.enqueue("k", b"", kind="k", unique=Unique("k", scope="global"))).created


@pytest.mark.parametrize("scope", ["queue", "kind", "global"])
async def test_the_tenant_is_part_of_every_scope(client: Client, store: Store, scope: Scope) -> None:
    key = Unique("k", scope=scope)
    async with nullcontext() if scope == "queue" else at_once(store):
        await client.enqueue("email", b"", kind="x", tenant="t1", unique=key)

        assert (await client.enqueue("email", b"", kind="x", tenant="t2", unique=key)).created
        assert (await client.enqueue("email", b"", kind="x", unique=key)).created
        assert not (await client.enqueue("email", b"", kind="x", tenant="t1", unique=key)).created


async def test_names_cannot_reach_into_another_key(client: Client) -> None:
    assert (await client.enqueue("a", b"", unique="b:c")).created
    assert (await client.enqueue("a:b", b"", unique="c")).created
    assert (await client.enqueue("a", b"", tenant="b", unique="c")).created
    assert (await client.enqueue("b", b"", tenant="a", unique="c")).created


async def test_a_key_until_finished_is_held_through_retries(open_client: OpenClient) -> None:
    client = await open_client(AT_ONCE)
    first = await client.enqueue("email", b"", unique=FINISHED)
    claim = await claimed(client, "email")
    assert claim.job.unique_key == "k"
    assert (await client.enqueue("email", b"", unique=FINISHED)).id == first.id
    await client.nack(claim, "boom")
    assert (await client.enqueue("email", b"", unique=FINISHED)).id == first.id
    await client.snooze(await claimed(client, "email"), 0)
    assert (await client.enqueue("email", b"", unique=FINISHED)).id == first.id
    await claimed(client, "email", lease=0)
    await client.rescue()

    assert (await client.enqueue("email", b"", unique=FINISHED)).id == first.id


@pytest.mark.parametrize("kept", [0, None])
@pytest.mark.parametrize("end", ["ack", "dead_letter", "cancel_claim", "nack", "rescue", "cancel"])
async def test_a_key_until_finished_is_freed_at_every_end(open_client: OpenClient, end: str, kept: int | None) -> None:
    settings = QueueSettings(max_attempts=1, keep_succeeded=kept, keep_dead=kept, keep_cancelled=kept)
    client = await open_client(settings)
    first = await client.enqueue("email", b"", unique=FINISHED)
    if end == "cancel":
        await client.cancel(first.id)
    else:
        await _end(client, end)

    second = await client.enqueue("email", b"", unique=FINISHED)

    assert second.created
    record = await client.get(first.id)
    assert record is None or record.unique_key == "k"


async def _end(client: Client, end: str) -> None:
    claim = await claimed(client, "email", lease=0)
    match end:
        case "ack":
            await client.ack(claim)
        case "dead_letter":
            await client.dead_letter(claim, "no")
        case "cancel_claim":
            await client.cancel_claim(claim, "no")
        case "nack":
            await client.nack(claim, "boom")
        case _:
            await client.rescue()


async def test_a_cancelled_job_frees_the_key_that_it_held(client: Client) -> None:
    first = await client.enqueue("email", b"", unique="k")

    await client.cancel(first.id)

    assert (await client.enqueue("email", b"", unique="k")).created


async def test_a_key_by_time_is_freed_by_time_alone(open_client: OpenClient, clock: FakeClock) -> None:
    client = await open_client(QueueSettings(keep_succeeded=0))
    first = await client.enqueue("email", b"", unique=BY_TIME)
    assert await client.enqueue("email", b"", unique=BY_TIME) == (first.id, False)
    claim = await claimed(client, "email")
    assert await client.enqueue("email", b"", unique=BY_TIME) == (first.id, False)
    await client.ack(claim)
    assert await client.get(first.id) is None
    clock.advance(HOUR - timedelta(microseconds=1))
    assert await client.enqueue("email", b"", unique=BY_TIME) == (first.id, False)

    clock.advance(timedelta(microseconds=1))

    assert (await client.enqueue("email", b"", unique=BY_TIME)).created


async def test_a_key_by_time_survives_cancel_and_delete(client: Client) -> None:
    first = await client.enqueue("email", b"", unique=BY_TIME)
    await client.cancel(first.id)
    await client.delete(first.id)

    assert await client.enqueue("email", b"", unique=BY_TIME) == (first.id, False)


async def test_a_key_by_time_does_not_outlive_its_time_while_the_job_waits(client: Client, clock: FakeClock) -> None:
    await client.enqueue("email", b"", unique=Unique("k", until=SECOND))

    clock.advance(SECOND)

    assert (await client.enqueue("email", b"", unique=Unique("k", until=SECOND))).created


async def test_an_old_holder_by_time_frees_nothing_of_the_new_one(client: Client, clock: FakeClock) -> None:
    await client.enqueue("email", b"old", unique=Unique("k", until=SECOND))
    clock.advance(SECOND)
    new = await client.enqueue("email", b"new", unique=FINISHED)

    await client.ack(await claimed(client, "email"))

    assert await client.enqueue("email", b"", unique=FINISHED) == (new.id, False)


async def test_rivals_with_one_key_get_one_job(open_client: OpenClient) -> None:
    clients = [await open_client() for _ in range(3)]

    done = await asyncio.gather(
        *(client.enqueue("email", b"", unique="k") for client in clients for _ in range(10)),
    )

    assert len({each.id for each in done}) == 1
    assert sum(each.created for each in done) == 1


async def test_a_release_before_the_start_takes_the_key_back(client: Client) -> None:
    first = await client.enqueue("email", b"", unique="k")

    await client.release(await claimed(client, "email"))

    assert (await found(client, first.id)).unique_key == "k"
    assert await client.enqueue("email", b"", unique="k") == (first.id, False)


async def test_a_release_leaves_a_key_that_another_job_holds(client: Client) -> None:
    first = await client.enqueue("email", b"1", unique="k")
    claim = await claimed(client, "email")
    second = await client.enqueue("email", b"2", unique="k")

    await client.release(claim)

    assert (await found(client, first.id)).unique_key is None
    assert await client.enqueue("email", b"3", unique="k") == (second.id, False)
    again = await claimed(client, "email")
    assert again.job.id == first.id
    assert await client.enqueue("email", b"4", unique="k") == (second.id, False)


async def test_a_release_after_the_start_takes_no_key_back(store: Store) -> None:
    job = a_job(unique=Unique("k"))
    await store.enqueue([job])

    await store.settle([released(await claim_one(store), started=True)])

    [read] = await store.get([job.id])
    assert read is not None
    assert read.unique_key is None
    [again] = await store.enqueue([a_job(unique=Unique("k"))])
    assert again.created


@pytest.mark.parametrize("end", ["nack", "snooze", "rescue"])
async def test_a_release_after_an_earlier_delivery_takes_no_key_back(open_client: OpenClient, end: str) -> None:
    client = await open_client(AT_ONCE)
    first = await client.enqueue("email", b"", unique="k")
    if end == "snooze":
        await client.snooze(await claimed(client, "email"), 0)
    else:
        await _end(client, end)

    await client.release(await claimed(client, "email"))

    assert (await found(client, first.id)).unique_key is None


MOVES = ("nack", "snooze", "release", "rescue", "retry", "requeue_dead", "reschedule", "run_now", "promote")


@pytest.mark.parametrize("until", ["claimed", "finished", HOUR], ids=str)
@pytest.mark.parametrize("move", MOVES)
async def test_no_move_of_a_job_conflicts_with_its_own_key(
    open_client: OpenClient, clock: FakeClock, move: str, until: Until | timedelta
) -> None:
    """Over every way back to the line, also a second time."""
    client = await open_client(AT_ONCE)
    done = await client.enqueue("email", b"", unique=Unique("k", until=until, on_conflict="raise"))
    for _ in range(2):
        await _move(client, clock, move, done.id)
        assert (await found(client, done.id)).state is State.PENDING

    await client.ack(await claimed(client, "email"))

    assert (await found(client, done.id)).state is State.SUCCEEDED
    assert (await client.stats("email")).totals.enqueued == 1


async def _move(client: Client, clock: FakeClock, move: str, job_id: JobId) -> None:
    match move:
        case "nack" | "rescue":
            await _end(client, move)
        case "snooze":
            await client.snooze(await claimed(client, "email"), 0)
        case "release":
            await client.release(await claimed(client, "email"))
        case "retry":
            await client.cancel(job_id)
            await client.retry(job_id)
        case "requeue_dead":
            await client.dead_letter(await claimed(client, "email"), "no")
            await client.requeue_dead(job_id)
        case "reschedule" | "run_now":
            await client.reschedule(job_id, clock.now() + HOUR)
            await (client.reschedule(job_id, clock.now()) if move == "reschedule" else client.run_now(job_id))
        case _:
            await client.snooze(await claimed(client, "email"), 1)
            clock.advance(1)
            assert await client.promote() == 1
