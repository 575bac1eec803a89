"""Every look answers as the store in memory does."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from typing import Any, Final, NamedTuple, TypeAlias

import pytest

from tests.stores.slatedb.lived import LARGE, QUEUES, live, numbered
from windlass.core.filters import JobFilter
from windlass.core.job import Job
from windlass.core.states import State
from windlass.core.store import Store
from windlass.stores.memory import MemoryStore
from windlass.stores.slatedb import SlateStore, job_pages, queue_looks
from windlass.stores.slatedb.address import Address
from windlass.testing import FakeClock, SeededRng
from windlass.testing.clock import START

Look: TypeAlias = Callable[[Store], Awaitable[Any]]

IDS: Final = [numbered(number) for number in range(45)]
YEAR: Final = timedelta(days=365)
MINUTE: Final = timedelta(minutes=1)
LOOKS: Final[dict[str, Look]] = {
    "get": lambda store: store.get([*reversed(IDS), IDS[2], IDS[2]]),
    "get one": lambda store: store.get([IDS[2]]),
    "get none": lambda store: store.get([]),
    "glance": lambda store: store.glance(IDS),
    "glance at none": lambda store: store.glance([]),
    "stats": lambda store: store.stats(),
    "paused": lambda store: store.paused([*reversed(QUEUES), "empty"]),
    "paused of none": lambda store: store.paused([]),
    "what waits": lambda store: store.waiting(),
    "other kinds": lambda store: store.kinds("email", ["a"]),
    "minutes": lambda store: store.minutes(since=START - YEAR, until=START + YEAR),
    "one minute": lambda store: store.minutes(since=START + MINUTE, until=START + 2 * MINUTE),
    "the minutes after the first": lambda store: store.minutes(since=START + timedelta(seconds=1), until=START + YEAR),
    "no minutes": lambda store: store.minutes(since=START + YEAR, until=START),
    "timings": lambda store: store.timings(since=START - YEAR, until=START + YEAR),
    "timings of a minute": lambda store: store.timings(since=START + MINUTE, until=START + 2 * MINUTE),
    "no timings": lambda store: store.timings(since=START + YEAR, until=START),
    "places": lambda store: asyncio.gather(*map(store.place, IDS)),
    "the waiting jobs of a queue": lambda store: store.pack("email/2", limit=100),
    "the first waiting jobs of a queue": lambda store: store.pack("sms", limit=1),
    "no waiting jobs": lambda store: store.pack("unknown", limit=100),
    "keys that time frees": lambda store: store.timed_keys(limit=10),
    "servers": lambda store: store.servers(),
    "schedules": lambda store: store.schedules(),
    "some schedules": lambda store: store.schedules(["c/1", "unknown", "a", "a"]),
    "no schedules": lambda store: store.schedules([]),
    "audit": lambda store: store.audit(limit=3),
    "the whole audit": lambda store: store.audit(limit=100),
    "stranded with a live server": lambda store: store.stranded(dead_after=MINUTE),
    "stranded": lambda store: store.stranded(dead_after=timedelta(0)),
    "values": lambda store: store.kv_get([b"a", b"unknown", b"\xff", b"a"]),
    "no values": lambda store: store.kv_get([]),
}
FILTERS: Final = {
    "all": JobFilter(),
    **{f"queue {queue}": JobFilter(queue=queue) for queue in QUEUES},
    **{state.value: JobFilter(state=state) for state in State},
    **{f"{state} email": JobFilter(queue="email", state=state) for state in State},
    "kind": JobFilter(kind="c"),
    "kind of a queue": JobFilter(kind="a", queue="email"),
    "tenant": JobFilter(tenant="t"),
    "schedule": JobFilter(schedule_id="s"),
    "since": JobFilter(since=START + MINUTE),
    "until": JobFilter(until=START + timedelta(seconds=1)),
    "error": JobFilter(error="boom"),
    "text": JobFilter(text="Value"),
    "dead with an error": JobFilter(state="dead", error="no"),
}
PREFIXES: Final = (b"", b"a", b"a\xff", b"a\xff\xff", b"\xff", b"\xff\xff", b"b", b"unknown")
AFTERS: Final = (None, b"\0", b"a", b"a\xff\0", b"b", b"\xff\xff")


class Both(NamedTuple):
    """Two stores in which the same has happened."""

    memory: Store
    slatedb: Store


@pytest.fixture(scope="module")
def both() -> Iterator[Both]:
    """Looks change nothing, so all tests share the stores."""
    clocks = FakeClock(), FakeClock()
    both = Both(
        MemoryStore(clock=clocks[0], rng=SeededRng()),
        SlateStore(Address("memory", "looks", ""), clock=clocks[1], rng=SeededRng()),
    )

    async def begin() -> None:
        for store, clock in zip(both, clocks, strict=True):
            await store.open()
            await live(store, clock)

    asyncio.run(begin())
    yield both
    asyncio.run(both.slatedb.close())


@pytest.mark.parametrize("name", LOOKS)
async def test_a_look_answers_as_in_memory(both: Both, name: str) -> None:
    assert await LOOKS[name](both.slatedb) == await LOOKS[name](both.memory)


@pytest.mark.parametrize("queue", QUEUES)
async def test_a_queue_is_as_in_memory(both: Both, queue: str) -> None:
    assert await both.slatedb.stats(queue) == await both.memory.stats(queue)
    assert await both.slatedb.kinds(queue) == await both.memory.kinds(queue)


async def test_what_is_compared_has_every_state_and_large_parts(both: Both) -> None:
    jobs = [job for job in await both.slatedb.get(IDS) if job is not None]

    assert {job.state for job in jobs} == set(State)
    assert any(job.payload == LARGE for job in jobs)
    assert any(job.result == LARGE and len(job.log) == 8 for job in jobs)
    assert any(ended.failure and ended.failure.traceback for job in jobs for ended in job.history)
    assert await both.slatedb.stranded(dead_after=timedelta(0)) > 0


@pytest.mark.parametrize("name", FILTERS)
async def test_a_page_of_jobs_is_as_in_memory(both: Both, name: str) -> None:
    for limit in (0, 1, 3, 1_000_000):
        assert await _page_by_page(both.slatedb, FILTERS[name], limit) == await _page_by_page(
            both.memory, FILTERS[name], limit
        )


@pytest.mark.parametrize("name", FILTERS)
async def test_a_page_of_jobs_is_as_in_memory_when_indexes_are_listed_piece_by_piece(
    both: Both, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_pages, "LISTED", 2)
    monkeypatch.setattr(job_pages, "PAGE", 1)

    assert await _page_by_page(both.slatedb, FILTERS[name], 3) == await _page_by_page(both.memory, FILTERS[name], 3)


@pytest.mark.parametrize("name", FILTERS)
async def test_the_newest_jobs_are_as_in_memory(both: Both, name: str) -> None:
    expected = (await both.memory.jobs(FILTERS[name], after=None, limit=1_000))[::-1]

    # few are led to by an index, and many are looked for in their order
    for limit, most in ((1, 1), (3, 5), (5, 1_000), (1_000_000, 1_000_000)):
        assert await _newest(both.slatedb, FILTERS[name], limit, most) == expected


async def _newest(store: Store, chosen: JobFilter, limit: int, most: int) -> list[Job]:
    found: list[Job] = []
    before: int | None = None
    while True:
        page = await store.newest(chosen, before=before, limit=limit, most=most)
        found += page.jobs
        if page.next is None:
            return found
        assert before is None or page.next < before
        before = page.next


async def _page_by_page(store: Store, chosen: JobFilter, limit: int) -> list[list[Job]]:
    pages: list[list[Job]] = []
    after: int | None = None
    while page := await store.jobs(chosen, after=after, limit=limit):
        assert after is None or page[0].seq > after
        pages.append(page)
        after = page[-1].seq
    return pages


async def test_the_oldest_is_found_line_by_line_as_well(both: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_looks, "READ_THROUGH", 0)

    assert await both.slatedb.stats() == await both.memory.stats()


async def test_pairs_are_scanned_as_in_memory(both: Both) -> None:
    for prefix in PREFIXES:
        for after in AFTERS:
            for limit in (0, 1, 100):
                found = await both.slatedb.kv_scan(prefix, after=after, limit=limit)
                assert found == await both.memory.kv_scan(prefix, after=after, limit=limit)
