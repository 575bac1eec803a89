"""Transactions that commit late: their jobs are older than others that were claimed long ago, and must still be found.

A inserts a job in a transaction that stays open for two seconds; others commit after it and are claimed meanwhile;
then A commits, and its job must be claimed at once. Claims begin at marks, before which no job can wait: a mark that
was raised past the place of such a job would hide it for ever.
"""

import asyncio
import statistics
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import asyncpg
import psycopg

import windlass
from proofs.readers.postgres import PostgresReader
from proofs.report import Report
from proofs.serving import Place
from proofs.stores import durable_postgres, name_store
from windlass import Client, NewJob

PROMISE = "a job whose transaction commits late is claimed at once, however many younger ones were claimed before it"
LATE, EARLY = b"late", b"early"
Commit: TypeAlias = Callable[[], Awaitable[None]]


@dataclass(frozen=True)
class Plan:
    times: int = 50
    open_for: float = 2.0
    every: float = 0.4
    """Seconds between two of the late transactions: several are open at the same time."""
    worked_before: int = 20_000
    """Jobs that have gone through the queue where marks are looked at; more where no mark was raised by then."""
    others: int = 50
    """Jobs that commit at once, brought twenty times a second beside the late ones."""
    within: float = 0.1
    poll_interval: float = 0.5
    raised_meanwhile: bool = True
    """Whether so many jobs are brought that marks are raised while late transactions are open."""
    seconds: float = 60


def prove(folder: Path, plan: Plan) -> Report:
    report = Report("late-commit", PROMISE)
    with durable_postgres() as cluster:
        name_store(report, Place(cluster.url, folder / "ledger"))
        asyncio.run(_prove(report, cluster.url, plan))
        report.never("queues whose counts are off", PostgresReader(cluster.url).counts_off())
    return report


async def _prove(report: Report, url: str, plan: Plan) -> None:
    await _one_way(report, url, "quiet", plan, others=1)
    await _work_before(report, url, "marked", plan)
    await _one_way(report, url, "marked", plan, others=plan.others)
    raised, behind = _marks(PostgresReader(url), "marked")
    report.figure("marked: late jobs with a place before the mark that there is in the end", behind)
    report.needs("a mark that was raised", given=raised)
    report.needs("marks that were raised among late commits", given=behind > 0 or not plan.raised_meanwhile)
    await _one_way(report, f"{url}?notify=off", "polled", plan, others=1, wait=plan.poll_interval)


async def _work_before(report: Report, url: str, queue: str, plan: Plan) -> None:
    """Let jobs go through the queue until a mark is raised, which happens beside them."""
    reader, worked, give_up_at = PostgresReader(url), 0, time.monotonic() + plan.seconds
    async with windlass.connect(url) as client:
        while worked < plan.worked_before or not (_marks(reader, queue)[0] or time.monotonic() > give_up_at):
            await client.enqueue_many([NewJob(queue) for _ in range(1_000)])
            while claims := await client.claim_many(queue, limit=500, lease=600):
                await asyncio.gather(*(client.ack(claim) for claim in claims))
            worked += 1_000
    report.figure("jobs worked before, where marks are raised", worked)


async def _one_way(report: Report, url: str, queue: str, plan: Plan, *, others: int, wait: float = 0.0) -> None:
    way = Way(url, queue, plan)
    async with (
        windlass.connect(url) as producer,
        windlass.connect(url, poll_interval=plan.poll_interval) as consumer,
    ):
        consuming = asyncio.create_task(way.consume(consumer))
        bringing = asyncio.create_task(way.bring(producer, others))
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(plan.times):
                    group.create_task(way.commit_late(producer, number))
                    await asyncio.sleep(plan.every)
            await way.until_all_are_claimed()
        finally:
            for each in (bringing, consuming):
                each.cancel()
            await asyncio.gather(bringing, consuming, return_exceptions=True)
    way.check(report, plan.within + wait)


def _marks(reader: PostgresReader, queue: str) -> tuple[bool, int]:
    """Return whether the queue has a mark, and how many late jobs have their place before it."""
    [(raised, behind)] = reader.rows(
        "select cardinality(marks) > 0, (select count(*) from windlass_job where windlass_job.queue = known.queue"
        " and payload = %s and run_at < marks[1]) from windlass_queue known where queue = %s",
        [LATE, queue],
    )
    return bool(raised), int(behind)


class Way:
    """One way in which late commits meet claims."""

    def __init__(self, url: str, queue: str, plan: Plan) -> None:
        self._dsn = url.partition("?")[0]
        self._queue = queue
        self._plan = plan
        self._committed_at: dict[str, float] = {}
        self._claimed_at: dict[str, float] = {}
        self._open_now = 0
        self._overtaken = 0
        self._claimed = asyncio.Condition()

    async def commit_late(self, client: Client, number: int) -> None:
        """Enqueue in a transaction of our own, by turns through asyncpg and psycopg, and commit it late."""
        async with (_asyncpg if number % 2 else _psycopg)(self._dsn) as (connection, commit):
            done = await client.enqueue(self._queue, LATE, connection=connection)
            self._open_now += 1
            await asyncio.sleep(self._plan.open_for)
            self._open_now -= 1
            self._committed_at[done.id] = time.monotonic()
            await commit()

    async def bring(self, client: Client, others: int) -> None:
        """Enqueue jobs that commit at once."""
        while True:
            await client.enqueue_many([NewJob(self._queue, EARLY) for _ in range(others)])
            await asyncio.sleep(0.05)

    async def consume(self, client: Client) -> None:
        """Claim whatever comes."""
        while True:
            claims = await client.claim_many(self._queue, limit=100, lease=600, wait=30)
            now = time.monotonic()
            late = [claim.job.id for claim in claims if claim.job.payload == LATE]
            self._overtaken += (len(claims) - len(late)) * (self._open_now > 0)
            async with self._claimed:
                self._claimed_at.update(dict.fromkeys(late, now))
                self._claimed.notify_all()
            await asyncio.gather(*(client.ack(claim) for claim in claims))

    async def until_all_are_claimed(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(self._plan.seconds), self._claimed:
                await self._claimed.wait_for(lambda: self._claimed_at.keys() >= self._committed_at.keys())

    def check(self, report: Report, within: float) -> None:
        """Every late job was claimed, and soon."""
        name, times = self._queue, self._plan.times
        waits = {job: self._claimed_at[job] - at for job, at in self._committed_at.items() if job in self._claimed_at}
        report.figure(f"{name}: late commits", len(self._committed_at))
        report.figure(f"{name}: others claimed while a late one was open", self._overtaken)
        if waits:
            median = statistics.median(waits.values())
            report.figure(f"{name}: from the commit to the claim, median", f"{median * 1000:.0f} ms")
            report.figure(f"{name}: longest", f"{max(waits.values()) * 1000:.0f} ms")
        report.never(f"{name}: never claimed", self._committed_at.keys() - waits.keys())
        report.never(
            f"{name}: claimed after more than {within * 1000:.0f} ms", [w for w in waits.values() if w > within]
        )
        report.needs(f"{times} late commits ({name})", given=len(self._committed_at) == times)
        report.needs(f"others that overtook them ({name})", given=self._overtaken >= times)


@asynccontextmanager
async def _asyncpg(dsn: str) -> AsyncGenerator[tuple[Any, Commit]]:
    connection = await asyncpg.connect(dsn)
    try:
        transaction = connection.transaction()
        await transaction.start()
        yield connection, transaction.commit
    finally:
        await connection.close()


@asynccontextmanager
async def _psycopg(dsn: str) -> AsyncGenerator[tuple[Any, Commit]]:
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        yield connection, connection.commit
