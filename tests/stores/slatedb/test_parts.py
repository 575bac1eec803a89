"""Large parts of jobs lie apart: written once, gone with their job, and in memory only while it runs."""

from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec
import pytest

from tests.stores.slatedb.lived import TRACEBACK, job, numbered
from tests.stores.slatedb.opened import database_of, in_room, new_address, opened, table_of
from windlass.core.ids import JobId
from windlass.core.job import Claim, Failure, Note, Progress
from windlass.core.requests import ClaimRequest, RescueRequest, Settled, Settlement
from windlass.core.retention import KEEP_ALL, Keep, Retention
from windlass.core.states import State
from windlass.core.store import Store
from windlass.core.verdict import ToDead, ToReleased, ToRetry, ToSnoozed, ToSucceeded
from windlass.kit.moves.record import new_record
from windlass.stores.slatedb import SlateStore, keys, table
from windlass.stores.slatedb.records import join, split
from windlass.testing import FakeClock
from windlass.testing.conformance.given import settlement

MINUTE: Final = timedelta(minutes=1)
ZERO: Final = timedelta(0)
LARGE: Final = b"x" * 500_000
START: Final = datetime(2026, 1, 1, tzinfo=UTC)
FAILURE: Final = Failure("boom", "ValueError", TRACEBACK)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def store() -> AsyncIterator[SlateStore]:
    async with opened() as store:
        yield store


async def claim_one(store: Store) -> Claim:
    [claim] = (await store.claim(ClaimRequest(["email"], 1, MINUTE))).jobs
    return claim


class Written:
    """What is given to the engine to write from now on, in bytes."""

    def __init__(self, store: Store) -> None:
        database: Any = database_of(store)
        self._write = database.write
        self.bytes = 0
        database.write = self._count

    async def _count(self, changes: Mapping[bytes, bytes | None]) -> None:
        self.bytes += sum(len(key) + len(value or b"") for key, value in changes.items())
        await self._write(changes)


async def test_a_large_payload_is_written_once_in_the_life_of_its_job() -> None:
    address = new_address()
    async with opened(address) as store:
        written = Written(store)
        await store.enqueue([job(1, payload=LARGE, max_attempts=9)])
        await _fail(store)
        assert len(LARGE) < written.bytes < len(LARGE) + 20_000

    async with opened(address) as store:
        written = Written(store)
        await _fail(store)
        claim = await claim_one(store)
        assert claim.job.payload == LARGE
        await store.settle([settlement(claim, ToSucceeded(b"done"))])

        assert written.bytes < 20_000
        [found] = await store.get([numbered(1)])
        assert found is not None
        assert (found.payload, found.result, found.delivery) == (LARGE, b"done", 9)
        assert [line.text for line in found.log] == ["here"] * 2
        assert found.history[0].failure == Failure("boom")


async def _fail(store: Store) -> None:
    """Let a job live through whatever a claim can come to, but for its end."""
    for verdict in (ToRetry(ZERO, Failure("boom")), ToSnoozed(ZERO), ToReleased(), ToRetry(ZERO, Failure("boom"))):
        claim = await claim_one(store)
        assert claim.job.payload == LARGE
        await store.renew([(claim.job.id, claim.token)], 2 * MINUTE)
        lines = [("info", "here")] if isinstance(verdict, ToReleased) else []
        await store.note([Note(claim.job.id, claim.token, Progress(1, 2), lines)])
        assert await store.settle([settlement(claim, verdict)]) == [Settled.DONE]


def test_a_history_is_as_long_as_the_release_before_reads_it_and_what_is_new_stands_beside_it() -> None:
    record = new_record(1, job(1), START, START)
    record.delivery = 1
    record.end_delivery(START, "failed", Failure("boom", "Refused", None, "shop"))
    record.state, record.finished_at = State.DEAD, START
    record.note_retry(START + MINUTE)

    main = split(record).main
    fields = msgspec.msgpack.decode(main[1:])
    before = join(record.id, main[:1] + msgspec.msgpack.encode(fields[:-3]))

    assert fields[31] == [[1, 0, START, START, None, "failed", ["boom", "Refused", None]]]
    [delivery] = join(record.id, main).whole_job().history
    assert delivery.failure == Failure("boom", "Refused", None, "shop")
    assert delivery.retried_at == START + MINUTE
    assert before.whole_job().history == (delivery._replace(failure=Failure("boom", "Refused"), retried_at=None),)
    assert not before.has_followers


async def rows_of(store: Store, job_id: JobId) -> list[bytes]:
    """Return every key that names a job."""
    database, name = database_of(store), keys.id_bytes(job_id)
    rows = await in_room(store, lambda: database.scan(b"\0", b"\xff", limit=10_000))
    return [key for key, value in rows if name in key or name in value]


async def test_all_parts_of_a_job_go_when_it_is_deleted(store: SlateStore) -> None:
    await store.enqueue([job(1, payload=LARGE)])
    await store.settle([settlement(await claim_one(store), ToDead(FAILURE))])
    apart = [keys.part(numbered(1), letter) for letter in (b"p", b"h")]
    assert set(apart) <= set(await rows_of(store, numbered(1)))

    await store.delete([numbered(1)])

    assert await rows_of(store, numbered(1)) == []


async def test_all_parts_of_a_job_go_when_it_is_pruned() -> None:
    address = new_address()
    async with opened(address) as store:
        await store.enqueue([job(1, payload=LARGE)])
        claim = await claim_one(store)
        await store.note([Note(claim.job.id, claim.token, None, [("info", "x" * 1_000)] * 3)])
        await store.settle([settlement(claim, ToSucceeded(LARGE))])
        apart = [keys.part(numbered(1), letter) for letter in (b"p", b"r", b"l")]
        assert set(apart) <= set(await rows_of(store, numbered(1)))

    async with opened(address) as store:
        assert await store.prune(Retention(Keep(succeeded=ZERO)), limit=10) == 1

        assert await rows_of(store, numbered(1)) == []


@pytest.mark.parametrize("verdict", [ToSucceeded(LARGE), ToDead(FAILURE)])
async def test_all_parts_of_a_job_go_with_its_end_when_it_is_not_kept(
    store: SlateStore, verdict: ToSucceeded | ToDead
) -> None:
    await store.enqueue([job(1, payload=LARGE)])
    claim = await claim_one(store)

    await store.settle([Settlement(claim.job.id, claim.token, verdict, keep=False)])

    assert await rows_of(store, numbered(1)) == []


async def test_a_part_lies_apart_from_when_it_is_large(store: SlateStore) -> None:
    await store.enqueue([job(1)])
    claim = await claim_one(store)
    await store.note([Note(claim.job.id, claim.token, None, [("info", "x" * 900)])])
    assert keys.part(numbered(1), b"l") not in await rows_of(store, numbered(1))

    await store.note([Note(claim.job.id, claim.token, None, [("info", "y" * 900)])])

    assert keys.part(numbered(1), b"l") in await rows_of(store, numbered(1))
    [found] = await store.get([numbered(1)])
    assert found is not None
    assert [line.text[:1] for line in found.log] == ["x", "y"]


async def test_large_jobs_are_in_memory_only_while_they_run(store: SlateStore) -> None:
    await store.enqueue([job(n, payload=LARGE) for n in range(3)])
    kept = table_of(store)
    assert (len(kept.jobs), len(vars(kept)["_apart"])) == (0, 0)

    claim = await claim_one(store)
    assert list(kept.jobs) == [claim.job.id]
    await store.settle([settlement(claim)])

    assert [len(vars(kept)[name]) for name in ("_jobs", "_apart", "_places")] == [0, 0, 0]


async def test_finished_jobs_take_no_memory_and_are_known_when_they_are_settled_again(store: SlateStore) -> None:
    await store.enqueue([job(n) for n in range(3)])
    claims = (await store.claim(ClaimRequest(["email"], 2, MINUTE))).jobs
    kept = table_of(store)

    await store.settle([settlement(claim) for claim in claims])

    assert list(kept.jobs) == [numbered(2)]
    assert vars(kept)["_places"].keys() == {numbered(2)}
    assert await store.settle([settlement(claim) for claim in claims]) == [Settled.REPEATED] * 2


async def test_more_jobs_than_are_kept_in_memory_are_let_go_and_go_on(
    store: SlateStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table, "JOBS_KEPT", 40)
    kept = table_of(store)

    for begin in range(0, 200, 20):
        await store.enqueue([job(n) for n in range(begin, begin + 20)])
        assert len(kept.jobs) <= 40
    claims = (await store.claim(ClaimRequest(["email"], 100, MINUTE))).jobs
    # those that run stay
    assert {claim.job.id for claim in claims} <= set(kept.jobs)
    await store.settle([settlement(claim) for claim in claims[:90]])
    await store.cancel([numbered(n) for n in range(150, 160)], KEEP_ALL)

    assert len(kept.jobs) <= 40
    assert vars(kept)["_places"].keys() == set(kept.jobs)
    [stats] = await store.stats("email")
    assert (stats.pending, stats.running, stats.succeeded, stats.cancelled) == (90, 10, 90, 10)
    rest = (await store.claim(ClaimRequest(["email"], 100, MINUTE))).jobs
    assert [claim.job.id for claim in rest] == [numbered(n) for n in range(100, 200) if not 150 <= n < 160]
    assert await store.settle([settlement(claim) for claim in [*claims[90:], *rest]]) == [Settled.DONE] * 100


class Read:
    """The jobs of which parts are read from the engine from now on."""

    def __init__(self, store: Store) -> None:
        database: Any = database_of(store)
        self._get = database.get
        self.parts: list[bytes] = []
        database.get = self._note

    async def _note(self, key: bytes) -> bytes | None:
        if key.startswith(keys.PARTS):
            self.parts.append(key[-1:])
        value: bytes | None = await self._get(key)
        return value


async def whole(store: Store, number: int) -> tuple[bytes, bytes | None, int, int]:
    """Return the large parts of a job: payload and result, and how long history and log are."""
    [found] = await store.get([numbered(number)])
    assert found is not None
    return found.payload, found.result, len(found.history), len(found.log)


async def test_payloads_stay_where_they_are_while_their_jobs_come_due(clock: FakeClock) -> None:
    address = new_address()
    async with opened(address, clock=clock) as store:
        await store.enqueue([job(n, payload=LARGE, delay=MINUTE) for n in range(3)])
        clock.advance(MINUTE)
        read = Read(store)

        assert await store.promote(limit=10) == 3

        assert read.parts == []
        claim = await claim_one(store)
        assert read.parts == [b"p"]
        assert claim.job.payload == LARGE
    async with opened(address, clock=clock) as store:
        assert (await whole(store, 1))[0] == LARGE


async def test_a_claim_reads_of_all_that_has_come_due_what_it_gives(clock: FakeClock) -> None:
    async with opened(clock=clock) as store:
        await store.enqueue([job(n, payload=LARGE, delay=MINUTE) for n in range(3)])
        clock.advance(MINUTE)
        read = Read(store)

        claim = await claim_one(store)

        assert read.parts == [b"p"]
        assert claim.job.payload == LARGE


@pytest.mark.parametrize("max_attempts", [2, 3])
async def test_a_rescue_reads_the_history_alone_and_loses_nothing(clock: FakeClock, max_attempts: int) -> None:
    address = new_address()
    async with opened(address, clock=clock) as store:
        await store.enqueue([job(1, payload=LARGE, max_attempts=max_attempts)])
        await store.settle([settlement(await claim_one(store), ToRetry(ZERO, FAILURE))])
        claim = await claim_one(store)
        await store.note([Note(claim.job.id, claim.token, None, [("info", "x" * 300)] * 8)])
    clock.advance(2 * MINUTE)
    async with opened(address, clock=clock) as store:
        read = Read(store)

        assert len(await store.rescue(RescueRequest(), KEEP_ALL)) == 1

        assert read.parts == [b"h"]
        assert await whole(store, 1) == (LARGE, None, 2, 8)


async def test_a_claim_that_is_not_rescued_with_others_goes_on_whole(clock: FakeClock) -> None:
    address = new_address()
    async with opened(address, clock=clock) as store:
        await store.enqueue([job(1, payload=LARGE)])
        claim = await claim_one(store)
    async with opened(address, clock=clock) as store:
        assert await store.rescue(RescueRequest(workers=["another"], force=True), KEEP_ALL) == []

        await store.renew([(claim.job.id, claim.token)], 2 * MINUTE)
        await store.settle([settlement(claim, ToRetry(ZERO, FAILURE))])

        assert await whole(store, 1) == (LARGE, None, 1, 0)


async def test_a_prune_reads_no_parts_and_leaves_none(clock: FakeClock) -> None:
    address = new_address()
    async with opened(address, clock=clock) as store:
        await store.enqueue([job(1, payload=LARGE)])
        await store.settle([settlement(await claim_one(store), ToSucceeded(LARGE))])
        read = Read(store)

        assert await store.prune(Retention(Keep(succeeded=ZERO)), limit=10) == 1

        assert read.parts == []
        rows = await database_of(store).scan(keys.PARTS, keys.after(keys.PARTS), limit=10)
        assert rows == []
