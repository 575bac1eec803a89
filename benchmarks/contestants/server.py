"""Windlass by its server: an app with one handler that does nothing, default settings, one process."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

import windlass
from benchmarks.measuring.contestant import Arrived, Contestant, Measure, Outcome, Role, Trial
from benchmarks.measuring.workload import FIRST_NUMBER, TEXT, Stopwatch
from benchmarks.servers import postgres_databases, redis_databases
from benchmarks.servers.app import KEPT, BenchApp
from benchmarks.servers.our_loop import on_our_loop
from benchmarks.servers.serving import serving
from benchmarks.servers.store_urls import CROWDED, MAIN, Url, postgres_url, redis_url, sqlite_url
from benchmarks.workloads import held_snapshot, large, large_server, on_schedule, two_processes
from benchmarks.workloads.delay import DELAYED, run_times
from benchmarks.workloads.drain import drain, until_done
from benchmarks.workloads.pickup import pick_up
from benchmarks.workloads.producer import fill_by_another, producer

AT_ONCE = timedelta(0)
LONG = 60.0
COLD_ROWS = 20_000


@dataclass(frozen=True, slots=True)
class Served:
    """The measurements of a server on one store; `name` is that of the contestant, for its other processes."""

    name: str
    url: Url
    run: Callable[[Coroutine[Any, Any, Outcome]], Outcome] = on_our_loop

    def drain(self, trial: Trial, *, keep: timedelta) -> Outcome:
        """Drain a store that another process has filled."""
        fill_by_another(self.name, trial.folder, trial.jobs)
        return self.run(self._drain(trial, keep))

    async def _drain(self, trial: Trial, keep: timedelta) -> Outcome:
        made = BenchApp(self._main(trial.folder), keep=keep)
        async with made.app:
            return await drain(made, trial)

    def end_to_end(self, trial: Trial) -> Outcome:
        """Work what another process enqueues meanwhile."""
        with producer(self.name, trial.folder, trial.jobs) as producing:
            return self.run(self._end_to_end(trial, producing.go))

    async def _end_to_end(self, trial: Trial, go: Callable[[], None]) -> Outcome:
        made = BenchApp(self._main(trial.folder))
        async with made.app, windlass.Server(made.app):
            watch = Stopwatch(trial.drain_seconds)
            go()
            return await until_done(made, trial, watch)

    def produce(self, folder: Path, count: int, ready: Callable[[], None]) -> None:
        """Enqueue calls of the handler, 1,000 at once."""

        async def enqueue() -> None:
            made = BenchApp(self._main(folder))
            async with made.app:
                ready()
                await made.fill(made.nothing, count)

        on_our_loop(enqueue())

    def pickup(self, trial: Trial) -> Outcome:
        """Enqueue to an idle server in another process."""
        return self.run(self._pickup(trial))

    async def _pickup(self, trial: Trial) -> Outcome:
        made = BenchApp(self._main(trial.folder))
        async with made.app:
            with pick_up(self.name, trial.folder, trial.pickups) as run:
                for number, gap in run.turns():
                    await asyncio.sleep(gap)
                    run.sending(number)
                    await made.arrive.enqueue(FIRST_NUMBER + number, TEXT)
                return Outcome(samples={"pickup": await asyncio.to_thread(run.milliseconds)})

    def consume(self, folder: Path, count: int, ready: Callable[[], None], arrived: Arrived) -> None:
        """Serve until `count` jobs have begun."""

        async def serve() -> Outcome:
            made = BenchApp(self._main(folder), arrived=lambda number: arrived({"n": FIRST_NUMBER + number}))
            async with made.app, windlass.Server(made.app):
                ready()
                await made.count.wait(count, LONG)
            return Outcome()

        self.run(serve())

    def delayed(self, trial: Trial) -> Outcome:
        """Enqueue jobs that come due one after the other to an idle server in another process."""
        return self.run(self._delayed(trial))

    async def _delayed(self, trial: Trial) -> Outcome:
        made = BenchApp(self._main(trial.folder))
        async with made.app:
            with pick_up(self.name, trial.folder, DELAYED) as run:
                times = dict(zip(run.numbers, run_times(len(run.numbers), datetime.now(UTC)), strict=True))
                await made.enqueue_for(times)
                for number, at in times.items():
                    run.due(number, at)
                return Outcome(samples={"late": await asyncio.to_thread(run.milliseconds)})

    def on_schedule(self, trial: Trial) -> Outcome:
        """Let schedules make jobs on an idle server."""
        return self.run(on_schedule.measure(self._main(trial.folder)))

    def compare_processes(self, trial: Trial) -> Outcome:
        """Measure one process of `windlass worker` and two on busy jobs."""
        return self.run(two_processes.compare(trial, url=self._main(trial.folder)))

    def prepare_cold(self, trial: Trial) -> None:
        """Leave a store with finished jobs."""
        crowd = large_server.CROWDS["large_finished"]
        large.prepare(msgspec.structs.replace(trial, rows=COLD_ROWS), crowd=crowd, url=self.url)

    def cold_open(self, trial: Trial) -> Outcome:
        """Time a server process on that store from its very start to the return of `Server.start`."""
        url = self.url(trial.folder, CROWDED)
        began = time.perf_counter()
        with serving(url):
            return Outcome({"ready": (time.perf_counter() - began) * 1e3})

    def compare_large(self, trial: Trial) -> Outcome:
        """Measure a server on a crowded store beside one on an empty store."""
        return self.run(large_server.compare(trial, url=self.url))

    def compare_snapshot(self, trial: Trial) -> Outcome:
        """Measure a server under a held snapshot beside one without."""
        return self.run(held_snapshot.by_server(trial))

    def contestant(self, how: str, durability: Callable[[Path], str], **more: Measure) -> Contestant:
        """Return the contestant with all of these; `more` are measurements of its store alone."""
        measures: dict[str, Measure] = {
            "claim_deleted": partial(self.drain, keep=AT_ONCE),
            "claim_kept": partial(self.drain, keep=KEPT),
            "end_to_end": self.end_to_end,
            "two_processes": self.compare_processes,
            "pickup": self.pickup,
            "delayed": self.delayed,
            "on_schedule": self.on_schedule,
            "cold_open": self.cold_open,
        }
        crowds = large_server.CROWDS
        return Contestant(
            name=self.name,
            role=Role.OURS,
            distribution="windlass",
            module="windlass",
            how=how,
            durability=durability,
            measures=measures | dict.fromkeys(crowds, self.compare_large) | more,
            first_use="windlass.Server(windlass.App('memory://'))",
            prepare={name: partial(large.prepare, crowd=crowd, url=self.url) for name, crowd in crowds.items()}
            | {"cold_open": self.prepare_cold},
            consume=self.consume,
            produce=self.produce,
        )

    def _main(self, folder: Path) -> str:
        return self.url(folder, MAIN)


HOW = "windlass.Server(app) in one process, one async handler that does nothing; filled by another process"

SQLITE = Served("windlass-server", sqlite_url).contestant(HOW, lambda _: "FULL")

_ON_POSTGRES = Served("windlass-server-postgres", postgres_url)
POSTGRES = _ON_POSTGRES.contestant(HOW, postgres_databases.durability, large_snapshot=_ON_POSTGRES.compare_snapshot)
POSTGRES_ON_ASYNCIO = Served("windlass-server-postgres-asyncio", postgres_url, asyncio.run).contestant(
    "the same on asyncio's own loop", postgres_databases.durability
)

REDIS = Served("windlass-server-redis", redis_url).contestant(HOW, redis_databases.durability)
REDIS_ON_ASYNCIO = Served("windlass-server-redis-asyncio", redis_url, asyncio.run).contestant(
    "the same on asyncio's own loop", redis_databases.durability
)
