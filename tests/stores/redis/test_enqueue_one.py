"""A job that comes alone has a script of its own: it leaves what the one for many leaves."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from tests.redis.asking import ask
from tests.redis.keys import keys_of, servers_of, with_options
from tests.redis.server import new_url
from windlass.connect import open_store
from windlass.core.store import Store
from windlass.testing import FakeClock
from windlass.testing.conformance.given import a_job


@asynccontextmanager
async def a_store(options: str, clock: FakeClock) -> AsyncGenerator[tuple[str, Store]]:
    with new_url() as url:
        store = open_store(with_options(url, options), clock=clock)
        await store.open()
        yield url, store
        await store.close()


def left(url: str) -> dict[str, object]:
    """Return what every key of a store holds, by its name behind the prefix, and whether it goes by itself."""
    [server] = servers_of(url)
    return {
        key.partition("}|")[2]: (ask(server, "DUMP", key), ask(server, "TTL", key) > 0)
        for key in keys_of(url)
        if "|receipt|" not in key
    }


@pytest.mark.parametrize("options", ["timeout=10", "spread=queues"])
async def test_jobs_one_by_one_leave_what_they_leave_together(options: str) -> None:
    clock = FakeClock()
    jobs = [a_job("q"), a_job("q", kind="kind"), a_job("q", payload=b"payload")._replace(priority=7, max_attempts=1)]
    async with a_store(options, clock) as (alone, one), a_store(options, clock) as (together, many):
        for job in jobs:
            assert await one.enqueue([job]) == [(job.id, True)]
        await many.enqueue(jobs)

        assert left(alone) == left(together)
        kinds = {name.partition("|")[0] for name in left(alone)}
        assert kinds >= {"job", "jobs", "ready", "kinds", "queues", "totals", "minute", "seq"}
