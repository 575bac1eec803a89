"""asyncpg and psycopg on the statements of the Postgres store: `python -m benchmarks.studies.postgres_drivers`.

Each driver is used in its fastest way: prepared statements, binary rows, our `$1` placeholders as they are. One
connection makes one call after the other; "two connections" claims on one while it settles on the other, "pipeline"
sends the settlement and the next claim together.
"""

import argparse
import asyncio
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from statistics import median
from typing import Any, Protocol, TypeVar, cast
from uuid import uuid4

import asyncpg
import psycopg

from benchmarks.measuring.workload import BULK, QUEUE, TEXT
from benchmarks.servers.postgres_cluster import Cluster, cluster
from windlass.core.ids import JobId
from windlass.core.job import Claim, PreparedJob
from windlass.core.requests import ClaimRequest, Settlement
from windlass.core.verdict import ToSucceeded
from windlass.stores.postgres.enqueuer import PATIENCE
from windlass.stores.postgres.moves.ack import ack_many
from windlass.stores.postgres.moves.claim import Heads, claim_heads
from windlass.stores.postgres.moves.enqueue import insert_plain
from windlass.stores.postgres.statements import migration
from windlass.stores.postgres.statements import statement as compiled
from windlass.stores.postgres.work import Changes, Rows, Statement, Work

T = TypeVar("T")
U = TypeVar("U")

DATABASE = "drivers"
BATCH = 200
SINGLES = 500
WARM_UP = 20
PAYLOAD = f'{{"n":1000000,"text":"{TEXT}"}}'.encode()
REQUEST = ClaimRequest([QUEUE], BATCH, timedelta(seconds=30), worker="worker")
SETTINGS = {"enable_seqscan": "off", "enable_bitmapscan": "off", "jit": "off", "timezone": "UTC"}


class Connection(Protocol):
    """One connection of one driver."""

    async def run(self, statement: Statement) -> Rows:
        """Run one statement, committed when it returns."""
        ...

    async def both(self, one: Statement, other: Statement) -> tuple[Rows, Rows]:
        """Run two, each committed by itself."""
        ...

    async def close(self) -> None:
        """Close it."""
        ...


class WithAsyncpg:
    """asyncpg: it keeps the statements prepared by itself, and speaks the binary form only."""

    def __init__(self, connection: "asyncpg.Connection[asyncpg.Record]") -> None:
        self._connection = connection

    @classmethod
    async def open(cls, url: str) -> "WithAsyncpg":
        return cls(await asyncpg.connect(url, server_settings=SETTINGS))

    async def run(self, statement: Statement) -> Rows:
        text, values = compiled(statement.name)
        return cast("Rows", await self._connection.fetch(text, *values(statement.parameters)))

    async def both(self, one: Statement, other: Statement) -> tuple[Rows, Rows]:
        return await self.run(one), await self.run(other)

    async def close(self) -> None:
        await self._connection.close()


class WithPsycopg:
    """psycopg 3: prepared at the first use, binary rows, and `$1` understood by its raw cursor."""

    def __init__(self, connection: "psycopg.AsyncConnection[Any]") -> None:
        self._connection = connection

    @classmethod
    async def open(cls, url: str) -> "WithPsycopg":
        options = " ".join(f"-c {name}={value}" for name, value in SETTINGS.items())
        return cls(await psycopg.AsyncConnection.connect(url, autocommit=True, options=options))

    async def run(self, statement: Statement) -> Rows:
        return await (await self._send(statement)).fetchall()

    async def both(self, one: Statement, other: Statement) -> tuple[Rows, Rows]:
        return await self.run(one), await self.run(other)

    async def close(self) -> None:
        await self._connection.close()

    async def _send(self, statement: Statement) -> "psycopg.AsyncRawCursor[Any]":
        cursor = psycopg.AsyncRawCursor(self._connection)
        cursor.format = psycopg.pq.Format.BINARY
        # a tuple is a row to psycopg, where the moves mean an array
        text, values = compiled(statement.name)
        parameters = [
            list(cast("tuple[object, ...]", value)) if isinstance(value, tuple) else value
            for value in values(statement.parameters)
        ]
        return await cursor.execute(text.encode(), parameters, prepare=True)


class WithPipeline(WithPsycopg):
    """psycopg 3 in pipeline mode: what does not depend on each other is sent together."""

    async def run(self, statement: Statement) -> Rows:
        async with self._connection.pipeline():
            return await super().run(statement)

    async def both(self, one: Statement, other: Statement) -> tuple[Rows, Rows]:
        async with self._connection.pipeline() as pipeline:
            first = await self._send(one)
            # a transaction ends here, so that each of the two is one of its own
            await pipeline.sync()
            second = await self._send(other)
            await pipeline.sync()
            return await first.fetchall(), await second.fetchall()


DRIVERS: dict[str, Callable[[str], Awaitable[Connection]]] = {
    "asyncpg": WithAsyncpg.open,
    "psycopg": WithPsycopg.open,
    "psycopg, pipeline": WithPipeline.open,
}

Results = dict[tuple[str, str], list[tuple[float, float]]]
"""By act and driver: jobs per second and microseconds of processor time per job, once for each repetition."""


def enqueue(jobs: int) -> Work[object]:
    """Enqueue so many jobs."""
    new = [
        PreparedJob(
            id=JobId(str(uuid4())),
            queue=QUEUE,
            kind="nothing",
            payload=PAYLOAD,
            codec="json",
            headers={},
            tenant=None,
            priority=1_000,
            max_attempts=5,
            run_at=None,
            delay=None,
            unique=None,
            kv={},
        )
        for _ in range(jobs)
    ]
    return insert_plain(Changes(), new, uuid4().hex)


def claim() -> Work[Heads]:
    """Claim a batch."""
    return claim_heads(Changes(), REQUEST, uuid4().hex, promoted=False)


def ack(claims: Sequence[Claim], *, keep: bool) -> Work[object]:
    """Settle what was claimed."""
    settlements = [Settlement(one.job.id, one.token, ToSucceeded(), keep=keep) for one in claims]
    return ack_many(Changes(), settlements, uuid4().hex, patience=PATIENCE)


async def run(connection: Connection, work: Work[T]) -> T:
    """Run a move of one statement and return its answer."""
    return answer(work, await connection.run(statement_of(work)))


async def run_both(connection: Connection, one: Work[T], other: Work[U]) -> tuple[T, U]:
    """Run two such moves, together where the driver can."""
    first, second = await connection.both(statement_of(one), statement_of(other))
    return answer(one, first), answer(other, second)


def statement_of(work: Work[T]) -> Statement:
    """Return the statement that a move begins with."""
    statement = next(work)
    assert isinstance(statement, Statement)
    return statement


def answer(work: Work[T], rows: Rows) -> T:
    """Return what a move makes of its rows."""
    try:
        work.send(rows)
    except StopIteration as done:
        result: T = done.value
        return result
    raise RuntimeError("a move on the hot path has more than one statement")


class Bout:
    """One driver's turn on an empty database."""

    def __init__(self, driver: str, connections: Sequence[Connection], results: Results, jobs: int) -> None:
        self._driver = driver
        self._one, self._two = connections
        self._results = results
        self._jobs = jobs

    async def run(self) -> None:
        """Take every measurement once."""
        await self._enqueue(1, WARM_UP)
        await self._timed("enqueue one", SINGLES, self._enqueue(1, SINGLES))
        await self._drain(keep=False)
        await self._timed("enqueue 1,000", self._jobs, self._enqueue(BULK, self._jobs // BULK))
        batches: list[list[Claim]] = []
        await self._timed("claim 200", self._jobs, self._claim(batches))
        half = len(batches) // 2
        await self._timed("ack 200, deleted", half * BATCH, self._ack(batches[:half], keep=False))
        await self._timed("ack 200, kept", half * BATCH, self._ack(batches[half : 2 * half], keep=True))
        for keep in (False, True):
            name = "kept" if keep else "deleted"
            await self._enqueue(BULK, self._jobs // BULK)
            await self._timed(f"claim and ack 200, {name}", self._jobs, self._drain(keep=keep))
            await self._enqueue(BULK, self._jobs // BULK)
            await self._timed(f"the same, two connections, {name}", self._jobs, self._drain_by_two(keep=keep))

    async def _timed(self, act: str, jobs: int, work: Awaitable[None]) -> None:
        cpu, wall = time.process_time(), time.perf_counter()
        await work
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        self._results.setdefault((act, self._driver), []).append((jobs / wall, cpu / jobs * 1e6))

    async def _enqueue(self, size: int, times: int) -> None:
        for _ in range(times):
            await run(self._one, enqueue(size))

    async def _claim(self, batches: list[list[Claim]]) -> None:
        while claims := (await run(self._one, claim())).claims:
            batches.append(claims)

    async def _ack(self, batches: Sequence[Sequence[Claim]], *, keep: bool) -> None:
        for claims in batches:
            await run(self._one, ack(claims, keep=keep))

    async def _drain(self, *, keep: bool) -> None:
        claims = (await run(self._one, claim())).claims
        while claims:
            _, heads = await run_both(self._one, ack(claims, keep=keep), claim())
            claims = heads.claims

    async def _drain_by_two(self, *, keep: bool) -> None:
        claims = (await run(self._one, claim())).claims
        while claims:
            _, heads = await asyncio.gather(run(self._two, ack(claims, keep=keep)), run(self._one, claim()))
            claims = heads.claims


async def compare(server: Cluster, *, repeat: int, jobs: int) -> Results:
    """Let the drivers take turns, each time on a fresh database, another one first."""
    results: Results = {}
    names = list(DRIVERS)
    for turn in range(repeat):
        first = turn % len(names)
        for name in [*names[first:], *names[:first]]:
            server.ask(f"create database {DATABASE}")
            server.ask(migration(1), DATABASE)
            connections = [await DRIVERS[name](server.url(DATABASE)) for _ in range(2)]
            await Bout(name, connections, results, jobs).run()
            for connection in connections:
                await connection.close()
            server.ask(f"drop database {DATABASE}")
    return results


def render(results: Results) -> str:
    """Return a table of medians; in brackets how many times as good asyncpg is."""
    lines = ["| act | " + " | ".join(f"{name}, jobs/s | CPU µs" for name in DRIVERS) + " |"]
    lines.append("|---|" + "--:|--:|" * len(DRIVERS))
    for act in dict.fromkeys(act for act, _ in results):
        best_rate, best_cpu = _medians(results[act, "asyncpg"])
        cells: list[str] = []
        for name in DRIVERS:
            rate, cpu = _medians(results[act, name])
            cells += [f"{rate:,.0f} ({best_rate / rate:.2f})", f"{cpu:.1f} ({cpu / best_cpu:.2f})"]
        lines.append(f"| {act} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _medians(found: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return median(rate for rate, _ in found), median(cpu for _, cpu in found)


def main() -> None:
    """Compare, with asyncio's own loop and with uvloop where it is installed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.studies.postgres_drivers", description=__doc__)
    parser.add_argument("--repeat", type=int, default=5, help="turns of each driver (5)")
    parser.add_argument("--jobs", type=int, default=20_000, help="jobs of one measurement (20000)")
    parser.add_argument("--programs", type=Path, help="the folder of another server's programs (the wheel's)")
    parser.add_argument("--loop", choices=["asyncio", "uvloop"], default="asyncio", help="the event loop (asyncio)")
    options = parser.parse_args()
    # so that a stopped run ends its server as well
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    loops: Any = asyncio if options.loop == "asyncio" else import_module("uvloop")
    with cluster(programs=options.programs) as server:
        version = server.ask("show server_version")
        results: Results = loops.run(compare(server, repeat=options.repeat, jobs=options.jobs))
    print(f"Python {sys.version.split()[0]}, {options.loop}, Postgres {version}, asyncpg {asyncpg.__version__},")
    print(f"psycopg {psycopg.__version__} ({psycopg.pq.__impl__}); {options.repeat} turns, medians\n")
    print(render(results))


if __name__ == "__main__":
    main()
