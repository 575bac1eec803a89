"""Every call of a store, each ready to be made when something is about to go wrong, and what it must have left."""

import dataclasses
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias, cast

from tests.redis.keys import keys_of, prefix_of
from windlass.connect import open_store
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.job import Claim, Enqueued, Failure, Note, Token
from windlass.core.looks import AuditEntry, ServerRecord
from windlass.core.moving import HeldKey, Moved, Parcel
from windlass.core.requests import Claimed, ClaimRequest, KvWrite, Renewed, Rescued, RescueRequest, Settlement
from windlass.core.retention import Keep, Retention
from windlass.core.schedule import Fired, Firing, Schedule
from windlass.core.stats import TimingCount
from windlass.core.store import Store
from windlass.core.unique import Unique
from windlass.core.verdict import ToCancelled, ToDead, ToReleased, ToRetry, ToSnoozed, ToSucceeded, Verdict
from windlass.testing.conformance.given import a_job

MINUTE: Final = timedelta(minutes=1)
NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
LATER: Final = datetime(2055, 1, 1, tzinfo=UTC)
NONE_KEPT: Final = Keep(timedelta(0), timedelta(0), timedelta(0))
ID: Final = JobId("01900000-0000-7000-8000-000000000000")

Call: TypeAlias = Callable[[Store], Awaitable[Any]]
Scenario: TypeAlias = Callable[[Store, str], Awaitable[Call]]
"""Prepares on a store all that a call under a name needs, and returns the call, to be made through any store."""


@asynccontextmanager
async def opened(url: str) -> AsyncGenerator[Store]:
    """Give an open store."""
    store = open_store(url)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


def wanting(*queues: str, limit: int = 1, lease: timedelta = MINUTE, **options: Any) -> ClaimRequest:  # noqa: ANN401
    """Return a request for jobs of `queues`."""
    return ClaimRequest(queues, limit, lease, **options)


def settlement(claim: Claim, verdict: Verdict | None = None, **options: Any) -> Settlement:  # noqa: ANN401
    """Return how a claim ended, by default well."""
    return Settlement(claim.job.id, claim.token, verdict or ToSucceeded(), **options)


async def a_claim(store: Store, name: str, **options: Any) -> Claim:  # noqa: ANN401
    """Return the claim of a new job."""
    await store.enqueue([a_job(name, **options)])
    [claim] = (await store.claim(wanting(name))).jobs
    return claim


async def _dead(store: Store, name: str) -> Claim:
    claim = await a_claim(store, name, unique=Unique("k", until="finished"))
    await store.settle([settlement(claim, ToDead(Failure("no")))])
    return claim


def _a_schedule(name: str, next_run_at: datetime | None = None) -> Schedule:
    return Schedule(
        id=name, rule="*/5 * * * *", queue=name, codec="raw", priority=1, max_attempts=3, next_run_at=next_run_at
    )


async def enqueue(_: Store, name: str) -> Call:
    jobs = [a_job(name), a_job(name, kind="a"), a_job(name, delay=MINUTE)]
    return lambda store: store.enqueue(jobs)


async def enqueue_keyed(_: Store, name: str) -> Call:
    jobs = [a_job(name, unique=Unique("k", on_conflict="raise")), a_job(name)]
    return lambda store: store.enqueue(jobs)


async def enqueue_held(store: Store, name: str) -> Call:
    await store.enqueue([a_job(name, unique=Unique("k"))])
    jobs = [a_job(name, unique=Unique("k")), a_job(name)]
    return lambda store: store.enqueue(jobs)


async def enqueue_named(_: Store, name: str) -> Call:
    jobs = [a_job(name)]
    return lambda store: store.enqueue(jobs, request_id=name)


async def replace(store: Store, name: str) -> Call:
    await store.enqueue([a_job(name, unique=Unique("k", on_conflict="replace"))])
    jobs = [a_job(name, delay=MINUTE, unique=Unique("k", on_conflict="replace"))]
    return lambda store: store.enqueue(jobs)


async def claim(store: Store, name: str) -> Call:
    await store.enqueue([a_job(name), a_job(name, delay=timedelta(microseconds=1)), a_job(name)])
    return lambda store: store.claim(wanting(name, limit=2))


async def claim_chosen(store: Store, name: str) -> Call:
    await store.enqueue([a_job(name, kind="a"), a_job(name, kind="b"), a_job(name, kind="b")])
    return lambda store: store.claim(wanting(name, kinds=["b"]))


async def claim_named(store: Store, name: str) -> Call:
    await store.enqueue([a_job(name), a_job(name)])
    return lambda store: store.claim(wanting(name), request_id=name)


async def claim_nothing(_: Store, name: str) -> Call:
    return lambda store: store.claim(wanting(name))


async def settle(store: Store, name: str) -> Call:
    held = await a_claim(store, name, unique=Unique("k", until="finished"))
    follower = a_job(name)
    return lambda store: store.settle([settlement(held, ToDead(Failure("no")), then=[follower])])


async def settle_named(store: Store, name: str) -> Call:
    held = await a_claim(store, name)
    return lambda store: store.settle([settlement(held, ToCancelled("why"))], request_id=name)


async def ack(store: Store, name: str) -> Call:
    held = await a_claim(store, name, unique=Unique("k", until="finished"))
    return lambda store: store.settle([settlement(held, ToSucceeded(b"result", "raw"))])


async def ack_and_forget(store: Store, name: str) -> Call:
    held = await a_claim(store, name)
    return lambda store: store.settle([settlement(held, keep=False)])


async def release(store: Store, name: str) -> Call:
    held = await a_claim(store, name, unique=Unique("k"))
    return lambda store: store.settle([settlement(held, ToReleased())])


async def snooze(store: Store, name: str) -> Call:
    held = await a_claim(store, name)
    return lambda store: store.settle([settlement(held, ToSnoozed(MINUTE))])


async def retry_later(store: Store, name: str) -> Call:
    held = await a_claim(store, name)
    return lambda store: store.settle([settlement(held, ToRetry(MINUTE, Failure("no")))])


async def renew(store: Store, name: str) -> Call:
    held = await a_claim(store, name)
    return lambda store: store.renew([(held.job.id, held.token), (held.job.id, Token("stale"))], MINUTE)


async def note(store: Store, name: str) -> Call:
    held = await a_claim(store, name)
    return lambda store: store.note([Note(held.job.id, held.token, lines=[("info", "line")])])


async def cancel(store: Store, name: str) -> Call:
    held = await a_claim(store, name)
    [waiting] = await store.enqueue([a_job(name, unique=Unique("k"))])
    return lambda store: store.cancel([held.job.id, waiting.id, ID], Retention())


async def retry(store: Store, name: str) -> Call:
    dead = await _dead(store, name)
    return lambda store: store.retry([dead.job.id])


async def delete(store: Store, name: str) -> Call:
    dead = await _dead(store, name)
    return lambda store: store.delete([dead.job.id])


async def reschedule(store: Store, name: str) -> Call:
    [waiting] = await store.enqueue([a_job(name)])
    return lambda store: store.reschedule([waiting.id], LATER)


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
    return lambda store: store.write_schedule(_a_schedule(name), expected=None)


async def remove_schedule(store: Store, name: str) -> Call:
    await store.write_schedule(_a_schedule(name), expected=None)
    return lambda store: store.remove_schedule(name)


async def fire(store: Store, name: str) -> Call:
    revision = await store.write_schedule(_a_schedule(name, NOW), expected=None)
    assert revision is not None
    firing = Firing(name, revision, [a_job(name, schedule_id=name)], NOW, LATER)
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
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    timing = TimingCount(now, name, "a", "ran", 3, 2)
    return lambda store: store.write_timings([timing, timing._replace(what="waited")])


async def set_moved(_: Store, name: str) -> Call:
    return lambda store: store.set_moved(Moved("sqlite:///elsewhere.db", name))


async def unpack(store: Store, name: str) -> Call:
    held = await a_claim(store, name, unique=Unique("k", until="finished"))
    await store.note([Note(held.job.id, held.token, lines=[("info", "line")])])
    await store.settle([settlement(held, ToRetry(MINUTE, Failure("no")))])
    await store.enqueue([a_job(name, kind="a"), a_job(name, unique=Unique("t", until=MINUTE))])
    packed = await store.pack(name, limit=10)
    await store.let_go(jobs=[job.id for job in packed.jobs])
    parcel = Parcel("move", name, 1, packed)
    return lambda store: store.unpack(parcel)


async def let_go(store: Store, name: str) -> Call:
    await store.enqueue([a_job(name), a_job(name, delay=MINUTE, unique=Unique("t", until=MINUTE))])
    await store.kv_write(KvWrite(name.encode(), b"1"))
    await store.write_schedule(_a_schedule(name), expected=None)
    jobs = [job.id for job in (await store.pack(name, limit=10)).jobs]
    keys = [f"queue||{name}|t"]
    return lambda store: store.let_go(jobs=jobs, keys=keys, kv=[name.encode()], schedules=[name])


async def take_keys(_: Store, name: str) -> Call:
    key = HeldKey(f"queue||{name}|t", ID, "time", datetime.now(UTC) + MINUTE, b"digest")
    return lambda store: store.take_keys([key])


WRITES: Final[list[Scenario]] = [
    enqueue, enqueue_keyed, enqueue_held, enqueue_named, replace, claim, claim_chosen, claim_named, claim_nothing,
    settle, settle_named, ack, ack_and_forget, release, snooze, retry_later, renew, note, cancel, retry, delete,
    reschedule, set_paused, rescue, promote, prune, write_schedule, remove_schedule, fire, kv_write, lock, unlock,
    beat, leave, write_audit, write_timings, unpack, let_go, take_keys,
    # the last one: nothing new begins after it
    set_moved,
]  # fmt: skip
LOOKS: Final[dict[str, Call]] = {
    "due_in": lambda store: store.due_in(["q"]),
    "due_schedules": lambda store: store.due_schedules([], limit=10),
    "kv_get": lambda store: store.kv_get([b"k"]),
    "kv_scan": lambda store: store.kv_scan(b"k", after=None, limit=10),
    "get": lambda store: store.get([ID]),
    "glance": lambda store: store.glance([ID]),
    "jobs": lambda store: store.jobs(JobFilter(), after=None, limit=10),
    "newest": lambda store: store.newest(JobFilter(), before=None, limit=10, most=100),
    "dead": lambda store: store.dead("q", before=None, limit=10),
    "place": lambda store: store.place(ID),
    "stats": lambda store: store.stats(),
    "paused": lambda store: store.paused(["q"]),
    "kinds": lambda store: store.kinds("q"),
    "waiting": lambda store: store.waiting(),
    "minutes": lambda store: store.minutes(since=NOW, until=NOW + MINUTE),
    "timings": lambda store: store.timings(since=NOW, until=NOW + MINUTE),
    "servers": lambda store: store.servers(),
    "schedules": lambda store: store.schedules(),
    "audit": lambda store: store.audit(limit=10),
    "stranded": lambda store: store.stranded(dead_after=MINUTE),
    "check": lambda store: store.check(),
    "moved": lambda store: store.moved(),
    "pack": lambda store: store.pack("q", limit=10),
    "unpacked": lambda store: store.unpacked("move", "q"),
    "timed_keys": lambda store: store.timed_keys(limit=10),
}
NOT_OF_THE_SERVER: Final = {
    "open", "is_prepared", "close", "sibling", "listen", "join", "ended_servers", "features", "transaction",
    "do", "ask",
}  # fmt: skip
"""Methods that need no server; `do` and `ask` execute what the others are, and are met with them."""


def alike(answer: object) -> object:
    """Return of an answer what is the same whenever the call is made."""
    match answer:
        case Enqueued():
            return answer.created
        case Claimed():
            return [*map(alike, answer.jobs)]
        case Claim():
            return answer.job.kind, answer.job.attempt, answer.delivery
        case Renewed():
            return answer.cancel_requested
        case Fired():
            return answer.outcome, answer.job_id is None
        case bool():
            return answer
        case int():
            # a revision, or how many
            return answer > 0
        case list():
            answers = cast("list[object]", answer)
            # jobs whose leases ran out together come in any order
            rescued = sorted(one.state for one in answers if isinstance(one, Rescued))
            return rescued or [*map(alike, answers)]
        case _:
            return answer


async def left(store: Store, url: str, name: str) -> list[object]:
    """Return what there is under `name`, as far as it is the same whatever ids and times it has, and its keys."""
    keys = {_kind(key, prefix_of(url), name) for key in keys_of(url) if name in key and "|receipt|" not in key}
    return [*await seen(store, name), sorted(keys)]


async def seen(store: Store, name: str) -> list[object]:
    """Return what a store shows under `name`, as far as it is the same whatever ids and times it has."""
    jobs = await store.get([job.id for job in await store.jobs(JobFilter(queue=name), after=None, limit=100)])
    schedules = (await store.schedules([name])).schedules
    return [
        sorted(
            str(
                (job.state, job.attempt, job.delivery, len(job.log), len(job.history), job.cancel_requested, job.result)
            )
            for job in jobs
            if job is not None
        ),
        [dataclasses.replace(stats, queue="", oldest_waiting=None) for stats in await store.stats(name)],
        await store.kv_get([name.encode()]),
        [(schedule.next_run_at, schedule.last_job_id is None) for schedule in schedules],
        [server.id for server in await store.servers() if server.id == name] != [],
        len([entry for entry in await store.audit(limit=1000) if entry.target == name]),
        sum(row.attempts for row in await store.timings(since=NOW, until=LATER) if row.queue == name),
        len([key for key in await store.timed_keys(limit=1000) if f"|{name}|" in key.name]),
        (await store.unpacked("move", name) or (0, []))[0],
        await store.moved() is not None,
    ]


def _kind(key: str, prefix: str, name: str) -> str:
    """Return what kind of a key it is."""
    return re.sub(r"\|(job|history|log|minute|timing)\|.*", r"|\1", key).replace(prefix, "").replace(name, "")
