"""A network that says nothing any more: every call ends by its deadline, and all is well when it is back."""

import asyncio
import inspect
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

import windlass
from tests.postgres.proxy import Proxy
from tests.postgres.ready import ready_schema
from windlass import Client, JobFilter, NewJob, OutcomeUnknown, StoreUnavailable
from windlass.core.ids import JobId
from windlass.core.job import Note, Token
from windlass.core.looks import ServerRecord
from windlass.core.moving import HeldKey, Packed, Parcel
from windlass.core.requests import ClaimRequest, KvWrite, RescueRequest, Settlement
from windlass.core.retention import Retention
from windlass.core.schedule import Firing, Schedule
from windlass.core.stats import TimingCount
from windlass.core.store import Store
from windlass.core.verdict import ToSucceeded
from windlass.stores.postgres import enqueuer, settler

DEADLINE: Final = 2.0
SPARE: Final = 4.0
"""Seconds for a machine that has much else to do."""
MINUTE: Final = timedelta(minutes=1)
NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
ID: Final = JobId("01900000-0000-7000-8000-000000000000")
TOKEN: Final = Token("00000000-0000-4000-8000-000000000000")
SERVER: Final = ServerRecord("name#1", "name", "host", 1, "1.0", NOW, NOW)
SCHEDULE: Final = Schedule(id="s", rule="every 60s", queue="q", codec="json", priority=1, max_attempts=1)

CALLS: Final[dict[str, Callable[[Store], Awaitable[Any]]]] = {
    "claim": lambda store: store.claim(ClaimRequest(["q"], 1, MINUTE)),
    "due_in": lambda store: store.due_in(["q"]),
    "settle": lambda store: store.settle([Settlement(ID, TOKEN, ToSucceeded())]),
    "renew": lambda store: store.renew([(ID, TOKEN)], MINUTE),
    "note": lambda store: store.note([Note(ID, TOKEN, lines=[("info", "x")])]),
    "cancel": lambda store: store.cancel([ID], Retention()),
    "retry": lambda store: store.retry([ID]),
    "delete": lambda store: store.delete([ID]),
    "reschedule": lambda store: store.reschedule([ID], None),
    "set_paused": lambda store: store.set_paused("other", paused=True),
    "rescue": lambda store: store.rescue(RescueRequest(), Retention()),
    "promote": lambda store: store.promote(limit=10),
    "prune": lambda store: store.prune(Retention(), limit=10),
    "write_schedule": lambda store: store.write_schedule(SCHEDULE, expected=None),
    "remove_schedule": lambda store: store.remove_schedule("other"),
    "due_schedules": lambda store: store.due_schedules([], limit=10),
    "fire": lambda store: store.fire(Firing("other", 1, [])),
    "kv_get": lambda store: store.kv_get([b"k"]),
    "kv_write": lambda store: store.kv_write(KvWrite(b"k", b"v")),
    "kv_scan": lambda store: store.kv_scan(b"k", after=None, limit=10),
    "lock": lambda store: store.lock("name", "holder", MINUTE),
    "unlock": lambda store: store.unlock("name", "holder"),
    "beat": lambda store: store.beat(SERVER),
    "leave": lambda store: store.leave("name#1"),
    "write_audit": lambda store: store.write_audit([]),
    "write_timings": lambda store: store.write_timings([TimingCount(NOW, "q", "", "ran", 0, 1)]),
    "moved": lambda store: store.moved(),
    "set_moved": lambda store: store.set_moved(None),
    "pack": lambda store: store.pack("q", limit=10),
    "unpack": lambda store: store.unpack(Parcel("move", "q", 1, Packed((), ()))),
    "unpacked": lambda store: store.unpacked("move", "q"),
    "let_go": lambda store: store.let_go(jobs=[ID]),
    "timed_keys": lambda store: store.timed_keys(limit=10),
    "take_keys": lambda store: store.take_keys([HeldKey("global|||k", ID, "time", NOW, b"")]),
    "newest": lambda store: store.newest(JobFilter(), before=None, limit=10, most=10),
    "dead": lambda store: store.dead("q", before=None, limit=10),
    "place": lambda store: store.place(ID),
    "timings": lambda store: store.timings(since=NOW, until=NOW + MINUTE),
    "get": lambda store: store.get([ID]),
    "glance": lambda store: store.glance([ID]),
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
}
NOT_OF_THE_DATABASE: Final = {"open", "is_prepared", "close", "sibling", "listen", "join", "ended_servers", "features"}
# every call here is a command or a query
ELSEWHERE: Final = {"enqueue", "transaction", "do", "ask"}


@pytest.fixture
def url() -> Iterator[str]:
    with ready_schema() as url:
        yield url


@pytest.fixture
async def proxy(url: str) -> AsyncIterator[Proxy]:
    async with Proxy(url) as proxy:
        yield proxy
        proxy.release()


@pytest.fixture
async def client(proxy: Proxy) -> AsyncIterator[Client]:
    async with windlass.connect(f"{proxy.url}&timeout={DEADLINE}&connections=50&notify=off") as client:
        yield client
        proxy.release()


def test_every_call_of_a_store_is_tried() -> None:
    names = {name for name, _ in inspect.getmembers(Store) if not name.startswith("_")}

    assert names == CALLS.keys() | NOT_OF_THE_DATABASE | ELSEWHERE


async def test_every_call_ends_by_its_deadline_when_nothing_is_answered(client: Client, proxy: Proxy) -> None:
    # a connection for each, so that each is left alone in the middle of what it does
    async with asyncio.timeout(30):
        # on a machine that has much else to do not all are there by the deadline of the first
        while not all(await asyncio.gather(*(_is_answered(call(client.store)) for call in CALLS.values()))):
            pass
    proxy.hold()

    async def call_in_vain(name: str, call: Callable[[Store], Awaitable[Any]]) -> tuple[str, BaseException, float]:
        began = time.monotonic()
        with pytest.raises((StoreUnavailable, OutcomeUnknown)) as raised:
            await call(client.store)
        return name, raised.value, time.monotonic() - began

    ends = await asyncio.gather(*(call_in_vain(name, call) for name, call in CALLS.items() if name != "write_audit"))

    assert [(name, seconds) for name, _, seconds in ends if seconds > DEADLINE + SPARE] == []
    assert [name for name, error, _ in ends if isinstance(error, StoreUnavailable) and not error.retryable] == []
    proxy.release()
    assert (await client.enqueue("q", b"")).created


async def _is_answered(call: Awaitable[Any]) -> bool:
    try:
        await call
    except (StoreUnavailable, OutcomeUnknown):
        return False
    return True


async def test_an_enqueue_whose_answer_never_came_is_unknown_under_its_own_id(client: Client, proxy: Proxy) -> None:
    # the first goes by itself, the others together: each on a connection that is there already
    await asyncio.gather(client.enqueue("q", b""), client.enqueue("q", b""))
    proxy.hold(["answers"])
    ids = [f"01900000-0000-7000-8000-00000000000{number}" for number in range(5)]

    ends = await asyncio.gather(*(client.enqueue("q", b"", id=each) for each in ids), return_exceptions=True)

    assert [end.job_id for end in ends if isinstance(end, OutcomeUnknown)] == ids
    proxy.release()
    again = await asyncio.gather(*(client.enqueue("q", b"", id=each) for each in ids))
    assert [done.id for done in again] == ids
    assert (await client.stats("q")).pending == 7


async def test_enqueues_that_wait_behind_many_others_end_in_time_too(
    monkeypatch: pytest.MonkeyPatch, proxy: Proxy
) -> None:
    monkeypatch.setattr(enqueuer, "MOST_TOGETHER", 10)
    async with windlass.connect(f"{proxy.url}&timeout={DEADLINE}&notify=off") as client:
        # the first goes by itself, the others together: each on a connection that is there already
        await asyncio.gather(client.enqueue("q", b""), client.enqueue("q", b""))
        proxy.hold()
        began = time.monotonic()

        ends = await asyncio.gather(*(client.enqueue("q", b"") for _ in range(100)), return_exceptions=True)

        assert time.monotonic() - began < DEADLINE + SPARE
        assert (_unsent(ends), sum(isinstance(end, OutcomeUnknown) for end in ends)) == (89, 11)
        proxy.release()
        await client.enqueue("q", b"")


async def test_acks_that_wait_behind_many_others_end_in_time_too(monkeypatch: pytest.MonkeyPatch, proxy: Proxy) -> None:
    monkeypatch.setattr(settler, "MOST_TOGETHER", 5)
    async with windlass.connect(f"{proxy.url}&timeout={DEADLINE}&notify=off") as client:
        await client.enqueue_many([NewJob("q") for _ in range(25)])
        claims = await client.claim_many("q", limit=25, lease=600)
        proxy.hold()
        began = time.monotonic()

        ends = await asyncio.gather(*(client.ack(claim) for claim in claims), return_exceptions=True)

        assert time.monotonic() - began < DEADLINE + SPARE
        assert (_unsent(ends), sum(isinstance(end, OutcomeUnknown) for end in ends)) == (20, 5)
        proxy.release()
        await asyncio.gather(*(client.ack(claim) for claim in claims))
        assert (await client.stats("q")).totals.succeeded == 25


def _unsent(ends: Sequence[object]) -> int:
    """Return how many were told that nothing of their call was done, and that it can be made again."""
    told = [end for end in ends if isinstance(end, StoreUnavailable) and end.retryable]
    return sum("it was not sent, and nothing was done" in str(end) for end in told)


async def test_an_ack_whose_answer_never_came_is_unknown_under_its_own_id(client: Client, proxy: Proxy) -> None:
    await client.enqueue_many([NewJob("q") for _ in range(5)])
    claims = await client.claim_many("q", limit=5, lease=600)
    proxy.hold(["answers"])

    ends = await asyncio.gather(*(client.ack(claim) for claim in claims), return_exceptions=True)

    assert [end.job_id for end in ends if isinstance(end, OutcomeUnknown)] == [claim.job.id for claim in claims]
    proxy.release()
    await asyncio.gather(*(client.ack(claim) for claim in claims))
    assert (await client.stats("q")).totals.succeeded == 5


async def test_a_batch_whose_answer_never_came_can_be_asked_for_again(client: Client, proxy: Proxy) -> None:
    await client.enqueue("q", b"")
    ids = [f"01900000-0000-7000-8000-00000000000{number}" for number in range(3)]
    jobs = [NewJob("q", id=each) for each in ids]
    proxy.hold(["answers"])
    with pytest.raises(OutcomeUnknown):
        await client.enqueue_many(jobs)
    proxy.release()

    again = await client.enqueue_many(jobs)

    assert [done.id for done in again] == ids
    assert (await client.stats("q")).pending == 4


async def test_a_transaction_that_is_left_alone_ends_by_its_deadline(client: Client, proxy: Proxy) -> None:
    async with client.store.transaction() as connection:
        await connection.execute("select 1")
    proxy.hold()

    began = time.monotonic()
    with pytest.raises(StoreUnavailable):
        async with client.store.transaction():
            pass

    assert time.monotonic() - began < DEADLINE + SPARE
