"""One server is cut off from the database while others are not: it loses its jobs, and ends none of them."""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import pytest

import windlass
from tests.postgres.proxy import Proxy
from tests.postgres.ready import ready_schema
from windlass import App, Completed, Context, Server, ServerConfig

PATIENCE: Final = 30.0


class Station:
    """A server whose only handler does not end before it is told to, whatever else it hears."""

    def __init__(self, name: str, url: str, begun: "asyncio.Queue[tuple[str, int]]") -> None:
        self.may_end = asyncio.Event()
        self.app = App(url, name=name)
        config = ServerConfig(lease=1.5, rescue_interval=0.2, shutdown_timeout=5)
        self.server = Server(self.app, config)

        @self.app.job
        async def work(ctx: Context) -> str:
            begun.put_nowait((name, ctx.delivery))
            while not self.may_end.is_set():
                with suppress(asyncio.CancelledError):
                    await self.may_end.wait()
            return name


@pytest.fixture
def url() -> Iterator[str]:
    with ready_schema() as url:
        yield url


async def test_a_server_that_is_cut_off_alone_ends_none_of_the_jobs_it_has_lost(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    begun: asyncio.Queue[tuple[str, int]] = asyncio.Queue()
    async with asyncio.timeout(4 * PATIENCE), Proxy(url) as proxy, windlass.connect(url) as client:
        cut_off = Station("cut-off", f"{proxy.url}&timeout=1", begun)
        other = Station("other", url, begun)
        async with cut_off.app, cut_off.server:
            job = await client.enqueue("default", {}, kind="work")
            assert await begun.get() == ("cut-off", 1)

            proxy.hold()
            async with other.app, other.server:
                assert await begun.get() == ("other", 2)
                other.may_end.set()
                assert isinstance(await client.wait(job.id, PATIENCE), Completed)
            before = await client.get(job.id)
            with caplog.at_level(logging.WARNING, "windlass"):
                proxy.release()
                cut_off.may_end.set()
                # it settles in the order of the ends: when this one is done, the other one was refused
                after_it = await client.enqueue("default", {}, kind="work")
                assert isinstance(await client.wait(after_it.id, PATIENCE), Completed)

        assert before is not None
        assert (before.attempt, before.delivery, client.decode_result(before)) == (2, 2, "other")
        assert [delivery.outcome for delivery in before.history] == ["rescued", "succeeded"]
        assert await client.get(job.id) == before
        assert f"job {job.id} (work) was taken back while it ran" in caplog.text
        assert (await client.stats("default")).totals.succeeded == 2
