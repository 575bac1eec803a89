"""Where the stores come from that every behaviour is shown on."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from proofs.children import eventually
from tests.each_store import STORES, new_url, sessions_of
from tests.postgres.cluster import cluster
from tests.postgres.pgbouncer import through_pgbouncer
from tests.servers import run
from windlass.connect import open_store
from windlass.core.store import Store
from windlass.testing import FakeClock, SeededRng

PATIENCE = 5.0


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
    """Doors to the same jobs; when all are closed, nothing of them may be left (I19)."""
    rng = SeededRng()
    # a handler whose transaction is looked at writes to a table of its own
    with new_url(request.param, with_tables="transactional" in request.fixturenames) as url:
        tasks, threads, files, sessions = _tasks(), _threads(), _files(), sessions_of(request.param)
        if request.param == "memory":
            only = open_store(url, clock=clock, rng=rng)
            yield lambda: only
        else:
            yield lambda: open_store(url, clock=clock, rng=rng)
        assert _tasks() <= tasks
        # one that has handed over what it did may still be on its way out
        assert eventually(lambda: _threads() <= threads, PATIENCE), _threads()
        assert _files() <= files
        assert eventually(lambda: sessions_of(request.param) <= sessions, PATIENCE), sessions_of(request.param)


def _tasks() -> set[str]:
    return {task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()}


def _threads() -> set[str]:
    # asyncio keeps the threads of its default pool until the loop is closed
    return {thread.name for thread in threading.enumerate() if not thread.name.startswith("asyncio_")}


def _files() -> set[str]:
    folder = Path("/proc/self/fd")
    if not folder.is_dir():
        return set()
    # one of them is the open folder itself, which is closed by now
    return {str(link.readlink()) for link in folder.iterdir() if link.is_symlink()}
