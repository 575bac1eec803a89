"""Damaged records in a SQLite file: what the table of `tests/damage` does not show."""

import logging
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

import windlass
from windlass import Client, StoreCorrupt
from windlass.core.clock import Clock
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.job import Claim, Failure, Job, Note, PreparedJob, Progress
from windlass.core.looks import AuditEntry, ServerRecord
from windlass.core.requests import CancelOutcome, Changed, ClaimRequest, RescueRequest, Settled, Settlement
from windlass.core.retention import Retention
from windlass.core.states import State
from windlass.core.store import Store
from windlass.core.unique import Unique
from windlass.core.verdict import LEASE_EXPIRED, ORPHANED, ToRetry, ToSucceeded
from windlass.testing import FakeClock
from windlass.testing.conformance.given import MINUTE, a_job, a_schedule, settlement, wanting

NOT_UTF8 = "cast(x'ff' as text)"
FAR = 2**62


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def client(url: str, clock: Clock) -> AsyncIterator[Client]:
    async with windlass.connect(url, clock=clock) as client:
        yield client


@pytest.fixture
def store(client: Client) -> Store:
    return client.store


@pytest.fixture
def write(path: Path, store: Store) -> Callable[[str], None]:
    """Runs a statement on the file, as another program would."""
    del store

    def run(statement: str) -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute(statement)

    return run


Write = Callable[[str], None]


def damage(write: Write, job: PreparedJob | Job, column: str = "kind", value: str = NOT_UTF8) -> None:
    write(f"update windlass_job set {column} = {value} where id = '{job.id}'")


async def get(store: Store, job: PreparedJob) -> Job:
    [found] = await store.get([job.id])
    assert found is not None
    return found


def ids(claims: list[Claim]) -> list[JobId]:
    return [claim.job.id for claim in claims]


async def test_a_job_that_was_set_aside_runs_once_it_is_repaired_and_retried(store: Store, write: Write) -> None:
    job = a_job("q", kind="mail", unique=Unique("k", until="finished"))
    await store.enqueue([job])
    damage(write, job)

    assert (await store.claim(wanting("q"))).jobs == []

    dead = await get(store, job)
    assert (dead.state, dead.finished_at is None, dead.attempt, dead.delivery) == (State.DEAD, False, 0, 0)
    assert dead.last_error is not None
    assert dead.last_error.startswith("DamagedRecord: kind is not UTF-8: b'\\xff'. No worker can run")

    # still damaged: the next claim sets it aside again
    assert await store.retry([job.id]) == [Changed.DONE]
    assert (await store.claim(wanting("q"))).jobs == []
    assert (await get(store, job)).state is State.DEAD

    damage(write, job, "kind", "'mail'")
    assert await store.retry([job.id]) == [Changed.DONE]
    [claim] = (await store.claim(wanting("q"))).jobs
    assert (claim.job.id, claim.job.kind, claim.job.damage) == (job.id, "mail", None)
    [row] = await store.stats("q")
    assert (row.running, row.dead, row.totals.dead) == (1, 0, 2)


@pytest.mark.parametrize("by_priority", [False, True])
@pytest.mark.parametrize("kinds", [None, ["mail"], ["mail", None]])
async def test_every_kind_of_claim_is_filled_with_the_jobs_behind_damaged_ones(
    store: Store, write: Write, kinds: list[str | None] | None, *, by_priority: bool
) -> None:
    damaged, sound = [a_job("q", kind="mail") for _ in range(5)], [a_job("q", kind="mail") for _ in range(3)]
    await store.enqueue([*damaged, *sound])
    for job, column in zip(damaged, ("kind", "headers", "tenant", "codec", "parent_id"), strict=True):
        damage(write, job, column)

    claims = (
        await store.claim(ClaimRequest(["other", "q"], limit=3, lease=MINUTE, kinds=kinds, by_priority=by_priority))
    ).jobs

    assert ids(claims) == [job.id for job in sound]
    assert {(await get(store, job)).state for job in damaged} == {State.DEAD}


async def test_a_claim_leaves_damaged_jobs_of_other_kinds_alone(store: Store, write: Write) -> None:
    other, sound = a_job("q", kind="other"), a_job("q", kind="mail")
    await store.enqueue([other, sound])
    damage(write, other, "headers", "'{'")

    claims = (await store.claim(ClaimRequest(["q"], limit=2, lease=MINUTE, kinds=["mail"]))).jobs

    assert ids(claims) == [sound.id]
    assert (await get(store, other)).state is State.PENDING


async def test_a_damaged_job_is_logged_once_however_often_its_queue_is_claimed_from(
    store: Store, write: Write, caplog: pytest.LogCaptureFixture
) -> None:
    jobs = [a_job("q") for _ in range(3)]
    await store.enqueue(jobs)
    for job in jobs:
        damage(write, job, "created_at", str(FAR))

    for _ in range(3):
        assert (await store.claim(wanting("q", limit=2))).jobs == []

    errors = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert {each.name for each in errors} == {"windlass.sqlite"}
    assert [each.getMessage().split()[1] for each in errors] == [job.id for job in jobs]


async def test_the_bytes_of_a_damaged_error_are_kept_in_words(store: Store, write: Write) -> None:
    job = a_job("q")
    await store.enqueue([job])
    damage(write, job, "last_error", "cast(x'6f6c64ff' as text)")

    assert (await store.claim(wanting("q"))).jobs == []

    assert ((await get(store, job)).last_error or "").endswith(r"The stored last_error was: old\xff")


async def test_the_key_of_a_job_whose_id_is_damaged_is_free_when_it_is_set_aside(store: Store, write: Write) -> None:
    job = a_job("q", unique=Unique("k", until="finished"))
    await store.enqueue([job])
    damage(write, job, "id")

    assert (await store.claim(wanting("q"))).jobs == []

    [again] = await store.enqueue([a_job("q", unique=Unique("k", until="finished"))])
    assert again.created
    [found] = [job async for job in _all(store) if job.state is State.DEAD]
    assert (found.damage or "").startswith("id is not UTF-8")


async def _all(store: Store) -> AsyncIterator[Job]:
    for job in await store.jobs(JobFilter(), after=None, limit=100):
        yield job


async def test_a_claim_that_is_repeated_gives_the_jobs_that_still_read(store: Store, write: Write) -> None:
    first, second = a_job("q"), a_job("q")
    await store.enqueue([first, second])
    await store.claim(wanting("q", limit=2), request_id="r")
    damage(write, first, "headers")

    assert ids((await store.claim(wanting("q", limit=2), request_id="r")).jobs) == [second.id]


async def test_a_damaged_receipt_is_the_answer_to_its_own_request_alone(store: Store, write: Write) -> None:
    await store.enqueue([a_job("q")], request_id="r")
    write("update windlass_receipt set reply = '{'")

    with pytest.raises(StoreCorrupt, match="the stored answer to request"):
        await store.enqueue([a_job("q")], request_id="r")
    assert (await store.enqueue([a_job("q")], request_id="s"))[0].created


async def test_a_call_on_several_jobs_changes_the_sound_ones_and_names_the_damaged(store: Store, write: Write) -> None:
    jobs = [a_job("q", delay=MINUTE) for _ in range(3)]
    await store.enqueue(jobs)
    damage(write, jobs[1], "state", "'lost'")
    wanted = [job.id for job in jobs]

    with pytest.raises(StoreCorrupt, match=rf"job {jobs[1].id} is damaged: state is no state: 'lost'"):
        await store.reschedule(wanted, None)
    assert [(await get(store, job)).state for job in (jobs[0], jobs[2])] == [State.PENDING] * 2
    with pytest.raises(StoreCorrupt, match=str(jobs[1].id)):
        await store.cancel(wanted, Retention())
    assert [(await get(store, job)).state for job in (jobs[0], jobs[2])] == [State.CANCELLED] * 2
    with pytest.raises(StoreCorrupt, match=str(jobs[1].id)):
        await store.delete(wanted)
    assert [found is None for found in await store.get(wanted)] == [True, False, True]
    assert await store.cancel([jobs[0].id], Retention()) == [CancelOutcome.NOT_FOUND]


async def test_the_error_of_one_damaged_job_has_its_id(store: Store, write: Write) -> None:
    job = a_job("q")
    await store.enqueue([job])
    damage(write, job, "state", "''")

    with pytest.raises(StoreCorrupt) as caught:
        await store.retry([job.id])

    assert caught.value.job_id == job.id


async def test_a_job_that_was_damaged_while_it_ran_goes_on(store: Store, write: Write, clock: FakeClock) -> None:
    job = a_job("q", kind="mail")
    await store.enqueue([job])
    [claim] = (await store.claim(wanting("q"))).jobs
    for column in ("kind", "worker", "queue", "log_lines"):
        damage(write, job, column, NOT_UTF8 if column != "log_lines" else str(2**63 - 1))
    note = Note(job.id, claim.token, Progress(1), [("info", "one"), ("info", "two")])

    assert (await store.renew([(job.id, claim.token)], MINUTE))[0] is not None
    assert await store.note([note]) == [True]
    assert await store.note([note]) == [True]
    assert [line.text for line in (await get(store, job)).log] == ["one", "two", "one", "two"]
    clock.advance(timedelta(minutes=5))
    assert [one.state for one in await store.rescue(RescueRequest(), Retention())] == [State.PENDING]


async def test_a_settlement_of_a_damaged_job_is_refused_alone_and_repeats(store: Store, write: Write) -> None:
    damaged, sound = a_job("q"), a_job("q")
    await store.enqueue([damaged, sound])
    first, second = (await store.claim(wanting("q", limit=2))).jobs
    damage(write, damaged, "hold")
    failed = ToRetry(timedelta(0), Failure("not yet"))
    settlements = [settlement(first, failed), settlement(second, failed)]

    for expected in (Settled.DONE, Settled.REPEATED):
        refused, done = await store.settle(settlements, request_id="r")
        assert isinstance(refused, StoreCorrupt)
        assert done is expected
    assert (await store.settle([Settlement(damaged.id, first.token, ToSucceeded())])) == [Settled.DONE]


async def test_a_callers_own_transaction_settles_what_is_damaged(client: Client, path: Path, write: Write) -> None:
    job = a_job("q", kind="mail")
    await client.store.enqueue([job])
    [claim] = (await client.store.claim(wanting("q"))).jobs
    damage(write, job)

    with closing(sqlite3.connect(path)) as connection, connection:
        await client.ack(claim, connection=connection)

    assert (await get(client.store, job)).state is State.SUCCEEDED


async def test_the_times_of_other_jobs_are_told_beside_damaged_ones(
    store: Store, write: Write, clock: FakeClock
) -> None:
    jobs = [a_job("q", kind=kind) for kind in (None, "mail", None, "mail")]
    await store.enqueue(jobs)
    clock.advance(timedelta(seconds=30))
    for job in jobs[:2]:
        damage(write, job, "run_at", str(-FAR))
    later = a_job("q", delay=MINUTE)
    await store.enqueue([later])
    now, early = clock.now(), clock.now() - timedelta(seconds=30)

    [row] = await store.stats()
    assert (row.pending, row.oldest_waiting) == (4, early)
    assert [(kind.kind, kind.pending, kind.oldest_waiting) for kind in await store.waiting()] == [
        ("", 2, early),
        ("mail", 2, early),
    ]
    assert await store.due_in(["q"]) == timedelta(minutes=1)
    damage(write, later, "run_at", str(FAR))
    assert await store.due_in(["q"]) is None
    place = await store.place(jobs[2].id)
    assert place is not None
    assert (place.now, place.ahead) == (now, 2)


async def test_kinds_that_do_not_read_are_left_out(store: Store, write: Write) -> None:
    damaged, sound = a_job("q", kind="mail"), a_job("q", kind="mail")
    await store.enqueue([damaged, sound])
    damage(write, damaged)

    assert await store.kinds("q") == ["mail"]
    assert [(kind.kind, kind.pending) for kind in await store.waiting()] == [("mail", 1)]


async def test_damaged_entries_of_a_history_and_a_log_hide_no_others(store: Store, write: Write) -> None:
    job = a_job("q")
    await store.enqueue([job])
    for _ in range(3):
        [claim] = (await store.claim(wanting("q"))).jobs
        await store.note([Note(job.id, claim.token, None, [("info", f"in {claim.delivery}")])])
        await store.settle([settlement(claim, ToRetry(timedelta(0), Failure("not yet")))])
    write(f"update windlass_delivery set started_at = {FAR} where delivery = 2")
    write(f"update windlass_log set text = {NOT_UTF8} where line = 1")

    found = await get(store, job)

    assert [each.delivery for each in found.history] == [1, 3]
    assert [line.text for line in found.log] == ["in 2", "in 3"]
    assert "an entry of its history: " in (found.damage or "")
    assert "a line of its log: " in (found.damage or "")


async def test_damaged_records_beside_jobs_are_left_out_and_logged_once(
    store: Store, write: Write, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    now = clock.now()
    for name in ("a", "b", "c"):
        await store.beat(ServerRecord(name, name, "host", 1, "1", now, now))
        await store.write_audit([AuditEntry(now, name, "retry", "job", {})])
        await store.enqueue([a_job(name)])
    write("update windlass_server set record = '[]' where id = 'b'")
    write(f"update windlass_audit set detail = '[1]', actor = {NOT_UTF8} where actor = 'b'")
    write(f"update windlass_count set queue = {NOT_UTF8} where queue = 'b'")

    for _ in range(2):
        assert [server.id for server in await store.servers()] == ["a", "c"]
        assert [entry.actor for entry in await store.audit(limit=10)] == ["c", "a"]
        assert [row.queue for row in await store.stats()] == ["a", "c"]
        until = now + timedelta(minutes=1)
        assert [row.queue for row in await store.minutes(since=now - MINUTE, until=until)] == ["a", "c"]
    assert await store.promote(limit=10) == 0
    assert await store.prune(Retention(), limit=10) == 0
    assert len([each for each in caplog.records if each.levelno == logging.ERROR]) == 4


async def test_a_damaged_schedule_is_shown_and_others_are_due(store: Store, write: Write, clock: FakeClock) -> None:
    for name in ("a", "b", "c"):
        await store.write_schedule(a_schedule(name, next_run_at=clock.now()), expected=None)
    write(f"update windlass_schedule set headers = '[', kind = {NOT_UTF8} where id = 'b'")

    assert [(each.id, each.damage is None) for each in (await store.schedules()).schedules] == [
        ("a", True),
        ("b", False),
        ("c", True),
    ]
    due = await store.due_schedules((), limit=10)
    assert [(each.id, each.damage is None) for each in due.due] == [("a", True), ("b", False), ("c", True)]
    write(f"update windlass_schedule set next_run_at = {FAR} where id = 'b'")
    due = await store.due_schedules((), limit=10)
    assert ([each.id for each in due.due], due.next_run_at) == (["a", "c"], None)


async def test_what_would_write_over_a_damaged_schedule_is_refused_but_a_new_one_is_put(
    client: Client, write: Write
) -> None:
    await client.schedules.put("s", 60, windlass.NewJob("q", b"payload"))
    write(f"update windlass_schedule set kind = {NOT_UTF8}")

    for refused in (client.schedules.pause, client.schedules.resume, client.schedules.run_now):
        with pytest.raises(StoreCorrupt, match="schedule 's' is damaged: kind is not UTF-8"):
            await refused("s")
    await client.schedules.put("s", 60, windlass.NewJob("q", b"payload"))

    found = await client.schedules.get("s")
    assert found is not None
    assert found.damage is None


async def test_a_parcel_is_filled_with_the_jobs_behind_damaged_ones(store: Store, write: Write) -> None:
    damaged, sound = [a_job("q") for _ in range(5)], [a_job("q") for _ in range(3)]
    await store.enqueue([*damaged, *sound])
    for job in damaged:
        damage(write, job, "tenant")

    packed = await store.pack("q", limit=2)
    got = {job.id for job in packed.jobs}
    while packed.jobs:
        await store.let_go(jobs=[job.id for job in packed.jobs])
        packed = await store.pack("q", limit=2)
        got |= {job.id for job in packed.jobs}

    assert got == {job.id for job in sound}
    damage(write, damaged[0], "tenant", "null")
    assert [job.id for job in (await store.pack("q", limit=2)).jobs] == [damaged[0].id]


async def test_a_key_whose_holder_does_not_read_is_refused_by_its_name(store: Store, write: Write) -> None:
    await store.enqueue([a_job("q", unique=Unique("k", until="finished"))])
    write(f"update windlass_hold set job_id = {NOT_UTF8}")

    with pytest.raises(StoreCorrupt, match="who holds the unique key"):
        await store.enqueue([a_job("q", unique=Unique("k", until="finished"))])
    assert (await store.enqueue([a_job("q", unique=Unique("l"))]))[0].created


async def test_a_text_is_found_beside_texts_that_are_not_utf8(store: Store, write: Write) -> None:
    damaged, sound = a_job("q", kind="mail-a"), a_job("q", kind="mail-b")
    await store.enqueue([damaged, sound])
    damage(write, damaged, "kind", "cast(x'6d61696cff' as text)")

    for found in (
        await store.jobs(JobFilter(text="mail"), after=None, limit=10),
        (await store.newest(JobFilter(text="mail"), before=None, limit=10, most=100)).jobs,
    ):
        assert {(job.id, job.damage is None) for job in found} == {(damaged.id, False), (sound.id, True)}


async def test_a_job_whose_id_is_damaged_is_dead_when_its_lease_runs_out_and_others_are_taken_back(
    store: Store, write: Write, clock: FakeClock
) -> None:
    damaged, sound = a_job("q", max_attempts=1, unique=Unique("k", until="finished")), a_job("q")
    await store.enqueue([damaged, sound])
    await store.claim(wanting("q", limit=2))
    damage(write, damaged, "id")
    clock.advance(timedelta(minutes=5))

    rescued = await store.rescue(RescueRequest(), Retention())

    assert rescued == [("", State.DEAD), (sound.id, State.PENDING)]
    [row] = await store.stats("q")
    assert (row.pending, row.running, row.dead, row.totals.rescued) == (1, 0, 1, 2)


@pytest.mark.parametrize("columns", [("hold",), ("hold", "worker"), ("unique_key",)])
@pytest.mark.parametrize(
    "request_, told",
    [(RescueRequest(), LEASE_EXPIRED), (RescueRequest(force=True, to="dead"), ORPHANED)],
    ids=["expired", "orphaned"],
)
async def test_the_history_of_a_damaged_job_tells_of_its_rescue_and_of_a_later_retry(
    store: Store, write: Write, clock: FakeClock, *, columns: tuple[str, ...], request_: RescueRequest, told: Failure
) -> None:
    job = a_job("q", unique=Unique("k", until="finished"))
    await store.enqueue([job])
    claimed_at = clock.now()
    await store.claim(ClaimRequest(["q"], 1, MINUTE, worker="w"))
    for column in columns:
        damage(write, job, column)
    clock.advance(timedelta(minutes=5))

    assert await store.rescue(request_, Retention()) == [(job.id, State.DEAD)]

    [delivery] = (await get(store, job)).history
    assert (delivery.delivery, delivery.attempt, delivery.outcome, delivery.failure) == (1, 1, "rescued", told)
    assert (delivery.started_at, delivery.ended_at) == (claimed_at, clock.now())
    assert delivery.worker == (None if "worker" in columns else "w")
    for column in ("hold", "hold_until", "unique_key", "worker"):
        damage(write, job, column, "null")
    assert await store.retry([job.id]) == [Changed.DONE]
    assert [each.retried_at for each in (await get(store, job)).history] == [clock.now()]


async def test_a_damaged_key_refuses_the_settlement_that_needs_it_alone(store: Store, write: Write) -> None:
    await store.enqueue([a_job("r", unique=Unique("k", until="finished"))])
    jobs = [a_job("q"), a_job("q")]
    await store.enqueue(jobs)
    first, second = (await store.claim(wanting("q", limit=2))).jobs
    write(f"update windlass_hold set job_id = {NOT_UTF8}")
    then = [a_job("r", unique=Unique("k", until="finished"))]

    refused, done = await store.settle([settlement(first)._replace(then=then), settlement(second)])

    assert isinstance(refused, StoreCorrupt)
    assert done is Settled.DONE
    assert [(await get(store, job)).state for job in jobs] == [State.RUNNING, State.SUCCEEDED]


async def test_a_retry_of_a_job_with_a_damaged_end_leaves_no_damage_behind(store: Store, write: Write) -> None:
    job = a_job("q", delay=MINUTE)
    await store.enqueue([job])
    await store.cancel([job.id], Retention())
    damage(write, job, "finished_at", str(FAR))

    assert await store.retry([job.id]) == [Changed.DONE]

    assert (await get(store, job)).damage is None
