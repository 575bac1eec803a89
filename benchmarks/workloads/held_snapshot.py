"""Work under an old snapshot, which keeps every dead row from being removed, in turns with work without one.

Each of the two is a database of its own, since a snapshot holds back only the database that it was taken in.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from importlib import import_module
from statistics import median
from typing import Any

import windlass
from benchmarks.measuring.contestant import Outcome, Trial
from benchmarks.servers import postgres_databases
from benchmarks.servers.app import BenchApp
from benchmarks.servers.store_urls import CROWDED, EMPTY
from benchmarks.workloads import large, large_server

SHARE = 2
"""One in so many of the rows of a large store is worked, on each of the two."""
SLICES = 40
ENDS = 5
"""The first and the last of so many parts are the beginning and the end."""


@asynccontextmanager
async def snapshot(url: str) -> AsyncGenerator[None]:
    """Hold what a long report or a forgotten session does: a transaction that has read something."""
    driver: Any = import_module("asyncpg")
    connection = await driver.connect(url)
    await connection.execute("begin isolation level repeatable read")
    await connection.fetchval("select count(*) from windlass_job")
    yield
    await connection.execute("rollback")
    await connection.close()


async def by_client(trial: Trial) -> Outcome:
    """Compare the claim loop whose records go at the ack."""
    under, free = [postgres_databases.url_of(trial.folder, name) for name in (CROWDED, EMPTY)]
    crowd, size = large.Crowd(large.waiting), _size(trial)
    async with (
        windlass.connect(under, keep_succeeded=timedelta(0)) as one,
        windlass.connect(free, keep_succeeded=timedelta(0)) as other,
        snapshot(under),
    ):
        return _outcome(
            await large.pairs_of(
                partial(large.work_slice, one, size, crowd), partial(large.work_slice, other, size, crowd), SLICES
            )
        )


async def by_server(trial: Trial) -> Outcome:
    """Compare the server with its default, which keeps finished records."""
    under, free = [postgres_databases.url_of(trial.folder, name) for name in (CROWDED, EMPTY)]
    one, other, size = BenchApp(under), BenchApp(free), _size(trial)
    async with one.app, other.app, snapshot(under):
        return _outcome(
            await large.pairs_of(
                partial(large_server.work_slice, one, size), partial(large_server.work_slice, other, size), SLICES
            )
        )


def _size(trial: Trial) -> int:
    return max(1, trial.rows // SHARE // SLICES)


def _outcome(pairs: Sequence[tuple[float, float]]) -> Outcome:
    """Return the rates at both ends, their ratio at the end, and every slice's rate as it came."""
    part = len(pairs) // ENDS
    first, last = pairs[:part], pairs[-part:]
    return Outcome(
        {
            "kept": median(under / free for under, free in last),
            "rate_first": median(under for under, _ in first),
            "rate_last": median(under for under, _ in last),
            "rate_free_first": median(free for _, free in first),
            "rate_free_last": median(free for _, free in last),
        },
        {"under": [under for under, _ in pairs], "free": [free for _, free in pairs]},
    )
