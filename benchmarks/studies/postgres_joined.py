"""What an enqueue in a caller's own transaction costs: `python -m benchmarks.studies.postgres_joined`.

The statements are counted by the server's log, between two marks that the caller's connection writes itself. The time
is that of whole transactions that insert a row of the caller's, without and with an enqueue, in turns.
"""

import argparse
import asyncio
import signal
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import asyncpg
import psycopg

import windlass
from benchmarks.measuring.workload import QUEUE, payload
from benchmarks.servers.postgres_cluster import Cluster, cluster

DATABASE = "joined"
TABLE = "create table orders (id bigint generated always as identity primary key, text text not null)"
INSERT = "insert into orders (text) values ('an order')"
LOGGED = "log_min_duration_statement = -1\nlog_statement = 'all'\n"
ROUNDS = 10
BEGIN_MARK, END_MARK = "select 'the enqueue begins'", "select 'the enqueue has ended'"


@dataclass(frozen=True, slots=True)
class Caller:
    """A caller's connection: how it runs a statement, and what it hands to `connection=`."""

    execute: Callable[[str], Awaitable[object]]
    connection: Any
    close: Callable[[], Awaitable[None]]


async def with_asyncpg(url: str) -> Caller:
    """Return a connection of asyncpg."""
    connection = await asyncpg.connect(url)
    return Caller(connection.execute, connection, connection.close)


async def with_psycopg(url: str) -> Caller:
    """Return a connection of psycopg, which the caller begins and commits by statements."""
    connection = await psycopg.AsyncConnection.connect(url, autocommit=True)

    async def execute(sql: str) -> object:
        return await connection.execute(sql.encode())

    return Caller(execute, connection, connection.close)


CALLERS: dict[str, Callable[[str], Awaitable[Caller]]] = {"asyncpg": with_asyncpg, "psycopg": with_psycopg}


async def transaction(caller: Caller, client: windlass.Client | None) -> None:
    """Insert a row, and with a client enqueue a job, in one transaction."""
    await caller.execute("begin")
    await caller.execute(INSERT)
    if client is not None:
        await client.enqueue(QUEUE, payload(1), connection=caller.connection)
    await caller.execute("commit")


async def count_statements(server: Cluster, log: Path) -> dict[str, int]:
    """Return how many statements an enqueue is, by driver, once its statements are prepared."""
    counts: dict[str, int] = {}
    async with windlass.connect(server.url(DATABASE)) as client:
        for name, connect in CALLERS.items():
            caller = await connect(server.url(DATABASE))
            await transaction(caller, client)
            await caller.execute("begin")
            await caller.execute(BEGIN_MARK)
            await client.enqueue(QUEUE, payload(2), connection=caller.connection)
            await caller.execute(END_MARK)
            await caller.execute("commit")
            await caller.close()
            counts[name] = _between_marks(log)
    return counts


def _between_marks(log: Path) -> int:
    """Return how many statements the session of the last marks has logged between them; its lines begin with its id."""
    lines = [line for line in log.read_text().splitlines() if " LOG:  statement: " in line or " LOG:  execute " in line]
    end = max(number for number, line in enumerate(lines) if END_MARK in line)
    begin = max(number for number, line in enumerate(lines) if BEGIN_MARK in line)
    session = lines[end].split()[0]
    return sum(line.split()[0] == session for line in lines[begin + 1 : end])


async def compare(server: Cluster, transactions: int) -> dict[str, tuple[float, float]]:
    """Return the rate of transactions without and with an enqueue, by driver."""
    rates: dict[str, tuple[float, float]] = {}
    async with windlass.connect(server.url(DATABASE)) as client:
        for name, connect in CALLERS.items():
            caller = await connect(server.url(DATABASE))
            pairs = [
                (await _rate(caller, None, transactions), await _rate(caller, client, transactions))
                for _ in range(ROUNDS)
            ]
            await caller.close()
            rates[name] = median(alone for alone, _ in pairs), median(joined for _, joined in pairs)
    return rates


async def _rate(caller: Caller, client: windlass.Client | None, transactions: int) -> float:
    began = time.perf_counter()
    for _ in range(transactions):
        await transaction(caller, client)
    return transactions / (time.perf_counter() - began)


def main() -> None:
    """Count, then time on a server that logs nothing."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.studies.postgres_joined", description=__doc__)
    parser.add_argument("--transactions", type=int, default=100, help="of one round of ten (100)")
    parser.add_argument("--programs", type=Path, help="the folder of another server's programs (the wheel's)")
    options = parser.parse_args()
    # so that a stopped run ends its server as well
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with cluster(programs=options.programs, settings=LOGGED + "log_line_prefix = '%c '\n") as server:
        _prepare(server)
        counts = asyncio.run(count_statements(server, server.log))
    with cluster(programs=options.programs) as server:
        _prepare(server)
        rates = asyncio.run(compare(server, options.transactions))
    print("| connection | statements of an enqueue | transactions/s without | with | its share of the time |")
    print("|---|--:|--:|--:|--:|")
    for name, (alone, joined) in rates.items():
        print(f"| {name} | {counts[name]} | {alone:,.0f} | {joined:,.0f} | {1 - joined / alone:.0%} |")


def _prepare(server: Cluster) -> None:
    server.ask(f"create database {DATABASE}")
    server.ask(TABLE, DATABASE)


if __name__ == "__main__":
    main()
