"""The order of claims with more jobs than a front holds, and what claims read while a queue is drained."""

import random
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

import pytest

from tests.stores.slatedb.lived import job, numbered
from tests.stores.slatedb.opened import database_of, new_address, opened, table_of
from windlass.core.ids import JobId
from windlass.core.job import PreparedJob
from windlass.core.requests import ClaimRequest
from windlass.core.store import Store
from windlass.stores.slatedb import front, keys
from windlass.stores.slatedb.database import Database
from windlass.stores.slatedb.front import MOST, Front
from windlass.testing.conformance.given import settlement

MINUTE: Final = timedelta(minutes=1)


class Line:
    """The jobs that wait, as they must be claimed."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, JobId, str | None]] = []

    def join(self, jobs: Sequence[PreparedJob]) -> None:
        self._waiting += [(each.priority, each.id, each.kind) for each in jobs]
        # all run at once: of one priority, the order is that of their numbers
        self._waiting.sort(key=lambda waits: waits[:2])

    def take(self, limit: int, kinds: Sequence[str | None] | None) -> list[JobId]:
        taken = [waits for waits in self._waiting if kinds is None or waits[2] in kinds][:limit]
        ids = [job_id for _, job_id, _ in taken]
        gone = set(ids)
        self._waiting = [waits for waits in self._waiting if waits[1] not in gone]
        return ids

    def __len__(self) -> int:
        return len(self._waiting)


async def claims_match(store: Store, line: Line, limit: int, kinds: Sequence[str | None] | None = None) -> bool:
    claims = (await store.claim(ClaimRequest(["email"], limit, MINUTE, kinds))).jobs
    return [claim.job.id for claim in claims] == line.take(limit, kinds)


async def test_thousands_of_jobs_are_claimed_in_order_whatever_comes_in_front_of_them() -> None:
    address, line, chance = new_address(), Line(), random.Random(1)
    jobs = [
        job(n, kind=None if n % 15 == 0 else "b" if n % 15 == 1 else "a", priority=chance.choice([10, 20, 30]))
        for n in range(MOST + 500)
    ]
    line.join(jobs)
    async with opened(address) as store:
        await store.enqueue(jobs)
        assert await claims_match(store, line, 50)
        numbers = len(jobs)
        while len(line) > MOST - 600:
            urgent = [job(numbers + n, kind="ab"[n % 2], priority=chance.choice([1, 10, 15, 99])) for n in range(10)]
            numbers += len(urgent)
            line.join(urgent)
            await store.enqueue(urgent)
            assert await claims_match(store, line, 150)
            assert await claims_match(store, line, 20, ["b", None])

    # what was running stays so: a reopened store reads its fronts anew
    async with opened(address) as store:
        assert await claims_match(store, line, 30, ["a"])
        first = [job(numbers, kind="a", priority=0), job(numbers + 1, kind="b", priority=100)]
        line.join(first)
        await store.enqueue(first)
        while len(line):
            assert await claims_match(store, line, 400)
        assert (await store.claim(ClaimRequest(["email"], 1, MINUTE))).jobs == []


@pytest.fixture
def _small_fronts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front, "MOST", 200)
    monkeypatch.setattr(front, "FILL", 100)


@pytest.mark.usefixtures("_small_fronts")
async def test_a_line_that_grows_from_its_front_beyond_what_is_kept_loses_nobody() -> None:
    line = Line()
    async with opened() as store:
        for begin in range(0, 300, 50):
            # each more urgent than all before it
            jobs = [job(n, priority=1_000 - n) for n in range(begin, begin + 50)]
            line.join(jobs)
            await store.enqueue(jobs)
        kept = fronts_of(store)[keys.line("email", None)]

        assert len(kept.keys) <= 200
        assert not kept.complete
        while len(line):
            assert await claims_match(store, line, 70)


async def test_what_comes_in_front_of_where_a_line_began_is_claimed_first_whoever_owns_it_then() -> None:
    address, line = new_address(), Line()
    jobs = [job(n, kind="ab"[n % 2], priority=500) for n in range(100)]
    line.join(jobs)
    async with opened(address) as store:
        await store.enqueue(jobs)
        assert await claims_match(store, line, 40)

    # each owner opens it, and lets somebody in before it has read where the line begins
    for number in range(3):
        async with opened(address) as store:
            first = [job(100 + number, kind="a", priority=400 - number), job(200 + number, kind="b", priority=600)]
            line.join(first)
            await store.enqueue(first)
    async with opened(address) as store:
        assert await claims_match(store, line, 5)
    async with opened(address) as store:
        [stats] = await store.stats("email")
        assert stats.pending == len(line)
        assert await claims_match(store, line, 100)


def fronts_of(store: Store) -> dict[bytes, Front]:
    """Return the fronts that the owner has in memory."""
    found: dict[bytes, Front] = vars(table_of(store))["_fronts"]
    return found


class CountedDatabase:
    """The database of a table, with what was read through it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.gets = 0
        self.scans: list[bytes] = []
        self.rows = 0

    async def get(self, key: bytes) -> bytes | None:
        self.gets += 1
        return await self._database.get(key)

    async def scan(self, start: bytes, end: bytes, *, limit: int) -> list[tuple[bytes, bytes]]:
        rows = await self._database.scan(start, end, limit=limit)
        self.scans.append(start)
        self.rows += len(rows)
        return rows

    async def write(self, changes: Mapping[bytes, bytes | None]) -> None:
        await self._database.write(changes)


@pytest.mark.usefixtures("_small_fronts")
async def test_a_claim_reads_as_little_at_the_end_of_a_drain_as_at_its_beginning() -> None:
    jobs, limit = 620, 10
    address = new_address()
    async with opened(address) as store:
        await store.enqueue([job(n) for n in range(jobs)])

    async with opened(address) as store:
        counted = CountedDatabase(database_of(store))
        vars(table_of(store))["_database"] = counted
        for begin in range(0, jobs, limit):
            before, counted.scans, counted.rows = fronts_of(store).get(keys.line("email", None)), [], 0
            ran_out = before is None or before.lacks(limit)
            claims = (await store.claim(ClaimRequest(["email"], limit, MINUTE))).jobs
            await store.settle([settlement(claim) for claim in claims])

            assert [claim.job.id for claim in claims] == [numbered(n) for n in range(begin, begin + limit)]
            # the jobs themselves, and the next piece of the line when the front has run out
            assert len(counted.scans) == (2 if ran_out else 1)
            assert counted.rows <= limit + (100 if ran_out else 0)
            lines = [start for start in counted.scans if start.startswith(keys.line("email", None))]
            assert not begin or all(keys.id_of(start[:-1]) >= numbered(begin - 1) for start in lines)
        assert counted.gets == 0
