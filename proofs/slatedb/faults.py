"""Everything goes wrong with the object store, in three of ten calls: nothing is lost, and nothing is torn.

Owners of some stores work through one proxy that refuses calls, lets them wait, or does them and keeps the answer. Now
and then one of them is stopped or killed, so that stores are opened through it too. Then the object store goes away
altogether, see `slatedb_outages`.
"""

import random
import time
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from proofs.ledger import read
from proofs.report import Report
from proofs.serving import Place
from proofs.slatedb import outages as slatedb_outages
from proofs.slatedb.buckets import admitted
from proofs.slatedb.faulty_s3 import Done as Asked
from proofs.slatedb.faulty_s3 import FaultyS3
from proofs.slatedb.owner_checks import check_all
from proofs.slatedb.owners import GRACE, MANY, Order, Owner, Seen, work_off
from proofs.slatedb.s3_faults import (
    BURST,
    NONE,
    SKEWED,
    WITH_A_BODY,
    WITH_A_LIST,
    WITH_A_WRITE,
    WITH_EVERY_CALL,
    Fault,
    Faults,
)
from proofs.stores import name_store
from tests.slatedb.s3 import BUCKET
from tests.slatedb.weed import Weed

PROMISE: Final = (
    "whatever the object store answers, and whatever it does and does not tell, nothing is lost and nothing is torn; "
    "while it is gone every call ends with a clear error in time, and work goes on when it is back"
)
LOOK_EVERY: Final = 0.2
AT_LEAST: Final = 10
"""Jobs that every owner settles, however many calls were made to open its store."""
LONGEST_WAIT: Final = 60.0
ALL_FAULTS: Final[Sequence[Fault]] = (*WITH_EVERY_CALL, *WITH_A_BODY, *WITH_A_LIST, *WITH_A_WRITE)
HELD: Final = 20
"""Writes that were done and never answered, of which so many must be seen."""


@dataclass(frozen=True)
class Plan:
    calls: int = 10_000
    share: float = 0.3
    pause: float = 0.5
    """Seconds for which nothing comes, where that is what goes wrong."""
    request: float = 3.0
    """Seconds after which a call of the object store is given up, and made again."""
    bursts: int = 20
    """Runs of refusals, and in turns with them of a clock that is said to be wrong."""
    kinds: Sequence[Fault] = ALL_FAULTS
    lease: float = 15.0
    """Longer than a call takes that is repeated again and again."""
    stores: int = 6
    """Stores that are worked on at once, each by an owner of its own: one waits for a call most of the time."""
    lives: int = 4
    """How often each owner is started: in turns it is stopped and killed."""
    outages: int = 6
    slack: float = 1.5
    """Seconds that an error may come after its deadline while the object store is gone: two cores are shared."""
    seconds: float = 300
    seed: int = 1


@dataclass
class Done:
    """What was done, for the checks."""

    calls: Counter[Asked] = field(default_factory=Counter[Asked])
    """The calls of the object store while it was faulty, and what was done to each."""
    stops: int = 0
    kills: int = 0
    failed: list[str] = field(default_factory=list[str])


def prove(folder: Path, plan: Plan) -> Report:
    """Let it happen in a bucket of SeaweedFS."""
    report = Report("slatedb-s3-faults", PROMISE)
    with admitted(), Weed() as weed:
        faults = Faults(
            share=plan.share,
            kinds=plan.kinds,
            slow=plan.pause,
            late=plan.pause,
            stall=plan.pause,
            burst_every=plan.calls // plan.bursts,
        )
        with FaultyS3(weed.endpoint, faults, seed=plan.seed) as proxy, _stores(folder, plan, proxy) as stores:
            done = _work(stores, plan, proxy)
            outages = slatedb_outages.go_through(_url(proxy, "outages"), proxy, plan.outages)
        _check_faults(report, plan, done.calls)
        report.figure("owners stopped", done.stops)
        report.figure("owners killed", done.kills)
        direct = [Place(weed.url(_name(number)), store.place.ledger) for number, store in enumerate(stores)]
        name_store(report, direct[0])
        _check_stores(report, direct, done)
        outages.check(report, weed.url("outages"), plan.slack)
        report.never("what went wrong otherwise", done.failed)
    return report


class Store:
    """A store, and the owner that works on it."""

    def __init__(self, place: Place, number: int, plan: Plan) -> None:
        place.ledger.parent.mkdir()
        self.place = place
        self.seen = Seen(place.ledger)
        self._number = number
        self._order = Order(MANY, lease=plan.lease, request=plan.request)
        self._starts = 0
        self._owner = self._start()

    def start_again(self, done: Done, *, kill: bool) -> None:
        """Stop or kill the owner, and start another one."""
        self.let_work(done)
        if kill:
            done.kills += self._owner.kill(whole=True)
            self._owner.close()
        else:
            self.stop(done)
        self._owner = self._start()

    def let_work(self, done: Done) -> None:
        """Wait until the owner has settled some jobs at least."""
        process = self.seen.has_opened(self._owner)
        if not self.seen.has_worked(process, AT_LEAST, LONGEST_WAIT):
            done.failed.append(f"{process} did not come to work")

    def stop(self, done: Done) -> None:
        """Stop the owner gracefully."""
        code, late = self._owner.command.stop(GRACE)
        if code or late > 1:
            done.failed.append(f"{self._owner.name} ended with {code}, {late:.1f} s after its grace")
        done.stops += 1
        self._owner.close()

    def close(self) -> None:
        """Leave no process behind."""
        self._owner.close()

    def _start(self) -> Owner:
        self._starts += 1
        return Owner(self.place, f"owner {self._number}.{self._starts}", self._order)


@contextmanager
def _stores(folder: Path, plan: Plan, proxy: FaultyS3) -> Generator[list[Store]]:
    stores = [
        Store(
            Place(_url(proxy, _name(number)), folder / _name(number) / "ledger"),
            number,
            plan,
        )
        for number in range(plan.stores)
    ]
    try:
        yield stores
    finally:
        for store in stores:
            store.close()


def _work(stores: Sequence[Store], plan: Plan, proxy: FaultyS3) -> Done:
    """Let all of them work until so many calls were made, and then work off what is left, without faults."""
    done, chance = Done(), random.Random(plan.seed)
    turns = [store for store in stores for _ in range(plan.lives - 1)]
    chance.shuffle(turns)
    until = time.monotonic() + plan.seconds
    for number, store in enumerate(turns):
        _wait_for_calls(proxy, plan.calls * (number + 1) // (len(turns) + 1), until)
        store.start_again(done, kill=number % 2 == 0)
    _wait_for_calls(proxy, plan.calls, until)
    for store in stores:
        store.let_work(done)
    done.calls = proxy.calls.copy()
    proxy.change(NONE)
    for store in stores:
        store.stop(done)
        done.failed += work_off(
            store.place, "last", store.seen, plan.seconds, Order(lease=plan.lease, request=plan.request)
        )
    return done


def _wait_for_calls(proxy: FaultyS3, calls: int, until: float) -> None:
    while proxy.calls.total() < calls and time.monotonic() < until:
        time.sleep(LOOK_EVERY)


def _check_faults(report: Report, plan: Plan, asked: Counter[Asked]) -> None:
    kinds, names = Counter[str](), Counter[str]()
    for (name, what), count in asked.items():
        kinds[what] += count
        names[name] += count
    faulty = asked.total() - kinds["passed"]
    report.figure("calls of the object store", asked.total())
    report.figure("faulty ones", f"{faulty:,} ({faulty / max(asked.total(), 1):.0%})")
    for name, count in sorted(names.items()):
        report.figure(f"calls: {name}", count)
    for what in (*ALL_FAULTS, "burst", "skewed"):
        report.figure(f"faults: {what}", kinds[what])
    report.needs(f"{plan.calls:,} calls", given=asked.total() >= plan.calls)
    report.needs(f"faults in {plan.share:.0%} of them", given=faulty >= asked.total() * plan.share * 0.8)
    for what in plan.kinds:
        report.needs(f"faults: {what}", given=kinds[what] > 0)
    report.needs("a burst", given=kinds["burst"] >= BURST)
    report.needs("a clock that is wrong", given=kinds["skewed"] >= SKEWED)
    if "held" in plan.kinds:
        least = min(HELD, plan.calls // 250)
        report.needs(f"{least} writes that were done and held", given=kinds["held"] >= least)


def _check_stores(report: Report, places: Sequence[Place], done: Done) -> None:
    """What holds for one store must hold for each: the figures are of all of them."""
    parts = [Report(place.ledger.parent.name, "") for place in places]
    for part, place in zip(parts, places, strict=True):
        check_all(part, place, list(read(place.ledger)), kills=done.kills)
    for name in parts[0].figures:
        report.figure(name, sum(int(part.figures[name].replace(",", "")) for part in parts))
    for part in parts:
        for what, examples in part.violations.items():
            report.violations.setdefault(what, []).extend(f"{part.part}: {each}" for each in examples)


def _name(number: int) -> str:
    return f"store-{number}"


def _url(proxy: FaultyS3, prefix: str) -> str:
    return f"slatedb+s3://{BUCKET}/{prefix}?endpoint={proxy.endpoint}&flush=0"
