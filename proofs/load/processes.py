"""Four processes produce and four consume, on one file: every job is settled exactly once, and nobody starves."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Barrier
from pathlib import Path

import windlass
from proofs.children import SPAWN, Children
from proofs.ledger import Entry, Ledger, read
from proofs.readers import sqlite as reader
from proofs.report import Report
from windlass import Client

QUEUE = "work"
PROMISE = "every job is settled exactly once, no error reaches a caller, no process gets less than half of its share"


@dataclass(frozen=True)
class Plan:
    jobs: int = 40_000
    producers: int = 4
    consumers: int = 4
    callers: int = 16
    """Tasks of a producing process that enqueue at once."""
    batch: int = 20
    seconds: float = 600


def prove(folder: Path, plan: Plan) -> Report:
    database, ledger = folder / "jobs.db", folder / "ledger"
    report = Report("processes", PROMISE)
    left: list[Synchronized[int]] = [SPAWN.Value("q", plan.jobs), SPAWN.Value("q", plan.jobs)]
    start = SPAWN.Barrier(plan.producers + plan.consumers)
    with Children(ledger) as children:
        for number in range(plan.producers):
            children.start(f"producer {number}", produce, database, plan.callers, left[0], start)
        for number in range(plan.consumers):
            children.start(f"consumer {number}", consume, database, plan.batch, left[1], start)
        stragglers = children.wait(plan.seconds)
    _check(report, plan, database, list(read(ledger)))
    report.never("processes that failed or did not end", stragglers)
    return report


async def produce(ledger: Ledger, database: Path, callers: int, left: "Synchronized[int]", start: Barrier) -> None:
    async with windlass.connect(f"sqlite:///{database}") as client, asyncio.TaskGroup() as group:
        start.wait(60)
        for _ in range(callers):
            group.create_task(_enqueue_while_left(ledger, client, left))


async def _enqueue_while_left(ledger: Ledger, client: Client, left: "Synchronized[int]") -> None:
    while take(left, 1):
        done = await client.enqueue(QUEUE, b"x" * random.randint(0, 200))
        ledger.write("ok", done.id)


async def consume(ledger: Ledger, database: Path, batch: int, left: "Synchronized[int]", start: Barrier) -> None:
    async with windlass.connect(f"sqlite:///{database}") as client:
        start.wait(60)
        while left.value > 0:
            claims = await client.claim_many(QUEUE, limit=batch, lease=300, wait=0.2)
            for claim in claims:
                ledger.write("effect", claim.job.id, delivery=claim.delivery)
            async with asyncio.TaskGroup() as group:
                for claim in claims:
                    group.create_task(client.ack(claim))
            for claim in claims:
                ledger.write("settled", claim.job.id, delivery=claim.delivery)
            take(left, len(claims))


def take(left: "Synchronized[int]", count: int) -> bool:
    """Take `count` off what is left, over all processes; return whether there was as much."""
    with left.get_lock():
        if left.value < count:
            return False
        left.value -= count
        return True


def _check(report: Report, plan: Plan, database: Path, entries: list[Entry]) -> None:
    produced = [entry.job for entry in entries if entry.event == "ok"]
    effects = Counter(entry.job for entry in entries if entry.event == "effect")
    settled = Counter(entry.job for entry in entries if entry.event == "settled")
    rows = reader.jobs(database)
    report.figure("jobs acknowledged", len(produced))
    report.never("lost: acknowledged and not in the file", set(produced) - rows.keys())
    report.never("unexpected: in the file and never acknowledged", rows.keys() - set(produced))
    report.never("not settled", set(produced) - settled.keys())
    report.never("run more than once", [job for job, count in effects.items() if count > 1])
    report.never("settled more than once", [job for job, count in settled.items() if count > 1])
    report.never(
        "by the second reader not succeeded at the first delivery",
        [row for row in rows.values() if (row.state, row.attempt, row.delivery) != ("succeeded", 1, 1)],
    )
    report.never("queues whose counts are off", reader.counts_off(database))
    report.never("complaints of integrity_check", reader.integrity(database))
    report.never("errors that reached a caller", [entry.note for entry in entries if entry.event in ("error", "torn")])
    _check_shares(report, "producer", plan.producers, [entry for entry in entries if entry.event == "ok"])
    _check_shares(report, "consumer", plan.consumers, [entry for entry in entries if entry.event == "settled"])
    report.needs(f"{plan.jobs:,} jobs", given=len(produced) == plan.jobs)
    report.needs("both sides at work at the same time", given=_overlap(entries))


def _check_shares(report: Report, side: str, processes: int, done: list[Entry]) -> None:
    shares = Counter({f"{side} {number}": 0 for number in range(processes)})
    shares.update(entry.process for entry in done)
    average = len(done) / processes
    span = done[-1].at - done[0].at if done else 0.0
    report.figure(f"jobs per {side}", ", ".join(f"{count:,}" for count in sorted(shares.values())))
    report.figure(f"{side}s together", f"{len(done) / span if span else 0:,.0f} jobs/s")
    report.figure(f"longest wait of a {side}", f"{_longest_gap(done) * 1000:,.0f} ms")
    starved = [f"{name}: {count:,} of {average:,.0f}" for name, count in shares.items() if count < average / 2]
    report.never(f"{side}s with less than half of the average", starved)


def _longest_gap(done: Iterable[Entry]) -> float:
    times: dict[str, list[float]] = {}
    for entry in done:
        times.setdefault(entry.process, []).append(entry.at)
    return max((later - sooner for each in times.values() for sooner, later in pairwise(each)), default=0.0)


def _overlap(entries: list[Entry]) -> bool:
    first_settled = min((entry.at for entry in entries if entry.event == "settled"), default=time.monotonic())
    return any(entry.at > first_settled for entry in entries if entry.event == "ok")
