"""Jobs on their way to another store: packed, unpacked and let go, without a loss and never twice.

There is one store here: what leaves it comes back to it.
"""

from typing import Final
from uuid import uuid4

import pytest

from windlass.core.commands import UnpackJobs
from windlass.core.errors import IdConflict, InvalidValue, UniqueConflict
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.job import Enqueued, Failure, Job, Note, Progress
from windlass.core.moving import HeldKey, Moved, Packed, Parcel, Unpacked
from windlass.core.requests import KvWrite, RescueRequest
from windlass.core.retention import KEEP_ALL
from windlass.core.states import State
from windlass.core.stats import Totals
from windlass.core.store import Store
from windlass.core.topics import queue_topic
from windlass.core.unique import Unique, digest
from windlass.core.verdict import ToDead, ToRetry
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
    released,
    settlement,
    wanting,
    written,
)
from windlass.testing.conformance.reach import Reach, everything

NOTHING: Final = Packed((), ())
BY_TIME: Final = Unique("k", until=HOUR)


def _parcel(packed: Packed, number: int = 1, *, move: str = "move-1", queue: str = "default") -> Parcel:
    return Parcel(move, queue, number, packed)


def _same(packed: Packed) -> tuple[list[Job], list[HeldKey]]:
    """Return what is packed, in a form to compare: the sequence numbers are the store's own."""
    jobs = [job._replace(seq=0, headers=dict(job.headers)) for job in packed.jobs]
    return jobs, sorted(HeldKey(*key) for key in packed.keys)


async def _job(store: Store, job_id: JobId) -> Job:
    [job] = await store.get([job_id])
    assert job is not None
    return job


async def _take_out(store: Store, *, limit: int = 100) -> Packed:
    """Pack the jobs of the default queue, and let go of them."""
    packed = await store.pack("default", limit=limit)
    await store.let_go(jobs=[job.id for job in packed.jobs])
    return packed


async def test_the_waiting_jobs_of_a_queue_are_packed_in_the_order_of_their_enqueue(store: Store) -> None:
    running, done, *waiting = (a_job(kind=kind) for kind in (None, "x", "y", None, "x", "y"))
    waiting[1] = waiting[1]._replace(delay=HOUR)
    waiting[3] = waiting[3]._replace(priority=1)
    await store.enqueue([running, done])
    [_, second] = (await store.claim(wanting(limit=2))).jobs
    await store.settle([settlement(second)])
    await store.enqueue(waiting)
    await store.enqueue([a_job("sms")])
    await store.set_paused("default", paused=True)

    packed = await store.pack("default", limit=100)
    some = await store.pack("default", limit=3)

    assert [job.id for job in packed.jobs] == [job.id for job in waiting]
    assert list(packed.jobs) == await store.get([job.id for job in waiting])
    assert list(some.jobs) == list(packed.jobs)[:3]
    assert [*packed.keys] == []
    assert _same(await store.pack("nobody", limit=10)) == _same(NOTHING)
    [row] = await store.stats("default")
    assert (row.pending, row.scheduled, row.running, row.succeeded) == (3, 1, 1, 1)


async def test_the_keys_that_packed_jobs_hold_are_packed_with_them(store: Store, clock: FakeClock) -> None:
    claimed = a_job(payload=b"1", unique=Unique("a"))
    finished = a_job(payload=b"2", unique=Unique("b", until="finished"))
    timed = a_job(payload=b"3", unique=Unique("c", until=HOUR), delay=MINUTE)
    without = a_job()
    await store.enqueue([claimed, finished, timed, without])

    packed = await store.pack("default", limit=100)
    two = await store.pack("default", limit=2)

    keys = [
        HeldKey("queue||default|a", claimed.id, "claimed", None, digest(b"1")),
        HeldKey("queue||default|b", finished.id, "finished", None, digest(b"2")),
        HeldKey("queue||default|c", timed.id, "time", clock.now() + HOUR, digest(b"3")),
    ]
    assert _same(packed)[1] == keys
    assert _same(two)[1] == keys[:2]


async def _lived(store: Store, clock: FakeClock) -> list[JobId]:
    """Enqueue jobs that have all that a waiting job can have; return their ids, in the order of their enqueue."""
    whole = a_job(payload=b"\0\xff" * 1_000, kind="x", max_attempts=7, unique=Unique("a", until="finished"))
    whole = whole._replace(
        headers={"trace": "ü"},
        tenant="acme",
        priority=7,
        parent_id=JobId(str(uuid4())),
        schedule_id="nightly",
        limit_key="acme",
    )
    plain, later, flagged = a_job(), a_job(delay=HOUR), a_job()
    await store.enqueue([whole])
    for _ in range(2):
        claim = await claim_one(store, worker="w1")
        await store.note([Note(whole.id, claim.token, None, [("info", "one"), ("error", "two")])])
        clock.advance(SECOND)
        failure = Failure("no such user", "ValueError", "Traceback ...", "builtins")
        await store.settle([settlement(claim, ToRetry(SECOND, failure))])
        clock.advance(SECOND)
        await store.promote(limit=10)
    await store.enqueue([flagged])
    [claim, _] = (await store.claim(wanting(limit=2))).jobs
    await store.note([Note(whole.id, claim.token, Progress(1, 3, "a third"))])
    await store.cancel([flagged.id], KEEP_ALL)
    await store.rescue(RescueRequest(force=True), KEEP_ALL)
    await store.enqueue([plain, later])
    for retried in (plain, flagged):
        await store.cancel([retried.id], KEEP_ALL)
        await store.retry([retried.id])
    return [whole.id, flagged.id, plain.id, later.id]


async def test_unpacked_jobs_are_what_they_were(store: Store, clock: FakeClock) -> None:
    ids = await _lived(store, clock)
    packed = await _take_out(store)
    assert [job.id for job in packed.jobs] == ids
    assert await store.get(ids) == [None] * len(ids)
    clock.advance(MINUTE)

    assert await store.unpack(_parcel(packed))

    again = await store.pack("default", limit=100)
    assert _same(again) == _same(packed)
    assert min(job.seq for job in again.jobs) > max(job.seq for job in packed.jobs)
    assert list(again.jobs) == await store.get(ids)


async def test_a_parcel_is_unpacked_once_and_in_its_turn(store: Store) -> None:
    await store.enqueue([a_job() for _ in range(4)])
    first, second = await _take_out(store, limit=2), await _take_out(store, limit=2)
    assert await store.unpacked("move-1", "default") is None

    assert not await store.unpack(_parcel(second, 2))
    assert await store.unpack(_parcel(first, 1))
    assert not await store.unpack(_parcel(first, 1))
    assert not await store.unpack(_parcel(second, 1))
    assert not await store.unpack(_parcel(second, 3))
    assert await store.unpacked("move-1", "default") == Unpacked(1, [job.id for job in first.jobs])
    [row] = await store.stats()
    assert (row.pending, row.totals.enqueued) == (2, 6)

    assert await store.unpack(_parcel(second, 2))
    assert await store.unpacked("move-1", "default") == Unpacked(2, [job.id for job in second.jobs])
    claims = (await store.claim(wanting(limit=10))).jobs
    assert [claim.job.id for claim in claims] == [job.id for packed in (first, second) for job in packed.jobs]


async def test_a_parcel_repeated_with_its_request_gives_the_first_reply(store: Store) -> None:
    await store.enqueue([a_job(), a_job()])
    command = UnpackJobs(_parcel(await _take_out(store, limit=2)))

    first = await store.do(command, request_id="r1")
    await store.set_moved(Moved("redis://other", "move-2"))
    second = await store.do(command, request_id="r1")

    assert (first, second) == (True, True)
    [row] = await store.stats()
    assert (row.pending, row.totals.enqueued) == (2, 4)


async def test_each_move_and_queue_has_parcels_of_its_own(store: Store) -> None:
    await store.enqueue([a_job("sms")])
    sms = await store.pack("sms", limit=10)
    await store.let_go(jobs=[job.id for job in sms.jobs])

    assert await store.unpack(_parcel(NOTHING))
    assert await store.unpack(_parcel(NOTHING, move="move-2"))
    assert await store.unpack(_parcel(sms, queue="sms"))

    assert await store.unpacked("move-1", "default") == Unpacked(1, [])
    assert await store.unpacked("move-1", "sms") == Unpacked(1, [job.id for job in sms.jobs])
    assert await store.unpacked("move-2", "sms") is None


async def test_a_job_that_is_here_already_is_passed_by(store: Store) -> None:
    here, gone = a_job(payload=b"here"), a_job(payload=b"gone")
    await store.enqueue([here, gone])
    packed = await store.pack("default", limit=10)
    await store.let_go(jobs=[gone.id])
    await store.settle([settlement(await claim_one(store))])
    before = await _job(store, here.id)

    assert await store.unpack(_parcel(packed))

    assert await _job(store, here.id) == before
    assert (await _job(store, gone.id)).state is State.PENDING
    # whoever lets go of them asks what was in the parcel, not what was new
    assert await store.unpacked("move-1", "default") == Unpacked(1, [here.id, gone.id])
    [row] = await store.stats()
    assert (row.pending, row.succeeded, row.totals) == (1, 1, Totals(enqueued=3, succeeded=1))


async def test_a_parcel_with_what_does_not_wait_in_its_queue_is_refused_whole(store: Store) -> None:
    await store.enqueue([a_job(), a_job()])
    first, second = (await _take_out(store)).jobs

    for wrong in (
        second._replace(state=State.RUNNING),
        second._replace(state=State.DEAD),
        second._replace(queue="sms"),
    ):
        with pytest.raises(InvalidValue, match=f"{second.id} is {wrong.state} in '{wrong.queue}'"):
            await store.unpack(_parcel(Packed([first, wrong], [])))

    assert await store.unpacked("move-1", "default") is None
    assert await store.get([first.id, second.id]) == [None, None]


async def test_an_unpacked_job_holds_its_key_as_before(store: Store, clock: FakeClock) -> None:
    uniques = [Unique("a"), Unique("b", until="finished"), Unique("c", until=HOUR)]
    jobs = [a_job(unique=unique) for unique in uniques]
    await store.enqueue(jobs)
    clock.advance(MINUTE)
    await store.unpack(_parcel(await _take_out(store)))

    async def free() -> list[bool]:
        """Whether each key is free: another job takes it, and is cancelled."""
        made = [await store.enqueue([a_job(unique=unique)]) for unique in uniques]
        await store.cancel([each.id for [each] in made if each.created], KEEP_ALL)
        return [each.created for [each] in made]

    assert await free() == [False, False, False]
    claims = (await store.claim(wanting(limit=3))).jobs
    assert [claim.job.unique_key for claim in claims] == [None, "b", "c"]
    assert await free() == [True, False, False]
    await store.settle([settlement(claim) for claim in claims])
    assert await free() == [True, True, False]
    clock.advance(HOUR - MINUTE)
    assert await free() == [True, True, True]


async def test_an_unpacked_job_takes_its_key_back_and_keeps_its_digest(store: Store) -> None:
    key = Unique("k", match_payload=True)
    job = a_job(payload=b"1", unique=key)
    await store.enqueue([job])
    await store.unpack(_parcel(await _take_out(store)))

    await store.settle([released(await claim_one(store))])

    assert (await _job(store, job.id)).unique_key == "k"
    assert await store.enqueue([a_job(payload=b"1", unique=key)]) == [Enqueued(job.id, created=False)]
    with pytest.raises(UniqueConflict):
        await store.enqueue([a_job(payload=b"2", unique=key)])


async def test_a_job_whose_key_is_held_here_comes_without_it(store: Store) -> None:
    key = Unique("k", until="finished")
    job, holder = a_job(unique=key), a_job(unique=key)
    await store.enqueue([job])
    packed = await _take_out(store)
    await store.enqueue([holder])

    assert await store.unpack(_parcel(packed))

    assert (await _job(store, job.id)).unique_key is None
    claims = {claim.job.id: claim for claim in (await store.claim(wanting(limit=2))).jobs}
    await store.settle([settlement(claims[job.id], ToDead(Failure("no")))])
    assert await store.enqueue([a_job(unique=key)]) == [Enqueued(holder.id, created=False)]


@pytest.mark.parametrize("module", [None, "", "shop.orders"])
async def test_a_failure_moves_with_the_module_of_its_type(store: Store, module: str | None) -> None:
    job = a_job()
    await store.enqueue([job])
    failure = Failure("no", "Refused", None, module)
    await store.settle([settlement(await claim_one(store), ToRetry(SECOND, failure))])

    await store.unpack(_parcel(await _take_out(store)))

    assert [each.failure for each in (await _job(store, job.id)).history] == [failure]


async def test_an_unpacked_job_that_is_due_is_ready_at_once(store: Store, clock: FakeClock) -> None:
    late, early, later = a_job(delay=2 * MINUTE), a_job(delay=MINUTE), a_job(delay=2 * HOUR)
    urgent = a_job()._replace(priority=1)
    await store.enqueue([late, early, later, urgent])
    packed = await _take_out(store)
    clock.advance(HOUR)

    await store.unpack(_parcel(packed))

    claims = (await store.claim(wanting(limit=10))).jobs
    assert [claim.job.id for claim in claims] == [urgent.id, early.id, late.id]
    assert await store.due_in(["default"]) == HOUR


async def test_unpacked_jobs_wake_who_waits_for_claims(store: Store) -> None:
    if not store.features.wakes_waiters:
        return
    await store.enqueue([a_job()])
    packed = await _take_out(store)

    with listening(store, queue_topic("default")) as rung:
        await store.unpack(_parcel(packed))

        await soon(rung.wait())


async def test_only_what_waits_is_let_go(store: Store) -> None:
    running, done, waiting, later, stays = (a_job(delay=HOUR if n == 3 else None) for n in range(5))
    await store.enqueue([running, done, waiting, later, stays])
    claims = (await store.claim(wanting(limit=2))).jobs
    await store.settle([settlement(claims[1])])

    await store.let_go(jobs=[job.id for job in (running, done, waiting, later)] + [UNKNOWN])
    await store.let_go(jobs=[waiting.id])

    assert [job is not None for job in await store.get([running.id, done.id, waiting.id, later.id])] == [
        True,
        True,
        False,
        False,
    ]
    [row] = await store.stats()
    assert (row.scheduled, row.pending, row.running, row.succeeded) == (0, 1, 1, 1)
    assert row.totals == Totals(enqueued=5, succeeded=1)
    assert [claim.job.id for claim in (await store.claim(wanting(limit=9))).jobs] == [stays.id]


async def test_a_job_that_is_let_go_leaves_nothing_behind(store: Store) -> None:
    job = a_job(unique=BY_TIME)
    await store.enqueue([job])
    claim = await claim_one(store)
    await store.note([Note(job.id, claim.token, None, [("info", "line")])])
    await store.settle([settlement(claim, ToRetry(SECOND, Failure("boom")))])

    await store.let_go(jobs=[job.id])

    assert await store.timed_keys(limit=10) == []
    assert await store.enqueue([a_job()._replace(id=job.id, unique=job.unique)]) == [Enqueued(job.id, created=True)]
    again = await _job(store, job.id)
    assert (again.attempt, again.delivery, again.history, again.log) == (0, 0, (), ())


async def test_values_and_schedules_are_let_go(store: Store) -> None:
    for key in (b"a", b"b", b"c"):
        await store.kv_write(KvWrite(key, b"v"))
    for name in ("hourly", "nightly"):
        await written(store, a_schedule(name))

    await store.let_go(kv=[b"a", b"c", b"unknown"])
    await store.let_go(schedules=["nightly", "unknown"])

    assert await store.kv_scan(b"", after=None, limit=10) == [(b"b", b"v")]
    assert [schedule.id for schedule in (await store.schedules()).schedules] == ["hourly"]


async def test_keys_that_time_frees_go_over_with_what_is_left_of_it(store: Store, clock: FakeClock) -> None:
    job = a_job(payload=b"1", unique=BY_TIME)
    await store.enqueue([job, a_job(unique=Unique("other"))])
    await store.settle([settlement(await claim_one(store))])
    clock.advance(MINUTE)
    [key] = await store.timed_keys(limit=10)
    expected = HeldKey("queue||default|k", job.id, "time", clock.now() + HOUR - MINUTE, digest(b"1"))
    assert HeldKey(*key) == expected
    await store.let_go(keys=[key.name])
    assert await store.timed_keys(limit=10) == []

    await store.take_keys([key])
    await store.take_keys([key])

    assert [HeldKey(*each) for each in await store.timed_keys(limit=10)] == [expected]
    assert await store.enqueue([a_job(unique=BY_TIME)]) == [Enqueued(job.id, created=False)]
    clock.advance(HOUR - MINUTE)
    assert await store.timed_keys(limit=10) == []
    [after] = await store.enqueue([a_job(unique=BY_TIME)])
    assert after.created


async def test_a_key_that_is_held_here_is_not_taken_over(store: Store, clock: FakeClock) -> None:
    holder = a_job(unique=Unique("k", until="finished"))
    await store.enqueue([holder, a_job(unique=Unique("l", until=HOUR)), a_job(unique=Unique("m", until=MINUTE))])
    [other, key] = sorted(await store.timed_keys(limit=10))
    assert len(await store.timed_keys(limit=1)) == 1

    await store.take_keys([key._replace(name="queue||default|k", job_id=UNKNOWN), other._replace(job_id=UNKNOWN)])

    assert await store.enqueue([a_job(unique=Unique("k", until="finished"))]) == [Enqueued(holder.id, created=False)]
    assert sorted(await store.timed_keys(limit=10)) == [other, key]
    clock.advance(MINUTE)
    # one whose time is over takes no place
    assert await store.timed_keys(limit=1) == [other]


async def test_what_is_back_here_is_not_let_go_of_by_a_move_that_is_over(store: Store, clock: FakeClock) -> None:
    """A mover that slept since its parcel was unpacked finds the jobs here again."""
    job, schedule = a_job(), await written(store, a_schedule(next_run_at=clock.now() + HOUR))
    await store.enqueue([job])
    await store.kv_write(KvWrite(b"k", b"v"))

    assert not await store.let_go(move="move-1", jobs=[job.id], kv=[b"k"], schedules=[schedule.id])
    await store.set_moved(Moved("redis://other", "move-2"))
    assert not await store.let_go(move="move-1", jobs=[job.id], kv=[b"k"], schedules=[schedule.id])

    assert await store.kv_get([b"k"]) == [b"v"]
    assert len((await store.schedules()).schedules) == len(await store.get([job.id])) == 1
    assert await store.let_go(move="move-2", jobs=[job.id], kv=[b"k"], schedules=[schedule.id])
    assert (await store.get([job.id]), await store.kv_get([b"k"])) == ([None], [None])
    assert (await store.schedules()).schedules == []


@pytest.mark.parametrize("change", ["queue", "kind", "tenant"])
async def test_a_parcel_with_the_id_of_another_job_is_refused_whole(store: Store, reach: Reach, change: str) -> None:
    """Else the job would count as moved, and its first store would let go of the only one there is."""
    taken, beside = a_job(kind="x"), a_job(unique=Unique("k"))
    await store.enqueue([beside, taken])
    packed = await _take_out(store)
    others = {
        "queue": taken._replace(queue=reach.queue("other"), kind="x" if reach.over_queues else "y"),
        "kind": taken._replace(kind=None),
        "tenant": taken._replace(tenant="acme"),
    }
    await store.enqueue([others[change]])
    before = await everything(store)

    with pytest.raises(IdConflict) as refused:
        await store.unpack(_parcel(packed))

    assert (refused.value.job_id, refused.value.queue, refused.value.kind) == (taken.id, "default", "x")
    assert await everything(store) == before
    assert await store.unpacked("move-1", "default") is None
    await store.cancel([taken.id], KEEP_ALL)
    await store.delete([taken.id])
    assert await store.unpack(_parcel(packed))
    assert [job.id for job in await store.jobs(JobFilter(queue="default"), after=None, limit=9)] == [
        beside.id,
        taken.id,
    ]
