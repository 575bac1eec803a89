"""A store whose jobs go to another one: nothing new begins there, and what is running goes on to its end."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import pytest

from windlass.borrow import borrow
from windlass.core.errors import StoreMoved
from windlass.core.filters import JobFilter
from windlass.core.job import Claim, Enqueued, Failure, Note, Progress
from windlass.core.looks import AuditEntry
from windlass.core.moving import HeldKey, Moved, Packed, Parcel
from windlass.core.requests import Changed, KvWrite, RescueRequest, Settled, Settlement
from windlass.core.retention import KEEP_ALL
from windlass.core.schedule import Firing
from windlass.core.states import State
from windlass.core.stats import TimingCount
from windlass.core.store import Store
from windlass.core.topics import PAUSES
from windlass.core.verdict import ToRetry, ToSucceeded
from windlass.testing.clock import FakeClock
from windlass.testing.conformance.fixtures import listening, soon
from windlass.testing.conformance.given import (
    HOUR,
    MINUTE,
    SECOND,
    UNKNOWN,
    a_job,
    a_schedule,
    claim_one,
    kept,
    wanting,
    written,
)
from windlass.testing.conformance.reach import Reach, everything

AWAY: Final = Moved("postgres://db/jobs", "move-1")


async def test_a_store_says_where_its_jobs_went(store: Store, new_store: Callable[[], Store]) -> None:
    assert await store.moved() is None
    await store.set_moved(AWAY)
    await store.set_moved(AWAY)

    other = new_store()
    await other.open()
    try:
        assert (await store.moved(), await other.moved()) == (AWAY, AWAY)
        with pytest.raises(StoreMoved):
            await other.enqueue([a_job()])
    finally:
        await other.close()
    [finding] = [found for found in await store.check() if found.name == "moved"]
    assert finding.level == "warning"
    assert AWAY.to in finding.message
    await store.set_moved(Moved("redis://other", "move-2"))
    assert await store.moved() == Moved("redis://other", "move-2")


async def test_a_store_that_was_moved_begins_nothing_new(store: Store, clock: FakeClock) -> None:
    waiting, dead = a_job(), a_job()
    await store.enqueue([dead])
    await store.cancel([dead.id], KEEP_ALL)
    await store.enqueue([waiting])
    schedule = await written(store, a_schedule(next_run_at=clock.now()))
    held = HeldKey("queue||default|k", UNKNOWN, "time", clock.now() + HOUR, b"digest")
    calls: dict[str, Callable[[], Awaitable[object]]] = {
        "enqueue": lambda: store.enqueue([a_job()]),
        "claim": lambda: store.claim(wanting()),
        "claim of an unknown queue": lambda: store.claim(wanting("nobody")),
        # it may be on its way by now, and would run there
        "cancel": lambda: store.cancel([waiting.id], KEEP_ALL),
        "retry": lambda: store.retry([dead.id]),
        "reschedule": lambda: store.reschedule([waiting.id], clock.now() + HOUR),
        "set_paused": lambda: store.set_paused("default", paused=True),
        "write_schedule": lambda: store.write_schedule(schedule, expected=schedule.revision),
        "remove_schedule": lambda: store.remove_schedule(schedule.id),
        "fire": lambda: store.fire(Firing(schedule.id, schedule.revision, [a_job()], clock.now())),
        "kv_write": lambda: store.kv_write(KvWrite(b"k", b"v")),
        "unpack": lambda: store.unpack(Parcel("move-0", "default", 1, Packed([], []))),
        "take_keys": lambda: store.take_keys([held]),
    }
    await store.set_moved(AWAY)
    before = await everything(store)

    told: dict[str, str] = {}
    for name, call in calls.items():
        try:
            await call()
        except StoreMoved as moved:
            told[name] = moved.to

    assert told == dict.fromkeys(calls, AWAY.to)
    assert await everything(store) == before
    assert await store.timed_keys(limit=10) == []


async def _three_claims(store: Store) -> list[Claim]:
    await store.enqueue([a_job() for _ in range(3)])
    return (await store.claim(wanting(limit=3))).jobs


async def test_what_is_running_in_a_store_that_was_moved_goes_on_to_its_end(store: Store, reach: Reach) -> None:
    first, second, third = await _three_claims(store)
    following, kv = a_job(), reach.kv({b"k": b"v"})
    await store.set_moved(AWAY)

    assert None not in await store.renew([(claim.job.id, claim.token) for claim in (first, second)], HOUR)
    assert await store.note([Note(first.job.id, first.token, Progress(1, 2), [("info", "half")])]) == [True]
    done = Settlement(first.job.id, first.token, ToSucceeded(b"42", "raw"), then=[following], kv=kv)
    again = Settlement(second.job.id, second.token, ToRetry(SECOND, Failure("boom")))
    assert await store.settle([done, again]) == [Settled.DONE, Settled.DONE]

    read = await store.get([first.job.id, second.job.id, third.job.id, following.id])
    states = [None if job is None else job.state for job in read]
    assert states == [State.SUCCEEDED, State.SCHEDULED, State.RUNNING, State.PENDING]
    assert await store.kv_get(list(kv)) == list(kv.values())


async def test_services_go_on_in_a_store_that_was_moved(store: Store, clock: FakeClock) -> None:
    first, second, third = await _three_claims(store)
    await store.settle([Settlement(third.job.id, third.token, ToRetry(SECOND, Failure("boom")))])
    await store.settle([Settlement(second.job.id, second.token, ToSucceeded())])
    schedule = await written(store, a_schedule(next_run_at=clock.now()))
    await store.set_moved(AWAY)
    clock.advance(MINUTE)

    assert [each.id for each in await store.rescue(RescueRequest(), KEEP_ALL)] == [first.job.id]
    assert await store.promote(limit=10) == 1
    assert await store.delete([second.job.id]) == [Changed.DONE]
    assert await store.prune(KEEP_ALL, limit=10) == 0
    assert await store.lock("leader", "me", MINUTE)
    assert await store.unlock("leader", "me")
    await store.write_audit([AuditEntry(clock.now(), "ada", "move", "store", {})])
    await store.write_timings([TimingCount(clock.now().replace(second=0), "default", "", "ran", 0, 1)])
    assert await store.due_in(["default"]) is None
    assert (await store.due_schedules([], limit=10)).due == [schedule]
    assert [entry.action for entry in await store.audit(limit=1)] == ["move"]


async def test_a_call_that_is_repeated_after_the_move_has_its_first_answer(store: Store) -> None:
    job = a_job()
    await store.enqueue([job], request_id="enqueue-1")
    [claim] = (await store.claim(wanting(), request_id="claim-1")).jobs
    await store.set_moved(AWAY)

    assert await store.enqueue([job], request_id="enqueue-1") == [Enqueued(job.id, created=True)]
    assert [each.token for each in (await store.claim(wanting(), request_id="claim-1")).jobs] == [claim.token]


async def test_a_store_may_be_opened_for_jobs_again(store: Store, clock: FakeClock) -> None:
    schedule = await written(store, a_schedule(next_run_at=clock.now()))
    await store.set_moved(AWAY)

    await store.set_moved(None)

    assert await store.moved() is None
    await store.enqueue([a_job()])
    await claim_one(store)
    await store.set_paused("default", paused=True)
    assert await store.kv_write(KvWrite(b"k", b"v"))
    assert await kept(store, schedule.id) == schedule


async def test_a_move_wakes_who_waits_for_claims(store: Store) -> None:
    if not store.features.wakes_waiters:
        return
    with listening(store, PAUSES) as rung:
        await store.set_moved(AWAY)

        await soon(rung.wait())


async def test_nothing_comes_in_after_a_store_said_that_it_is_moved(store: Store) -> None:
    sibling = store.sibling()
    await sibling.open()
    try:
        under_way = [asyncio.ensure_future(_enqueued(door, n)) for n, door in enumerate([store, sibling] * 10)]
        await asyncio.sleep(0)

        await store.set_moved(AWAY)
        listed = {job.id for job in await store.jobs(JobFilter(), after=None, limit=1_000)}

        made = {job_id for job_id in await asyncio.gather(*under_way) if job_id is not None}
        assert made == listed
    finally:
        await sibling.close()


async def test_a_transaction_in_a_store_that_was_moved_settles_and_enqueues_nothing(transactional: Store) -> None:
    store, following = transactional, a_job()
    await store.enqueue([a_job()])
    claim = await claim_one(store)
    await store.set_moved(AWAY)

    async with store.transaction() as connection:
        done = Settlement(claim.job.id, claim.token, ToSucceeded(), then=[following])
        assert await store.join(borrow(connection)).settle([done]) == [Settled.DONE]
    with pytest.raises(StoreMoved) as refused:
        async with store.transaction() as connection:
            await store.join(borrow(connection)).enqueue([a_job()])

    assert refused.value.to == AWAY.to
    assert [job.id for job in (await store.pack("default", limit=10)).jobs] == [following.id]


async def test_a_store_is_moved_when_the_transactions_that_enqueued_before_have_ended(transactional: Store) -> None:
    store, job = transactional, a_job()

    async with store.transaction() as connection:
        await store.join(borrow(connection)).enqueue([job])
        moved = asyncio.ensure_future(store.set_moved(AWAY))
        # time enough for one that would not wait
        for _ in range(5):
            assert await store.get([job.id]) == [None]
        assert not moved.done()
    await soon(moved)

    assert [packed.id for packed in (await store.pack("default", limit=10)).jobs] == [job.id]


async def _enqueued(store: Store, turn: int) -> str | None:
    """Enqueue a job, each after another number of turns of the loop; None when it was refused."""
    for _ in range(turn):
        await asyncio.sleep(0)
    job = a_job()
    try:
        await store.enqueue([job])
    except StoreMoved:
        return None
    return job.id
