"""Ten servers with clocks that differ, one of which dies on the way: each due time makes one job."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.schedule.given import JOB, SECOND, Skewed, WithoutRevisions, comes_true, due_times
from windlass import App, Server, ServerConfig
from windlass.connect import open_store
from windlass.testing import FakeClock, SeededRng

SERVERS = 10
SECONDS = 60
SKEWS = [timedelta(seconds=-5 + 10 * number / (SERVERS - 1)) for number in range(SERVERS)]

Doors = Callable[[FakeClock], Sequence[Any]]
"""Makes a store for each server."""


def one_in_memory(clock: FakeClock) -> Sequence[Any]:
    """One store, whose own clock rules."""
    return [open_store("memory://", clock=clock, rng=SeededRng())] * SERVERS


def ten_on_a_file(path: Path) -> Doors:
    """Stores on one file, each with the clock of its server."""

    def doors(clock: FakeClock) -> Sequence[Any]:
        return [
            open_store(f"sqlite:///{path}/jobs.db", clock=Skewed(clock, by), rng=SeededRng(seed))
            for seed, by in enumerate(SKEWS)
        ]

    return doors


async def campaign(clock: FakeClock, doors: Doors, put_by: int = 0) -> tuple[datetime, list[datetime]]:
    """Let servers watch a schedule of each second for a minute; return its begin, and what was made."""
    stores = doors(clock)
    apps = [
        App(store, clock=Skewed(clock, by), rng=SeededRng(seed))
        for seed, (store, by) in enumerate(zip(stores, SKEWS, strict=True))
    ]
    servers = [Server(app, ServerConfig(concurrency=0)) for app in apps]
    for server in servers:
        await server.start()
    behind = apps[0].client.store
    schedule = await apps[put_by].client.schedules.put("beat", "* * * * * *", JOB, catch_up="none")
    begun = next_run_at = schedule.next_run_at
    assert begun is not None
    assert next_run_at is not None

    async def all_fired() -> bool:
        # by the clock that is behind all others
        return not (await behind.due_schedules((), limit=1)).due

    while next_run_at < begun + SECONDS * SECOND:
        await clock.let_pass(0.25)
        await comes_true(all_fired)
        [found] = (await behind.schedules(["beat"])).schedules
        assert found.next_run_at is not None
        next_run_at = found.next_run_at
        if servers[-1].running and next_run_at > begun + 20 * SECOND:
            # whose clock is ahead of all others
            await servers[-1].crash()
    made = await due_times(behind, "beat")
    for server in servers:
        await server.stop(grace=0)
    for app in apps:
        await app.close()
    return begun, made


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


async def test_ten_servers_make_each_due_time_once(clock: FakeClock) -> None:
    begun, made = await campaign(clock, one_in_memory)

    assert made == [begun + n * SECOND for n in range(SECONDS)]


@pytest.mark.parametrize("put_by", [0, 4, 9], ids=["the slowest", "the middle", "the fastest"])
async def test_ten_servers_whose_stores_disagree_about_the_time_make_each_due_time_once(
    clock: FakeClock, tmp_path: Path, put_by: int
) -> None:
    """A server whose clock is ahead drops nothing that others have yet to see."""
    begun, made = await campaign(clock, ten_on_a_file(tmp_path), put_by)

    # one whose clock is ahead may have made a further one by the end
    assert made == [begun + n * SECOND for n in range(len(made))]
    assert SECONDS <= len(made) <= SECONDS + 10


async def test_without_the_check_of_the_revision_the_same_campaign_fails(clock: FakeClock) -> None:
    """That it can fail is what makes it worth anything."""

    def doors(clock: FakeClock) -> Sequence[Any]:
        return [WithoutRevisions(store) for store in one_in_memory(clock)]

    begun, made = await campaign(clock, doors)

    assert set(made) == {begun + n * SECOND for n in range(SECONDS)}
    assert len(made) > 2 * SECONDS
