"""The checker: the ledger that the jobs wrote against what a second reader found in the store.

A run in which nobody was killed, or nobody was refused, is void: it would have shown the same with the safeguards gone.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, NamedTuple

from windlass.demo.difference import Difference, Kind
from windlass.demo.ledger import Claim, Event, What
from windlass.demo.second_reader import Contents, Ended
from windlass.demo.ticks import check_ticks

WAITING: Final = ("pending", "scheduled", "running")
SENT_WITHIN: Final = 0.5
"""Seconds from writing down a kill or a pause to its arrival: a claim may come in between."""
HISTORY_KEPT: Final = 20
"""So many ends of its claims are kept with a job."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What was asked for: the jobs that were enqueued, those among them that must end as dead, and whether all ended.

    A run that was `stopped` early leaves jobs that wait: they are not lost.
    """

    enqueued: Collection[str]
    poison: Collection[str] = ()
    stopped: bool = False


class Rescues(NamedTuple):
    """How many jobs were taken back, and the most seconds after which one of them was."""

    jobs: int = 0
    slowest: float = 0.0


@dataclass(frozen=True, slots=True)
class Report:
    """What happened in a run, counted."""

    jobs: int
    """All that there were: enqueued by the producer, made by the schedule, and enqueued by other jobs."""
    succeeded: int
    dead: int
    waiting: int
    ticks: int
    retried: int
    """Attempts that failed and were followed by another."""
    kills: int
    """Servers that were killed while they held jobs."""
    poisoned: int
    """Servers that the poison took along."""
    pauses: int
    """Servers that were paused until others had taken their jobs."""
    rescues: dict[What | None, Rescues]
    """Attempts that were cut short, by their cause; None where there is none."""
    refused: int
    unread: int
    """Successes that were kept although the server was killed before it could read the reply."""
    differences: list[Difference]

    def count(self, *kinds: Kind) -> int:
        return sum(difference.kind in kinds for difference in self.differences)

    @property
    def void(self) -> str | None:
        """Why the run shows nothing; None when it does."""
        if not self.kills:
            return "no process was killed while it held jobs"
        if not self.poisoned:
            return "the poison has killed nobody"
        if not self.refused:
            return "no stale settlement was refused"
        return None


def check(plan: Plan, events: Sequence[Event], store: Contents) -> Report:
    """Compare what was enqueued, what the jobs wrote and what the store holds."""
    run = _Run(plan, events, store)
    ticks = [row.due_at for row in store.jobs.values() if row.due_at is not None]
    hit = {ended.worker for ended in store.ended if ended.outcome == "rescued"}
    looks = (
        run.lost(),
        run.dead(),
        run.strangers(),
        run.followers(),
        run.unsettled(),
        run.settled_badly(),
        run.uncaused(),
        run.not_retried(),
        check_ticks(ticks, events),
    )
    return Report(
        jobs=len(run.known),
        succeeded=len(run.succeeded),
        dead=sum(row.state == "dead" for row in store.jobs.values()),
        waiting=sum(row.state in WAITING for row in store.jobs.values()),
        ticks=len(ticks),
        retried=sum(ended.outcome == "failed" for ended in store.ended),
        kills=len({event.worker for event in events if event.what is What.KILLED} & hit),
        poisoned=sum(event.what is What.POISONED for event in events),
        pauses=len({event.worker for event in events if event.what is What.PAUSED} & hit),
        rescues=run.rescues(),
        refused=len(list(run.refused())),
        unread=len(run.unread),
        differences=list(chain(*looks)),
    )


class _Run:
    """One run, looked at from every side; each look is one pass."""

    def __init__(self, plan: Plan, events: Sequence[Event], store: Contents) -> None:
        self.plan = plan
        self.events = events
        self.store = store
        self.succeeded = {job for job, row in store.jobs.items() if row.state == "succeeded"}
        made_here = (job for job, row in store.jobs.items() if row.schedule is not None or row.parent in store.jobs)
        self.known = {*plan.enqueued, *made_here}
        self.ended = {(ended.job, ended.delivery): ended for ended in store.ended}
        self.over_at: dict[Claim, float] = {}
        """When the code of a claim ended."""
        self.starts: Counter[Claim] = Counter()
        self.holder: dict[Claim, str] = {}
        self.effects: set[Claim] = set()
        self.raised: set[Claim] = set()
        self.accepted: defaultdict[str, list[int]] = defaultdict(list)
        self.faults: defaultdict[str, list[Event]] = defaultdict(list)
        for event in events:
            self._sort_in(event)
        self.unread = set(self._unread())

    def lost(self) -> Iterator[Difference]:
        for job in sorted(self.known - self.succeeded):
            row = self.store.jobs.get(job)
            if row is None:
                yield Difference(Kind.LOST, job, "is not in the store")
            elif row.state != "dead" and not (self.plan.stopped and row.state in WAITING):
                yield Difference(Kind.LOST, job, f"is {row.state} in the store")
        for job in sorted(self.succeeded):
            if (job, self.store.jobs[job].delivery) not in self.effects:
                yield Difference(Kind.NO_EFFECT, job, "has no effect in the ledger")

    def dead(self) -> Iterator[Difference]:
        dead = {job for job, row in self.store.jobs.items() if row.state == "dead"}
        for job in sorted(dead - set(self.plan.poison)):
            yield Difference(Kind.DEAD, job, f"is dead after delivery {self.store.jobs[job].delivery}")
        for job in sorted(self.succeeded & set(self.plan.poison)):
            yield Difference(Kind.UNHARMED, job, "has succeeded")

    def strangers(self) -> Iterator[Difference]:
        for job in sorted(self.store.jobs.keys() - self.known):
            yield Difference(Kind.STRANGER, job, "is in the store")
        for job in sorted({event.job for event in self.events if event.job} - self.known):
            yield Difference(Kind.STRANGER, job, "is in the ledger")

    def followers(self) -> Iterator[Difference]:
        """The jobs of the schedule: each enqueues one job, together with its success."""
        followers = Counter(row.parent for row in self.store.jobs.values())
        for job, row in self.store.jobs.items():
            if row.schedule is not None and followers[job] != (row.state == "succeeded"):
                yield Difference(Kind.FOLLOWERS, job, f"is {row.state} and has enqueued {followers[job]}")

    def unsettled(self) -> Iterator[Difference]:
        """The successes that only one of the two knows of."""
        for job in sorted(self.accepted.keys() - self.succeeded):
            yield Difference(Kind.FORGOTTEN, job, f"in delivery {self.accepted[job][0]}")
        for job in sorted(self.succeeded - self.accepted.keys() - self.unread):
            yield Difference(Kind.NOBODYS, job, "has no accepted success in the ledger")

    def settled_badly(self) -> Iterator[Difference]:
        for job, deliveries in self.accepted.items():
            if len(deliveries) > 1:
                yield Difference(Kind.TWICE, job, f"in the deliveries {' and '.join(map(str, deliveries))}")
            row = self.store.jobs.get(job)
            for delivery in deliveries:
                if row is not None and delivery < row.delivery:
                    detail = f"that of delivery {delivery}, when delivery {row.delivery} had begun"
                    yield Difference(Kind.STALE, job, detail)

    def uncaused(self) -> Iterator[Difference]:
        for job, row in self.store.jobs.items():
            for delivery in range(max(1, row.delivery - HISTORY_KEPT + 1), row.delivery):
                if (job, delivery) not in self.ended:
                    yield Difference(Kind.NO_CAUSE, job, f"the store does not say how delivery {delivery} ended")
        for ended in self.store.ended:
            if (why_not := self._why_not(ended)) is not None:
                yield Difference(Kind.NO_CAUSE, ended.job, f"after delivery {ended.delivery}, {why_not}")
        for (job, delivery), starts in self.starts.items():
            if starts > 1:
                yield Difference(Kind.NO_CAUSE, job, f"began {starts} times in delivery {delivery}")

    def not_retried(self) -> Iterator[Difference]:
        for job, delivery in sorted(self.raised - self.ended.keys()):
            row = self.store.jobs.get(job)
            if row is not None and row.state != "running":
                yield Difference(Kind.NOT_RETRIED, job, f"raised in delivery {delivery} and is {row.state}")

    def refused(self) -> Iterator[Claim]:
        """Yield claims whose code ended after they had been taken back, and whose end was not accepted."""
        for rescue in self.store.ended:
            claim = job, delivery = rescue.job, rescue.delivery
            too_late = rescue.outcome == "rescued" and self.over_at.get(claim, 0.0) > rescue.at
            if too_late and delivery not in self.accepted.get(job, ()):
                yield claim

    def rescues(self) -> dict[What | None, Rescues]:
        """Return how many claims were taken back after which fault, and how fast."""
        found: defaultdict[What | None, Rescues] = defaultdict(Rescues)
        for rescue in self.store.ended:
            if rescue.outcome == "rescued":
                fault = self.fault(rescue)
                cause, waited = (None, 0.0) if fault is None else (fault.what, rescue.at - fault.at)
                jobs, slowest = found[cause]
                found[cause] = Rescues(jobs + 1, max(slowest, waited))
        return dict(found)

    def fault(self, rescue: Ended) -> Event | None:
        """Return what happened to the holder of a claim that was rescued, while it held."""
        faults = self.faults[rescue.worker]
        return next((event for event in faults if rescue.since - SENT_WITHIN < event.at < rescue.at), None)

    def _sort_in(self, event: Event) -> None:
        claim = event.claim
        match event.what:
            case What.STARTED:
                self.starts[claim] += 1
                self.holder[claim] = event.worker
            case What.EFFECT:
                self.effects.add(claim)
            case What.RAISED:
                self.over_at[claim] = event.at
                self.raised.add(claim)
            case What.RETURNED:
                self.over_at[claim] = event.at
            case What.ACCEPTED:
                self.accepted[event.job].append(event.delivery)
            case What.KILLED | What.POISONED | What.PAUSED:
                self.faults[event.worker].append(event)
            case What.UP | What.RESUMED | What.STOPPED:
                pass

    def _unread(self) -> Iterator[str]:
        """Yield jobs whose success was on its way when its server was killed, and which the store has kept."""
        for job in self.succeeded - self.accepted.keys():
            claim = job, self.store.jobs[job].delivery
            fates = {event.what for event in self.faults[self.holder.get(claim, "")]}
            if claim in self.effects and fates & {What.KILLED, What.POISONED}:
                yield job

    def _why_not(self, ended: Ended) -> str | None:
        """Return what is wrong with the end of a claim that was no success; None when it has its cause."""
        claim = ended.job, ended.delivery
        match ended.outcome:
            case "rescued" if self.fault(ended) is None:
                return "which was rescued: its server was neither killed nor paused"
            case "failed" if claim not in self.raised:
                return "which the store calls failed: the job did not raise"
            case "released" if self.starts[claim] and not self.plan.stopped:
                return "which was given back although it had begun"
            case "rescued" | "failed" | "released":
                return None
            case _:
                return f"which was {ended.outcome}"
