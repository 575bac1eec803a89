"""The owner of a store is killed by SIGKILL, again and again, and the next one goes on.

The owner is `windlass worker`. It serves, and it brings the jobs too, since nobody else can reach the store. Every
other kill takes its parent along; after the others that starts it again. Nobody waits for the owner's heartbeat to grow
old: that the process has ended is proof enough. On S3 the server that keeps the objects is killed as well. Where the
bucket is far away, a kill comes while something is on its way there, and so finds an answer that was given before.
"""

import random
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Final

from proofs.children import eventually
from proofs.ledger import Entry, read
from proofs.report import Report
from proofs.serving import Place, begun_and_not_ended
from proofs.slatedb.buckets import Bucket, Kind, bucket_on
from proofs.slatedb.owner_checks import check_all, check_deleted, log_of
from proofs.slatedb.owner_tasks import FOR_THE_DEAD
from proofs.slatedb.owners import GRACE, MANY, Order, Owner, Seen, work_off
from proofs.stores import name_store

PROMISE: Final = (
    "however often the owner of a store is killed, no job that was acknowledged is lost, none is settled twice, no "
    "stale settlement is accepted, and the next owner goes on at once"
)
LONGEST_LIFE: Final = 20.0
EARLY: Final = 10
"""One kill in so many comes while the owner starts."""
TRIES: Final = 100
OWNED: Final = "is owned by"
"""What the log says when a store is not opened, since another process owns it."""


@dataclass(frozen=True)
class Plan:
    jobs: int = 10_000
    kills: int = 50
    store: Kind = "file"
    store_kills: int = 0
    """Kills of the S3 server beside that, on which it is started again."""
    away: float = 0.0
    """Seconds that the bucket is away, each way."""
    keep: bool = True
    """Whether jobs are kept when they have succeeded; without it their settlement deletes them."""
    opens_within: float = 5.0
    """Seconds that a store may take to open after a kill."""
    seconds: float = 300
    seed: int = 1


@dataclass
class Done:
    """What was done, for the checks."""

    killed: set[str] = field(default_factory=set[str])
    """The processes that were killed with the store open."""
    kills: int = 0
    store_kills: int = 0
    failed: list[str] = field(default_factory=list[str])


def prove(folder: Path, plan: Plan) -> Report:
    """Let it happen in a folder, or in a bucket."""
    report = Report(_name(plan), PROMISE)
    with bucket_on(plan.store, folder, away=plan.away) as bucket:
        campaign = Campaign(bucket, plan)
        try:
            campaign.run()
        finally:
            campaign.close()
        name_store(report, bucket.nearby)
        _check(report, bucket.nearby, plan, campaign.done)
    return report


def _name(plan: Plan) -> str:
    if plan.away:
        return "slatedb-kills-far"
    name = "slatedb-kills" if plan.store == "file" else f"slatedb-kills-{plan.store}"
    return name if plan.keep else f"{name}-deleting"


class Campaign:
    """The owners, and what is done to them."""

    def __init__(self, bucket: Bucket, plan: Plan) -> None:
        self._bucket = bucket
        self._place = bucket.place
        self._plan = plan
        self._chance = random.Random(plan.seed)
        self._seen = Seen(bucket.place.ledger)
        self._starts = 0
        self._share = -(-plan.jobs // (plan.kills + 1))
        self.done = Done()
        self._running: Owner | None = None

    def run(self) -> None:
        """Kill them all, and let the last one work off what is left."""
        every = self._plan.kills // (self._plan.store_kills + 1)
        for number in range(self._plan.kills):
            if self.done.store_kills < self._plan.store_kills and number and number % every == 0:
                self._kill_the_store(self._owner())
            self._kill(number, self._owner())
        self._stop()
        left = Order(max(0, self._plan.jobs - self._look().brought), keep=self._plan.keep)
        self.done.failed += work_off(self._place, "last", self._seen, self._plan.seconds, left)

    def close(self) -> None:
        """Leave no process behind."""
        if self._running is not None:
            self._running.close()
            self._running = None

    def _owner(self) -> Owner:
        """Return the one that runs; it is started when there is none."""
        if self._running is None:
            self._starts += 1
            self._running = Owner(self._place, f"owner {self._starts}", Order(MANY, keep=self._plan.keep))
        return self._running

    def _stop(self) -> None:
        """Stop the one that runs, gracefully."""
        if self._running is not None:
            self._seen.has_opened(self._running)
            code, _ = self._running.command.stop(GRACE)
            if code:
                self.done.failed.append(f"{self._running.name} ended with {code}")
            self.close()

    def _look(self) -> Seen:
        self._seen.look()
        return self._seen

    def _kill(self, number: int, owner: Owner) -> None:
        early = number % EARLY == EARLY - 1
        whole = early or number % 2 == 0
        if early:
            eventually(lambda: owner.pids, 10)
            time.sleep(self._chance.uniform(0, 1.0))
        else:
            process = self._seen.has_opened(owner)
            self._stop_at_work(owner, process)
            self.done.killed.add(process)
        self.done.kills += owner.kill(whole=whole)
        if whole:
            self.close()

    def _stop_at_work(self, owner: Owner, process: str) -> None:
        """Stop the owner at a random moment at which it is inside of a job."""
        enough = int(self._share * self._chance.uniform(0.2, 0.8))
        self._seen.has_worked(process, enough, LONGEST_LIFE)
        for _ in range(TRIES):
            time.sleep(self._chance.uniform(0, 0.03))
            owner.stand_still()
            if self._seen.is_inside(process):
                return
            owner.go_on()

    def _kill_the_store(self, owner: Owner) -> None:
        """Kill the server that keeps the objects while an owner works; it must go on when that is back."""
        process = self._seen.has_opened(owner)
        self._seen.has_worked(process, 1, LONGEST_LIFE)
        self._bucket.kill_server()
        time.sleep(self._chance.uniform(0, 0.5))
        self._bucket.start_server()
        self.done.store_kills += 1
        before = self._look().settled[process]
        if not eventually(lambda: self._look().settled[process] > before, LONGEST_LIFE, 0.02):
            self.done.failed.append(f"{process} did not go on when the server of the objects was back")


def _check(report: Report, place: Place, plan: Plan, done: Done) -> None:
    entries = list(read(place.ledger))
    cut_short = {entry.process for entry in begun_and_not_ended(entries).values()} & done.killed
    report.figure("kills of the owner", done.kills)
    report.figure("kills inside a job", len(cut_short))
    if plan.store_kills:
        report.figure("kills of the server that keeps the objects", done.store_kills)
    _check_openings(report, plan, entries, log_of(place))
    (check_all if plan.keep else check_deleted)(report, place, entries, kills=plan.kills)
    report.never("what went wrong otherwise", done.failed)
    report.needs("settlements by tokens of the dead", given=any(entry.note == FOR_THE_DEAD for entry in entries))
    report.needs(f"{plan.kills} kills", given=done.kills == plan.kills)
    report.needs("four of five kills inside a job", given=len(cut_short) * 5 >= plan.kills * 4)
    report.needs(f"{plan.store_kills} kills of the server", given=done.store_kills == plan.store_kills)


def _check_openings(report: Report, plan: Plan, entries: Iterable[Entry], log: Iterable[str]) -> None:
    """Nobody waits until a heartbeat is old."""
    report.never(
        "openings refused, since the one that was killed still counted", [line for line in log if OWNED in line]
    )
    took: dict[str, float] = {}
    for entry in entries:
        if entry.event == "opened":
            # only the first time: a server that could not start, since the store was killed then, starts once more
            took.setdefault(entry.process, float(entry.note))
    report.figure("openings of the store", len(took))
    report.figure("openings, median", f"{median(took.values()):.3f} s")
    report.figure("openings, slowest", f"{max(took.values()):.3f} s")
    report.never(
        f"openings that took longer than {plan.opens_within:g} s",
        [f"{process}: {seconds:.1f} s" for process, seconds in took.items() if seconds > plan.opens_within],
    )
