"""What stays in a server's memory after a whole life of jobs: only keys that the layout says stay, or expire."""

import itertools
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest

from tests.redis.asking import ask
from tests.redis.keys import keys_of, prefix_of, servers_of, with_options
from tests.stores.redis.calls import a_claim, settlement, wanting
from tests.stores.redis.owners import kind_of
from windlass.connect import open_store
from windlass.core.filters import JobFilter
from windlass.core.job import Claim, Failure, Note, PreparedJob
from windlass.core.looks import AuditEntry, ServerRecord
from windlass.core.moving import Moved, Packed, Parcel
from windlass.core.requests import KvWrite, RescueRequest
from windlass.core.retention import KEEP_ALL, Keep, Retention
from windlass.core.schedule import Firing
from windlass.core.states import State
from windlass.core.stats import TimingCount
from windlass.core.store import Store
from windlass.core.unique import Unique
from windlass.core.verdict import ToCancelled, ToDead, ToReleased, ToRetry, ToSnoozed, ToSucceeded, Verdict
from windlass.testing import FakeClock, SeededRng
from windlass.testing.conformance.given import a_job, a_schedule

NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
SECOND, HOUR, DAY = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)
STAY: Final = {"meta", "seq", "queues", "queue_numbers", "totals", "revision", "audit", "settings"}
"""Keys that stay for as long as the store: each is one, or one for each queue, and bounded."""
EXPIRE: Final = {
    "minute": 8 * DAY,
    "timing": 8 * DAY,
    "receipt": timedelta(minutes=10),
    "hold": HOUR,
    "timed": HOUR,
    "lock": timedelta(minutes=2),
}
"""Keys that go by themselves, at the latest after so long: here nobody holds a key or a lock for more than that."""
VERDICTS: Final[list[Verdict]] = [
    ToSucceeded(),
    ToSucceeded(b"result", "raw"),
    ToDead(Failure("no", "ValueError", "traceback")),
    ToCancelled("why"),
    ToRetry(SECOND, Failure("no")),
    ToSnoozed(SECOND),
    ToReleased(),
    ToReleased(started=True),
]
UNIQUES: Final = [
    None,
    Unique("a", until="claimed"),
    Unique("b", until="finished"),
    Unique("c", until=timedelta(minutes=1)),
    Unique("d", until="claimed", on_conflict="replace"),
]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["", "spread=queues"], ids=["one tag", "spread"])
async def store(url: str, clock: FakeClock, request: pytest.FixtureRequest) -> AsyncIterator[Store]:
    store = open_store(with_options(url, request.param) if request.param else url, clock=clock, rng=SeededRng())
    await store.open()
    yield store
    await store.close()


def left(url: str) -> dict[str, float | None]:
    """Return the kinds of keys that are there, and the most seconds that one of them has; None for one that stays."""
    found: dict[str, float | None] = {}
    [server] = servers_of(url)
    for key in keys_of(url):
        expires: int = ask(server, "PTTL", key)
        kind = kind_of(key.partition("}|")[2])
        before = found.get(kind, 0.0)
        found[kind] = None if expires < 0 or before is None else max(before, expires / 1000)
    return found


def check_left(url: str) -> None:
    """See that nothing is left but what may be."""
    for kind, seconds in left(url).items():
        if seconds is None:
            assert kind in STAY, kind
        else:
            assert kind in EXPIRE, kind
            assert seconds <= EXPIRE[kind].total_seconds() + 1, (kind, seconds)


async def end_all(store: Store, clock: FakeClock) -> None:
    """Let every job come to an end, in one way or another."""
    await store.rescue(RescueRequest(force=True), KEEP_ALL)
    for _ in range(20):
        clock.advance(10 * SECOND)
        queues = [stats.queue or "" for stats in await store.stats()]
        claims = [claim for queue in queues for claim in (await store.claim(wanting(queue, limit=1000))).jobs]
        if not claims:
            return
        await store.settle([settlement(claim, ToDead(Failure("at last"))) for claim in claims])


async def prune_all(store: Store) -> None:
    while await store.prune(Retention(Keep(timedelta(0), timedelta(0), timedelta(0))), limit=1000):
        pass


def jobs(queue: str) -> list[PreparedJob]:
    return [
        a_job(
            queue, kind=kind, unique=unique and replace(unique, key=f"{unique.key}{kind}{delay is None}"), delay=delay
        )
        for unique, kind, delay in itertools.product(UNIQUES, (None, "kind"), (None, SECOND))
    ]


async def live(store: Store, queue: str, clock: FakeClock, *, keep: bool) -> None:
    """Let jobs of every sort meet every verdict, in a first delivery or in a later one."""
    for number, verdict in enumerate(VERDICTS):
        await store.enqueue(jobs(f"{queue}{number}"))
        for _ in range(3):
            clock.advance(2 * SECOND)
            claims = (await store.claim(wanting(f"{queue}{number}", limit=1000, worker="w#1"))).jobs
            await store.note([Note(claim.job.id, claim.token, lines=[("info", "x")]) for claim in claims[::2]])
            await store.settle([settlement(claim, verdict, keep=keep) for claim in claims])


@pytest.mark.parametrize("keep", [True, False])
async def test_nothing_is_left_of_jobs_whatever_became_of_them(
    store: Store, url: str, clock: FakeClock, keep: object
) -> None:
    await live(store, "q", clock, keep=bool(keep))
    await end_all(store, clock)
    assert sum(stats.totals.enqueued for stats in await store.stats()) > 100

    await prune_all(store)

    assert await store.jobs(JobFilter(), after=None, limit=10) == []
    check_left(url)


async def test_nothing_is_left_of_jobs_that_people_have_dealt_with(store: Store, url: str, clock: FakeClock) -> None:
    retention = Retention(queues={"gone": Keep(timedelta(0), timedelta(0), timedelta(0))})
    for queue in ("kept", "gone"):
        await store.enqueue(jobs(queue))
        waiting = [job.id for job in await store.jobs(JobFilter(queue=queue), after=None, limit=100)]
        await store.reschedule(waiting[:4], NOW + HOUR)
        await store.reschedule(waiting[4:8], None)
        await store.cancel(waiting[:10], retention)
        await store.retry(waiting[:5])
        running = (await store.claim(wanting(queue, limit=4))).jobs
        await store.cancel([claim.job.id for claim in running], retention)
        await store.settle([settlement(claim, ToCancelled("asked")) for claim in running[:2]])
        # the rest is rescued, and ends as an orphan
        await store.rescue(RescueRequest(queues=[queue], force=True), retention)
        await store.claim(wanting(queue, limit=3))
        await store.rescue(RescueRequest(queues=[queue], force=True, to="dead"), retention)
        ended = await store.jobs(JobFilter(queue=queue, state=State.DEAD), after=None, limit=100)
        await store.delete([job.id for job in ended])
        await store.set_paused(queue, paused=True)
        await store.set_paused(queue, paused=False)

    clock.advance(DAY)
    await end_all(store, clock)
    await prune_all(store)

    assert await store.jobs(JobFilter(), after=None, limit=10) == []
    check_left(url)


async def test_nothing_is_left_of_leases_that_ran_out(store: Store, url: str, clock: FakeClock) -> None:
    await store.enqueue([a_job("q", max_attempts=2, unique=unique) for unique in UNIQUES])
    for _ in range(3):
        claims = (await store.claim(wanting("q", limit=10, lease=SECOND))).jobs
        await store.note([Note(claim.job.id, claim.token, lines=[("info", "x")]) for claim in claims])
        clock.advance(2 * SECOND)
        await store.rescue(RescueRequest(), KEEP_ALL)

    await prune_all(store)

    assert (await store.stats("q"))[0].totals.rescued == 10
    check_left(url)


async def test_nothing_is_left_of_all_else(store: Store, url: str, clock: FakeClock) -> None:
    revision = await store.write_schedule(a_schedule("s", clock.now()), expected=None)
    assert revision is not None
    await store.fire(Firing("s", revision, [a_job("default", schedule_id="s")], clock.now(), clock.now() + HOUR))
    await store.remove_schedule("s")
    await store.write_schedule(replace(a_schedule("t"), paused=True), expected=None)
    await store.remove_schedule("t")
    await store.kv_write(KvWrite(b"k", b"v"))
    await store.kv_write(KvWrite(b"k", None))
    await store.lock("given back", "me", SECOND)
    await store.unlock("given back", "me")
    await store.lock("forgotten", "me", SECOND)
    for server in ("left", "died"):
        await store.beat(ServerRecord(f"{server}#1", server, "host", 1, "1.0", NOW, NOW))
    await store.leave("left#1")
    await store.write_audit([AuditEntry(NOW, "me", "retry", "x", {})])
    await store.write_timings([TimingCount(clock.now(), "default", "", "ran", 0, 1)])
    await store.unpack(Parcel("move", "default", 1, Packed((), ())))
    await store.set_moved(Moved("sqlite:///elsewhere.db", "move"))
    await store.set_moved(None)
    # a claim of nothing, and of a queue that nobody knows
    await store.claim(wanting("default", "unknown"), request_id="r")
    await end_all(store, clock)

    # a server that died is forgotten after a day, and what came from another store after ninety
    clock.advance(90 * DAY)
    await prune_all(store)

    assert await store.servers() == []
    check_left(url)
    assert left(url)["lock"] is not None


async def test_what_people_did_is_bounded(store: Store, url: str) -> None:
    for _ in range(3):
        await store.write_audit([AuditEntry(NOW, "me", "retry", "x", {})] * 4000)

    assert ask(url, "LLEN", f"{{{prefix_of(url)}}}|audit") == 10_000


async def test_history_and_log_of_a_job_are_bounded(store: Store, clock: FakeClock) -> None:
    [done] = await store.enqueue([a_job("q", max_attempts=1000)])
    claim: Claim | None = None
    for _ in range(30):
        [claim] = (await store.claim(wanting("q"))).jobs
        await store.note([Note(done.id, claim.token, lines=[("info", "x")] * 30)])
        await store.settle([settlement(claim, ToRetry(timedelta(0), Failure("no")))])
        clock.advance(SECOND)

    [job] = await store.get([done.id])

    assert claim is not None
    assert job is not None
    assert (job.delivery, len(job.history), len(job.log)) == (30, 20, 500)


async def test_the_checker_would_notice(store: Store, url: str) -> None:
    await a_claim(store, "q")

    with pytest.raises(AssertionError, match=r"job|jobs|leased"):
        check_left(url)
    assert {kind for kind, expires in left(url).items() if expires is None} >= {"job", "jobs", "leased"}
