"""The checker: the ledger that the jobs wrote against what a second reader found in the store.

A run in which nobody was killed, or nobody was refused, is void: it would have shown the same with the safeguards gone.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
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
        return None if self.refused else "no stale settlement was refused"


def check(plan: Plan, events: Sequence[Event], store: Contents) -> Report:
    """Compare what was enqueued, what the jobs wrote and what the store holds."""
    run = _Run(plan, events, store)
    states = Counter(row.state for row in store.jobs.values())
    ticks = [row.due_at for row in store.jobs.values() if row.due_at is not None]
    hit = {ended.worker for ended in store.ended if ended.outcome == "rescued"}
    return Report(
        jobs=len(run.known),
        succeeded=states["succeeded"],
        dead=states["dead"],
        waiting=sum(states[state] for state in WAITING),
        ticks=len(ticks),
        retried=sum(ended.outcome == "failed" for ended in store.ended),
        kills=len({event.worker for event in events if event.what is What.KILLED} & hit),
        poisoned=sum(event.what is What.POISONED for event in events),
        pauses=len({event.worker for event in events if event.what is What.PAUSED} & hit),
        rescues=run.rescues(),
        refused=run.refused(),
        unread=len(run.unread),
        differences=[*run.jobs(), *run.settlements(), *run.causes(), *check_ticks(ticks, events)],
    )


class _Run:
    """One run, looked at from every side."""

    def __init__(self, plan: Plan, events: Sequence[Event], store: Contents) -> None:
        self._plan = plan
        self._events = events
        self._store = store
        self._rows = store.jobs
        self._succeeded = {job for job, row in self._rows.items() if row.state == "succeeded"}
        made_here = (job for job, row in self._rows.items() if row.schedule is not None or row.parent in self._rows)
        self.known = {*plan.enqueued, *made_here}
        claims: defaultdict[What, dict[Claim, Event]] = defaultdict(dict)
        self._faults: defaultdict[str, list[Event]] = defaultdict(list)
        self._accepted: defaultdict[str, list[int]] = defaultdict(list)
        for event in events:
            claims[event.what][event.claim] = event
            if event.what in (What.KILLED, What.POISONED, What.PAUSED):
                self._faults[event.worker].append(event)
            elif event.what is What.ACCEPTED:
                self._accepted[event.job].append(event.delivery)
        self._started, self._effects, self._raised = claims[What.STARTED], claims[What.EFFECT], claims[What.RAISED]
        self._over = {event.claim: event for event in events if event.what in (What.RETURNED, What.RAISED)}
        """When the code of a claim ended."""
        self.unread = set(self._unread())

    def jobs(self) -> Iterator[Difference]:
        """Compare the jobs that there are with those that there should be, and how each has ended."""
        dead = {job for job, row in self._rows.items() if row.state == "dead"}
        for job in sorted(self.known - self._succeeded - dead):
            row = self._rows.get(job)
            if row is None:
                yield Difference(Kind.LOST, job, "is not in the store")
            elif not (self._plan.stopped and row.state in WAITING):
                yield Difference(Kind.LOST, job, f"is {row.state} in the store")
        for job in sorted(self._succeeded):
            if (job, self._rows[job].delivery) not in self._effects:
                yield Difference(Kind.NO_EFFECT, job, "has no effect in the ledger")
        for job in sorted(dead - set(self._plan.poison)):
            yield Difference(Kind.DEAD, job, f"is dead after delivery {self._rows[job].delivery}")
        for job in sorted(self._succeeded & set(self._plan.poison)):
            yield Difference(Kind.UNHARMED, job, "has succeeded")
        for job in sorted(self._rows.keys() - self.known):
            yield Difference(Kind.STRANGER, job, "is in the store")
        for job in sorted({event.job for event in self._events if event.job} - self.known):
            yield Difference(Kind.STRANGER, job, "is in the ledger")
        # each job of the schedule enqueues one job, together with its success
        followers = Counter(row.parent for row in self._rows.values())
        for job, row in self._rows.items():
            if row.schedule is not None and followers[job] != (row.state == "succeeded"):
                yield Difference(Kind.FOLLOWERS, job, f"is {row.state} and has enqueued {followers[job]}")

    def settlements(self) -> Iterator[Difference]:
        """Compare the successes that servers know of with those that the store has."""
        for job in sorted(self._accepted.keys() - self._succeeded):
            yield Difference(Kind.FORGOTTEN, job, f"in delivery {self._accepted[job][0]}")
        for job in sorted(self._succeeded - self._accepted.keys() - self.unread):
            yield Difference(Kind.NOBODYS, job, "has no accepted success in the ledger")
        for job, deliveries in self._accepted.items():
            if len(deliveries) > 1:
                yield Difference(Kind.TWICE, job, f"in the deliveries {' and '.join(map(str, deliveries))}")
            last = self._rows[job].delivery if job in self._rows else 0
            for delivery in deliveries:
                if delivery < last:
                    yield Difference(Kind.STALE, job, f"that of delivery {delivery}, when delivery {last} had begun")

    def causes(self) -> Iterator[Difference]:
        """Look for what made each job run again."""
        ended = {(each.job, each.delivery) for each in self._store.ended}
        for job, row in self._rows.items():
            for delivery in range(max(1, row.delivery - HISTORY_KEPT + 1), row.delivery):
                if (job, delivery) not in ended:
                    yield Difference(Kind.NO_CAUSE, job, f"the store does not say how delivery {delivery} ended")
        for each in self._store.ended:
            if (why_not := self._why_not(each)) is not None:
                yield Difference(Kind.NO_CAUSE, each.job, f"after delivery {each.delivery}, {why_not}")
        starts = Counter(event.claim for event in self._events if event.what is What.STARTED)
        for (job, delivery), count in starts.items():
            if count > 1:
                yield Difference(Kind.NO_CAUSE, job, f"began {count} times in delivery {delivery}")
        for job, delivery in sorted(self._raised.keys() - ended):
            if job in self._rows and self._rows[job].state != "running":
                yield Difference(Kind.NOT_RETRIED, job, f"raised in delivery {delivery} and is {self._rows[job].state}")

    def refused(self) -> int:
        """Return how many claims ended after they had been taken back, and were not accepted."""
        late = [
            (each.job, each.delivery)
            for each in self._store.ended
            if each.outcome == "rescued"
            and (over := self._over.get((each.job, each.delivery))) is not None
            and over.at > each.at
        ]
        return sum(delivery not in self._accepted.get(job, ()) for job, delivery in late)

    def rescues(self) -> dict[What | None, Rescues]:
        """Return how many claims were taken back after which fault, and how fast."""
        found: defaultdict[What | None, Rescues] = defaultdict(Rescues)
        for rescue in self._store.ended:
            if rescue.outcome == "rescued":
                fault = self._fault(rescue)
                cause, waited = (None, 0.0) if fault is None else (fault.what, rescue.at - fault.at)
                jobs, slowest = found[cause]
                found[cause] = Rescues(jobs + 1, max(slowest, waited))
        return dict(found)

    def _fault(self, rescue: Ended) -> Event | None:
        """Return what happened to the holder of a claim that was rescued, while it held."""
        faults = self._faults[rescue.worker]
        return next((event for event in faults if rescue.since - SENT_WITHIN < event.at < rescue.at), None)

    def _unread(self) -> Iterator[str]:
        """Yield jobs whose success was on its way when its server was killed, and which the store has kept."""
        for job in self._succeeded - self._accepted.keys():
            claim = job, self._rows[job].delivery
            holder = self._started[claim].worker if claim in self._started else ""
            fates = {event.what for event in self._faults[holder]}
            if claim in self._effects and fates & {What.KILLED, What.POISONED}:
                yield job

    def _why_not(self, ended: Ended) -> str | None:
        """Return what is wrong with the end of a claim that was no success; None when it has its cause."""
        claim = ended.job, ended.delivery
        match ended.outcome:
            case "rescued" if self._fault(ended) is None:
                return "which was rescued: its server was neither killed nor paused"
            case "failed" if claim not in self._raised:
                return "which the store calls failed: the job did not raise"
            case "released" if claim in self._started and not self._plan.stopped:
                return "which was given back although it had begun"
            case "rescued" | "failed" | "released":
                return None
            case _:
                return f"which was {ended.outcome}"
