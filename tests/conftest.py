"""Where the stores come from that every behaviour is shown on."""

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from proofs.children import eventually
from tests.each_store import SERVED, STORES, behind, new_url, sessions_of
from tests.markers import mark
from tests.postgres.cluster import cluster
from tests.postgres.pgbouncer import through_pgbouncer
from tests.servers import run
from windlass.connect import open_store
from windlass.core.store import Store
from windlass.testing import FakeClock, SeededRng

if TYPE_CHECKING:
    from tests.http.in_process import InProcess

PATIENCE = 5.0
APART = {
    "test_a_sibling_renews_while_the_first_loop_stands_still",
    "test_a_start_that_is_cancelled_at_any_step_leaves_nothing_behind",
    "test_a_stop_that_is_cancelled_at_any_step_is_done_at_once",
    "test_a_job_may_be_cancelled_at_any_step_of_its_own_calls",
}
"""What is served in a thread of its own: here the loop of the test stands still, or its tasks are counted."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    mark(items)


def pytest_configure(config: pytest.Config) -> None:
    # the workers of a run are processes of their own, and share what it has started
    if not hasattr(config, "workerinput"):
        run.begin()


def pytest_unconfigure() -> None:
    run.end()


@pytest.fixture
def schema() -> Iterator[str]:
    """The URL of a Postgres store that is not there yet, in a schema of this test's own."""
    url = cluster().new_schema()
    yield url
    cluster().drop_schema(url)


@pytest.fixture
def pooled_schema(schema: str) -> str:
    """The same through PgBouncer in transaction mode; the test is skipped where that is not installed."""
    return through_pgbouncer(schema)


@pytest.fixture(params=STORES)
async def new_store(request: pytest.FixtureRequest, clock: FakeClock) -> AsyncIterator[Callable[[], Store]]:
    """Doors to the same jobs; when all are closed, nothing of them may be left."""
    rng, name = SeededRng(), request.param
    # a handler whose transaction is looked at writes to a table of its own
    with new_url(behind(name), with_tables="transactional" in request.fixturenames) as url:
        tasks, threads, files, sessions = _tasks(), _threads(), _files(), sessions_of(name)
        if name in SERVED:
            from tests.http.in_process import InProcess

            serving = InProcess(url, clock=clock, rng=rng)
            async with _served(serving, apart=request.node.originalname in APART):
                yield serving.door
        elif name == "memory":
            only = open_store(url, clock=clock, rng=rng)
            yield lambda: only
        else:
            yield lambda: open_store(url, clock=clock, rng=rng)
        assert _tasks() <= tasks
        # one that has handed over what it did may still be on its way out
        assert eventually(lambda: _threads() <= threads, PATIENCE), _threads()
        # the ends of connections may be noticed a moment later, by who listens in this process too
        assert eventually(lambda: not _left_open(files, name), PATIENCE), _left_open(files, name)
        assert eventually(lambda: sessions_of(name) <= sessions, PATIENCE), sessions_of(name)


@asynccontextmanager
async def _served(serving: "InProcess", *, apart: bool) -> AsyncGenerator[None]:
    """Serve a store; what is behind has services only beside the servers of a test."""
    # loaded where they are asked for: the asserts in them are rewritten first
    from tests.http.in_thread import in_thread
    from windlass.testing.conformance.served import beside

    with beside(serving.services):
        if apart:
            with in_thread(serving):
                yield
        else:
            await serving.start()
            yield
            await serving.stop()


def _tasks() -> set[str]:
    return {task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()}


def _threads() -> set[str]:
    # asyncio keeps the threads of its default pool until the loop is closed
    return {thread.name for thread in threading.enumerate() if not thread.name.startswith("asyncio_")}


def _files() -> set[str]:
    folder = Path("/proc/self/fd")
    if not folder.is_dir():
        return set()
    found: set[str] = set()
    for link in folder.iterdir():
        # one of them is the open folder itself, which is closed by now, and others may be closed by a thread meanwhile
        with suppress(FileNotFoundError):
            found.add(str(link.readlink()))
    return found


def _left_open(before: set[str], store: str) -> dict[str, str]:
    """Return what is open and was not before, with the ports of connections.

    An engine that an earlier test has given up may connect anew, whenever it likes, to the bucket that all tests of
    this process share. So connections to who listened in this process before are nothing of a store without a bucket.
    """
    connections = _connections()
    shared = {ours for name, (ours, theirs) in connections.items() if name in before and not theirs}
    told = {name: connections.get(name, (0, 0)) for name in _files() - before}
    return {
        name: f"{ours} to {theirs}"
        for name, (ours, theirs) in told.items()
        if "s3" in store or shared.isdisjoint((ours, theirs))
    }


def _connections() -> dict[str, tuple[int, int]]:
    """Return the ports of both ends of every connection of this machine; the other one of who listens is 0."""
    found: dict[str, tuple[int, int]] = {}
    table = Path("/proc/self/net/tcp")
    for line in table.read_text().splitlines()[1:] if table.exists() else ():
        _, ours, theirs, _, _, _, _, _, _, inode, *_ = line.split()
        found[f"socket:[{inode}]"] = (int(ours.split(":")[1], 16), int(theirs.split(":")[1], 16))
    return found
