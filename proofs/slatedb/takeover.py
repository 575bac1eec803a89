"""A second owner takes a store over with `?take_over=1` while the first one works, again and again.

Both are `windlass worker`. The former one is not told by anybody: it has to notice by itself, stop, and end as a
command does that has lost its store. Whatever it settles from then on, and whatever it brings, must be refused.
"""

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from proofs.children import eventually
from proofs.ledger import Entry, read
from proofs.report import Report
from proofs.serving import Place, begun_and_not_ended
from proofs.slatedb.buckets import Kind, bucket_on
from proofs.slatedb.owner_checks import check_all
from proofs.slatedb.owner_tasks import FENCED, FOR_THE_DEAD
from proofs.slatedb.owners import GRACE, MANY, Order, Owner, Seen, work_off
from proofs.stores import name_store
from windlass.exit_codes import ExitCode

PROMISE: Final = (
    "whoever is taken over has stopped within 2 s, by itself, nothing that was acknowledged is lost, and no job is "
    "settled by both"
)
LONGEST_LIFE: Final = 20.0
GIVEN_UP_AFTER: Final = 60.0
BUSY: Final = Order(bring=MANY, longest=1.0)
"""Jobs take so long that hardly ever nobody is inside of one."""
IDLE: Final = Order(bring=20)
IDLE_EVERY: Final = 5
"""One owner in so many has nothing more to do when it is taken over: no call of its own tells it."""


@dataclass(frozen=True)
class Plan:
    jobs: int = 5_000
    takeovers: int = 50
    store: Kind = "file"
    stops_within: float = 2.0
    """Seconds from the last call that was done for the former owner until its last process has ended.

    It makes so many of them that this is hardly more than the time since it was taken over. Nobody sees when an idle
    one is: of that it is the time since the new owner began to open the store, in which the other is fenced somewhere.
    """
    seconds: float = 300
    seed: int = 1


class Stop(NamedTuple):
    """How a former owner ended, and how long that took."""

    name: str
    process: str
    code: int | None
    took: float
    idle: bool


@dataclass
class Done:
    """What was done, for the checks."""

    stops: list[Stop] = field(default_factory=list[Stop])
    failed: list[str] = field(default_factory=list[str])


def prove(folder: Path, plan: Plan) -> Report:
    """Let it happen in a folder, or in a bucket."""
    report = Report("slatedb-takeover" if plan.store == "file" else f"slatedb-takeover-{plan.store}", PROMISE)
    with bucket_on(plan.store, folder) as bucket:
        campaign = Campaign(bucket.place, plan)
        campaign.run()
        name_store(report, bucket.place)
        _check(report, bucket.place, plan, campaign.done)
    return report


class Campaign:
    """The owners, each of which takes the store over from the one before."""

    def __init__(self, place: Place, plan: Plan) -> None:
        self._place = place
        self._taking = place._replace(url=f"{place.url}{'&' if '?' in place.url else '?'}take_over=1")
        self._plan = plan
        self._chance = random.Random(plan.seed)
        self._seen = Seen(place.ledger)
        self._share = -(-plan.jobs // (plan.takeovers + 1))
        self.done = Done()

    def run(self) -> None:
        """Let all of them take over, and the last one work off what is left."""
        owner = Owner(self._place, "owner 0", BUSY)
        try:
            for number in range(1, self._plan.takeovers + 1):
                owner = self._take_over(owner, number)
            if not eventually(lambda: self._seen.has_brought(self._plan.jobs), self._plan.seconds, 0.05):
                self.done.failed.append(f"{owner.name} brought too few")
            code, _ = owner.command.stop(GRACE)
            if code:
                self.done.failed.append(f"{owner.name} ended with {code}")
        finally:
            owner.close()
        self.done.failed += work_off(self._place, "last", self._seen, self._plan.seconds)

    def _take_over(self, former: Owner, number: int) -> Owner:
        """Let another owner take over from `former`, and watch its end: nobody tells it to stop."""
        idle = _is_idle(number - 1)
        try:
            formerly = self._seen.has_opened(former)
            if idle:
                eventually(lambda: self._seen.is_done(formerly), LONGEST_LIFE)
            else:
                enough = int(self._share * self._chance.uniform(0.2, 0.8))
                self._seen.has_worked(formerly, enough, LONGEST_LIFE)
            owner = Owner(self._taking, f"owner {number}", IDLE if _is_idle(number) else BUSY)
            try:
                ended = eventually(former.has_ended, GIVEN_UP_AFTER)
                ended_at = time.monotonic()
                process = self._seen.has_opened(owner)
            except BaseException:
                owner.close()
                raise
            code = former.command.process.poll() if ended else None
            since = self._seen.loaded_at[process] if idle else self._seen.answered_at[formerly]
            self.done.stops.append(Stop(former.name, formerly, code, max(0.0, ended_at - since), idle))
        finally:
            former.close()
        return owner


def _is_idle(number: int) -> bool:
    return number % IDLE_EVERY == IDLE_EVERY - 1


def _check(report: Report, place: Place, plan: Plan, done: Done) -> None:
    entries = list(read(place.ledger))
    formers = {stop.process for stop in done.stops}
    cut_short = {entry.process for entry in begun_and_not_ended(entries).values()} & formers
    refused = {entry.process for entry in entries if entry.event == "fault" and entry.note.startswith(FENCED)}
    report.figure("takeovers", len(done.stops))
    report.figure("takeovers of an owner inside of a job", len(cut_short))
    report.figure("takeovers in which calls of the former owner were refused", len(refused & formers))
    _check_stops(report, plan, done.stops)
    _check_settlers(report, entries)
    check_all(report, place, entries, kills=plan.takeovers)
    report.never("what went wrong otherwise", done.failed)
    report.needs("settlements by tokens of the dead", given=any(entry.note == FOR_THE_DEAD for entry in entries))
    report.needs(f"{plan.takeovers} takeovers", given=len(done.stops) == plan.takeovers)
    report.needs("half of the takeovers inside of a job", given=len(cut_short) * 2 >= plan.takeovers)
    report.needs("refused calls in half of the takeovers", given=len(refused & formers) * 2 >= plan.takeovers)


def _check_stops(report: Report, plan: Plan, stops: list[Stop]) -> None:
    for what, idle in (("busy", False), ("idle", True)):
        if took := [stop.took for stop in stops if stop.idle is idle]:
            report.figure(f"owners taken over that were {what}", len(took))
            report.figure(f"stop of the {what} owner, median", f"{median(took):.2f} s")
            report.figure(f"stop of the {what} owner, slowest", f"{max(took):.2f} s")
    report.never(
        f"former owners that had not stopped within {plan.stops_within:g} s",
        [f"{stop.name}: {stop.took:.2f} s" for stop in stops if stop.took > plan.stops_within],
    )
    report.never(
        f"former owners that ended otherwise than with {ExitCode.FENCED}",
        [f"{stop.name}: {stop.code}" for stop in stops if stop.code != ExitCode.FENCED],
    )


def _check_settlers(report: Report, entries: list[Entry]) -> None:
    """No two owners were told that the same job is settled."""
    settlers: dict[str, set[str]] = {}
    for entry in entries:
        if entry.event == "settled":
            settlers.setdefault(entry.job, set()).add(entry.process)
    report.figure("owners that settled jobs", len({each for some in settlers.values() for each in some}))
    report.never("jobs settled by two owners", _by_more_than_one(settlers))


def _by_more_than_one(settlers: Mapping[str, set[str]]) -> list[str]:
    return [f"{job}: {sorted(some)}" for job, some in settlers.items() if len(some) > 1]
