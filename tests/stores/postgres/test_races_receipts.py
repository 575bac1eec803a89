"""A call that is repeated while its first try is still under way, or long over, is done once."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any, Final

import asyncpg
import pytest

from tests.postgres.frames import Request
from tests.postgres.proxy import Proxy
from tests.stores.postgres.racing import MINUTE, connection_to, opened
from windlass.core.commands import (
    CancelJobs,
    DeleteMoved,
    FreeLock,
    PromoteJobs,
    PruneRecords,
    RemoveServer,
    RenewClaims,
    SetMoved,
    SetQueueSettings,
    TakeKeys,
    TakeLock,
    UnpackJobs,
    WriteAudit,
)
from windlass.core.errors import StoreCorrupt, StoreMoved
from windlass.core.job import Enqueued, Failure
from windlass.core.looks import AuditEntry
from windlass.core.moving import Moved, Parcel
from windlass.core.queue_settings import StoredSettings
from windlass.core.requests import CancelOutcome, ClaimRequest, KvWrite, Settled, Settlement
from windlass.core.retention import Retention
from windlass.core.store import Store
from windlass.core.store_calls import Command
from windlass.core.unique import Unique
from windlass.core.verdict import ToDead, ToReleased, ToSucceeded
from windlass.testing.conformance.given import a_job


@pytest.fixture
async def store(schema: str) -> AsyncIterator[Store]:
    async with opened(schema) as store:
        yield store


@pytest.fixture
async def proxy(schema: str, store: Store) -> AsyncIterator[Proxy]:  # noqa: ARG001 - makes the schema
    async with Proxy(schema) as proxy:
        yield proxy


@pytest.fixture
async def outside(schema: str, store: Store) -> AsyncIterator["asyncpg.Connection[Any]"]:  # noqa: ARG001 - makes the schema
    async with connection_to(schema) as connection:
        yield connection


async def test_a_claim_with_a_name_is_given_jobs_that_have_just_come_due(store: Store) -> None:
    await store.enqueue([job := a_job("q", delay=timedelta(microseconds=1))])

    first = (await store.claim(ClaimRequest(["q"], 10, MINUTE), request_id="r")).jobs
    again = (await store.claim(ClaimRequest(["q"], 10, MINUTE), request_id="r")).jobs

    assert [claim.job.id for claim in first] == [job.id]
    assert [claim.token for claim in again] == [claim.token for claim in first]


async def test_a_claim_with_a_name_is_given_the_kinds_it_knows_behind_strange_ones(store: Store) -> None:
    await store.enqueue([a_job("q", kind="strange"), known := a_job("q", kind="known")])
    wanted = ClaimRequest(["q"], 10, MINUTE, kinds=["known"])

    first = (await store.claim(wanted, request_id="r")).jobs
    again = (await store.claim(wanted, request_id="r")).jobs

    assert [claim.job.id for claim in first] == [known.id]
    assert [claim.token for claim in again] == [claim.token for claim in first]


async def test_a_claim_with_a_name_whose_jobs_have_ended_gives_no_others(store: Store) -> None:
    await store.enqueue([a_job("q"), a_job("q")])
    [claim] = (await store.claim(ClaimRequest(["q"], 1, MINUTE), request_id="r")).jobs
    await store.settle([Settlement(claim.job.id, claim.token, ToSucceeded())])

    assert (await store.claim(ClaimRequest(["q"], 1, MINUTE), request_id="r")).jobs == []


async def test_the_calls_of_a_store_are_named_in_rising_order_and_never_as_those_of_another(
    schema: str, store: Store, outside: "asyncpg.Connection[Any]"
) -> None:
    async with opened(schema) as other:
        for _ in range(20):
            await store.enqueue([a_job("q")])
            await other.enqueue([a_job("q")])

    names = [row[0] for row in await outside.fetch("select request_id from windlass_receipt order by at, ctid")]
    of_store, of_other = names[::2], names[1::2]
    assert len(set(names)) == 40
    assert (sorted(of_store), sorted(of_other)) == (of_store, of_other)


class Calls:
    """The calls that must not be done twice, on a store whose every reply may be lost; each checks what it left."""

    def __init__(self, store: Store, direct: Store) -> None:
        self._store = store
        self._direct = direct

    async def _claimed(self, **options: Any) -> Any:  # noqa: ANN401
        await self._direct.enqueue([a_job("q", **options)])
        [claim] = (await self._direct.claim(ClaimRequest(["q"], 1, MINUTE))).jobs
        return claim

    async def claim(self, ready: "Ready") -> None:
        await self._direct.enqueue([a_job("q") for _ in range(4)])
        await ready()
        claims = (await self._store.claim(ClaimRequest(["q"], 2, MINUTE))).jobs
        assert len(claims) == 2
        [stats] = await self._direct.stats("q")
        assert (stats.pending, stats.running) == (2, 2)
        done = await self._direct.settle([Settlement(one.job.id, one.token, ToSucceeded()) for one in claims])
        assert done == [Settled.DONE] * 2

    async def claim_chosen(self, ready: "Ready") -> None:
        await self._direct.enqueue([a_job("q") for _ in range(4)])
        await ready()
        claims = (await self._store.claim(ClaimRequest(["q", "r"], 2, MINUTE, by_priority=True))).jobs
        assert len(claims) == 2
        [stats] = await self._direct.stats("q")
        assert (stats.pending, stats.running) == (2, 2)

    async def ack(self, ready: "Ready") -> None:
        claim = await self._claimed()
        await ready()
        assert await self._store.settle([Settlement(claim.job.id, claim.token, ToSucceeded())]) == [Settled.DONE]
        [stats] = await self._direct.stats("q")
        assert (stats.running, stats.succeeded, stats.totals.succeeded) == (0, 1, 1)

    async def ack_and_forget(self, ready: "Ready") -> None:
        claim = await self._claimed()
        await ready()
        answer = await self._store.settle([Settlement(claim.job.id, claim.token, ToSucceeded(), keep=False)])
        assert answer == [Settled.DONE]
        [stats] = await self._direct.stats("q")
        assert (stats.running, stats.succeeded, stats.totals.succeeded) == (0, 0, 1)

    async def settle(self, ready: "Ready") -> None:
        claim = await self._claimed()
        await ready()
        answer = await self._store.settle(
            [Settlement(claim.job.id, claim.token, ToDead(Failure("no")), then=[a_job("r")], kv={b"k": b"v"})]
        )
        assert answer == [Settled.DONE]
        stats = {one.queue: one for one in await self._direct.stats()}
        assert (stats["q"].dead, stats["q"].totals.dead, stats["r"].pending) == (1, 1, 1)

    async def release(self, ready: "Ready") -> None:
        claim = await self._claimed()
        await ready()
        assert await self._store.settle([Settlement(claim.job.id, claim.token, ToReleased())]) == [Settled.DONE]
        [stats] = await self._direct.stats("q")
        assert (stats.pending, stats.running) == (1, 0)

    async def enqueue(self, ready: "Ready") -> None:
        await ready()
        answer = await self._store.enqueue([a_job("q"), a_job("q")])
        assert [one.created for one in answer] == [True, True]
        [stats] = await self._direct.stats("q")
        assert (stats.pending, stats.totals.enqueued) == (2, 2)

    async def enqueue_one(self, ready: "Ready") -> None:
        await ready()
        [answer] = await self._store.enqueue([a_job("q")])
        assert answer.created
        [stats] = await self._direct.stats("q")
        assert (stats.pending, stats.totals.enqueued) == (1, 1)

    async def enqueue_one_that_is_here(self, ready: "Ready") -> None:
        await self._direct.enqueue([job := a_job("q")])
        await ready()
        assert await self._store.enqueue([job]) == [Enqueued(job.id, created=False)]
        [stats] = await self._direct.stats("q")
        assert (stats.pending, stats.totals.enqueued) == (1, 1)

    async def enqueue_keyed(self, ready: "Ready") -> None:
        await ready()
        answer = await self._store.enqueue([a_job("q", unique=Unique("k", on_conflict="raise"))])
        assert [one.created for one in answer] == [True]
        [stats] = await self._direct.stats("q")
        assert (stats.pending, stats.totals.enqueued) == (1, 1)

    async def cancel(self, ready: "Ready") -> None:
        [job] = await self._direct.enqueue([a_job("q")])
        await ready()
        assert await self._store.cancel([job.id], Retention()) == [CancelOutcome.REMOVED]
        [stats] = await self._direct.stats("q")
        assert (stats.pending, stats.cancelled, stats.totals.cancelled) == (0, 1, 1)

    async def compare_and_set(self, ready: "Ready") -> None:
        await self._direct.kv_write(KvWrite(b"k", b"1"))
        await ready()
        assert await self._store.kv_write(KvWrite(b"k", b"2", expected=b"1"))
        assert await self._direct.kv_get([b"k"]) == [b"2"]

    async def audit(self, ready: "Ready") -> None:
        [job] = await self._direct.enqueue([a_job("q")])
        kept = await self._direct.get([job.id])
        assert kept[0] is not None
        await ready()
        await self._store.write_audit([AuditEntry(kept[0].created_at, "me", "retry", "q", {})])
        assert len(await self._direct.audit(limit=10)) == 1


Ready = Callable[[], Awaitable[None]]
NAMES: Final = [name for name in vars(Calls) if not name.startswith("_")]


def commits(request: Request) -> bool:
    """Whether a request makes what it did last: a commit, or a statement that is a transaction of its own."""
    return request.text.startswith("commit") or "windlass_receipt" in request.text


@pytest.mark.parametrize("name", NAMES)
async def test_a_call_whose_reply_was_lost_is_done_once_and_answers_as_the_first(
    store: Store, proxy: Proxy, name: str
) -> None:
    lost: list[asyncio.Event] = []

    async def ready() -> None:
        lost.append(proxy.drop_reply(commits))

    async with opened(proxy.url) as through, asyncio.timeout(30):
        await getattr(Calls(through, store), name)(ready)

    assert lost[0].is_set(), "no reply was lost"


@pytest.mark.parametrize("name", NAMES)
async def test_a_call_that_is_repeated_while_its_first_try_still_runs_is_done_once(
    schema: str, store: Store, proxy: Proxy, outside: "asyncpg.Connection[Any]", name: str
) -> None:
    async with opened(proxy.url) as through, connection_to(schema) as watcher, asyncio.timeout(30):
        holder = Holder(outside, watcher, proxy)
        try:
            await getattr(Calls(through, store), name)(holder.begin)
        finally:
            await holder.end()

    assert holder.met == 2, "the first try and its repetition were not there at once"


class Holder:
    """Holds up whoever writes a receipt, resets its connection, and lets go when the repetition waits as well."""

    def __init__(self, connection: "asyncpg.Connection[Any]", watcher: "asyncpg.Connection[Any]", proxy: Proxy) -> None:
        self.met = 0
        self._connection = connection
        # by itself, since a transaction sees the sessions of one moment
        self._watcher = watcher
        self._proxy = proxy
        self._task: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        await self._connection.execute("begin")
        # readers go on, writers of receipts wait
        await self._connection.execute("lock table windlass_receipt in share row exclusive mode")
        self._task = asyncio.ensure_future(self._steer())

    async def end(self) -> None:
        if self._task is not None:
            await self._task

    async def _steer(self) -> None:
        try:
            self.met += await self._waiting(1)
            self._proxy.reset()
            self.met += await self._waiting(2)
        finally:
            await self._connection.execute("rollback")

    async def _waiting(self, count: int) -> bool:
        async with asyncio.timeout(10):
            while await self._watcher.fetchval(_WAITING) < count:  # noqa: ASYNC110 - of other processes
                await asyncio.sleep(0.005)
        return True


_WAITING: Final = (
    "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
)


async def test_receipts_are_pruned_when_nobody_can_ask_any_more(
    store: Store, outside: "asyncpg.Connection[Any]"
) -> None:
    await store.enqueue([a_job("q")], request_id="old")
    await store.enqueue([a_job("q")], request_id="new")
    await outside.execute(
        "update windlass_receipt set at = clock_timestamp() - interval '1 hour' where request_id = 'enqueue:old'"
    )

    await store.prune(Retention(), limit=10)

    assert [row[0] for row in await outside.fetch("select request_id from windlass_receipt")] == ["enqueue:new"]


@pytest.mark.parametrize(
    "command, receipts",
    [
        (CancelJobs([], Retention()), 1),
        (FreeLock("l", "me"), 1),
        (WriteAudit([]), 1),
        (DeleteMoved(), 1),
        # these do the same again
        (RenewClaims([], MINUTE), 0),
        (SetQueueSettings("q", StoredSettings(paused=True)), 0),
        (TakeLock("l", "me", MINUTE), 0),
        (RemoveServer("s"), 0),
        (SetMoved(None), 0),
        (TakeKeys([]), 0),
        # a server does these all the time
        (PromoteJobs(10), 0),
        (PruneRecords(Retention(), 10), 0),
    ],
    ids=lambda value: str(value).partition("(")[0],
)
async def test_a_command_whose_repeat_would_do_more_writes_a_receipt(
    store: Store, outside: "asyncpg.Connection[Any]", command: Command[Any], receipts: int
) -> None:
    await store.do(command)

    assert await outside.fetchval("select count(*) from windlass_receipt") == receipts


@pytest.mark.parametrize(
    "command", [SetQueueSettings("q", StoredSettings(paused=True)), TakeKeys([]), CancelJobs([], Retention())]
)
async def test_a_command_that_begins_work_is_undone_in_a_store_that_was_moved(
    store: Store, outside: "asyncpg.Connection[Any]", command: Command[Any]
) -> None:
    await store.set_moved(Moved("elsewhere", "move"))

    with pytest.raises(StoreMoved):
        await store.do(command)

    assert await outside.fetchval("select count(*) from windlass_queue where queue = 'q'") == 0
    assert await outside.fetchval("select count(*) from windlass_receipt") == 0


async def test_a_parcel_that_is_repeated_under_its_request_id_gets_its_first_reply(
    store: Store, outside: "asyncpg.Connection[Any]"
) -> None:
    await store.enqueue([a_job("q")])
    packed = await store.pack("q", limit=1)
    await store.let_go(jobs=[job.id for job in packed.jobs])
    first, third = (UnpackJobs(Parcel("move", "q", number, packed)) for number in (1, 3))

    assert await store.do(first, request_id="r")
    await store.set_moved(Moved("elsewhere", "other"))
    assert await store.do(first, request_id="r")
    await store.set_moved(None)
    assert not await store.do(first, request_id="s")
    assert not await store.do(third, request_id="t")
    # another command may have the id too
    await store.enqueue([a_job("q")], request_id="r")

    await outside.execute("update windlass_receipt set reply = 'x' where request_id = 'UnpackJobs:r'")
    with pytest.raises(StoreCorrupt, match="UnpackJobs:r"):
        await store.do(first, request_id="r")
