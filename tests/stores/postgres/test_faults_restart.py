"""The database is restarted and killed under a server that works: it goes on by itself, and no job runs again."""

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Final

import pytest

import windlass
from tests.postgres.private import DURABLE, PrivateCluster
from windlass import App, Completed, Server, ServerConfig, State

SOON: Final = 5.0
SPARE: Final = 5.0
"""Seconds for a machine that has much else to do."""
DOWN: Final = 1.0
PATIENCE: Final = 120.0


@pytest.fixture(scope="module")
def private() -> Iterator[PrivateCluster]:
    with PrivateCluster(conf=DURABLE) as private:
        yield private


def restart(private: PrivateCluster) -> None:
    private.restart("immediate")


def kill(private: PrivateCluster) -> None:
    private.kill()
    time.sleep(DOWN)
    private.start()


@pytest.mark.parametrize("fault", [restart, kill])
async def test_a_server_works_on_after_the_database_is_back(
    private: PrivateCluster, fault: Callable[[PrivateCluster], None]
) -> None:
    url = f"{private.url}?schema={fault.__name__}"
    begun, may_end = asyncio.Event(), asyncio.Event()
    app = App(url, lease=60)

    @app.job
    async def through_it_all() -> str:
        begun.set()
        await may_end.wait()
        return "done"

    @app.job
    async def at_once() -> None:
        pass

    async with asyncio.timeout(PATIENCE), app, Server(app, ServerConfig(rescue_interval=0.2)):
        running = await app.client.enqueue("default", {}, kind="through_it_all")
        await begun.wait()

        await asyncio.to_thread(fault, private)
        back_at = time.monotonic()
        fresh = await app.client.enqueue("default", {}, kind="at_once")
        assert isinstance(await app.client.wait(fresh.id), Completed)
        took = time.monotonic() - back_at
        may_end.set()
        assert isinstance(await app.client.wait(running.id), Completed)
        job = await app.client.get(running.id)

    assert took < SOON + SPARE
    assert job is not None
    assert (job.state, job.attempt, job.delivery) == (State.SUCCEEDED, 1, 1)
    await nothing_is_left(url)


async def nothing_is_left(url: str) -> None:
    async with windlass.connect(url) as client:
        assert await client.store.servers() == []
        assert (await client.stats()).totals.rescued == 0
