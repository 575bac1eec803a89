"""Whoever is limited to some queues sees and changes nothing of the others."""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from windlass.core.commands import COMMANDS, ClaimJobs, EnqueueJobs, SettleClaims
from windlass.core.errors import IdConflict, NotAllowed, NotTransactional
from windlass.core.filters import JobFilter
from windlass.core.job import Claim, Failure, Job, Note, PreparedJob, Progress, Token
from windlass.core.looks import JobPage, ServerRecord
from windlass.core.moving import Moved, Packed, Parcel
from windlass.core.queries import QUERIES
from windlass.core.requests import CancelOutcome, Changed, KvWrite, RescueRequest, Settled
from windlass.core.retention import KEEP_ALL
from windlass.core.schedule import FireOutcome, Firing, Schedule
from windlass.core.stats import TimingCount
from windlass.core.store import Store
from windlass.core.store_calls import Command, Query
from windlass.core.topics import ENDS, FLAGS, PAUSES, SCHEDULES, lock_topic, queue_topic
from windlass.core.unique import Unique
from windlass.core.verdict import ToDead
from windlass.http.scope_rules import RULES, merged
from windlass.http.scoped_store import ScopedStore
from windlass.stores.memory import MemoryStore
from windlass.testing import FakeClock, SeededRng
from windlass.testing.conformance.given import SECOND, a_job, claim_one, settlement, wanting

GUESS = Token("guess")
AWAY = Moved("postgres://db/jobs", "move-1")
LONG_AGO, FAR_OFF = datetime(2000, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)


@dataclass
class Place:
    """A store with the same in two queues, and the view of whoever is limited to `ours`."""

    store: Store
    view: ScopedStore
    waiting: PreparedJob
    running: Claim
    dead: PreparedJob

    async def theirs(self) -> object:
        """Return all that there is of the other queue."""
        jobs = await self.store.jobs(JobFilter(queue="theirs"), after=None, limit=100)
        return (
            await self.store.get([job.id for job in jobs]),
            await self.store.stats("theirs"),
            await self.store.schedules(["theirs"]),
            [record for record in await self.store.servers() if record.id == "theirs#1"],
            await self.store.kv_scan(b"", after=None, limit=100),
            await self.store.timings(since=LONG_AGO, until=FAR_OFF),
            await self.store.moved(),
        )


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    store = MemoryStore(clock=FakeClock(), rng=SeededRng())
    await store.open()
    made: dict[str, tuple[PreparedJob, Claim, PreparedJob]] = {}
    for queue in ("ours", "theirs"):
        dead, running, waiting = (a_job(queue) for _ in range(3))
        await store.enqueue([dead, running, waiting])
        [first, second] = (await store.claim(wanting(queue, limit=2, lease=60 * SECOND))).jobs
        await store.settle([settlement(first, ToDead(Failure("no")))])
        await store.write_schedule(_schedule(queue, queue), expected=None)
        await store.beat(_server(queue))
        await store.write_timings([_timing(queue)])
        made[queue] = (waiting, second, dead)
    await store.kv_write(KvWrite(b"k", b"theirs"))
    yield Place(store, ScopedStore(store, ["ours"]), *made["theirs"])
    await store.close()


def _schedule(schedule_id: str, queue: str) -> Schedule:
    return Schedule(id=schedule_id, rule="every 60s", queue=queue, codec="raw", priority=1, max_attempts=1)


def _server(queue: str) -> ServerRecord:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return ServerRecord(f"{queue}#1", queue, "host", 1, "1", now, now, queues=(queue,))


def _timing(queue: str) -> TimingCount:
    return TimingCount(datetime(2026, 1, 1, tzinfo=UTC), queue, "", "ran", 0, 1)


Ask = Callable[[Place], Awaitable[Any]]
NOT_THERE: dict[str, tuple[Ask, Any]] = {
    "get": (lambda p: p.view.get([p.waiting.id]), [None]),
    "glance": (lambda p: p.view.glance([p.waiting.id, p.running.job.id]), {}),
    "cancel": (lambda p: p.view.cancel([p.waiting.id], KEEP_ALL), [CancelOutcome.NOT_FOUND]),
    "retry": (lambda p: p.view.retry([p.dead.id]), [Changed.NOT_FOUND]),
    "delete": (lambda p: p.view.delete([p.dead.id]), [Changed.NOT_FOUND]),
    "reschedule": (lambda p: p.view.reschedule([p.waiting.id], None), [Changed.NOT_FOUND]),
    "settle": (lambda p: p.view.settle([settlement(p.running)._replace(token=GUESS)]), [Settled.LOST]),
    "renew": (lambda p: p.view.renew([(p.running.job.id, GUESS)], SECOND), [None]),
    "note": (lambda p: p.view.note([Note(p.running.job.id, GUESS, Progress(1))]), [False]),
    "stats": (lambda p: p.view.stats("theirs"), []),
    "jobs": (lambda p: p.view.jobs(JobFilter(queue="theirs"), after=None, limit=10), []),
    "newest": (lambda p: p.view.newest(JobFilter(queue="theirs"), before=None, limit=10, most=10), JobPage([], None)),
    "dead": (lambda p: p.view.dead("theirs", before=None, limit=10), []),
    "place": (lambda p: p.view.place(p.waiting.id), None),
    "remove_schedule": (lambda p: p.view.remove_schedule("theirs"), False),
    "ended_servers": (lambda p: p.view.ended_servers(), []),
    "stranded": (lambda p: p.view.stranded(dead_after=SECOND), 0),
    "leave": (lambda p: p.view.leave("theirs#1"), None),
    "rescue": (lambda p: p.view.rescue(RescueRequest(workers=["theirs#1"], force=True), KEEP_ALL), []),
}
"""What is of another queue is answered like what is not there."""

REFUSED: dict[str, Ask] = {
    "enqueue": lambda p: p.view.enqueue([a_job("ours"), a_job("theirs")]),
    "claim": lambda p: p.view.claim(wanting("ours", "theirs")),
    "due_in": lambda p: p.view.due_in(["theirs"]),
    "paused": lambda p: p.view.paused(["theirs"]),
    "kinds": lambda p: p.view.kinds("theirs"),
    "set_paused": lambda p: p.view.set_paused("theirs", paused=True),
    "beat": lambda p: p.view.beat(_server("theirs")),
    "fire": lambda p: p.view.fire(Firing("ours", 1, [a_job("theirs")])),
    "write_schedule": lambda p: p.view.write_schedule(_schedule("theirs", "ours"), expected=2),
    "kv_get": lambda p: p.view.kv_get([b"k"]),
    "kv_write": lambda p: p.view.kv_write(KvWrite(b"k", b"ours")),
    "kv_scan": lambda p: p.view.kv_scan(b"", after=None, limit=10),
    "lock": lambda p: p.view.lock("l", "h", SECOND),
    "unlock": lambda p: p.view.unlock("l", "h"),
    "promote": lambda p: p.view.promote(limit=10),
    "prune": lambda p: p.view.prune(KEEP_ALL, limit=10),
    "due_schedules": lambda p: p.view.due_schedules([], limit=10),
    "audit": lambda p: p.view.audit(limit=10),
    "check": lambda p: p.view.check(),
    "write_timings": lambda p: p.view.write_timings([_timing("ours"), _timing("theirs")]),
    "set_moved": lambda p: p.view.set_moved(AWAY),
    "pack": lambda p: p.view.pack("ours", limit=10),
    "unpack": lambda p: p.view.unpack(Parcel("m", "ours", 1, Packed([], []))),
    "unpacked": lambda p: p.view.unpacked("m", "ours"),
    "let_go": lambda p: p.view.let_go(jobs=[p.waiting.id]),
    "timed_keys": lambda p: p.view.timed_keys(limit=10),
    "take_keys": lambda p: p.view.take_keys([]),
}
"""What names another queue, or is about all of them, is refused."""

FILTERED = {"schedules", "servers", "minutes", "timings", "waiting", "listen"}
OF_NO_QUEUE = {
    "do",
    "ask",
    "open",
    "is_prepared",
    "close",
    "sibling",
    "features",
    "join",
    "transaction",
    "write_audit",
    "moved",
}


def test_every_method_of_a_store_is_spoken_of_here() -> None:
    methods = {name for name, _ in inspect.getmembers(Store) if not name.startswith("_")}

    assert methods == {*NOT_THERE, *REFUSED, *FILTERED, *OF_NO_QUEUE}


@dataclass(frozen=True, slots=True)
class _StrangeCommand(Command[None]):
    """A command that has no rule."""

    queue: str


@dataclass(frozen=True, slots=True)
class _StrangeQuery(Query[int]):
    """A query that has no rule."""


async def test_a_call_without_a_rule_is_refused(place: Place) -> None:
    for call in (place.view.do(_StrangeCommand("ours")), place.view.ask(_StrangeQuery())):
        with pytest.raises(NotAllowed, match="_Strange"):
            await call


def test_each_call_has_a_rule() -> None:
    assert RULES.keys() == {EnqueueJobs, ClaimJobs, SettleClaims, *COMMANDS, *QUERIES}


@pytest.mark.parametrize("name", NOT_THERE)
async def test_what_is_in_another_queue_is_not_there(place: Place, name: str) -> None:
    before = await place.theirs()
    ask, answer = NOT_THERE[name]

    assert await ask(place) == answer

    assert await place.theirs() == before


@pytest.mark.parametrize("name", REFUSED)
async def test_what_names_another_queue_is_refused(place: Place, name: str) -> None:
    before = await place.theirs()

    with pytest.raises(NotAllowed, match="limited to some queues"):
        await REFUSED[name](place)

    assert await place.theirs() == before


@pytest.mark.parametrize(
    "job",
    [
        a_job("ours", unique=Unique("k", scope="global")),
        a_job("ours", unique=Unique("k", scope="kind")),
        a_job("ours", kv={b"k": b"1"}),
    ],
    ids=["a global key", "a key of a kind", "kv"],
)
async def test_a_job_reaches_no_further_than_its_queue(place: Place, job: PreparedJob) -> None:
    [ours] = (await place.view.claim(wanting("ours"))).jobs

    for ask in (
        lambda: place.view.enqueue([job]),
        lambda: place.view.settle([settlement(ours)._replace(then=[job])]),
        lambda: place.view.fire(Firing("ours", 1, [job])),
    ):
        with pytest.raises(NotAllowed):
            await ask()

    assert (await place.view.glance([ours.job.id]))[ours.job.id].token == ours.token


@pytest.mark.parametrize(
    "record",
    [replace(_server("ours"), schedules=("theirs",)), replace(_server("ours"), id="theirs#1")],
    ids=["its schedules", "its server"],
)
async def test_no_server_poses_as_one_of_another_queue(place: Place, record: ServerRecord) -> None:
    before = await place.theirs()

    with pytest.raises(NotAllowed):
        await place.view.beat(record)

    assert await place.theirs() == before


async def test_a_schedule_of_another_queue_is_beyond_reach_whatever_it_is(place: Place) -> None:
    for schedule_id in ("theirs", "no such schedule"):
        assert (await place.view.fire(Firing(schedule_id, 1, []))).outcome is FireOutcome.LOST
        assert not await place.view.remove_schedule(schedule_id)


@pytest.mark.parametrize("which", ["waiting", "dead", "none"])
async def test_a_schedule_cannot_be_made_to_watch_a_job_of_another_queue(place: Place, which: str) -> None:
    """With overlap="skip" a firing tells whether the last job has ended."""
    theirs = {"waiting": place.waiting.id, "dead": place.dead.id, "none": a_job().id}[which]
    [ours] = (await place.view.schedules(["ours"])).schedules
    watching = replace(ours, overlap="skip", last_job_id=theirs)

    with pytest.raises(NotAllowed, match="beyond them"):
        await place.view.write_schedule(watching, expected=ours.revision)
    with pytest.raises(NotAllowed, match="beyond them"):
        await place.view.write_schedule(replace(watching, id="new"), expected=None)

    assert (await place.view.schedules()).schedules == [ours]


async def test_a_schedule_keeps_its_last_job_also_when_that_is_pruned(place: Place) -> None:
    [ours] = (await place.view.schedules(["ours"])).schedules
    fired = await place.view.fire(Firing("ours", ours.revision, [a_job("ours", schedule_id="ours")]))
    assert fired.job_id is not None
    [fired_once] = (await place.view.schedules(["ours"])).schedules
    await place.store.cancel([fired.job_id], KEEP_ALL)
    await place.store.delete([fired.job_id])

    assert await place.view.write_schedule(replace(fired_once, paused=True), expected=fired_once.revision) is not None


@pytest.mark.parametrize("which", ["waiting", "running", "dead"])
async def test_an_id_of_another_queue_is_taken_and_nothing_more_is_told(place: Place, which: str) -> None:
    theirs = {"waiting": place.waiting.id, "running": place.running.job.id, "dead": place.dead.id}[which]
    before = await place.theirs()
    job = a_job("ours")._replace(id=theirs)
    [ours] = (await place.view.claim(wanting("ours"))).jobs

    with pytest.raises(IdConflict) as refused:
        await place.view.enqueue([job])
    [settled] = await place.view.settle([settlement(ours)._replace(then=[job])])

    own = IdConflict(theirs, "ours", None, None)
    for conflict in (refused.value, settled):
        assert isinstance(conflict, IdConflict)
        assert (str(conflict), vars(conflict)) == (str(own), vars(own))
    assert await place.theirs() == before


async def test_lists_hold_what_is_ours(place: Place) -> None:
    assert {job.queue for job in await place.view.jobs(JobFilter(), after=None, limit=100)} == {"ours"}
    assert [row.queue for row in await place.view.stats()] == ["ours"]
    assert {row.queue for row in await place.view.waiting()} == {"ours"}
    assert [schedule.id for schedule in (await place.view.schedules()).schedules] == ["ours"]
    assert [record.id for record in await place.view.servers()] == ["ours#1"]
    assert {row.queue for row in await place.view.minutes(since=LONG_AGO, until=FAR_OFF)} == {"ours"}
    assert {row.queue for row in await place.view.timings(since=LONG_AGO, until=FAR_OFF)} == {"ours"}


async def test_pages_of_several_queues_are_in_the_order_of_the_enqueue(place: Place) -> None:
    both = ScopedStore(place.store, ["ours", "theirs", "nothing"])
    everything = await place.store.jobs(JobFilter(), after=None, limit=100)

    first = await both.jobs(JobFilter(), after=None, limit=4)
    rest = await both.jobs(JobFilter(), after=first[-1].seq, limit=4)

    assert [*first, *rest] == everything


@pytest.mark.parametrize("limit, most", [(3, 100), (100, 3), (2, 6), (100, 100)])
async def test_the_newest_of_several_queues_come_in_their_order_and_none_is_left_out(
    place: Place, limit: int, most: int
) -> None:
    both = ScopedStore(place.store, ["ours", "theirs", "nothing"])
    everything = await place.store.jobs(JobFilter(), after=None, limit=100)
    found: list[Job] = []
    before: int | None = None

    while True:
        page = await both.newest(JobFilter(), before=before, limit=limit, most=most)
        assert len(page.jobs) <= limit
        found += page.jobs
        if (before := page.next) is None:
            break

    assert found == everything[::-1]


async def test_the_last_to_die_of_several_queues_comes_first_and_none_is_left_out(place: Place) -> None:
    clock = FakeClock()
    store = MemoryStore(clock=clock, rng=SeededRng())
    for number in range(9):
        clock.advance(number % 2)
        queue = ("ours", "theirs", "other")[number % 3]
        await store.enqueue([a_job(queue)])
        claim = await claim_one(store, queue)
        await store.settle([settlement(claim, ToDead(Failure("no")))])
    everything = await store.dead(None, before=None, limit=10)
    both, alone = ScopedStore(store, ["ours", "other", "nothing"]), ScopedStore(store, ["ours"])

    first = await both.dead(None, before=None, limit=4)
    rest = await both.dead(None, before=first[-1].death, limit=4)

    assert len(everything) == 9
    assert [*first, *rest] == [dead for dead in everything if dead.job.queue != "theirs"]
    assert await alone.dead(None, before=None, limit=10) == [dead for dead in everything if dead.job.queue == "ours"]
    assert [dead.job.id for dead in await place.view.dead(None, before=None, limit=10)] != [place.dead.id]


async def test_what_lies_behind_a_queue_that_was_not_looked_at_so_far_waits_for_a_later_page(place: Place) -> None:
    first, second, third, fourth, *_ = await place.store.jobs(JobFilter(), after=None, limit=100)

    page = merged([JobPage([fourth], third.seq), JobPage([third, first], None)], limit=10)

    assert page == JobPage([fourth, third], third.seq)
    assert merged([JobPage([second], None), JobPage([third, first], None)], limit=2) == JobPage(
        [third, second], second.seq
    )


async def test_who_holds_a_key_is_not_told_where_that_is_of_another_queue(place: Place) -> None:
    key = Unique("k", scope="global")
    job = a_job("ours", unique=key)
    await place.store.enqueue([job])
    await place.store.claim(wanting("ours", limit=2))
    holder = a_job("theirs", unique=key)
    await place.store.enqueue([holder])

    whole, seen = await place.store.place(job.id), await place.view.place(job.id)

    assert whole is not None
    assert (whole.key_holder, seen) == (holder.id, whole._replace(key_holder=None))


async def test_where_the_store_has_gone_is_told_to_everybody(place: Place) -> None:
    await place.store.set_moved(AWAY)

    assert await place.view.moved() == AWAY


async def test_our_own_work_goes_on(place: Place) -> None:
    [claim] = (await place.view.claim(wanting("ours"))).jobs

    assert await place.view.settle([settlement(claim)]) == [Settled.DONE]
    assert (await place.view.get([claim.job.id]))[0] is not None
    await place.view.beat(replace(_server("ours"), running=1))
    await place.view.leave("ours#1")
    assert await place.view.servers() == []
    assert await place.view.remove_schedule("ours")


async def test_only_news_of_our_queues_is_heard(place: Place) -> None:
    heard: list[int] = []
    everything = [ENDS, FLAGS, PAUSES, SCHEDULES, queue_topic("theirs"), queue_topic("ours"), lock_topic("l")]
    stop = place.view.listen(everything, lambda: heard.append(1))

    [claim] = (await place.store.claim(wanting("theirs", lease=timedelta(minutes=1)))).jobs
    await place.store.settle([settlement(claim)])
    await place.store.enqueue([a_job("theirs")])
    assert heard == []

    await place.store.enqueue([a_job("ours")])
    assert heard == [1]
    stop()


async def test_there_are_no_transactions(place: Place) -> None:
    with pytest.raises(NotTransactional):
        place.view.transaction()
