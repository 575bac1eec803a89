"""The machine of a Redis with `appendfsync everysec` stops again and again: the store is as it was a moment ago.

Lost is what was acknowledged in that moment, and nothing that is older. What was settled in it runs again, and whoever
held a claim of it is refused: no token is ever handed out twice.
"""

import statistics
import time
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from proofs.fleet import fleet
from proofs.fleet.campaign import Done
from proofs.fleet.machine_stop import EVERYSEC, Stop, StoppingMachine
from proofs.fleet.producers import NUMBER
from proofs.ledger import Entry, read
from proofs.readers.sqlite import FleetReader, Row
from proofs.report import Report
from proofs.serving import Place, check_ends, check_store, ended, figure_attempts
from proofs.stores import name_store
from tests.redis.private import PrivateRedis

PROMISE = (
    "a machine stops with appendfsync everysec: what was acknowledged more than a moment before is there and comes to "
    "its end, no job is doubled, no stale end is accepted, no token is handed out twice"
)

SAID: Final = {
    "cut off": "all gone that was not synced",
    "torn": "some of that gone, and torn",
    "killed": "a kill of the process alone",
}


@dataclass(frozen=True)
class Plan:
    jobs: int = 10_000
    stops: int = 20
    oldest: float = 2.0
    """Seconds before a stop within which everything was acknowledged that may be lost: what the docs say."""
    soonest: float = 0.0
    """Seconds from a sync to a stop, at least."""
    servers: int = 4
    producers: int = 4
    back_within: float = 5.0
    seed: int = 1

    @property
    def fleet(self) -> fleet.Plan:
        """Nothing but stops: whatever happens otherwise than planned is of them."""
        return fleet.Plan(
            jobs=self.jobs,
            servers=self.servers,
            producers=self.producers,
            kills=0,
            cuts=0,
            crashes=self.stops,
            longest_down=0.5,
            longest=0.4,
            processes_every=1,
            lease=5.0,
            back_within=self.back_within,
            ahead=0,
            pause=0.8,
            seed=self.seed,
        )


class Lost(NamedTuple):
    """An acknowledged job that is not there, and the stop that it was lost by."""

    job: str
    stop: int
    age: float
    """Seconds from the acknowledgement to the stop."""


def prove(folder: Path, plan: Plan) -> Report:
    report = Report("redis-everysec", PROMISE)
    with PrivateRedis(conf=EVERYSEC) as private:
        machine = StoppingMachine(private, soonest=plan.soonest, seed=plan.seed)
        try:
            place = Place(private.url, folder / "ledger")
            done = fleet.work(place, machine, plan.fleet)
            # each was ended at a moment that was waited for first
            epoch = time.time() - time.monotonic()
            done.outages = [
                outage._replace(down_at=stop.at + epoch)
                for outage, stop in zip(done.outages, machine.stops, strict=True)
            ]
        finally:
            machine.close()
        name_store(report, place)
        _check(report, place, plan, done, machine.stops)
    return report


def _check(report: Report, place: Place, plan: Plan, done: Done, stops: list[Stop]) -> None:
    entries, reader = list(read(place.ledger)), place.fleet_reader
    rows = reader.jobs()
    lost = find_lost(entries, rows, stops)
    _check_stops(report, plan, entries, stops, lost)
    _check_loss(report, plan, entries, stops, lost)
    _check_jobs(report, reader, entries, lost)
    figure_attempts(report, entries)
    _check_again(report, entries, stops)
    fleet.check_tokens(report, reader, entries)
    gone = {each.job for each in lost}
    acknowledged = [entry.job for entry in entries if entry.event == "ok"]
    check_ends(report, place, [job for job in acknowledged if job not in gone], ended(entries))
    # of those that are left: none by what they are
    del report.figures["lost: enqueued and not in the store"]
    fleet.check_returns(report, plan.fleet, reader.claims(), done)
    report.never("what went wrong otherwise", done.failed)
    check_store(report, place, entries, kills=0)


def find_lost(entries: list[Entry], rows: dict[str, Row], stops: list[Stop]) -> list[Lost]:
    """Return the acknowledged jobs that are not there, each with the first stop after its acknowledgement."""
    # an answer may be noted a moment after the stop that followed it, but before anything else is answered
    ends = [stop.back_at for stop in stops]
    lost: list[Lost] = []
    for entry in entries:
        if entry.event == "ok" and entry.job not in rows:
            stop = min(bisect_right(ends, entry.at), len(stops) - 1)
            lost.append(Lost(entry.job, stop, stops[stop].at - entry.at))
    return lost


def _check_stops(report: Report, plan: Plan, entries: list[Entry], stops: list[Stop], lost: list[Lost]) -> None:
    counts, oldest = Counter(each.stop for each in lost), dict[int, float]()
    for each in lost:
        oldest[each.stop] = max(oldest.get(each.stop, 0.0), each.age)
    again = Counter(stop for _, stop in _ran_again(entries, stops))
    for number, stop in enumerate(stops):
        told = f", the oldest acknowledged {oldest[number]:.2f} s before" if number in oldest else ""
        report.figure(
            f"stop {number + 1}, {SAID[stop.way]}",
            f"{stop.unsynced_for:.2f} s after what was synced last, {stop.cut_off:,} bytes gone: "
            f"{counts[number]:,} acknowledged jobs lost{told}; {again[number]:,} ended jobs ran again",
        )
    machines = [number for number, stop in enumerate(stops) if stop.way != "killed"]
    report.needs(f"{plan.stops} stops", given=len(stops) == plan.stops)
    report.needs(
        "jobs lost by half of the stops", given=sum(counts[each] > 0 for each in machines) * 2 >= len(machines)
    )
    report.needs("jobs that ran again", given=bool(again))


def _check_loss(report: Report, plan: Plan, entries: list[Entry], stops: list[Stop], lost: list[Lost]) -> None:
    ages = [each.age for each in lost] or [0.0]
    ways = Counter(stop.way for stop in stops)
    report.figure("jobs acknowledged", sum(entry.event == "ok" for entry in entries))
    report.figure(
        f"of them lost by {ways['cut off'] + ways['torn']} stops of the machine", sum(_by_machine(lost, stops))
    )
    report.figure(
        f"of them lost by {ways['killed']} kills of the process alone", len(lost) - sum(_by_machine(lost, stops))
    )
    report.figure(
        "those lost, acknowledged before the stop", f"median {statistics.median(ages):.2f} s, most {max(ages):.2f} s"
    )
    report.figure("of them more than a second before", sum(age > 1 for age in ages))
    report.never(f"lost, and acknowledged more than {plan.oldest:g} s before", [a for a in ages if a > plan.oldest])


def _by_machine(lost: list[Lost], stops: list[Stop]) -> list[bool]:
    return [stops[each.stop].way != "killed" for each in lost]


def _check_jobs(report: Report, reader: FleetReader, entries: list[Entry], lost: list[Lost]) -> None:
    """Each job that a producer asked for is there once at most, under the id that it was told."""
    told = {entry.note: entry.job for entry in entries if entry.event == "ok"}
    asked = {entry.note for entry in entries if entry.event == "invoked"}
    found = [(headers[NUMBER], job) for job, headers in reader.headers().items()]
    counts = Counter(number for number, _ in found)
    gone = {each.job for each in lost}
    report.never("double: asked for once and there twice", [number for number, count in counts.items() if count > 1])
    report.never("there under another id than was told", [n for n, job in found if told.get(n) != job])
    report.never("asked for and never answered", asked - told.keys())
    report.never("neither there nor lost by a stop", [n for n in asked - counts.keys() if told.get(n) not in gone])


def _ran_again(entries: list[Entry], stops: list[Stop]) -> list[tuple[str, int]]:
    """Return jobs that began again after an attempt had ended, and the stop in between, or -1 if there was none."""
    times = [stop.at for stop in stops]
    begun, done = dict[str, float](), dict[str, float]()
    again: list[tuple[str, int]] = []
    for entry in sorted(entries, key=lambda entry: entry.at):
        if entry.event == "ended":
            done[entry.job] = entry.at
        elif entry.event == "begun":
            if entry.job in done:
                # what was settled is lost by the next stop, and a claim by one before its end
                nexts = [bisect_right(times, since) for since in (done.pop(entry.job), begun[entry.job])]
                between = [stop for stop in nexts if stop < len(times) and times[stop] < entry.at]
                again.append((entry.job, between[0] if between else -1))
            begun[entry.job] = entry.at
    return again


def _check_again(report: Report, entries: list[Entry], stops: list[Stop]) -> None:
    again = _ran_again(entries, stops)
    report.figure("jobs that ran again: their end was lost", sum(stop >= 0 for _, stop in again))
    report.never("jobs that ran again without a stop in between", [job for job, stop in again if stop < 0])
