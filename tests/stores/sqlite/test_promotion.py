"""Promotion in a file: a page of due jobs is promoted whole or not at all."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

import windlass
from windlass import Client, StoreUnavailable
from windlass.testing import FakeClock

QUEUES = ("a", "b", "c")
JOBS = 2
TRIGGER = """
create trigger in_the_middle before update on windlass_job when new.payload = x'{payload}'
begin select raise(abort, 'in the middle'); end
"""


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def client(url: str, clock: FakeClock) -> AsyncIterator[Client]:
    async with windlass.connect(url, clock=clock) as client:
        yield client


@pytest.mark.parametrize("failing", [f"{queue}{n}" for queue in QUEUES for n in range(JOBS)])
async def test_an_error_at_any_job_promotes_none_of_the_page(
    client: Client, clock: FakeClock, path: Path, failing: str
) -> None:
    """Those before it are not promoted twice by the next try."""
    for queue in QUEUES:
        for n in range(JOBS):
            await client.enqueue(queue, f"{queue}{n}".encode(), delay=timedelta(seconds=n + 1))
    clock.advance(timedelta(minutes=1))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute(TRIGGER.format(payload=failing.encode().hex()))

        with pytest.raises(StoreUnavailable, match="in the middle"):
            await client.promote()

        assert [(each.scheduled, each.pending) for each in await client.store.stats()] == [(JOBS, 0)] * len(QUEUES)
        other.execute("drop trigger in_the_middle")
    assert await client.promote() == len(QUEUES) * JOBS
    assert await client.promote() == 0
    assert [(each.scheduled, each.pending) for each in await client.store.stats()] == [(0, JOBS)] * len(QUEUES)
