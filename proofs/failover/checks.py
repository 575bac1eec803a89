"""What must hold after failovers, whatever kind of server it was that failed."""

import math
import statistics
import time
from collections import Counter
from typing import NamedTuple

from proofs.failover.probe import Probe
from proofs.failover.work import Done, Failover, Load
from proofs.fleet.producers import NUMBER
from proofs.ledger import Entry
from proofs.report import Report
from proofs.serving import Place, check_ends, ended, figure_attempts, key


class Seen(NamedTuple):
    """What a server or a producer did, by the database's clock, in seconds since 1970."""

    at: float
    who: str


def check_met_work(report: Report, done: Done) -> None:
    """Each failover met servers and producers at work."""
    report.figure("attempts under way at those moments", sum(each.inside for each in done.failovers))
    report.figure("jobs that were being enqueued at those moments", sum(each.calling for each in done.failovers))
    report.needs("attempts under way at each failover", given=all(each.inside for each in done.failovers))
    report.needs(
        "jobs being enqueued at half of the failovers",
        given=sum(each.calling > 0 for each in done.failovers) * 2 >= len(done.failovers),
    )


def check_nothing_lost(report: Report, place: Place, entries: list[Entry]) -> None:
    """Each job that a producer asked for is there once, under the id that it was told, and has come to its end."""
    mine = [entry for entry in entries if entry.process.startswith("producer")]
    told = {entry.note: entry.job for entry in mine if entry.event == "ok"}
    asked = {entry.note for entry in mine if entry.event == "invoked"}
    found = [(headers[NUMBER], job) for job, headers in place.fleet_reader.headers().items()]
    counts = Counter(number for number, _ in found)
    report.figure("jobs asked for by producers", len(asked))
    figure_doubts(report, mine)
    report.never("double: asked for once and there twice", [number for number, count in counts.items() if count > 1])
    report.never("lost: asked for and not there", asked - counts.keys())
    report.never("there under another id than was told", [n for n, job in found if told.get(n) != job])
    report.never("asked for and never answered", asked - told.keys())
    figure_attempts(report, entries)
    check_ends(report, place, acknowledged(entries), ended(entries))


def check_attempts(report: Report, place: Place, entries: list[Entry], probe: Probe) -> None:
    """No lease was as short as a failover, so none may have cost an attempt; only those by hand were.

    What was claimed and could not be begun within a second may have been given back, which costs none.
    """
    mine = probe.jobs
    rows = [row for row in place.reader.jobs().values() if row.id not in mine]
    outcomes = {each: outcome for each, outcome in place.reader.outcomes().items() if each[0] not in mine}
    given_back = [each for each, outcome in outcomes.items() if outcome == "released"]
    report.never("attempts charged in vain", [row for row in rows if row.attempt != 1])
    report.figure("claims given back, at no cost", len(given_back))
    report.never("claims that ended otherwise", outcomes.keys() - given_back)
    twice = Counter(key(entry) for entry in entries if entry.event == "begun")
    report.never("deliveries that were begun twice", [each for each, count in twice.items() if count > 1])


def check_probe(report: Report, probe: Probe, done: Done, unreplicated: int = 0) -> None:
    """Claims of before a failover hold after it, unless somebody else has the job, or the claim was lost."""
    count = len(done.failovers)
    report.figure("claims of before that were settled after", probe.accepted)
    report.figure("settlements refused: another had claimed the job meanwhile", probe.refused)
    if unreplicated:
        report.figure(
            "of them with the same number of delivery: the claim was not replicated", probe.refused_of_same_number
        )
    report.never("claims by hand that were answered wrongly", probe.wrong)
    report.needs("a claim that was settled after each failover", given=probe.accepted == count)
    report.needs("stale settlements after each failover", given=probe.refused == count + unreplicated)
    report.needs("claims that were lost", given=probe.refused_of_same_number == unreplicated)


def check_returns(report: Report, load: Load, place: Place, done: Done) -> None:
    """After each failover every server claims, and every producer enqueues, within a few seconds."""
    reader = place.fleet_reader
    claims = [Seen(claim.at, claim.worker) for claim in reader.claims() if claim.worker in done.servers]
    enqueued_at = reader.enqueued_at()
    enqueues = [
        Seen(enqueued_at[job], headers[NUMBER].partition(":")[0])
        for job, headers in reader.headers().items()
        if NUMBER in headers
    ]
    producers = {f"producer {number}" for number in range(load.producers)}
    took = [each.back_at - each.ended_at for each in done.failovers]
    report.figure("from the end of the primary until its standby took writes", spread(took))
    late: list[str] = []
    for what, events, who in (
        ("each server claimed again", claims, set(done.servers)),
        ("each producer enqueued again", enqueues, producers),
    ):
        waits = [wait for each in done.failovers for wait in _waits(events, who, each)]
        report.figure(f"from then until {what}", spread(waits))
        late += [f"{wait:.1f} s until {what}" for wait in waits if wait > load.back_within]
    report.never(f"not within {load.back_within:g} s", late)


def _waits(events: list[Seen], who: set[str], failover: Failover) -> list[float]:
    """Return how long it took each of them from the takeover to its first event; for ever where none came."""
    epoch = time.time() - time.monotonic()
    first: dict[str, float] = dict.fromkeys(who, math.inf)
    for at, name in events:
        # by the database's clock: what is later than the fence was done by the new primary
        if at - epoch > failover.fenced_at:
            first[name] = min(first[name], max(0.0, at - epoch - failover.back_at))
    return list(first.values())


def spread(seconds: list[float]) -> str:
    """Return what is in the middle, and the most."""
    return f"median {statistics.median(seconds):.2f} s, longest {max(seconds):.2f} s"


def figure_doubts(report: Report, entries: list[Entry]) -> None:
    """Say how often producers were left in doubt."""
    doubts = Counter(entry.note.partition(":")[0] for entry in entries if entry.event == "fault")
    for what, count in sorted(doubts.items()):
        report.figure(f"calls of producers that ended in {what} and were repeated", count)


def acknowledged(entries: list[Entry]) -> list[str]:
    """Return the jobs that somebody was told are stored."""
    return [entry.job for entry in entries if entry.event == "ok"]
