"""A job whose record is damaged is shown with the damage, set aside by a claim, and in the way of no other."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

import msgspec
import pytest

from tests.stores.slatedb.lived import TRACEBACK, job, numbered
from tests.stores.slatedb.opened import database_of, gathering, in_room, new_address, opened, store_at, table_of
from windlass.core.errors import StoreCorrupt, StoreMoved
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.job import Claim, Failure, Job, LogLine, Note, Progress
from windlass.core.looks import AuditEntry, ServerRecord
from windlass.core.moving import Moved, Packed, Parcel
from windlass.core.requests import CancelOutcome, Changed, ClaimRequest, RescueRequest, Settled
from windlass.core.retention import KEEP_ALL, Keep, Retention
from windlass.core.schedule import Fired, FireOutcome, Firing, Schedule
from windlass.core.states import State
from windlass.core.stats import TimingCount
from windlass.core.store import Store
from windlass.core.unique import Unique, hold
from windlass.core.verdict import ToReleased, ToRetry
from windlass.kit.damage import dead_reason
from windlass.stores.slatedb import SlateStore, keys, records
from windlass.stores.slatedb.address import Address
from windlass.stores.slatedb.moves import parcels
from windlass.testing import FakeClock
from windlass.testing.conformance.given import settlement

MINUTE: Final = timedelta(minutes=1)
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
LATE: Final = datetime(3000, 1, 1, tzinfo=UTC)
LARGE: Final = b"x" * 5_000
BAD: Final = numbered(1)
RECORD: Final = {keys.job(BAD): b"\0\x93"}
"""Damage: bytes that are no record."""
WAYS: Final[dict[str, dict[bytes, bytes | None]]] = {
    "truncated": {keys.job(BAD): b"\0\x93"},
    "empty": {keys.job(BAD): b""},
    "gone": {keys.job(BAD): None},
    "part gone": {keys.part(BAD, b"p"): None},
    "part truncated": {keys.part(BAD, b"p"): b"\xc5"},
}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def address() -> Address:
    return new_address()


@pytest.fixture
async def store(address: Address, clock: FakeClock) -> AsyncIterator[SlateStore]:
    async with opened(address, clock=clock) as store:
        yield store


async def damage(store: Store, changes: Mapping[bytes, bytes | None]) -> None:
    """Change what is in the database behind the back of its owner, who has forgotten what was there."""
    database = database_of(store)
    await in_room(store, lambda: database.write(changes))
    # a key of a part ends with a letter behind the id
    forget(store, [keys.id_of(key if key.startswith(keys.job(BAD)[:1]) else key[:-1]) for key in changes])


def forget(store: Store, ids: Iterable[JobId]) -> None:
    """Let the owner read these jobs anew."""
    table = table_of(store)
    for job_id in ids:
        vars(table.jobs)["_values"].pop(job_id, None)
        vars(table)["_places"].pop(job_id, None)
        vars(table)["_apart"].pop(job_id, None)


async def claimed(store: Store, limit: int = 10) -> list[JobId]:
    return [claim.job.id for claim in await claims_of(store, limit)]


async def claims_of(store: Store, limit: int = 10) -> list[Claim]:
    return (await store.claim(ClaimRequest(["email"], limit, MINUTE))).jobs


async def bad_job(store: Store) -> Job:
    """Return the damaged job."""
    [found] = await store.get([BAD])
    assert found is not None
    return found


async def counts_agree(store: Store) -> bool:
    return [each.level for each in await store.check() if each.name == "counts"] == ["ok"]


@pytest.mark.parametrize("way", WAYS)
async def test_a_claim_sets_a_damaged_job_aside_and_gives_the_next(
    store: SlateStore, caplog: pytest.LogCaptureFixture, way: str
) -> None:
    await store.enqueue([job(n, payload=LARGE) for n in range(4)])
    table = table_of(store)
    await damage(store, WAYS[way])

    given = [await claimed(store, 2), await claimed(store, 2), await claimed(store, 2)]

    assert given == [[numbered(0), numbered(2)], [numbered(3)], []]
    assert table_of(store) is table
    [stats] = await store.stats("email")
    assert (stats.pending, stats.running, stats.dead, stats.totals.dead) == (0, 3, 1, 1)
    [minute] = await store.minutes(since=EPOCH, until=LATE)
    assert minute.counts.dead == 1
    assert await counts_agree(store)
    assert caplog.text.count(f"job {BAD} of queue 'email' is dead") == 1
    found = await bad_job(store)
    assert (found.state, found.attempt, found.queue, found.seq, found.priority) == (State.DEAD, 0, "email", 2, 1000)
    assert found.damage is not None
    assert found.last_error == dead_reason(found.damage)
    dead = await store.jobs(JobFilter(queue="email", state=State.DEAD), after=None, limit=9)
    assert [each.id for each in dead] == [BAD]


async def test_what_was_found_damaged_stays_until_its_job_is_deleted(store: SlateStore) -> None:
    await store.enqueue([job(n, payload=LARGE) for n in range(2)])
    await damage(store, RECORD)
    await claimed(store)
    database = database_of(store)

    kept = await in_room(store, lambda: database.get(keys.damaged(BAD)))

    assert kept == RECORD[keys.job(BAD)]
    assert await store.delete([BAD]) == [Changed.DONE]
    rows = await in_room(store, lambda: database.scan(b"\0", b"\xff", limit=1_000))
    assert not [key for key, value in rows if keys.id_bytes(BAD) in key or keys.id_bytes(BAD) in value]


async def test_a_record_that_was_repaired_runs_when_its_job_is_retried(store: SlateStore) -> None:
    await store.enqueue([job(1, payload=LARGE, kind="a", headers={"a": "b"}, tenant="t")])
    database = database_of(store)
    sound = await in_room(store, lambda: database.get(keys.job(BAD)))
    await damage(store, RECORD)
    assert await claimed(store) == []

    assert await store.retry([BAD]) == [Changed.DONE]
    assert await claimed(store) == []
    assert (await bad_job(store)).state is State.DEAD

    await write(store, {keys.damaged(BAD): sound})
    assert await store.retry([BAD]) == [Changed.DONE]
    [claim] = await claims_of(store)
    assert claim.job.payload == LARGE
    assert (claim.job.kind, claim.job.headers, claim.job.tenant, claim.job.damage) == ("a", {"a": "b"}, "t", None)
    assert await in_room(store, lambda: database.get(keys.damaged(BAD))) is None
    await store.settle([settlement(claim)])
    assert await counts_agree(store)


async def test_a_payload_that_was_restored_runs_when_its_job_is_retried(store: SlateStore) -> None:
    await store.enqueue([job(1, payload=LARGE)])
    database, part = database_of(store), keys.part(BAD, b"p")
    payload = await in_room(store, lambda: database.get(part))
    await damage(store, {part: b"\xc5"})
    assert await claimed(store) == []
    assert await in_room(store, lambda: database.get(part)) == b"\xc5"

    await write(store, {part: payload})
    await store.retry([BAD])

    [claim] = await claims_of(store)
    assert claim.job.payload == LARGE


async def test_a_job_whose_history_is_lost_runs_and_is_shown_without_it(store: SlateStore) -> None:
    await store.enqueue([job(1)])
    [claim] = await claims_of(store)
    await store.settle([settlement(claim, ToRetry(timedelta(0), Failure("no", "E", TRACEBACK)))])
    await damage(store, {keys.part(BAD, b"h"): None})
    assert (await bad_job(store)).damage == "history is missing"

    [claim] = await claims_of(store)
    await store.settle([settlement(claim, ToRetry(timedelta(0), Failure("no", "E", TRACEBACK)))])

    found = await bad_job(store)
    assert (found.damage, [each.delivery for each in found.history]) == (None, [2])


async def test_a_record_that_says_another_place_is_set_aside(store: SlateStore) -> None:
    await store.enqueue([job(n) for n in range(3)])
    database = database_of(store)
    kept = await in_room(store, lambda: database.get(keys.job(BAD)))
    assert kept is not None
    record = records.join(BAD, kept)
    record.priority, record.queue = 7, "elsewhere"
    await damage(store, {keys.job(BAD): b"\0" + records.encode(record)})

    assert await claimed(store) == [numbered(0), numbered(2)]

    found = await bad_job(store)
    assert (found.state, found.queue, found.priority) == (State.DEAD, "email", 1000)
    assert found.damage is not None
    assert "queue is 'elsewhere'" in found.damage
    assert await counts_agree(store)


async def test_a_call_by_its_id_finds_a_job_whose_record_does_not_say_where_it_stands(store: SlateStore) -> None:
    await store.enqueue([job(n) for n in range(3)])
    await damage(store, RECORD)

    assert await store.cancel([numbered(0), BAD], KEEP_ALL) == [CancelOutcome.REMOVED] * 2

    [stats] = await store.stats("email")
    assert (stats.pending, stats.cancelled) == (1, 2)
    assert await counts_agree(store)
    assert (await bad_job(store)).state is State.CANCELLED


async def test_a_reader_shows_a_damaged_job_beside_the_others(address: Address, clock: FakeClock) -> None:
    async with opened(address, clock=clock) as store:
        await store.enqueue([job(n, payload=LARGE) for n in range(3)])
        await damage(store, RECORD)
    async with opened(replace(address, look=True), clock=clock) as reader:
        for chosen in (JobFilter(), JobFilter(queue="email", state=State.PENDING)):
            listed = await reader.jobs(chosen, after=None, limit=9)
            assert [(each.id, each.damage is None) for each in listed] == [
                (numbered(0), True),
                (BAD, False),
                (numbered(2), True),
            ]
        found = await bad_job(reader)
        assert (found.state, found.queue, found.seq, found.priority) == (State.PENDING, "email", 2, 1000)
        assert (await reader.glance([BAD]))[BAD].state is State.PENDING
        place = await reader.place(BAD)
        assert place is not None
        assert place.ahead == 1


@pytest.mark.parametrize("apart", [True, False])
async def test_a_log_line_without_a_time_zone_is_damage(store: SlateStore, apart: bool) -> None:  # noqa: FBT001 - a parameter
    await store.enqueue([job(1)])
    database = database_of(store)
    kept = await in_room(store, lambda: database.get(keys.job(BAD)))
    assert kept is not None
    record = records.join(BAD, kept)
    line = LogLine(datetime(2026, 1, 1), "info", "begun", 1)  # noqa: DTZ001 - that is the damage
    if apart:
        changes = {keys.job(BAD): bytes([8]) + records.encode(record), keys.part(BAD, b"l"): records.encode([line])}
    else:
        record.log = (line,)
        changes = {keys.job(BAD): b"\0" + records.encode(record)}
    await damage(store, changes)

    found = await bad_job(store)

    assert (found.log, found.damage) == ((), "log cannot be read (a time has no time zone)")
    assert await claimed(store) == ([BAD] if apart else [])


async def test_a_record_that_lacks_its_last_fields_names_them(store: SlateStore) -> None:
    await store.enqueue([job(1)])
    database = database_of(store)
    kept = await in_room(store, lambda: database.get(keys.job(BAD)))
    assert kept is not None
    fields = msgspec.msgpack.decode(kept[1:])
    await damage(store, {keys.job(BAD): b"\0" + records.encode(fields[:9])})

    found = await bad_job(store)

    assert (found.queue, found.payload, found.priority) == ("email", b"1", 1000)
    assert found.damage is not None
    assert "max_attempts is missing" in found.damage


async def test_a_damaged_job_stays_dead_for_whoever_opens_the_store_next(address: Address, clock: FakeClock) -> None:
    async with opened(address, clock=clock) as store:
        await store.enqueue([job(n) for n in range(4)])
        await damage(store, RECORD)
        assert await claimed(store, 2) == [numbered(0), numbered(2)]
    async with opened(address, clock=clock) as store:
        assert await claimed(store) == [numbered(3)]

        [stats] = await store.stats("email")
        assert (stats.pending, stats.running, stats.dead) == (0, 3, 1)
        assert await counts_agree(store)
        assert (await bad_job(store)).damage is not None


async def test_a_line_of_nothing_but_damaged_jobs_gives_nothing(store: SlateStore) -> None:
    await store.enqueue([job(n) for n in range(3)])
    await damage(store, {keys.job(numbered(n)): b"\0" for n in range(3)})

    assert await claimed(store) == await claimed(store) == []
    await store.enqueue([job(5)])
    assert await claimed(store) == [numbered(5)]


async def test_a_scheduled_job_that_is_damaged_is_set_aside_when_it_comes_due(
    store: SlateStore, clock: FakeClock
) -> None:
    await store.enqueue([job(n, delay=MINUTE) for n in range(3)])
    await damage(store, RECORD)
    clock.advance(MINUTE)

    assert [await store.promote(limit=2), await store.promote(limit=2), await store.promote(limit=2)] == [2, 1, 0]

    assert await store.due_in(["email"]) is None
    assert await claimed(store) == [numbered(0), numbered(2)]
    assert (await bad_job(store)).state is State.DEAD


@pytest.mark.parametrize("part", [None, b"h"])
async def test_a_rescue_goes_on_with_the_other_jobs(address: Address, clock: FakeClock, part: bytes | None) -> None:
    async with opened(address, clock=clock) as store:
        await store.enqueue([job(n) for n in range(30)])
        failed = [
            settlement(claim, ToRetry(timedelta(0), Failure("no", "E", TRACEBACK)))
            for claim in await claims_of(store, 30)
        ]
        await store.settle(failed)
        await claims_of(store, 30)
    clock.advance(2 * MINUTE)
    async with opened(address, clock=clock) as store:
        await damage(store, RECORD if part is None else {keys.part(BAD, part): None})

        rescued = [await store.rescue(RescueRequest(), KEEP_ALL) for _ in range(2)]

        expected = State.DEAD if part is None else State.PENDING
        others = {numbered(n): State.PENDING for n in range(30)}
        assert {one.id: one.state for one in rescued[0]} == others | {BAD: expected}
        assert rescued[1] == []
        assert (await bad_job(store)).state is expected
        assert await counts_agree(store)


async def test_a_prune_takes_damaged_jobs_as_others(address: Address, clock: FakeClock) -> None:
    async with opened(address, clock=clock) as store:
        await store.enqueue([job(n) for n in range(3)])
        await store.settle([settlement(claim) for claim in await claims_of(store)])
    async with opened(address, clock=clock) as store:
        await damage(store, RECORD)

        assert await store.prune(Retention(Keep(succeeded=timedelta(0))), limit=10) == 3

        assert await store.jobs(JobFilter(), after=None, limit=10) == []
        assert await counts_agree(store)


async def test_settlements_of_others_are_done_beside_that_of_a_damaged_job(address: Address, clock: FakeClock) -> None:
    async with opened(address, clock=clock) as store:
        await store.enqueue([job(n) for n in range(3)])
        claims = await claims_of(store)
    async with opened(address, clock=clock) as store:
        await damage(store, RECORD)
        ends = [settlement(claim) for claim in claims]

        [before, told, after] = await store.settle(ends, request_id="r")

        assert [before, after] == [Settled.DONE] * 2
        assert isinstance(told, StoreCorrupt)
        assert told.job_id == BAD
        [before, told, after] = await store.settle(ends, request_id="r")
        assert [before, after] == [Settled.REPEATED] * 2
        assert isinstance(told, StoreCorrupt)
        [stats] = await store.stats("email")
        assert (stats.running, stats.succeeded) == (1, 2)


async def test_claims_of_others_are_renewed_and_noted_beside_that_of_a_damaged_job(
    address: Address, clock: FakeClock
) -> None:
    async with opened(address, clock=clock) as store:
        await store.enqueue([job(n) for n in range(3)])
        claims = await claims_of(store)
    async with opened(address, clock=clock) as store:
        await damage(store, RECORD)

        renewed = await store.renew([(claim.job.id, claim.token) for claim in claims], 2 * MINUTE)
        noted = await store.note([Note(claim.job.id, claim.token, Progress(1, 2), []) for claim in claims])

        assert [each is not None for each in renewed] == noted == [True, False, True]


async def test_calls_by_id_do_their_work_on_others_and_on_a_damaged_job(store: SlateStore, clock: FakeClock) -> None:
    await store.enqueue([job(n) for n in range(3)])
    await damage(store, RECORD)
    table = table_of(store)

    assert await store.reschedule([numbered(0), BAD], clock.now() + MINUTE) == [Changed.DONE] * 2
    await damage(store, RECORD)
    assert await store.retry([numbered(0), BAD]) == [Changed.WRONG_STATE] * 2
    assert await store.delete([numbered(0), BAD]) == [Changed.WRONG_STATE] * 2
    assert [each.created for each in await store.enqueue([job(1), job(5)])] == [False, True]
    assert await store.cancel([numbered(0), BAD], KEEP_ALL) == [CancelOutcome.REMOVED] * 2
    assert await store.delete([numbered(0), BAD]) == [Changed.DONE] * 2

    assert table_of(store) is table
    [stats] = await store.stats("email")
    assert (stats.pending, stats.scheduled, stats.cancelled) == (2, 0, 0)
    assert await counts_agree(store)


async def test_a_move_leaves_a_damaged_job_and_takes_the_others(store: SlateStore) -> None:
    await store.enqueue([job(n) for n in range(4)])
    await damage(store, {keys.job(numbered(n)): b"\0\x93" for n in range(2)})

    packed = await store.pack("email", limit=2)

    assert [each.id for each in packed.jobs] == [numbered(2), numbered(3)]
    found = await store.newest(JobFilter(queue="email", state=State.PENDING), before=None, limit=9, most=9)
    assert [each.id for each in found.jobs if each.damage is not None] == [numbered(1), numbered(0)]


async def test_a_move_looks_behind_a_window_of_damaged_jobs(store: SlateStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parcels, "WINDOW", 2)
    await store.enqueue([job(n) for n in range(7)])
    await damage(store, {keys.job(numbered(n)): b"\0\x93" for n in range(6)})

    assert [each.id for each in (await store.pack("email", limit=1)).jobs] == [numbered(6)]


@pytest.mark.parametrize("way", ["truncated", "gone"])
async def test_a_unique_key_that_a_damaged_job_holds_is_free(store: SlateStore, way: str) -> None:
    held = hold(Unique("k", until="finished"), queue="email", kind=None, tenant=None, payload=b"")
    await store.enqueue([job(1, unique=held), job(2)])
    await damage(store, WAYS[way])

    [done] = await store.enqueue([job(8, unique=held)])

    assert done.created
    assert await claimed(store) == [numbered(2), numbered(8)]


async def test_a_settlement_whose_next_job_needs_the_key_of_a_damaged_one_is_done(
    address: Address, clock: FakeClock
) -> None:
    held = hold(Unique("k"), queue="email", kind=None, tenant=None, payload=b"")
    async with opened(address, clock=clock) as store:
        await store.enqueue([job(1, unique=held, delay=MINUTE), job(2), job(3)])
        claims = await claims_of(store)
        await damage(store, RECORD)

        done = await store.settle(
            [settlement(claims[0])._replace(then=[job(4, unique=held)]), settlement(claims[1], ToReleased())]
        )

        assert done == [Settled.DONE] * 2
        [stats] = await store.stats("email")
        assert (stats.scheduled, stats.pending, stats.dead) == (0, 2, 1)


async def test_a_claim_that_is_repeated_gives_the_other_jobs_again(address: Address, clock: FakeClock) -> None:
    wanted = ClaimRequest(["email"], 10, MINUTE)
    async with opened(address, clock=clock) as store:
        await store.enqueue([job(n) for n in range(3)])
        given = (await store.claim(wanted, request_id="r")).jobs
    async with opened(address, clock=clock) as store:
        await damage(store, RECORD)

        again: Sequence[Claim] = (await store.claim(wanted, request_id="r")).jobs

        assert [claim.token for claim in again] == [given[0].token, given[2].token]


@pytest.mark.parametrize("overlap", ["allow", "skip"])
async def test_a_schedule_whose_last_job_is_damaged_goes_on(
    store: SlateStore, clock: FakeClock, overlap: Literal["allow", "skip"]
) -> None:
    schedule = Schedule(
        id="s", rule="every 60s", queue="email", codec="raw", priority=1, max_attempts=1, next_run_at=clock.now(),
        overlap=overlap,
    )  # fmt: skip
    revision = await store.write_schedule(schedule, expected=None)
    assert revision is not None
    await store.fire(Firing("s", revision, [job(1)], clock.now(), clock.now()))
    await damage(store, RECORD)
    [kept] = (await store.schedules(["s"])).schedules

    fired = await store.fire(Firing("s", kept.revision, [job(2)], clock.now(), clock.now()))

    assert fired == Fired(FireOutcome.DONE, numbered(2))
    assert (await bad_job(store)).damage is not None


async def test_a_lock_whose_record_is_damaged_is_free(store: SlateStore, caplog: pytest.LogCaptureFixture) -> None:
    await store.lock("import", "me", MINUTE)
    await write(store, {keys.named(keys.LOCKS, "import"): b"\x93"})

    assert await store.lock("import", "you", MINUTE)
    assert not await store.lock("import", "me", MINUTE)
    assert "lock 'import' cannot be read" in caplog.text


async def test_a_damaged_lock_does_not_stop_the_pruning_of_others(store: SlateStore, clock: FakeClock) -> None:
    for name in ("a", "b"):
        await store.lock(name, "me", MINUTE)
    await write(store, {keys.named(keys.LOCKS, "a"): b"\x93"})
    clock.advance(MINUTE)

    await store.prune(KEEP_ALL, limit=1)

    database = database_of(store)
    assert await in_room(store, lambda: database.scan(keys.LOCKS, keys.after(keys.LOCKS), limit=10)) == []


async def test_a_unique_key_whose_holder_is_damaged_is_free(store: SlateStore) -> None:
    held = hold(Unique("key", until="finished"), queue="email", kind=None, tenant=None, payload=b"")
    await store.enqueue([job(1, unique=held)])
    await write(store, {keys.hold(held.name): b"\x93"})

    [done] = await store.enqueue([job(2, unique=held)])

    assert done.created


async def test_a_repetition_whose_receipt_is_damaged_is_told_so_and_no_other_call(store: SlateStore) -> None:
    await store.enqueue([job(1)])
    await store.claim(ClaimRequest(["email"], 1, MINUTE), request_id="r")
    database = database_of(store)
    [(key, _)] = await in_room(store, lambda: database.scan(keys.RECEIPTS, keys.after(keys.RECEIPTS), limit=10))
    await write(store, {key: b"\x93"})

    async with gathering(store):
        repeat = asyncio.ensure_future(store.claim(ClaimRequest(["email"], 1, MINUTE), request_id="r"))
        other = asyncio.ensure_future(store.enqueue([job(2)]))

    with pytest.raises(StoreCorrupt, match="nobody knows"):
        await repeat
    assert (await other)[0].created
    assert database_of(store) is database


async def write(store: Store, changes: Mapping[bytes, bytes | None]) -> None:
    """Change what is in the database behind the back of its owner."""
    database = database_of(store)
    await in_room(store, lambda: database.write(changes))


async def test_records_beside_jobs_that_are_damaged_are_left_out_of_their_lists(
    address: Address, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    now = clock.now()
    minute = now.replace(second=0, microsecond=0)
    async with opened(address, clock=clock) as store:
        await store.enqueue([job(1), job(2, "sms")])
        for name in ("one", "two"):
            await store.beat(ServerRecord(name, name, "host", 1, "0", now, now))
        await store.write_audit([AuditEntry(now, "me", "pause", name, {}) for name in ("one", "two")])
        await store.write_timings([TimingCount(minute, queue, "c", "ran", 2, 3) for queue in ("email", "sms")])
        await write(
            store,
            {
                keys.named(keys.SERVERS, "one"): b"\x93",
                keys.audit(1): b"\x93",
                keys.minute(minute, "email", "c", family=keys.TIMINGS): b"\x93",
                keys.minute(minute, "email", None): b"\x93",
            },
        )
    for look in (True, False):
        async with opened(replace(address, look=look), clock=clock) as store:
            for _ in range(2):
                assert [each.id for each in await store.servers()] == ["two"]
                assert [each.target for each in await store.audit(limit=9)] == ["two"]
                assert [each.queue for each in await store.timings(since=EPOCH, until=LATE)] == ["sms"]
                assert [each.queue for each in await store.minutes(since=EPOCH, until=LATE)] == ["sms"]
    async with opened(address, clock=clock) as store:
        await store.write_timings([TimingCount(minute, "email", "c", "ran", 2, 3)])
        assert len(await store.timings(since=EPOCH, until=LATE)) == 2
    assert caplog.text.count("an entry of the audit cannot be read") == 1


async def test_a_damaged_schedule_is_shown_and_keeps_no_other_from_firing(address: Address, clock: FakeClock) -> None:
    async with opened(address, clock=clock) as store:
        for name in ("a", "b"):
            await store.write_schedule(schedule(name, clock), expected=None)
        database = database_of(store)
        value = await in_room(store, lambda: database.get(keys.named(keys.SCHEDULES, "a")))
        assert value is not None
        broken = msgspec.msgpack.decode(value) | {"rule": 5}
        await write(store, {keys.named(keys.SCHEDULES, "a"): msgspec.msgpack.encode(broken)})
    for look in (True, False):
        async with opened(replace(address, look=look), clock=clock) as store:
            [first, second] = (await store.schedules()).schedules
            assert (first.id, first.queue, second.id, second.damage) == ("a", "email", "b", None)
            assert first.damage is not None
            assert first.damage.startswith("rule ")
            assert (await store.schedules(["a"])).schedules == [first]
    async with opened(address, clock=clock) as store:
        due = (await store.due_schedules([], limit=9)).due
        assert [(each.id, each.damage is None) for each in due] == [("a", False), ("b", True)]
        assert await store.write_schedule(schedule("a", clock), expected=due[0].revision) is not None
        assert [each.damage for each in (await store.schedules()).schedules] == [None, None]


def schedule(name: str, clock: FakeClock) -> Schedule:
    return Schedule(
        id=name, rule="every 60s", queue="email", codec="raw", priority=1, max_attempts=1, next_run_at=clock.now()
    )


@pytest.mark.parametrize("value", [b"\x93", b"", b"\x99\xc2\x00\x00\x00\x00\xff\x90\x90"])
async def test_a_queue_whose_record_is_damaged_is_counted_anew(
    address: Address, clock: FakeClock, value: bytes
) -> None:
    async with opened(address, clock=clock) as store:
        await store.enqueue([job(1, kind="a"), job(2), job(3, delay=MINUTE), job(4, "sms")])
        await claimed(store, 1)
        before = await store.stats()
        await write(store, {keys.queue_record("email"): value})
    for look in (True, False):
        async with opened(replace(address, look=look), clock=clock) as store:
            [email, sms] = await store.stats()
            assert sms == before[1]
            assert replace(email, totals=before[0].totals) == before[0]
            assert (await store.stats("email"), await store.paused(["email", "sms"])) == ([email], [])
            assert look or await counts_agree(store)
    async with opened(address, clock=clock) as store:
        assert await claimed(store) == [numbered(2)]


async def test_counters_that_are_damaged_go_on_behind_what_is_in_use(address: Address, clock: FakeClock) -> None:
    async with opened(address, clock=clock) as store:
        await store.enqueue([job(1), job(2)])
        revision = await store.write_schedule(schedule("a", clock), expected=None)
        await store.write_audit([AuditEntry(clock.now(), "me", "pause", "one", {})])
        await write(store, {keys.COUNTERS: b"\x93"})
    async with opened(address, clock=clock) as store:
        await store.enqueue([job(3)])
        await store.write_audit([AuditEntry(clock.now(), "me", "pause", "two", {})])
        newer = await store.write_schedule(schedule("b", clock), expected=None)

        assert [each.seq for each in await store.jobs(JobFilter(), after=None, limit=9)] == [1, 2, 3]
        assert [each.target for each in await store.audit(limit=9)] == ["two", "one"]
        assert revision is not None
        assert newer is not None
        assert newer > revision


async def test_a_mark_of_a_move_that_is_damaged_still_says_that_the_jobs_go(address: Address, clock: FakeClock) -> None:
    async with opened(address, clock=clock) as store:
        await store.enqueue([job(1)])
        await store.set_moved(Moved("sqlite:///jobs.db", "m"))
        await write(store, {keys.MOVED: b"\x93"})
    async with opened(address, clock=clock) as store:
        with pytest.raises(StoreMoved, match="an address that is lost"):
            await claimed(store)
        await store.set_moved(None)
        assert await claimed(store) == [numbered(1)]


async def test_a_layout_that_is_damaged_is_refused(address: Address, clock: FakeClock) -> None:
    async with opened(address, clock=clock) as store:
        await write(store, {keys.LAYOUT: b"\x93"})

    with pytest.raises(StoreCorrupt, match="which layout"):
        await store_at(address, clock).open()


async def test_a_parcel_that_is_damaged_stops_the_move_and_no_other_call(store: SlateStore) -> None:
    await write(store, {keys.parcel("m", "email"): b"\x93"})
    database = database_of(store)

    with pytest.raises(StoreCorrupt, match="which parcel came last"):
        await store.unpack(Parcel("m", "email", 1, Packed([], [])))
    with pytest.raises(StoreCorrupt, match="which parcel came last"):
        await store.unpacked("m", "email")

    assert database_of(store) is database


async def test_a_unique_key_whose_holder_is_no_job_id_is_free(store: SlateStore) -> None:
    held = hold(Unique("key", until="finished"), queue="email", kind=None, tenant=None, payload=b"")
    await write(store, {keys.hold(held.name): records.encode(["no id", b"", None])})

    [done] = await store.enqueue([job(2, unique=held)])

    assert done.created
