"""Two processes on one database: one owns it, and the other is told, takes it over, follows, or looks."""

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from inspect import isfunction
from pathlib import Path
from typing import Final

import pytest

from tests.stores.slatedb.lived import job, numbered
from tests.stores.slatedb.opened import eventually_is, pending
from windlass.connect import open_store
from windlass.core.errors import Fenced, StoreOwned, StoreReadOnly
from windlass.core.filters import JobFilter
from windlass.core.ids import JobId
from windlass.core.job import Token
from windlass.core.looks import AuditEntry, ServerRecord
from windlass.core.moving import Moved, Packed, Parcel
from windlass.core.requests import ClaimRequest, KvWrite, RescueRequest, Settlement
from windlass.core.retention import KEEP_ALL
from windlass.core.schedule import Firing
from windlass.core.states import State
from windlass.core.stats import TimingCount
from windlass.core.store import Inspector, Store
from windlass.core.verdict import ToSucceeded
from windlass.testing.conformance.given import a_schedule

MINUTE: Final = timedelta(minutes=1)
NOW: Final = datetime(2026, 1, 2, tzinfo=UTC)
PATIENCE: Final = 60.0
needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are looked up in /proc")

# Owns a store with one job that it runs and one that waits, and says so. Then it enqueues for each line that it reads,
# and answers when that is durable; at the end of its input it waits for a job that never comes, and says how it ended.
OWNER = """
import asyncio, sys, windlass
from datetime import datetime, timedelta, UTC
from tests.stores.slatedb.lived import job
from windlass.core.looks import ServerRecord
from windlass.core.requests import ClaimRequest

async def own(url):
    client = windlass.connect(url)
    await client.open()
    store, now = client.store, datetime.now(UTC)
    await store.enqueue([job(1), job(2)])
    await store.beat(ServerRecord("server", "server", "host", 1, "0", now, now, ("email",)))
    await store.beat(ServerRecord("apart", "apart", "host", 1, "0", now, now, ("email",), details={"served": "yes"}))
    await store.claim(ClaimRequest(["email"], 1, timedelta(hours=1), worker="server"))
    print("owns", flush=True)
    number = 10
    while await asyncio.to_thread(sys.stdin.readline):
        await store.enqueue([job(number)])
        number += 1
        print("durable", flush=True)
    try:
        await client.claim("nothing", wait=50)
    except windlass.WindlassError as error:
        print("waited", type(error).__name__, flush=True)
    try:
        await store.enqueue([job(9)])
    except windlass.WindlassError as error:
        print("called", type(error).__name__, flush=True)
    await client.close()

asyncio.run(own(sys.argv[1]))
"""


class OwnerProcess:
    """A process that owns a store."""

    def __init__(self, url: str) -> None:
        command = [sys.executable, "-c", OWNER, url]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3]
        )

    @property
    def pid(self) -> int:
        return self.process.pid

    async def says(self) -> str:
        """Return what it says next."""
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            return (await asyncio.to_thread(self.process.stdout.readline)).strip()

    async def enqueues(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("go on\n")
        self.process.stdin.flush()
        assert await self.says() == "durable"

    def waits(self) -> None:
        """Let it wait for a job that never comes."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"slatedb+file://{tmp_path}/jobs"


@pytest.fixture
def owner(url: str) -> Iterator[OwnerProcess]:
    owner = OwnerProcess(url)
    yield owner
    owner.end()


@asynccontextmanager
async def opened(url: str) -> AsyncGenerator[Store]:
    store = open_store(url)
    await store.open()
    yield store
    await store.close()


async def test_a_second_process_is_told_who_owns_the_database_until_it_takes_it_over(
    url: str, owner: OwnerProcess
) -> None:
    assert await owner.says() == "owns"
    with pytest.raises(StoreOwned) as owned:
        await open_store(url).open()
    assert owned.value.owner.endswith(f":{owner.pid}")
    assert owned.value.retryable
    owner.waits()

    async with opened(f"{url}?take_over=1") as store:
        # the one that sleeps is woken for it, and nothing of what it calls then is done
        assert await owner.says() == "waited Fenced"
        assert await owner.says() == "called Fenced"
        assert owner.process.wait(PATIENCE) == 0
        # it has only left: nobody takes its servers for dead
        assert await store.ended_servers() == []
        [claim] = (await store.claim(ClaimRequest(["email"], 10, MINUTE))).jobs
        assert claim.job.id == numbered(2)
        assert await store.get([numbered(9)]) == [None]


@needs_proc
async def test_after_the_owner_was_killed_the_next_one_has_its_jobs_at_once(url: str, owner: OwnerProcess) -> None:
    assert await owner.says() == "owns"
    await owner.enqueues()
    owner.end()

    async with opened(url) as store:
        ended = await store.ended_servers()
        assert ended == ["server"]
        [running] = [each for each in await store.get([numbered(1), numbered(2)]) if each and each.worker]
        assert (running.id, running.state) == (numbered(1), State.RUNNING)
        rescued = await store.rescue(RescueRequest(workers=ended, force=True), KEEP_ALL)
        assert [(each.id, each.state) for each in rescued] == [(numbered(1), State.PENDING)]
        for server in ended:
            await store.leave(server)
        assert await store.ended_servers() == []
        claims = (await store.claim(ClaimRequest(["email"], 10, MINUTE))).jobs
        assert {claim.job.id for claim in claims} == {numbered(1), numbered(2), numbered(10)}


def a_server(server_id: str) -> ServerRecord:
    now = datetime.now(UTC)
    return ServerRecord(server_id, server_id, "host", 1, "0", now, now, ("email",))


async def test_nobody_takes_the_servers_of_an_owner_that_may_live_for_dead_since_a_later_one_has_left(
    url: str, owner: OwnerProcess
) -> None:
    assert await owner.says() == "owns"
    async with opened(f"{url}?take_over=1") as second:
        await second.beat(a_server("second"))

    async with opened(url) as third:
        assert [server.id for server in await third.servers()] == ["apart", "second", "server"]
        assert await third.ended_servers() == ["second"]


@needs_proc
async def test_the_servers_of_an_owner_that_was_killed_are_known_to_whoever_comes_after_the_next_one(
    url: str, owner: OwnerProcess
) -> None:
    assert await owner.says() == "owns"
    owner.end()
    async with opened(url) as second:
        await second.beat(a_server("second"))
        await second.leave("second")

    async with opened(url) as third:
        assert await third.ended_servers() == ["server"]


async def test_who_looks_sees_what_is_durable_while_the_owner_works(url: str, owner: OwnerProcess) -> None:
    assert await owner.says() == "owns"

    async with opened(f"{url}?look=yes") as store:
        assert await pending(store) == 1
        for number in range(2):
            await owner.enqueues()
            await eventually_is(lambda: pending(store), 2 + number)
        [job_10] = await store.get([numbered(10)])
        assert job_10 is not None
        assert [server.id for server in await store.servers()] == ["apart", "server"]
        page = await store.newest(JobFilter(), before=None, limit=2, most=10)
        assert [found.id for found in page.jobs] == [numbered(11), numbered(10)]
        place = await store.place(numbered(10))
        assert place is not None
        assert place.ahead == 1
        findings = {finding.name: finding.message for finding in await store.check()}
        assert f":{owner.pid} has owned it since" in findings["owner"]
    # whoever looked has taken nothing from it
    await owner.enqueues()


ID, TOKEN = JobId(numbered(1)), Token("0" * 32)
MOVES: Final[dict[str, Callable[[Store], Awaitable[object]]]] = {
    "enqueue": lambda store: store.enqueue([job(1)]),
    "claim": lambda store: store.claim(ClaimRequest(["email"], 1, MINUTE)),
    "due_in": lambda store: store.due_in(["email"]),
    "settle": lambda store: store.settle([Settlement(ID, TOKEN, ToSucceeded())]),
    "renew": lambda store: store.renew([(ID, TOKEN)], MINUTE),
    "note": lambda store: store.note([]),
    "cancel": lambda store: store.cancel([ID], KEEP_ALL),
    "retry": lambda store: store.retry([ID]),
    "delete": lambda store: store.delete([ID]),
    "reschedule": lambda store: store.reschedule([ID], None),
    "set_paused": lambda store: store.set_paused("email", paused=True),
    "rescue": lambda store: store.rescue(RescueRequest(), KEEP_ALL),
    "promote": lambda store: store.promote(limit=1),
    "prune": lambda store: store.prune(KEEP_ALL, limit=1),
    "write_schedule": lambda store: store.write_schedule(a_schedule(), expected=None),
    "remove_schedule": lambda store: store.remove_schedule("s"),
    "due_schedules": lambda store: store.due_schedules([], limit=1),
    "fire": lambda store: store.fire(Firing("s", 1, [])),
    "kv_write": lambda store: store.kv_write(KvWrite(b"k", b"v")),
    "lock": lambda store: store.lock("l", "me", MINUTE),
    "unlock": lambda store: store.unlock("l", "me"),
    "beat": lambda store: store.beat(ServerRecord("s", "s", "h", 1, "0", NOW, NOW)),
    "ended_servers": lambda store: store.ended_servers(),
    "leave": lambda store: store.leave("s"),
    "write_audit": lambda store: store.write_audit([AuditEntry(NOW, "me", "pause", "queue", {})]),
    "write_timings": lambda store: store.write_timings([TimingCount(NOW, "email", "", "ran", 0, 1)]),
    "set_moved": lambda store: store.set_moved(Moved("redis://other", "move")),
    "pack": lambda store: store.pack("email", limit=1),
    "unpack": lambda store: store.unpack(Parcel("move", "email", 1, Packed([], []))),
    "let_go": lambda store: store.let_go(jobs=[ID]),
    "take_keys": lambda store: store.take_keys([]),
}


NO_MOVES: Final = {"open", "is_prepared", "close", "sibling", "listen", "join", "transaction", "kv_get", "kv_scan"} | {
    "moved",
    "unpacked",
    "timed_keys",
}


async def test_who_only_looks_changes_nothing(url: str) -> None:
    commands = {name for name, found in vars(Store).items() if isfunction(found) and name[0] != "_"} - {"do"}
    assert (MOVES.keys() | NO_MOVES) - vars(Inspector).keys() == commands
    async with opened(url) as owner:
        await owner.enqueue([job(1)])
        await owner.write_timings([TimingCount(NOW, "email", "", "ran", 0, 1)])
        await owner.set_moved(Moved("redis://other", "move"))
        async with opened(f"{url}?look=yes") as store:
            for move in MOVES.values():
                with pytest.raises(StoreReadOnly, match="look=yes"):
                    await move(store)
            assert await store.timings(since=NOW, until=NOW + MINUTE) == [TimingCount(NOW, "email", "", "ran", 0, 1)]
            assert await store.moved() == Moved("redis://other", "move")
            assert (await store.unpacked("move", "email"), await store.timed_keys(limit=1)) == (None, [])
        [stats] = await owner.stats()
        assert (stats.pending, stats.totals.enqueued) == (1, 1)


async def test_a_client_that_is_opened_beside_one_that_was_fenced_is_told_who_owns_the_store_or_takes_it_over(
    url: str, owner: OwnerProcess
) -> None:
    assert await owner.says() == "owns"
    owner.waits()
    async with opened(f"{url}?take_over=1") as fenced:
        async with another_owner(f"{url}?take_over=1"):
            with pytest.raises(Fenced):
                await fenced.enqueue([job(20)])

            with pytest.raises(StoreOwned):
                await open_store(url).open()
            # nor does a part of the program that was fenced take it back
            with pytest.raises(Fenced):
                await fenced.sibling().open()
            async with opened(f"{url}?take_over=1") as again:
                await again.enqueue([job(21)])
        with pytest.raises(Fenced):
            await fenced.enqueue([job(22)])


@asynccontextmanager
async def another_owner(url: str) -> AsyncGenerator[OwnerProcess]:
    other = OwnerProcess(url)
    try:
        assert await other.says() == "owns"
        yield other
    finally:
        other.end()
