"""A process is killed at every named point of the SQLite store, each time that the point is reached.

For each point the number of the visit rises until a run ends without being killed, so that every visit of the workload
was hit once.
"""

import asyncio
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import windlass
from proofs.children import Children
from proofs.ledger import Entry, Ledger, read
from proofs.readers import sqlite as reader
from proofs.report import Report
from windlass import NewJob
from windlass.core.duration import to_micros
from windlass.core.ids import JobId
from windlass.core.schedule import FireOutcome, Firing, Schedule, prepared
from windlass.core.store import Store
from windlass.stores.sqlite import committer
from windlass.testing.failpoints import VARIABLE, arm_from_environment

PROMISE = "killed at any step, nothing acknowledged is lost, and the file opens clean and works on"
POINTS = (
    "sqlite.before_commit",
    "sqlite.after_commit",
    "sqlite.settle.before_then",
    "sqlite.fire.before_jobs",
    "sqlite.fire.before_move",
    "sqlite.checkpoint.before",
    "sqlite.checkpoint.after",
    "sqlite.migrate.after_statement",
)
MOST_VISITS = 200
ROUNDS = 4
SCHEDULE = "hourly"
BEGUN = datetime(2026, 1, 1, tzinfo=UTC)
"""The first due time of the schedule: there are always some more that have passed."""
HOUR = timedelta(hours=1)
AT_ONCE = 2
"""How many due times make a job in one firing."""


@dataclass(frozen=True)
class Plan:
    first: int = 1
    stride: int = 1
    """From the first visit of a point on every one is hit, or only every so many-th."""
    most: int = MOST_VISITS
    """How many visits of a point are hit."""


def prove(folder: Path, plan: Plan) -> Report:
    report = Report("failpoints", PROMISE)
    found: dict[str, list[str]] = {}
    for point in POINTS:
        kills = 0
        for visit in range(plan.first, MOST_VISITS, plan.stride):
            place = folder / f"{point}-{visit}"
            place.mkdir()
            killed, wrong = _one_run(place, point, visit)
            for what in wrong:
                found.setdefault(what, []).append(f"{point}, visit {visit}")
            if not killed:
                break
            kills += 1
            if kills == plan.most:
                break
        report.figure(f"kills at {point}", kills)
        report.needs(f"a kill at {point}", given=kills > 0)
    for what in (
        "errors",
        "lost",
        "settled, and not so in the file",
        "in part",
        "due times without their job, or jobs without theirs",
        "complaints",
        "counts off",
        "unusable",
    ):
        report.never(what, found.get(what, []))
    return report


def _one_run(place: Path, point: str, visit: int) -> tuple[bool, set[str]]:
    """Kill one process at one visit, look at what it left, and let another go on with it."""
    database, ledger = place / "jobs.db", place / "ledger"
    with Children(ledger) as children:
        child = children.start("killed", work, database, f"{point}=kill;nth={visit}")
        child.join(60)
        killed = child.exitcode == -9
        failed = child.exitcode not in (0, -9)
    entries = list(read(ledger))
    wrong = set(_wrong(database, entries)) | ({"errors"} if failed else set[str]())
    after = place / "after"
    with Children(after) as children:
        children.start("after", go_on, database)
        if children.wait(60):
            wrong.add("unusable")
    return killed, wrong | set(_wrong(database, entries, went_on=True))


async def work(ledger: Ledger, database: Path, fault: str) -> None:
    """A little of everything, one call after the other; each is noted before and after."""
    os.environ[VARIABLE] = fault
    arm_from_environment()
    committer.CHECKPOINT_DUE_AFTER = 20
    ledger.write("started")
    async with windlass.connect(f"sqlite:///{database}", max_attempts=100) as client:
        due = Schedule(
            id=SCHEDULE, rule="@hourly", queue="work", codec="raw", priority=1, max_attempts=100, next_run_at=BEGUN
        )
        await client.store.write_schedule(due, expected=None)
        for _ in range(ROUNDS):
            jobs = [str(uuid4()) for _ in range(6)]
            ledger.write("invoked", jobs[0], note=" ".join(jobs))
            await client.enqueue_many([NewJob("work", b"x" * 100, id=job, unique=job) for job in jobs])
            ledger.write("ok", jobs[0], note=" ".join(jobs))
            first, second, third, fourth = await client.claim_many("work", limit=4, lease=3600)
            follower = str(uuid4())
            ledger.write("invoked", follower)
            ledger.write("effect", first.job.id, note=follower)
            await client.ack(first, then=[NewJob("work", id=follower)], kv={first.job.id: b"done"})
            ledger.write("settled", first.job.id)
            ledger.write("ok", follower)
            await client.ack(second)
            ledger.write("settled", second.job.id)
            await client.nack(third, "again", delay=0)
            await client.renew(fourth, 7200)
            await client.cancel(fourth.job.id)
            await fire(ledger, client.store)
    ledger.write("done")


async def fire(ledger: Ledger, store: Store) -> None:
    """Make the jobs of the next due times, as a server does that is late."""
    [schedule] = (await store.schedules()).schedules
    assert schedule.next_run_at is not None
    times = [schedule.next_run_at + n * HOUR for n in range(AT_ONCE)]
    jobs = [prepared(schedule, JobId(str(uuid4())), due_at) for due_at in times]
    note = " ".join(job.id for job in jobs)
    ledger.write("invoked", jobs[0].id, note=note)
    fired = await store.fire(Firing(SCHEDULE, schedule.revision, jobs, times[-1], times[-1] + HOUR))
    assert fired.outcome is FireOutcome.DONE
    ledger.write("ok", jobs[0].id, note=note)


async def go_on(ledger: Ledger, database: Path) -> None:
    """Open what was left, and finish every job of it."""
    async with windlass.connect(f"sqlite:///{database}", max_attempts=100) as client:
        await client.enqueue("work")
        await client.rescue(force=True)
        while claims := await client.claim_many("work", limit=100):
            await asyncio.gather(*(client.ack(claim) for claim in claims))
            ledger.write("settled", count=len(claims))
        stats = await client.stats()
        assert (stats.scheduled, stats.pending, stats.running) == (0, 0, 0), stats
        assert stats.succeeded > 0


def _wrong(database: Path, entries: list[Entry], *, went_on: bool = False) -> Iterator[str]:
    """Name what went against the promise; a file that has no schema yet has lost nothing if nothing was promised."""
    acknowledged = [entry for entry in entries if entry.event == "ok"]
    if not database.exists() or not _has_schema(database):
        if acknowledged or went_on:
            yield "lost"
        return
    if reader.integrity(database):
        yield "complaints"
    if reader.counts_off(database):
        yield "counts off"
    rows = reader.jobs(database)
    if any(job not in rows for entry in acknowledged for job in _jobs(entry)):
        yield "lost"
    calls = [_jobs(entry) for entry in entries if entry.event == "invoked"]
    if any(0 < sum(job in rows for job in jobs) < len(jobs) for jobs in calls):
        yield "in part"
    pairs = [(entry.job, entry.note) for entry in entries if entry.event == "effect" and not went_on]
    if any((rows[job].state == "succeeded") != (follower in rows) for job, follower in pairs):
        yield "in part"
    if not _each_due_time_once(database):
        yield "due times without their job, or jobs without theirs"
    settled = [entry.job for entry in entries if entry.event == "settled"]
    if any(rows[job].state != "succeeded" for job in settled if job in rows):
        yield "settled, and not so in the file"


def _each_due_time_once(database: Path) -> bool:
    """Whether the due times that the schedule has moved past are those that made a job, each one."""
    begun, hour = to_micros(BEGUN), to_micros(BEGUN + HOUR) - to_micros(BEGUN)
    passed = range(begun, reader.next_runs(database).get(SCHEDULE, begun), hour)
    return sorted(tick.due_at for tick in reader.ticks(database)) == list(passed)


def _has_schema(database: Path) -> bool:
    if database.stat().st_size == 0 and not Path(f"{database}-wal").exists():
        return False
    with reader.reading(database) as connection:
        found = connection.execute("select count(*) from sqlite_master where name = 'windlass_job'").fetchone()
    return bool(found[0])


def _jobs(entry: Entry) -> list[str]:
    return entry.note.split() or [entry.job]
