"""A producer is killed by SIGKILL, again and again: nothing that was acknowledged is lost."""

import asyncio
import random
import time
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

import windlass
from proofs.children import Children, eventually
from proofs.ledger import Entry, Ledger, Tail, read
from proofs.readers import sqlite as reader
from proofs.report import Report
from windlass import Client, NewJob

QUEUE = "work"
PROMISE = "none of the acknowledged enqueues is lost, whenever the producer is killed"


@dataclass(frozen=True)
class Plan:
    acknowledged: int = 10_000
    kills: int = 50
    callers: int = 8
    """Tasks that enqueue at once; one of them brings batches."""
    seed: int = 1


def prove(folder: Path, plan: Plan) -> Report:
    database, ledger = folder / "jobs.db", folder / "ledger"
    report = Report("producer-kills", PROMISE)
    chance = random.Random(plan.seed)
    kills = [_life(number, database, ledger, plan, chance) for number in range(plan.kills)]
    report.figure("kills delivered", sum(kills))
    report.needs(f"{plan.kills} kills", given=all(kills))
    _check(report, plan, database, list(read(ledger)))
    asyncio.run(_drain(report, database))
    return report


def _life(number: int, database: Path, ledger: Path, plan: Plan, chance: random.Random) -> bool:
    """Let a producer work for a while, then kill it; return whether it was alive until then."""
    share = -(-plan.acknowledged // plan.kills)
    enough = share + chance.randrange(share)
    tail = Tail(ledger)
    tail.look()
    tail.entries.clear()

    def worked() -> bool:
        tail.look()
        return sum(entry.event == "ok" for entry in tail.entries) >= enough

    with Children(ledger) as children:
        producer = children.start(f"life {number}", produce, database, plan.callers)
        eventually(lambda: worked() or not producer.is_alive(), 60)
        time.sleep(chance.uniform(0, 0.02))
        alive = producer.is_alive()
        producer.kill()
        producer.join(10)
        return alive and producer.exitcode == -9


async def produce(ledger: Ledger, database: Path, callers: int) -> None:
    async with windlass.connect(f"sqlite:///{database}") as client, asyncio.TaskGroup() as group:
        group.create_task(_enqueue_batches(ledger, client))
        for _ in range(callers - 1):
            group.create_task(_enqueue(ledger, client))


async def _enqueue(ledger: Ledger, client: Client) -> None:
    while True:
        job = str(uuid4())
        ledger.write("invoked", job)
        await client.enqueue(QUEUE, payload(job), id=job)
        ledger.write("ok", job)


async def _enqueue_batches(ledger: Ledger, client: Client) -> None:
    """Batches of three, noted by their first job: all or none of each must be there."""
    while True:
        jobs = [str(uuid4()) for _ in range(3)]
        ledger.write("invoked", jobs[0], note=" ".join(jobs))
        await client.enqueue_many([NewJob(QUEUE, payload(job), id=job) for job in jobs])
        ledger.write("ok", jobs[0], note=" ".join(jobs))


def payload(job: str) -> bytes:
    """What is kept of a job must be exactly this."""
    return sha256(job.encode()).digest() * 8


def _check(report: Report, plan: Plan, database: Path, entries: list[Entry]) -> None:
    rows = reader.jobs(database)
    calls = {entry.job: entry for entry in entries if entry.event == "invoked"}
    acknowledged = {entry.job for entry in entries if entry.event == "ok"}
    unknown = calls.keys() - acknowledged
    inside = {calls[job].process for job in unknown}
    report.figure("kills inside a call", len(inside))
    report.figure("enqueues acknowledged", len(acknowledged))
    report.never(
        "lost: acknowledged and not whole in the file", [job for job in acknowledged if _there(calls[job], rows) != 1]
    )
    report.figure("outcome unknown: recovered", sum(_there(calls[job], rows) == 1 for job in unknown))
    report.figure("outcome unknown: absent", sum(_there(calls[job], rows) == 0 for job in unknown))
    report.never("batches there in part", [job for job in calls if 0 < _there(calls[job], rows) < 1])
    invoked = {job for entry in calls.values() for job in _jobs(entry)}
    report.never("unexpected: in the file and never asked for", rows.keys() - invoked)
    report.never("payloads that differ", [row.id for row in rows.values() if row.payload != payload(row.id)])
    report.never("queues whose counts are off", reader.counts_off(database))
    report.never("complaints of integrity_check", reader.integrity(database))
    torn = [entry.note for entry in entries if entry.event == "torn"]
    report.figure("lines of the ledger torn by a kill", len(torn))
    report.never("lines torn by anything else", torn[plan.kills :])
    report.never("errors that reached a caller", [entry.note for entry in entries if entry.event == "error"])
    report.needs(f"{plan.acknowledged:,} acknowledged enqueues", given=len(acknowledged) >= plan.acknowledged)
    report.needs("half of the kills inside a call", given=len(inside) * 2 >= plan.kills)


def _jobs(entry: Entry) -> list[str]:
    return entry.note.split() or [entry.job]


def _there(entry: Entry, rows: dict[str, reader.Row]) -> float:
    """Return how much of a call is in the file, from 0 to 1."""
    jobs = _jobs(entry)
    return sum(job in rows for job in jobs) / len(jobs)


async def _drain(report: Report, database: Path) -> None:
    """The file that is left works on: every job in it can be claimed and settled."""
    there = len(reader.jobs(database))
    settled = 0
    async with windlass.connect(f"sqlite:///{database}?create=no") as client:
        while claims := await client.claim_many(QUEUE, limit=500):
            async with asyncio.TaskGroup() as group:
                for claim in claims:
                    group.create_task(client.ack(claim))
            settled += len(claims)
    report.figure("jobs settled afterwards", settled)
    report.never("jobs that could not be settled afterwards", range(there - settled))
