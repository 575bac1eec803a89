"""Moving jobs over HTTP: what is lost on the way, what comes in parts, and what a store that has gone says."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from tests.stores.http.served import Bench, benched
from windlass.core.commands import UnpackJobs
from windlass.core.errors import InvalidValue, StoreMoved, StoreUnavailable
from windlass.core.ids import JobId
from windlass.core.moving import HeldKey, Moved, Packed, Parcel
from windlass.core.requests import KvWrite
from windlass.core.stats import TimingCount
from windlass.core.store import Store
from windlass.core.unique import Unique
from windlass.stores.http.wire import open_wire
from windlass.system import SystemClock
from windlass.testing.conformance.fixtures import soon
from windlass.testing.conformance.given import HOUR, MINUTE, UNKNOWN, a_job

NAME = "name"
AWAY = Moved("postgres://db/jobs", "move-1")


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with benched() as bench:
        yield bench


async def a_parcel(store: Store, number: int = 1) -> Parcel:
    """Return a parcel of a job that has left the store."""
    await store.enqueue([a_job(NAME, payload=b"\xff", unique=Unique("k"))])
    packed = await store.pack(NAME, limit=10)
    await store.let_go(jobs=[job.id for job in packed.jobs])
    return Parcel("move-1", NAME, number, packed)


@pytest.mark.parametrize("restarted", [False, True], ids=["", "by a process that was started since"])
async def test_a_parcel_whose_reply_was_lost_is_known_again(bench: Bench, *, restarted: bool) -> None:
    parcel = await a_parcel(bench.direct)
    bench.proxy.hold(["answers"])
    bench.proxy.replied.clear()
    begun = asyncio.ensure_future(bench.through.unpack(parcel))
    await soon(bench.proxy.replied.wait())
    if restarted:
        await bench.restart()
    bench.proxy.reset()
    bench.proxy.release()

    assert await begun

    assert not await bench.through.unpack(parcel)
    again = await bench.direct.pack(NAME, limit=10)
    assert [job._replace(seq=0) for job in again.jobs] == [job._replace(seq=0) for job in parcel.packed.jobs]
    assert (again.keys, (await bench.direct.stats(NAME))[0].pending) == (parcel.packed.keys, 1)


async def test_what_was_let_go_by_a_process_that_is_gone_is_not_let_go_again(bench: Bench) -> None:
    """A value that was written since, by a job that still ran, would be lost."""
    await bench.direct.kv_write(KvWrite(b"k", b"went over"))
    bench.proxy.hold(["answers"])
    bench.proxy.replied.clear()
    begun = asyncio.ensure_future(bench.through.let_go(kv=[b"k"]))
    await soon(bench.proxy.replied.wait())
    await bench.restart()
    await bench.direct.kv_write(KvWrite(b"k", b"written since"))
    bench.proxy.reset()
    bench.proxy.release()

    with pytest.raises(StoreUnavailable, match="not known whether"):
        await begun

    assert await bench.direct.kv_get([b"k"]) == [b"written since"]


async def test_a_store_that_has_gone_says_where_to_and_is_not_asked_again(bench: Bench) -> None:
    await bench.direct.set_moved(AWAY)
    before = bench.proxy.requests

    with pytest.raises(StoreMoved) as told:
        await bench.through.enqueue([a_job(NAME)])

    assert (told.value.to, told.value.retryable, bench.proxy.requests - before) == (AWAY.to, False, 1)


async def test_what_is_too_much_for_one_call_goes_in_parts(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("api.carried_call", "api.moving", "stores.http.batches"):
        monkeypatch.setattr(f"windlass.{module}.MOST_JOBS", 3)
    store, minute = bench.through, datetime(2026, 1, 1, tzinfo=UTC)
    jobs = [a_job(NAME) for _ in range(8)]
    ids = [job.id for job in jobs]
    keys = [HeldKey(f"queue||q|{n}", UNKNOWN, "time", SystemClock().now() + HOUR, b"\xff") for n in range(8)]
    timings = [TimingCount(minute, NAME, "", "ran", n, 1) for n in range(8)]
    await store.enqueue(jobs)
    await store.take_keys(keys)
    await store.write_timings(timings)

    assert [job.id for job in (await store.pack(NAME, limit=8)).jobs] == ids[:3]
    assert sorted(await store.timings(since=minute, until=minute + MINUTE)) == timings
    assert len(await store.timed_keys(limit=8)) == 3
    await store.let_go(jobs=ids[:7], keys=[key.name for key in keys[:4]], kv=[b"k"])
    assert [job.id for job in (await store.pack(NAME, limit=8)).jobs] == ids[7:]
    assert len(await bench.serving.store.timed_keys(limit=8)) == 4


async def test_nothing_is_asked_for_where_nothing_is_to_be_moved(bench: Bench) -> None:
    store, before = bench.through, bench.proxy.requests

    await store.let_go()
    await store.take_keys([])
    await store.write_timings([])
    assert (await store.pack(NAME, limit=0), await store.timed_keys(limit=0)) == (Packed([], []), [])
    assert bench.proxy.requests == before


async def test_counts_that_are_too_many_for_one_reply_come_in_several(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = datetime(2026, 1, 1, tzinfo=UTC)
    # a reply that comes in one piece is there already, however large
    rows = [TimingCount(first + n // 17 * MINUTE, NAME, "", "ran", n % 17, 1) for n in range(8_000)]
    await bench.direct.write_timings(rows)
    assert open_wire.__kwdefaults__ is not None
    monkeypatch.setitem(open_wire.__kwdefaults__, "most", 100_000)
    store = bench.serving.door()
    await store.open()

    assert await store.timings(since=first, until=first + timedelta(days=1)) == rows
    await store.close()


async def test_a_parcel_that_is_too_large_for_one_call_is_refused_whole(bench: Bench) -> None:
    parcel = await a_parcel(bench.direct)
    [job] = parcel.packed.jobs
    ids = [JobId(f"01900000-0000-7000-8000-{n:012d}") for n in range(20)]
    large = [job._replace(id=each, payload=bytes(1_000_000), unique_key=None) for each in ids]

    with pytest.raises(StoreUnavailable, match="larger than 16"):
        await bench.direct.unpack(parcel._replace(packed=Packed(large, [])))

    assert await bench.direct.unpacked("move-1", NAME) is None


@pytest.mark.parametrize("job_id", ["../../check", "a?b", "ü", ""])
async def test_an_id_that_is_none_leads_nowhere_else(bench: Bench, job_id: str) -> None:
    with pytest.raises((StoreUnavailable, InvalidValue)):
        await bench.direct.place(JobId(job_id))


async def test_a_parcel_that_is_repeated_by_its_request_id_is_unpacked_once(bench: Bench) -> None:
    unpack = UnpackJobs(Parcel("m", NAME, 1, Packed([], [])))

    assert await bench.through.do(unpack, request_id="unpack-1")

    assert await bench.through.do(unpack, request_id="unpack-1")
    assert not await bench.through.do(unpack, request_id="another")
