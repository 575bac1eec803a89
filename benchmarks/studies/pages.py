"""How long each page of the dashboard takes with a million jobs: `python -m benchmarks.studies.pages --store sqlite`.

Every page is asked for through ASGI in this process, from the request to the last byte of the reply, by a client that
is open; nothing that a page keeps for some seconds is kept from one request to the next. Then the store's calls are
counted while one browser watches each page, and while fifty do. It prints Markdown.
"""

import argparse
import asyncio
import os
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from benchmarks.measuring.workload import percentile
from benchmarks.servers import postgres_databases
from benchmarks.studies.looks import store_url
from benchmarks.studies.pages_fill import RARE, Filled, fill
from tests.http.asgi import ask
from tests.http.dashboard.watching import CountedStore, Watching
from tests.http.streams import read_by
from windlass.api.roles import Role
from windlass.client.client import Client
from windlass.codec import JSON
from windlass.connect import open_store
from windlass.core.filters import JobFilter
from windlass.core.settings import QueueSettings, resolve
from windlass.http.auth import NoAuth
from windlass.http.dashboard.app import Dashboard
from windlass.http.dashboard.live import INTERVAL
from windlass.system import SystemClock, SystemRng, TaskSpawn

LIMIT: Final = 0.3
BROWSERS: Final = (1, 50)
INTERVALS: Final = 10
WATCHED: Final = ("/", "/jobs", "/dead", "/schedules", "/servers", "/audit")


class LeapingClock(SystemClock):
    """The time of this machine; whoever keeps an answer for a while finds that it is over when the clock has leapt."""

    def __init__(self) -> None:
        self._ahead = 0.0

    def leap(self) -> None:
        self._ahead += 3_600.0

    def monotonic(self) -> float:
        """Return seconds that never step back."""
        return super().monotonic() + self._ahead


def main() -> None:
    """Fill a store, ask for every page, and say how long that took."""
    parser = argparse.ArgumentParser("python -m benchmarks.studies.pages", description=__doc__)
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--jobs", type=int, default=1_000_000)
    parser.add_argument("--times", type=int, default=40)
    parser.add_argument("--markdown", type=Path)
    chosen = parser.parse_args()
    with TemporaryDirectory() as folder, store_url(chosen.store, Path(folder)) as url:
        began = time.perf_counter()
        filled = asyncio.run(fill(url, chosen.jobs))
        if chosen.store == "postgres":
            postgres_databases.analyze_all(Path(folder))
        took = time.perf_counter() - began
        lines = asyncio.run(_measure(url, filled, chosen.times))
    text = "\n".join([*_heads(chosen.store, chosen.jobs, chosen.times, took), *lines, ""])
    sys.stdout.write(text)
    if chosen.markdown is not None:
        chosen.markdown.write_text(text)


async def _measure(url: str, filled: Filled, times: int) -> Sequence[str]:
    clock, rng = LeapingClock(), SystemRng()
    store: Any = CountedStore(open_store(url, rng=rng))
    settings = resolve(QueueSettings(), None)
    client = Client(
        store, settings, codec=JSON, clock=clock, rng=rng, spawn=TaskSpawn(), poll_interval=1.0, worker="dashboard"
    )
    async with client:
        app = Dashboard(client, auth=NoAuth(), store=url.partition(":")[0])
        pages = await _pages(client, filled)
        rows = [_row(name, await _times(app, clock, path, times)) for name, path in pages.items()]
        calls = [await _watched(app, store, browsers) for browsers in BROWSERS]
        app.stop_waiting()
        await app.close()
    return [*rows, "", *_calls_told(calls)]


async def _pages(client: Client, filled: Filled) -> Mapping[str, str]:
    """Return what is asked for, by a name for people."""
    newest = (await client.store.newest(JobFilter(), before=None, limit=1, most=1)).jobs[0].seq
    return {
        "overview": "/",
        "overview, six hours": "/?range=6h",
        "overview, a day": "/?range=24h",
        "overview, one queue": "/?queue=images",
        "jobs": "/jobs",
        **{
            f"jobs that are {state}": f"/jobs?state={state}"
            for state in ("pending", "scheduled", "running", "succeeded", "dead", "cancelled")
        },
        "jobs of a queue": "/jobs?queue=images",
        "jobs of a kind": "/jobs?kind=kind-7",
        "jobs of a kind of which there is one, the oldest": f"/jobs?kind={RARE}",
        "jobs of a tenant": "/jobs?tenant=tenant-70",
        "jobs of a tenant that has one, the oldest": f"/jobs?tenant={RARE}",
        "jobs of a type of error": "/jobs?error_type=Error7",
        "jobs, dead, of a kind and a tenant": "/jobs?state=dead&kind=kind-10&tenant=tenant-70",
        "jobs by a text that is in one, the oldest": f"/jobs?text={RARE}",
        "jobs by a text that is in many": "/jobs?text=kind-7",
        "jobs by a text that is in payloads": "/jobs?text=xxxx",
        "jobs by a text that is in none": "/jobs?text=nowhere",
        "jobs by how an id begins": f"/jobs?text={filled.dead[:12]}",
        "jobs from the middle on": f"/jobs?before={newest // 2}",
        "jobs, the oldest": "/jobs?before=20",
        "children of a job": f"/jobs?parent_id={filled.parent}",
        "one job, dead": f"/jobs/{filled.dead}",
        "one job, with children": f"/jobs/{filled.parent}",
        "one job, running": f"/jobs/{filled.running}",
        "dead letters": "/dead",
        "dead letters of a queue": "/dead?queue=reports",
        "dead letters of an error": "/dead?error=Error7",
        "schedules": "/schedules",
        "servers": "/servers",
        "audit": "/audit",
    }


async def _times(app: Dashboard, clock: LeapingClock, path: str, times: int) -> list[float]:
    """Return how many milliseconds each of so many requests took, after one that loads what it needs."""
    return [await _time(app, clock, path) for _ in range(times + 1)][1:]


async def _time(app: Dashboard, clock: LeapingClock, path: str) -> float:
    clock.leap()
    began = time.perf_counter()
    reply = await ask(app, "GET", path, headers=[("accept", "text/html")])
    took = (time.perf_counter() - began) * 1e3
    if reply.status != 200:
        message = f"{path}: {reply.status} {reply.body[:500]!r}"
        raise RuntimeError(message)
    return took


def _row(name: str, took: list[float]) -> str:
    over = "" if percentile(took, 95) <= LIMIT * 1e3 else " **over**"
    return f"| {name} | {percentile(took, 50):.0f} | {percentile(took, 95):.0f}{over} | {max(took):.0f} |"


async def _watched(app: Dashboard, store: CountedStore, browsers: int) -> Counter[str]:
    """Return the calls of the store in some intervals while so many browsers watch each page."""
    async with AsyncExitStack() as watching:
        for path in WATCHED * browsers:
            await watching.enter_async_context(read_by(Watching(), app, f"/live{path}", Role.ADMIN))
        await asyncio.sleep(2 * INTERVAL)
        before = store.calls.copy()
        await asyncio.sleep(INTERVALS * INTERVAL)
        return store.calls - before


def _calls_told(calls: Sequence[Counter[str]]) -> Sequence[str]:
    names = sorted({name for each in calls for name in each})
    heads = [f"{count} browser{'s' if count > 1 else ''} on each of {len(WATCHED)} pages" for count in BROWSERS]
    return [
        f"Calls of the store in {INTERVALS} intervals of {INTERVAL:g} s:",
        "",
        f"| | {' | '.join(heads)} |",
        f"|---|{'--:|' * len(heads)}",
        *(f"| `{name}` | {' | '.join(str(each[name]) for each in calls)} |" for name in names),
    ]


def _heads(store: str, jobs: int, times: int, filled: float) -> Sequence[str]:
    return [
        f"# Pages of the dashboard with {jobs:,} jobs on {store}",
        "",
        f"Milliseconds of {times} requests each, answered in this process; the limit is {LIMIT * 1e3:.0f} at p95.",
        f"Python {sys.version.split()[0]}, {os.cpu_count()} cores; filling the store took {filled:.0f} s.",
        "",
        "| | p50 | p95 | slowest |",
        "|---|--:|--:|--:|",
    ]


if __name__ == "__main__":
    main()
