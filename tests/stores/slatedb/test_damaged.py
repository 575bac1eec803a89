"""A job whose record is damaged is told to whoever asks for it, left where it is, and in nobody's way."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, Literal

import pytest

from tests.stores.slatedb.lived import TRACEBACK, job, numbered
from tests.stores.slatedb.opened import database_of, gathering, in_room, new_address, opened, table_of
from windlass.core.errors import StoreCorrupt
from windlass.core.ids import JobId
from windlass.core.job import Claim, Failure, Note, Progress
from windlass.core.requests import CancelOutcome, Changed, ClaimRequest, RescueRequest, Settled
from windlass.core.retention import KEEP_ALL, Keep, Retention
from windlass.core.schedule import Fired, FireOutcome, Firing, Schedule
from windlass.core.store import Store
from windlass.core.unique import Unique, hold
from windlass.core.verdict import ToReleased, ToRetry
from windlass.stores.slatedb import SlateStore, damaged, keys
from windlass.stores.slatedb.address import Address
from windlass.testing import FakeClock
from windlass.testing.conformance.given import settlement

MINUTE: Final = timedelta(minutes=1)
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
    return await store.claim(ClaimRequest(["email"], limit, MINUTE))


async def is_told(store: Store) -> bool:
    """Whether whoever asks for the damaged job is told of it."""
    with pytest.raises(StoreCorrupt, match=f"{BAD}.*restore the store") as told:
        await store.get([BAD])
    return told.value.job_id == BAD and not told.value.retryable


@pytest.mark.parametrize("way", WAYS)
async def test_a_claim_goes_on_with_the_other_jobs(
    store: SlateStore, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(damaged, "_told", {})
    await store.enqueue([job(n, payload=LARGE) for n in range(4)])
    table = table_of(store)
    await damage(store, WAYS[way])

    given = [await claimed(store, 2), await claimed(store, 2), await claimed(store, 2)]

    assert given == [[numbered(0), numbered(2)], [numbered(3)], []]
    assert table_of(store) is table
    [stats] = await store.stats("email")
    assert (stats.pending, stats.running) == (1, 3)
    assert caplog.text.count("left where it is") == 1
    assert way == "gone" or await is_told(store)


async def test_a_claim_that_meets_a_damaged_job_again_reads_it_no_more(store: SlateStore) -> None:
    await store.enqueue([job(n) for n in range(4)])
    await damage(store, RECORD)
    assert await claimed(store, 1) == [numbered(0)]
    assert await claimed(store, 1) == [numbered(2)]
    database: Any = database_of(store)
    read: list[bytes] = []
    get = database.get

    async def noted(key: bytes) -> bytes | None:
        read.append(key)
        value: bytes | None = await get(key)
        return value

    database.get = noted
    assert await claimed(store, 1) == [numbered(3)]
    assert await claimed(store, 1) == []
    assert keys.job(BAD) not in read


async def test_a_damaged_job_stays_in_its_line_for_whoever_opens_the_store_next(
    address: Address, clock: FakeClock, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(damaged, "_told", {})
    async with opened(address, clock=clock) as store:
        await store.enqueue([job(n) for n in range(4)])
        await damage(store, RECORD)
        assert await claimed(store, 2) == [numbered(0), numbered(2)]
        assert [each.level for each in await store.check() if each.name == "counts"] == ["ok"]
    async with opened(address, clock=clock) as store:
        assert await claimed(store) == [numbered(3)]

        [stats] = await store.stats("email")
        assert (stats.pending, stats.running) == (1, 3)
        assert [each.level for each in await store.check() if each.name == "counts"] == ["ok"]
    assert caplog.text.count("left where it is") == 1


async def test_a_line_of_nothing_but_damaged_jobs_gives_nothing(store: SlateStore) -> None:
    await store.enqueue([job(n) for n in range(3)])
    await damage(store, {keys.job(numbered(n)): b"\0" for n in range(3)})

    assert await claimed(store) == await claimed(store) == []
    await store.enqueue([job(5)])
    assert await claimed(store) == [numbered(5)]


async def test_a_scheduled_job_that_is_damaged_keeps_no_other_from_coming_due(
    store: SlateStore, clock: FakeClock
) -> None:
    await store.enqueue([job(n, delay=MINUTE) for n in range(3)])
    await damage(store, RECORD)
    clock.advance(MINUTE)

    assert await store.promote(limit=2) == 1
    assert await store.promote(limit=2) == 1
    assert await store.promote(limit=2) == 0

    # and nobody waits for it without an end
    assert await store.due_in(["email"]) is None
    assert await claimed(store) == [numbered(0), numbered(2)]


@pytest.mark.parametrize("part", [None, b"h"])
async def test_a_rescue_goes_on_with_the_other_jobs(address: Address, clock: FakeClock, part: bytes | None) -> None:
    """B18."""
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

        assert [{one.id for one in each} for each in rescued] == [{numbered(n) for n in range(30)} - {BAD}, set()]
        [stats] = await store.stats("email")
        assert (stats.pending, stats.running) == (29, 1)
        assert await is_told(store)


async def test_a_prune_goes_on_with_the_other_jobs(address: Address, clock: FakeClock) -> None:
    async with opened(address, clock=clock) as store:
        await store.enqueue([job(n) for n in range(3)])
        await store.settle([settlement(claim) for claim in await claims_of(store)])
    async with opened(address, clock=clock) as store:
        await damage(store, RECORD)

        assert await store.prune(Retention(Keep(succeeded=timedelta(0))), limit=10) == 2
        assert await store.prune(Retention(Keep(succeeded=timedelta(0))), limit=10) == 0

        [stats] = await store.stats("email")
        assert stats.succeeded == 1
        assert await is_told(store)


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


async def test_only_the_calls_about_a_damaged_job_are_told(store: SlateStore) -> None:
    held = hold(Unique("k"), queue="email", kind=None, tenant=None, payload=b"")
    await store.enqueue([job(0), job(1, unique=held), job(2)])
    await damage(store, RECORD)
    table = table_of(store)

    for call in (
        store.cancel([numbered(0), BAD], KEEP_ALL),
        store.retry([BAD]),
        store.delete([BAD]),
        store.reschedule([numbered(0), BAD], None),
        store.enqueue([job(1)]),
        store.enqueue([job(7), job(8, unique=held)]),
        store.pack("email", limit=10),
    ):
        with pytest.raises(StoreCorrupt, match=BAD):
            await call

    assert await store.cancel([numbered(0)], KEEP_ALL) == [CancelOutcome.REMOVED]
    assert await store.retry([numbered(0)]) == [Changed.DONE]
    assert table_of(store) is table
    [stats] = await store.stats("email")
    assert stats.pending == 3


async def test_a_move_takes_no_damaged_job_for_one_that_is_not_there(store: SlateStore) -> None:
    await store.enqueue([job(n) for n in range(3)])
    await damage(store, RECORD)
    assert await claimed(store) == [numbered(0), numbered(2)]

    with pytest.raises(StoreCorrupt, match=BAD):
        await store.pack("email", limit=10)


async def test_a_settlement_whose_next_job_needs_the_key_of_a_damaged_one_is_told_and_the_others_are_done(
    address: Address, clock: FakeClock
) -> None:
    held = hold(Unique("k"), queue="email", kind=None, tenant=None, payload=b"")
    async with opened(address, clock=clock) as store:
        await store.enqueue([job(1, unique=held, delay=MINUTE), job(2), job(3)])
        claims = await claims_of(store)
        await damage(store, RECORD)

        [told, done] = await store.settle(
            [settlement(claims[0])._replace(then=[job(4, unique=held)]), settlement(claims[1], ToReleased())]
        )

        assert isinstance(told, StoreCorrupt)
        assert done is Settled.DONE
        [stats] = await store.stats("email")
        assert (stats.scheduled, stats.pending, stats.running) == (1, 1, 1)


async def test_a_claim_that_is_repeated_gives_the_other_jobs_again(address: Address, clock: FakeClock) -> None:
    wanted = ClaimRequest(["email"], 10, MINUTE)
    async with opened(address, clock=clock) as store:
        await store.enqueue([job(n) for n in range(3)])
        given = await store.claim(wanted, request_id="r")
    async with opened(address, clock=clock) as store:
        await damage(store, RECORD)

        again: Sequence[Claim] = await store.claim(wanted, request_id="r")

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
    assert await is_told(store)


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
