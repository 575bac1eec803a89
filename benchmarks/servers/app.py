"""The app whose server is measured: one handler that does nothing, one that computes."""

import asyncio
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

import windlass
from benchmarks.measuring.workload import BULK, FIRST_NUMBER, QUEUE, TEXT, chunks
from benchmarks.workloads.count import PATIENCE, Count

KEPT = timedelta(days=1)
"""What is the default too."""
BUSY_FOR = 300_000
"""Nanoseconds of processor time that a busy job takes."""
LOOK_EVERY = 0.001


class BenchApp:
    """An app with its handlers; `arrived` is called with the number of each job in the first line of its handler."""

    def __init__(self, url: str, *, keep: timedelta = KEPT, arrived: Callable[[int], None] | None = None) -> None:
        """Open nothing; all settings but the retention of finished jobs are the defaults."""
        self.app = windlass.App(url, queue=QUEUE, keep_succeeded=keep, keep_max=None)
        self.count = count = Count()

        @self.app.job
        async def nothing(n: int, text: str) -> None:  # noqa: ARG001 - a payload to decode, no work
            count.add()

        @self.app.job
        async def arrive(n: int, text: str) -> None:  # noqa: ARG001 - as above
            if arrived is not None:
                arrived(n - FIRST_NUMBER)
            count.add()

        @self.app.job
        async def busy(n: int, text: str) -> None:  # noqa: ARG001 - as above
            until = time.thread_time_ns() + BUSY_FOR
            while time.thread_time_ns() < until:
                pass

        self.nothing = nothing
        self.arrive = arrive
        self.busy = busy

    @property
    def client(self) -> windlass.Client:
        """The app's client."""
        return self.app.client

    async def fill(self, handler: windlass.Handler[[int, str], None], jobs: int) -> None:
        """Enqueue `jobs` calls of a handler, 1,000 at once."""
        for numbers in chunks(jobs, BULK):
            await self.app.enqueue_many(handler.call(FIRST_NUMBER + number, TEXT) for number in numbers)

    async def enqueue_for(self, times: Mapping[int, datetime]) -> None:
        """Enqueue one job for each time, all at once; the key is its number."""
        calls = [self.arrive.options(run_at=at).call(FIRST_NUMBER + number, TEXT) for number, at in times.items()]
        await self.app.enqueue_many(calls)

    async def all_succeeded(self, jobs: int, *, look_every: float = LOOK_EVERY) -> None:
        """Return when the store says that so many jobs have succeeded in all; each look is work for the store, too."""
        async with asyncio.timeout(PATIENCE):
            # another process may be the one that works: there is no event to wait for
            while (await self.client.stats(QUEUE)).totals.succeeded < jobs:  # noqa: ASYNC110
                await asyncio.sleep(look_every)
