"""Jobs are moved from store to store under load, and the mover is killed again and again.

From SQLite they go to Postgres, to Redis, to SlateDB behind `windlass serve`, and back into the file that they came
from. At each station a server works; a producer enqueues where the jobs are, and follows them when it is told that they
have moved. Most jobs lie in a queue that is paused on the whole way, so that each move has all of them to carry; they
run in the end. Nothing but the mover is ever killed, so every job has to begin exactly once.
"""

import asyncio
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import windlass
from proofs.children import Children, eventually
from proofs.commands import ROOT
from proofs.http.http_serving import ServingProcess, admitted
from proofs.ledger import Entry, Ledger, read
from proofs.report import Report
from proofs.serving import QUEUE, SQLITE, Place, serve
from proofs.stores import durable_postgres, redis_database
from windlass import NewJob, ServerConfig, StoreMoved

PROMISE: Final = (
    "however often a move is killed, every job that was acknowledged runs once, wherever it is by then; schedules, kv, "
    "unique keys and pauses go along, and nothing is left behind"
)
BULK: Final = "bulk"
KIND: Final = "on_the_loop"
CHUNK: Final = 1_000
LATER: Final = 3_600.0
SCHEDULES: Final = 5
KV: Final = 500
KEYS: Final = 200
TRIES: Final = 5
LONGEST: Final = 120.0
"""Seconds that a mover may take to carry its share, waiting for the lock of the one before included."""
PAUSE: Final = 0.004
"""Seconds between two jobs of the producer."""


@dataclass(frozen=True)
class Plan:
    jobs: int = 100_000
    kills: int = 10
    seconds: float = 600
    seed: int = 1


@dataclass
class Done:
    kills: int = 0
    in_vain: int = 0
    """Kills that came when the mover had ended."""
    moved: int = 0
    failed: list[str] = field(default_factory=list[str])


def prove(folder: Path, plan: Plan) -> Report:
    """Let it happen; the stores are started for it alone."""
    report = Report("moves", PROMISE)
    report.store = "SQLite, Postgres, Redis and SlateDB"
    with _stations(folder) as urls, Children(folder / "ledger") as children:
        campaign = Campaign(urls, folder / "ledger", plan, children)
        campaign.run()
        _check(report, urls, folder / "ledger", plan, campaign.done)
    return report


@contextmanager
def _stations(folder: Path) -> Generator[list[str]]:
    """Give the URLs of the stores, in the order in which the jobs come by; the last one is the first again."""
    first = f"{SQLITE}{folder / 'jobs.db'}"
    serving = ServingProcess(folder, f"slatedb+file://{folder / 'bucket'}")
    with durable_postgres() as postgres, redis_database() as redis, admitted(serving.tokens), serving:
        yield [first, postgres.url, redis.url, serving.url, first]


class Campaign:
    """Servers, a producer, and a mover that is killed."""

    def __init__(self, urls: Sequence[str], ledger: Path, plan: Plan, children: Children) -> None:
        self.done = Done()
        self._urls = urls
        self._ledger = ledger
        self._plan = plan
        self._children = children
        self._chance = random.Random(plan.seed)

    def run(self) -> None:
        """Move the jobs around, then let all of them run."""
        asyncio.run(_fill(Ledger(self._ledger, "filler"), self._urls[0], self._plan.jobs))
        for number, url in enumerate(self._urls[:-1]):
            place, config = Place(url, self._ledger), ServerConfig(queues=(QUEUE, BULK), keep_succeeded=None)
            self._children.start(f"server {number}", serve, place, config)
        producer = self._children.start("producer", produce, list(self._urls))
        legs = list(zip(self._urls, self._urls[1:], strict=False))
        for number, (source, target) in enumerate(legs):
            kills = self._plan.kills * (number + 1) // len(legs) - self._plan.kills * number // len(legs)
            self._move(source, target, kills)
        producer.terminate()
        producer.join(30)
        asyncio.run(_let_all_run(self._urls[-1]))
        if not eventually(self._nothing_waits, self._plan.seconds, 0.5):
            self.done.failed.append("jobs still wait at the end")

    def _move(self, source: str, target: str, kills: int) -> None:
        for _ in range(kills):
            self._kill_at_work(source, target, self._plan.jobs // (kills + 1))
        told = "it was never called"
        for _ in range(TRIES):
            code, told = _ended(_mover(source, target))
            if code == 0:
                self.done.moved += 1
                return
        self.done.failed.append(f"the jobs did not leave {source.partition(':')[0]}: {told}")

    def _kill_at_work(self, source: str, target: str, share: int) -> None:
        """Kill a mover at a random moment at which it has carried some jobs, and others are left."""
        enough = asyncio.run(_carried(target)) + self._chance.randint(1, share)
        mover = _mover(source, target)
        eventually(lambda: mover.poll() is not None or asyncio.run(_carried(target)) >= enough, LONGEST, 0.01)
        time.sleep(self._chance.uniform(0, 0.05))
        if mover.poll() is None:
            mover.kill()
            self.done.kills += 1
        else:
            self.done.in_vain += 1
        _ended(mover)

    def _nothing_waits(self) -> bool:
        return asyncio.run(_waiting(self._urls[-1])) == 0


def _mover(source: str, target: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "windlass", "move", source, target, "--yes", "--wait", "20s", "--json"]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def _ended(mover: subprocess.Popen[str]) -> tuple[int, str]:
    told, _ = mover.communicate(timeout=300)
    return mover.returncode, told[-500:]


async def _fill(ledger: Ledger, url: str, count: int) -> None:
    """Put in line what lies still on the way: jobs, some for later and some with keys, schedules and kv."""
    async with windlass.connect(url) as client:
        await client.pause(BULK)
        for first in range(0, count, CHUNK):
            jobs = [_bulk(number) for number in range(first, min(first + CHUNK, count))]
            for done in await client.enqueue_many(jobs):
                ledger.write("ok", done.id)
        for number in range(SCHEDULES):
            await client.schedules.put(f"often-{number}", 1, NewJob(QUEUE, {"seconds": 0.0}, kind=KIND))
        for number in range(KV):
            await client.kv.put(f"key/{number}", str(number).encode())


def _bulk(number: int) -> NewJob:
    unique = f"key-{number}" if number < KEYS else None
    delay = LATER if number % 10 == 0 else None
    return NewJob(BULK, {"seconds": 0.0}, kind=KIND, delay=delay, unique=unique)


async def produce(ledger: Ledger, urls: Sequence[str]) -> None:
    """Enqueue one job after the other, where the jobs are, until SIGTERM."""
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    place = 0
    client = windlass.connect(urls[place])
    while not stopping.is_set():
        try:
            done = await client.enqueue(QUEUE, {"seconds": 0.0}, kind=KIND)
            ledger.write("ok", done.id)
        except StoreMoved:
            await client.close()
            # the last store is the first one again, and refuses jobs until the mover has taken its old mark away
            place = min(place + 1, len(urls) - 1)
            client = windlass.connect(urls[place])
        await asyncio.sleep(PAUSE)
    await client.close()


async def _let_all_run(url: str) -> None:
    async with windlass.connect(url) as client:
        for schedule in await client.schedules.list():
            await client.schedules.remove(schedule.id)
        await client.resume(BULK)
        while later := await client.jobs(windlass.JobFilter(queue=BULK, state="scheduled"), limit=CHUNK):
            await client.store.reschedule([job.id for job in later], None)


async def _carried(url: str) -> int:
    """Return how many of the jobs that lie still are in a store."""
    async with windlass.connect(url) as client:
        stats = await client.stats(BULK)
        return stats.pending + stats.scheduled


async def _waiting(url: str) -> int:
    async with windlass.connect(url) as client:
        stats = await client.stats()
        return stats.pending + stats.scheduled + stats.running


async def _left_behind(url: str) -> list[str]:
    """Return what is still in a store that the jobs have left."""
    async with windlass.connect(url) as client:
        stats = await client.stats()
        waiting = stats.pending + stats.scheduled + stats.running
        kept = [("jobs", waiting), ("schedules", len(await client.schedules.list()))]
        kept += [("kv", len(await client.store.kv_scan(b"", after=None, limit=10)))]
        return [f"{count} {what} in {url.partition(':')[0]}" for what, count in kept if count]


async def _kv(url: str) -> dict[bytes, bytes]:
    async with windlass.connect(url) as client:
        return dict(await client.store.kv_scan(b"key/", after=None, limit=2 * KV))


def _check(report: Report, urls: Sequence[str], ledger: Path, plan: Plan, done: Done) -> None:
    entries = list(read(ledger))
    told = {entry.job for entry in entries if entry.event == "ok"}
    begun = Counter(entry.job for entry in entries if entry.event == "begun")
    ended = {entry.job for entry in entries if entry.event == "ended"}
    where = Counter(entry.process for entry in entries if entry.event == "begun")
    left = [each for url in urls[1:-1] for each in asyncio.run(_left_behind(url))]
    kv = asyncio.run(_kv(urls[-1]))
    report.figure("moves", done.moved)
    report.figure("kills of the mover", done.kills)
    report.figure("kills that came too late", done.in_vain)
    report.figure("jobs that were acknowledged", len(told))
    report.figure("of them enqueued while they were moved around", len(told) - plan.jobs)
    report.figure("jobs made by schedules on the way", len(begun.keys() - told))
    for process, count in sorted(where.items()):
        report.figure(f"begun by {process}", count)
    report.never("lost: acknowledged and never run", told - ended)
    report.never("run twice", [job for job, count in begun.items() if count > 1])
    report.never("left behind in another store", left)
    report.never("kv that is not in the last store as it was", _differing(kv))
    report.never("errors of processes", _errors(entries))
    report.never("what went wrong otherwise", done.failed)
    report.needs(f"{plan.kills} kills of a mover at work", given=done.kills == plan.kills)
    report.needs("four moves", given=done.moved == len(urls) - 1)
    report.needs("work at every station", given=len(where) == len(urls) - 1)


def _differing(kv: dict[bytes, bytes]) -> list[int]:
    return [number for number in range(KV) if kv.get(f"key/{number}".encode()) != str(number).encode()]


def _errors(entries: Sequence[Entry]) -> list[str]:
    return [entry.note for entry in entries if entry.event == "error"]
