"""Many writers and as many checkpoints as can be made: no row is lost, and the file stays whole.

SQLite before 3.51.3 can lose committed rows when a checkpoint overlaps a commit that begins the log anew. Here every
commit is followed by a checkpoint or nearly so, in eight processes, while other connections, which know nothing of our
turns, write to a table of their own in the same file.
"""

import asyncio
import sqlite3
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import windlass
from proofs.children import Children, eventually
from proofs.ledger import Entry, Ledger, read
from proofs.readers import sqlite as reader
from proofs.report import Report
from windlass import Client
from windlass.core.failpoint import arm
from windlass.stores.sqlite import committer

PROMISE = "no checkpoint of ours meets a commit: no row is lost and the file stays whole"
QUEUE = "work"


@dataclass(frozen=True)
class Plan:
    seconds: float = 60
    writers: int = 8
    strangers: int = 2
    """Processes with plain sqlite3 connections to the same file."""
    due_after: int = 30
    check_every: float = 3
    most_log: int = 64 * 2**20


def prove(folder: Path, plan: Plan) -> Report:
    database, ledger = folder / "jobs.db", folder / "ledger"
    report = Report("checkpoints", PROMISE)
    asyncio.run(_make(database))
    over = folder / "over"
    with Children(ledger) as children:
        for number in range(plan.writers):
            children.start(f"writer {number}", write, database, plan.due_after, over)
        for number in range(plan.strangers):
            children.start(f"stranger {number}", write_as_a_stranger, database, over)
        # a machine that has much else to do starts them one after another
        report.needs(
            "all at work", given=eventually(lambda: _started(ledger) == plan.writers + plan.strangers, 60, 0.1)
        )
        checks, complaints, largest = _watch(database, time.monotonic() + plan.seconds, plan.check_every)
        over.touch()
        failed = children.wait(plan.seconds + 60)
    report.figure("seconds", f"{plan.seconds:.0f}")
    report.figure("integrity checks", checks)
    report.figure("largest log", f"{largest / 2**20:.1f} MiB")
    report.never("complaints of integrity_check", complaints + reader.integrity(database))
    report.never("processes that failed or did not end", failed)
    report.never("logs over 64 MiB", [largest] if largest > plan.most_log else [])
    _check(report, database, list(read(ledger)), plan)
    return report


async def _make(database: Path) -> None:
    async with windlass.connect(f"sqlite:///{database}"):
        pass
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("pragma wal_autocheckpoint = 0")
        connection.execute("create table stranger (process text not null, n integer not null, filler blob not null)")


def _watch(database: Path, until: float, every: float) -> tuple[int, list[str], int]:
    """Check the whole file again and again while it is written."""
    checks, complaints, largest = 0, list[str](), 0
    log = Path(f"{database}-wal")
    while time.monotonic() < until:
        time.sleep(min(every, max(0.0, until - time.monotonic())))
        complaints += reader.integrity(database)
        checks += 1
        largest = max(largest, log.stat().st_size if log.exists() else 0)
    return checks, complaints, largest


def _started(ledger: Path) -> int:
    return sum(entry.event == "started" for entry in read(ledger))


def _goes_on(over: Path) -> bool:
    return not over.exists()


async def write(ledger: Ledger, database: Path, due_after: int, over: Path) -> None:
    """Enqueue, claim and settle, with a checkpoint at nearly every commit."""
    ledger.write("started")
    committer.CHECKPOINT_DUE_AFTER = due_after
    made = Counter[str]()
    arm("sqlite.checkpoint.after", lambda: made.update(["checkpoint"]))
    async with windlass.connect(f"sqlite:///{database}") as client, asyncio.TaskGroup() as group:
        for _ in range(4):
            group.create_task(_enqueue(ledger, client, over))
        group.create_task(_settle(ledger, client, over))
    ledger.write("count", note="checkpoints", count=made["checkpoint"])


async def _enqueue(ledger: Ledger, client: Client, over: Path) -> None:
    while _goes_on(over):
        done = await client.enqueue(QUEUE, b"x" * 1000)
        ledger.write("ok", done.id)


async def _settle(ledger: Ledger, client: Client, over: Path) -> None:
    while _goes_on(over):
        for claim in await client.claim_many(QUEUE, limit=5, lease=3600, wait=0.1):
            await client.ack(claim)
            ledger.write("settled", claim.job.id)


async def write_as_a_stranger(ledger: Ledger, database: Path, over: Path) -> None:
    """Write through plain sqlite3, under SQLite's own lock alone."""
    ledger.write("started")
    written = 0
    with closing(sqlite3.connect(database, isolation_level=None, timeout=30)) as connection:
        connection.execute("pragma wal_autocheckpoint = 0")
        name = f"stranger {ledger.process}"
        while _goes_on(over):
            connection.execute("begin immediate")
            connection.executemany(
                "insert into stranger (process, n, filler) values (?, ?, zeroblob(500))",
                [(name, written + number) for number in range(10)],
            )
            connection.execute("commit")
            written += 10
            await asyncio.sleep(0.001)
    ledger.write("count", note="stranger", count=written)


def _check(report: Report, database: Path, entries: list[Entry], plan: Plan) -> None:
    rows = reader.jobs(database)
    enqueued = {entry.job for entry in entries if entry.event == "ok"}
    settled = {entry.job for entry in entries if entry.event == "settled"}
    checkpoints = sum(entry.count for entry in entries if entry.note == "checkpoints")
    written = {entry.process: entry.count for entry in entries if entry.note == "stranger"}
    with reader.reading(database) as connection:
        kept = {
            process.removeprefix("stranger "): (count, highest)
            for process, count, highest in connection.execute(
                "select process, count(*), max(n) from stranger group by process"
            )
        }
    report.figure("checkpoints", checkpoints)
    report.figure("jobs enqueued", len(enqueued))
    report.figure("jobs settled", len(settled))
    report.figure("rows of strangers", sum(written.values()))
    report.never("lost: acknowledged and not in the file", enqueued - rows.keys())
    report.never("settled, and not so in the file", [job for job in settled if rows[job].state != "succeeded"])
    report.never("queues whose counts are off", reader.counts_off(database))
    report.never(
        "strangers whose rows differ",
        [f"{name}: wrote {n}, kept {kept.get(name)}" for name, n in written.items() if kept.get(name) != (n, n - 1)],
    )
    report.never("errors that reached a caller", [entry.note for entry in entries if entry.event in ("error", "torn")])
    report.needs("10 checkpoints per second", given=checkpoints >= 10 * plan.seconds)
    report.needs("rows of every stranger", given=len(written) == plan.strangers and all(written.values()))
