"""Any error of the server at any statement: the call is repeated or says so, nothing is lost or doubled."""

import asyncio
import inspect
import itertools
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final
from uuid import uuid4

import asyncpg
import pytest

from tests.postgres.frames import Request
from tests.postgres.proxy import Proxy
from tests.postgres.ready import ready_schema
from tests.stores.postgres.migrating import bring_up, meta, relations, rows
from tests.stores.postgres.next_migrations import ONE_MORE
from tests.stores.postgres.racing import MINUTE, connection_to, opened, settlement, wanting
from windlass.core.errors import StoreFull, StoreUnavailable
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.job import Claim, Failure, Note
from windlass.core.looks import AuditEntry, ServerRecord
from windlass.core.moving import HeldKey, Parcel
from windlass.core.requests import KvWrite, RescueRequest
from windlass.core.retention import Keep, Retention
from windlass.core.schedule import Firing
from windlass.core.stats import TimingCount
from windlass.core.store import Store
from windlass.core.unique import Unique
from windlass.core.verdict import ToDead, ToReleased, ToRetry
from windlass.stores.postgres import adder, survey
from windlass.stores.postgres.migrate import OURS, SCHEMA
from windlass.stores.postgres.statements import statement
from windlass.testing.conformance.given import a_job, a_schedule

NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
REPEATED: Final = {"40P01", "40001", "25006", "53300"}
"""What one more try mends."""
TOLD: Final = {"55P03": StoreUnavailable, "57014": StoreUnavailable, "53100": StoreFull}
NONE_KEPT: Final = Keep(timedelta(0), timedelta(0), timedelta(0))

Call = Callable[[Store], Awaitable[Any]]
Scenario = Callable[[Store, str], Awaitable[Call]]


async def _claimed(store: Store, name: str, **options: Any) -> Claim:  # noqa: ANN401
    await store.enqueue([a_job(name, **options)])
    [claim] = (await store.claim(wanting(name))).jobs
    return claim


async def _dead(store: Store, name: str) -> Claim:
    claim = await _claimed(store, name, unique=Unique("k", until="finished"))
    await store.settle([settlement(claim, ToDead(Failure("no")))])
    return claim


async def enqueue(_: Store, name: str) -> Call:
    jobs = [a_job(name), a_job(name)]
    return lambda store: store.enqueue(jobs)


async def enqueue_one(_: Store, name: str) -> Call:
    job = a_job(name)
    return lambda store: store.enqueue([job])


async def enqueue_keyed(_: Store, name: str) -> Call:
    jobs = [a_job(name, unique=Unique("k"), kv={name.encode(): b"v"}), a_job(name)]
    return lambda store: store.enqueue(jobs)


async def replace(store: Store, name: str) -> Call:
    await store.enqueue([a_job(name, unique=Unique("k", on_conflict="replace"))])
    jobs = [a_job(name, delay=MINUTE, unique=Unique("k", on_conflict="replace"))]
    return lambda store: store.enqueue(jobs)


async def claim(store: Store, name: str) -> Call:
    await store.enqueue([a_job(name), a_job(name, delay=timedelta(microseconds=1))])
    return lambda store: store.claim(wanting(name, limit=2))


async def claim_chosen(store: Store, name: str) -> Call:
    await store.enqueue([a_job(name, kind="a"), a_job(name, kind="b")])
    return lambda store: store.claim(wanting(name, limit=1, kinds=["b"]))


async def settle(store: Store, name: str) -> Call:
    held = await _claimed(store, name, unique=Unique("k", until="finished"))
    follower = a_job(name)
    return lambda store: store.settle(
        [settlement(held, ToDead(Failure("no")), then=[follower], kv={name.encode(): b"v"})]
    )


async def ack(store: Store, name: str) -> Call:
    held = await _claimed(store, name, unique=Unique("k", until="finished"))
    return lambda store: store.settle([settlement(held)])


async def ack_and_forget(store: Store, name: str) -> Call:
    held = await _claimed(store, name)
    return lambda store: store.settle([settlement(held, keep=False)])


async def release(store: Store, name: str) -> Call:
    held = await _claimed(store, name, unique=Unique("k"))
    return lambda store: store.settle([settlement(held, ToReleased())])


async def retry_later(store: Store, name: str) -> Call:
    held = await _claimed(store, name)
    return lambda store: store.settle([settlement(held, ToRetry(MINUTE, Failure("no")))])


async def renew(store: Store, name: str) -> Call:
    held = await _claimed(store, name)
    return lambda store: store.renew([(held.job.id, held.token)], MINUTE)


async def note(store: Store, name: str) -> Call:
    held = await _claimed(store, name)
    return lambda store: store.note([Note(held.job.id, held.token, lines=[("info", "line")])])


async def cancel(store: Store, name: str) -> Call:
    held = await _claimed(store, name)
    [waiting] = await store.enqueue([a_job(name, unique=Unique("k"))])
    return lambda store: store.cancel([held.job.id, waiting.id], Retention())


async def retry(store: Store, name: str) -> Call:
    dead = await _dead(store, name)
    return lambda store: store.retry([dead.job.id])


async def delete(store: Store, name: str) -> Call:
    dead = await _dead(store, name)
    return lambda store: store.delete([dead.job.id])


async def reschedule(store: Store, name: str) -> Call:
    [waiting] = await store.enqueue([a_job(name)])
    return lambda store: store.reschedule([waiting.id], datetime.now(UTC) + MINUTE)


async def set_paused(_: Store, name: str) -> Call:
    return lambda store: store.set_paused(name, paused=True)


async def rescue(store: Store, name: str) -> Call:
    await store.enqueue([a_job(name), a_job(name, max_attempts=1)])
    await store.claim(wanting(name, limit=2, lease=timedelta(0)))
    return lambda store: store.rescue(RescueRequest(queues=[name]), Retention())


async def promote(store: Store, name: str) -> Call:
    await store.enqueue([a_job(name, delay=timedelta(microseconds=1))])
    return lambda store: store.promote(limit=10)


async def prune(store: Store, name: str) -> Call:
    await _dead(store, name)
    return lambda store: store.prune(Retention(queues={name: NONE_KEPT}), limit=10)


async def write_schedule(_: Store, name: str) -> Call:
    return lambda store: store.write_schedule(a_schedule(name), expected=None)


async def remove_schedule(store: Store, name: str) -> Call:
    await store.write_schedule(a_schedule(name), expected=None)
    return lambda store: store.remove_schedule(name)


async def fire(store: Store, name: str) -> Call:
    revision = await store.write_schedule(a_schedule(name, NOW), expected=None)
    assert revision is not None
    firing = Firing(name, revision, [a_job(name, schedule_id=name)], NOW, NOW + timedelta(days=10_000))
    return lambda store: store.fire(firing)


async def kv_write(store: Store, name: str) -> Call:
    await store.kv_write(KvWrite(name.encode(), b"1"))
    return lambda store: store.kv_write(KvWrite(name.encode(), b"2", expected=b"1"))


async def lock(_: Store, name: str) -> Call:
    return lambda store: store.lock(name, "me", MINUTE)


async def unlock(store: Store, name: str) -> Call:
    await store.lock(name, "me", MINUTE)
    return lambda store: store.unlock(name, "me")


async def beat(_: Store, name: str) -> Call:
    return lambda store: store.beat(ServerRecord(name, "name", "host", 1, "1.0", NOW, NOW))


async def leave(store: Store, name: str) -> Call:
    await store.beat(ServerRecord(name, "name", "host", 1, "1.0", NOW, NOW))
    return lambda store: store.leave(name)


async def write_audit(_: Store, name: str) -> Call:
    return lambda store: store.write_audit([AuditEntry(NOW, "me", "retry", name, {})])


async def write_timings(_: Store, name: str) -> Call:
    return lambda store: store.write_timings([TimingCount(NOW, name, "", "ran", 0, 1)] * 2)


async def set_moved(_: Store, __: str) -> Call:
    # the others of these calls need a store that takes jobs
    return lambda store: store.set_moved(None)


async def _parcel(store: Store, name: str) -> Parcel:
    """Return a job that has all that can be packed with it, and the store without it."""
    held = await _claimed(store, name, unique=Unique("k", until=timedelta(days=1)))
    await store.note([Note(held.job.id, held.token, lines=[("info", "line")])])
    await store.settle([settlement(held, ToRetry(timedelta(0), Failure("no")))])
    parcel = Parcel(name, name, 1, await store.pack(name, limit=10))
    await store.let_go(jobs=[held.job.id])
    return parcel


async def unpack(store: Store, name: str) -> Call:
    parcel = await _parcel(store, name)
    return lambda store: store.unpack(parcel)


async def let_go(store: Store, name: str) -> Call:
    await store.unpack(await _parcel(store, name))
    await store.kv_write(KvWrite(name.encode(), b"v"))
    await store.write_schedule(a_schedule(name), expected=None)
    [job] = (await store.pack(name, limit=10)).jobs
    return lambda store: store.let_go(
        jobs=[job.id], keys=[f"queue||{name}|other"], kv=[name.encode()], schedules=[name]
    )


async def take_keys(_: Store, name: str) -> Call:
    key = HeldKey(f"queue||{name}|k", JobId(str(uuid4())), "time", NOW + timedelta(days=10_000), b"")
    return lambda store: store.take_keys([key])


WRITES: Final[list[Scenario]] = [
    enqueue, enqueue_one, enqueue_keyed, replace, claim, claim_chosen, settle, ack, ack_and_forget, release,
    retry_later, renew, note, cancel, retry, delete, reschedule, set_paused, rescue, promote, prune, write_schedule,
    remove_schedule, fire, kv_write, lock, unlock, beat, leave, write_audit, write_timings, set_moved, unpack, let_go,
    take_keys,
]  # fmt: skip
LOOKS: Final[dict[str, Call]] = {
    "due_in": lambda store: store.due_in(["q"]),
    "due_schedules": lambda store: store.due_schedules([], limit=10),
    "kv_get": lambda store: store.kv_get([b"k"]),
    "kv_scan": lambda store: store.kv_scan(b"k", after=None, limit=10),
    "get": lambda store: store.get([]),
    "glance": lambda store: store.glance([]),
    "jobs": lambda store: store.jobs(JobFilter(), after=None, limit=10),
    "stats": lambda store: store.stats(),
    "paused": lambda store: store.paused(["q"]),
    "kinds": lambda store: store.kinds("q"),
    "waiting": lambda store: store.waiting(),
    "minutes": lambda store: store.minutes(since=NOW, until=NOW + MINUTE),
    "servers": lambda store: store.servers(),
    "schedules": lambda store: store.schedules(),
    "audit": lambda store: store.audit(limit=10),
    "stranded": lambda store: store.stranded(dead_after=MINUTE),
    "check": lambda store: store.check(),
    "newest": lambda store: store.newest(JobFilter(queue="q"), before=None, limit=10, most=10),
    "dead": lambda store: store.dead("q", before=None, limit=10),
    "place": lambda store: store.place(JobId(str(uuid4()))),
    "timings": lambda store: store.timings(since=NOW, until=NOW + MINUTE),
    "moved": lambda store: store.moved(),
    "pack": lambda store: store.pack("q", limit=10),
    "unpacked": lambda store: store.unpacked("move", "q"),
    "timed_keys": lambda store: store.timed_keys(limit=10),
}
ELSEWHERE: Final = {
    # every call here is a command or a query
    "do",
    "ask",
    "open",
    "is_prepared",
    "close",
    "sibling",
    "listen",
    "join",
    "ended_servers",
    "features",
    "transaction",
}
LEFT: Final = """
select
    array(
        select format('%s %s %s %s', state, attempt, delivery, log_lines) from windlass_job where queue = $1
        order by state, attempt, delivery
    ),
    (
        select array[
            sum(pending), sum(scheduled), sum(running), sum(dead), sum(cancelled), sum(succeeded), sum(enqueued_total),
            sum(succeeded_total), sum(dead_total), sum(cancelled_total), sum(retried_total), sum(rescued_total)
        ]
        from (
            select * from windlass_count where minute = 'infinity' and queue = $1
            union all
            select minute, queue, kind, scheduled, pending, running, succeeded, dead, cancelled, enqueued_total,
                succeeded_total, dead_total, cancelled_total, retried_total, rescued_total
            from windlass_delta where queue = $1
        ) as counted
    ),
    (select count(*) from windlass_hold where name like '%' || $1 || '%'),
    (select value from windlass_kv where key = $1::bytea),
    (select holder from windlass_lock where name = $1),
    (select next_run_at from windlass_schedule where id = $1),
    (select count(*) from windlass_schedule where id = $1),
    (select count(*) from windlass_server where id = $1),
    (select count(*) from windlass_audit where target = $1),
    (select override from windlass_queue where queue = $1),
    (select count from windlass_timing where queue = $1),
    (select number from windlass_parcel where queue = $1),
    (select count(*) from windlass_delivery join windlass_job using (seq) where queue = $1),
    (select count(*) from windlass_log join windlass_job using (seq) where queue = $1)
"""


BEHIND: Final = {
    "the adder": "fold",
    "the look for writers": "writers",
    "the look at marks": "marks_of",
    "raising a mark": "set_marks",
    "the mark of leases": "set_lease_mark",
    "the check of marks": "marked_queues",
    "the notifier": "notify",
}
"""What a store does by itself, and a statement of each."""


class Bench:
    """A store behind a proxy, one beside it, and a look at what is left."""

    def __init__(self, through: Store, direct: Store, proxy: Proxy, outside: "asyncpg.Connection[Any]") -> None:
        self.through = through
        self.direct = direct
        self.proxy = proxy
        self._outside = outside
        self._numbers = itertools.count()

    def new_name(self) -> str:
        return f"name{next(self._numbers):04d}x"

    async def left(self, name: str) -> list[Any]:
        [row] = await self._outside.fetch(LEFT, name)
        jobs, counts, *rest = row
        # a queue that is counted and empty is as one that is not
        return [jobs, [int(count or 0) for count in counts], *rest]

    async def failure_of(self, call: Call, place: int, code: str) -> "tuple[bool, StoreUnavailable | None]":
        """Let request number `place` of a call fail; return whether there was one, and what the call raised."""
        # on a connection that is there
        await self.through.paused(["warm"])
        met = self.proxy.fail(place, code)
        try:
            await call(self.through)
        except StoreUnavailable as failure:
            return met.is_set(), failure
        finally:
            self.proxy.plans.clear()
        return met.is_set(), None


@pytest.fixture
def url() -> Iterator[str]:
    with ready_schema() as url:
        yield url


@asynccontextmanager
async def a_bench(url: str) -> AsyncGenerator[Bench]:
    async with (
        Proxy(url) as proxy,
        opened(f"{proxy.url}&notify=off") as through,
        opened(f"{url}&notify=off") as direct,
        connection_to(url) as outside,
    ):
        yield Bench(through, direct, proxy, outside)


@pytest.fixture
async def bench(url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Bench]:
    # nothing but the call itself may meet the fault; what goes on behind it meets its own below
    monkeypatch.setattr(survey, "CHECK_EVERY", 1e9)
    async with a_bench(url) as bench:
        yield bench


def test_every_call_of_a_store_meets_every_error() -> None:
    names = {name for name, _ in inspect.getmembers(Store) if not name.startswith("_")}

    assert names <= {scenario.__name__ for scenario in WRITES} | LOOKS.keys() | ELSEWHERE


@pytest.mark.parametrize("scenario", WRITES, ids=lambda scenario: scenario.__name__)
async def test_a_call_that_meets_an_error_is_done_once_or_not_at_all(bench: Bench, scenario: Scenario) -> None:
    first = bench.new_name()
    await (await scenario(bench.direct, first))(bench.through)
    done = await bench.left(first)

    for code in sorted(REPEATED | TOLD.keys()):
        places = 0
        while await _is_mended(bench, scenario, places + 1, code, done):
            places += 1

        assert places, "the call sent nothing"


async def _is_mended(bench: Bench, scenario: Scenario, place: int, code: str, done: list[Any]) -> bool:
    """Let one request of a call fail and look what it left; False when there is no such request."""
    name = bench.new_name()
    call = await scenario(bench.direct, name)
    before = await bench.left(name)
    met, failure = await bench.failure_of(call, place, code)
    after = await bench.left(name)
    if failure is not None:
        assert type(failure) is TOLD.get(code), (place, failure)
        assert failure.retryable
        # of the few calls that take two transactions the first may be done
        assert _alike(after, before) or scenario in (claim, prune, set_paused), (place, code)
        await call(bench.through)
        after = await bench.left(name)
    assert _alike(after, done), (place, code)
    return met


@pytest.mark.parametrize("name", LOOKS)
async def test_a_look_that_meets_an_error_is_repeated_or_says_why(bench: Bench, name: str) -> None:
    for code in sorted(REPEATED | TOLD.keys()):
        places = 0
        while await _is_told(bench, LOOKS[name], places + 1, code):
            places += 1

        assert places, "the call sent nothing"


async def _is_told(bench: Bench, look: Call, place: int, code: str) -> bool:
    """Let one request of a look fail; False when there is no such request."""
    met, failure = await bench.failure_of(look, place, code)
    if met:
        assert (failure is None) == (code in REPEATED), (place, code)
        assert failure is None or type(failure) is TOLD[code], (place, code)
    return met


@pytest.mark.parametrize("code", sorted(REPEATED | TOLD.keys()))
async def test_what_goes_on_behind_the_calls_outlives_every_error(
    url: str, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adder, "ADD_AFTER", 2)
    monkeypatch.setattr(survey, "CHECK_EVERY", 0.0)
    monkeypatch.setattr(survey, "RAISE_AFTER", 1)
    met: dict[str, int] = {}
    async with Proxy(url) as proxy, connection_to(url) as outside:
        async with opened(proxy.url) as store:
            for name, statement in BEHIND.items():
                planned = proxy.fail(partial(_asks_for, statement), code)
                async with asyncio.timeout(20):
                    while not planned.is_set():
                        await _work_one(store)
                met[name] = await _work_one(store)
        left = await outside.fetchrow(LEFT, "q")
        marked = await outside.fetchval("select cardinality(marks) from windlass_queue where queue = 'q'")

    assert met == dict.fromkeys(BEHIND, 1)
    assert left is not None
    assert left[0] == []
    # every change is counted once, whichever try has added it up
    assert (left[1][0], left[1][2], left[1][6] - left[1][7]) == (0, 0, 0)
    assert marked == 1


def _asks_for(name: str, request: Request) -> bool:
    return statement(name).text in request.text


async def _work_one(store: Store) -> int:
    await store.enqueue([a_job("q")])
    claims = (await store.claim(wanting("q", limit=10))).jobs
    await store.settle([settlement(claim, keep=False) for claim in claims])
    await asyncio.sleep(0)
    return len(claims)


@pytest.mark.parametrize("code", sorted(REPEATED | TOLD.keys()))
async def test_a_migration_that_meets_an_error_is_done_whole_by_the_next_try(schema: str, code: str) -> None:
    await bring_up(schema, OURS)
    async with Proxy(schema) as proxy:
        places = 0
        while "windlass_next" not in relations(schema):
            met = proxy.fail(places + 1, code)
            with suppress(asyncpg.PostgresError, StoreUnavailable):
                await bring_up(proxy.url, ONE_MORE)
            proxy.plans.clear()
            places += 1
            assert met.is_set(), "a migration that met nothing was not done"
            assert meta(schema)["schema"] == str(SCHEMA + ("windlass_next" in relations(schema)))

    assert places > 5
    assert [tuple(row) for row in rows(schema, "select n from {}.windlass_next")] == [(1,)]


def _alike(left: list[Any], other: list[Any]) -> bool:
    """Whether the same is there, whatever it is called."""
    return [str(part) for part in left] == [str(part) for part in other]
