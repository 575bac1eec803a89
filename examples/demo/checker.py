"""The checker: the ledger that the workers wrote against what a second reader found in the store.

A difference is anything that the promises of Windlass do not allow. A run in which nobody was killed, or nobody was
refused, is void: it would have shown the same with the safeguards gone.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from typing import NamedTuple

from examples.demo.ledger import Event, What
from examples.demo.second_reader import Contents, Rescue


class Kind(StrEnum):
    LOST = "lost"
    NO_EFFECT = "succeeded without its work done"
    STRANGER = "never enqueued"
    FORGOTTEN = "ack accepted, but not succeeded in the store"
    NOBODYS = "succeeded in the store, but no ack was accepted"
    TWICE = "settled twice"
    STALE = "settled by a stale claim"
    NO_CAUSE = "ran again without a cause"


class Difference(NamedTuple):
    kind: Kind
    job: str
    detail: str


@dataclass(frozen=True, slots=True)
class Report:
    """What happened in a run, counted."""

    enqueued: int
    succeeded: int
    reruns: dict[str, What | None]
    """Jobs that ran more than once, each with its cause, if it has one."""
    kills: int
    """Kills of a worker that held claims."""
    pauses: int
    rescued: int
    refused: int
    unread: int
    """Acks that were kept although the worker was killed before it could read the reply."""
    differences: list[Difference]

    def count(self, kind: Kind) -> int:
        return sum(difference.kind is kind for difference in self.differences)

    @property
    def void(self) -> str | None:
        """Why the run shows nothing; None when it does."""
        if not self.kills:
            return "no worker was killed while it held claims"
        if not self.refused:
            return "no stale settlement was refused"
        return None


def check(enqueued: Collection[str], events: Sequence[Event], store: Contents) -> Report:
    """Compare what was enqueued, what the workers wrote and what the store holds."""
    run = _Run(enqueued, events, store)
    return Report(
        enqueued=len(enqueued),
        succeeded=len(run.succeeded),
        reruns=run.reruns(),
        kills=sum(bool(held) for held in run.held_at_kills()),
        pauses=sum(event.what is What.PAUSED for event in events),
        rescued=len(store.rescues),
        refused=sum(event.what is What.REFUSED for event in events),
        unread=len(run.unread),
        differences=list(chain(run.lost(), run.strangers(), run.unsettled(), run.settled_badly(), run.uncaused())),
    )


class _Run:
    """One run, looked at from every side; each look is one pass."""

    def __init__(self, enqueued: Collection[str], events: Sequence[Event], store: Contents) -> None:
        self.enqueued = set(enqueued)
        self.events = events
        self.store = store
        self.succeeded = {job for job, row in store.jobs.items() if row.state == "succeeded"}
        self.accepted: defaultdict[str, list[Event]] = defaultdict(list)
        self.starts: Counter[tuple[str, int]] = Counter()
        self.effects: set[str] = set()
        self.claimed: dict[tuple[str, int], int] = {}
        self.faults: defaultdict[str, list[tuple[int, What]]] = defaultdict(list)
        for line, event in enumerate(events):
            self._sort_in(line, event)
        self.unread = set(self._unread())
        self.causes = {(rescue.job, rescue.delivery): self._cause(rescue) for rescue in store.rescues}

    def lost(self) -> Iterator[Difference]:
        for job in sorted(self.enqueued - self.succeeded):
            row = self.store.jobs.get(job)
            yield Difference(Kind.LOST, job, "is not in the store" if row is None else f"is {row.state} in the store")
        for job in sorted(self.succeeded - self.effects):
            yield Difference(Kind.NO_EFFECT, job, "has no effect in the ledger")

    def strangers(self) -> Iterator[Difference]:
        for job in sorted(self.store.jobs.keys() - self.enqueued):
            yield Difference(Kind.STRANGER, job, "is in the store")
        for job in sorted({event.job for event in self.events if event.job} - self.enqueued):
            yield Difference(Kind.STRANGER, job, "is in the ledger")

    def unsettled(self) -> Iterator[Difference]:
        """The settlements that only one of the two knows of."""
        for job in sorted(self.accepted.keys() - self.succeeded):
            yield Difference(Kind.FORGOTTEN, job, _by(self.accepted[job]))
        for job in sorted(self.succeeded - self.accepted.keys() - self.unread):
            yield Difference(Kind.NOBODYS, job, "has no accepted ack in the ledger")

    def settled_badly(self) -> Iterator[Difference]:
        for job, acks in self.accepted.items():
            if len(acks) + (job in self.unread) > 1:
                yield Difference(Kind.TWICE, job, _by(acks))
            row = self.store.jobs.get(job)
            if row is not None and (stale := [ack for ack in acks if ack.delivery < row.delivery]):
                yield Difference(Kind.STALE, job, f"{_by(stale)}, delivery {row.delivery} had begun")

    def uncaused(self) -> Iterator[Difference]:
        for job, row in self.store.jobs.items():
            for delivery in range(1, row.delivery):
                if self.causes.get((job, delivery)) is None:
                    detail = f"after delivery {delivery}, whose worker was neither killed nor paused"
                    yield Difference(Kind.NO_CAUSE, job, detail)
        for (job, delivery), starts in self.starts.items():
            if starts > 1:
                yield Difference(Kind.NO_CAUSE, job, f"began {starts} times in delivery {delivery}")

    def reruns(self) -> dict[str, What | None]:
        runs = Counter(event.job for event in self.events if event.what is What.STARTED)
        causes = {job: cause for (job, _), cause in self.causes.items()}
        return {job: causes.get(job) for job, count in runs.items() if count > 1}

    def held_at_kills(self) -> Iterator[set[str]]:
        """Yield what each killed worker held."""
        held: defaultdict[str, set[str]] = defaultdict(set)
        for event in self.events:
            if event.what is What.CLAIMED:
                held[event.worker].add(event.job)
            elif event.what in (What.ACCEPTED, What.REFUSED):
                held[event.worker].discard(event.job)
            elif event.what is What.KILLED:
                yield held[event.worker]

    def _sort_in(self, line: int, event: Event) -> None:
        match event.what:
            case What.CLAIMED:
                self.claimed[event.job, event.delivery] = line
            case What.STARTED:
                self.starts[event.job, event.delivery] += 1
            case What.EFFECT:
                self.effects.add(event.job)
            case What.ACCEPTED:
                self.accepted[event.job].append(event)
            case What.KILLED | What.PAUSED:
                self.faults[event.worker].append((line, event.what))
            case What.REFUSED | What.RESUMED:
                pass

    def _unread(self) -> Iterator[str]:
        """Yield jobs whose ack was on its way when its worker was killed, and which the store has kept."""
        last: dict[str, Event] = {}
        for event in self.events:
            if event.what is What.KILLED and (before := last.get(event.worker)) and before.what is What.EFFECT:
                row = self.store.jobs.get(before.job)
                if row is not None and row.state == "succeeded" and row.delivery == before.delivery:
                    yield before.job
            last[event.worker] = event

    def _cause(self, rescue: Rescue) -> What | None:
        """Return which fault of its worker ended a claim: one after the claim and before the next one."""
        # A worker may be killed before it could write that it had claimed.
        begin = self.claimed.get((rescue.job, rescue.delivery), -1)
        end = self.claimed.get((rescue.job, rescue.delivery + 1), len(self.events))
        return next((what for line, what in self.faults[rescue.worker] if begin < line < end), None)


def _by(acks: Sequence[Event]) -> str:
    return ", then ".join(f"by {ack.worker}" for ack in acks)
