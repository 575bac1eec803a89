"""Where the stores come from that every behaviour is shown on."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from windlass.connect import open_store
from windlass.core.store import Store
from windlass.testing import FakeClock, SeededRng


@pytest.fixture(params=["memory", "sqlite"])
async def new_store(
    request: pytest.FixtureRequest, clock: FakeClock, tmp_path: Path
) -> AsyncIterator[Callable[[], Store]]:
    """Doors to the same jobs; when all are closed, nothing of them may be left (I19)."""
    rng = SeededRng()
    tasks, threads, files = _tasks(), _threads(), _files()
    if request.param == "memory":
        only = open_store("memory://", clock=clock, rng=rng)
        yield lambda: only
    else:
        yield lambda: open_store(f"sqlite:///{tmp_path}/jobs.db", clock=clock, rng=rng)
    assert _tasks() <= tasks
    assert _threads() <= threads
    assert _files() <= files


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
