"""A replica takes over from its master while servers and producers work, as Sentinels let it.

First with `?wait=1`: what was acknowledged is in the memory of the one replica there is, nothing is lost. Of several
replicas another one may take over, and one that is stopped too has kept what its own settings say: `WAIT` promises
nothing of that, and neither does this. Then without: lost is what the replica had not received, and what a master that
was told to step back has taken until it did.
"""

from collections import Counter
from pathlib import Path
from typing import NamedTuple

from proofs.children import Children
from proofs.failover.checks import (
    acknowledged,
    check_attempts,
    check_met_work,
    check_nothing_lost,
    check_probe,
    check_returns,
    figure_doubts,
)
from proofs.failover.sentinel_campaign import Campaign, Plan
from proofs.failover.work import Done, Failover, Load
from proofs.fleet import fleet
from proofs.ledger import Entry, read
from proofs.report import Report
from proofs.serving import Place, check_ends, check_store, ended, enqueue, figure_attempts
from proofs.stores import name_store
from tests.redis.keys import with_options
from tests.redis.private import DURABLE
from tests.redis.sentinels import Sentinels

__all__ = ["Load", "Plan", "prove"]

PROMISE = (
    "a replica takes over: with ?wait=1 no job is lost, doubled or charged for it, without it only what had not "
    "reached the replica is lost; no stale end is accepted, no token is handed out twice, work goes on within 5 s"
)
UNWAITED = "without wait: "


class Lost(NamedTuple):
    """An acknowledged job that is not there."""

    job: str
    since: float
    """Seconds from the end of the master to the acknowledgement; less than 0 where it came before."""


def prove(folder: Path, plan: Plan) -> Report:
    report = Report("redis-failover", PROMISE)
    _prove_part(report, folder / "waited", plan, waits=True)
    unwaited = Report("redis-failover", PROMISE)
    _prove_part(unwaited, folder / "unwaited", plan, waits=False)
    report.figures |= {UNWAITED + name: value for name, value in unwaited.figures.items()}
    report.violations |= {UNWAITED + name: found for name, found in unwaited.violations.items()}
    report.missing_evidence += [UNWAITED + name for name in unwaited.missing_evidence]
    return report


def _prove_part(report: Report, folder: Path, plan: Plan, *, waits: bool) -> None:
    folder.mkdir()
    with Sentinels(conf=DURABLE) as sentinels, Children(folder / "ledger") as children:
        url = with_options(sentinels.url, "wait=1") if waits else sentinels.url
        place = Place(url, folder / "ledger")
        enqueue(place, [])
        campaign = Campaign(place, sentinels, plan.load, children, waits=waits)
        try:
            campaign.run(plan.waited if waits else plan.unwaited)
        finally:
            campaign.close()
        name_store(report, place)
        entries = list(read(place.ledger))
        _check_failovers(report, campaign.done, plan.waited if waits else plan.unwaited)
        if waits:
            check_nothing_lost(report, place, entries)
            check_attempts(report, place, entries, campaign.probe)
        else:
            _check_loss(report, plan, place, entries, campaign.done)
        fleet.check_tokens(report, place.fleet_reader, entries)
        check_probe(report, campaign.probe, campaign.done)
        check_returns(report, plan.load, place, campaign.done)
        report.never("what went wrong otherwise", campaign.done.failed)
        check_store(report, place, entries, kills=0)


def _check_failovers(report: Report, done: Done, wanted: int) -> None:
    ways = Counter(each.way for each in done.failovers)
    report.figure("failovers", len(done.failovers))
    report.figure("the master was killed", ways["kill"])
    report.figure("the master was told to step back, and went on until it followed", ways["step back"])
    report.needs(f"{wanted} failovers", given=len(done.failovers) == wanted)
    check_met_work(report, done)


def _check_loss(report: Report, plan: Plan, place: Place, entries: list[Entry], done: Done) -> None:
    """Lost is what was acknowledged shortly before a kill, or by a master that was about to step back."""
    told, rows = acknowledged(entries), place.reader.jobs()
    lost = set(told) - rows.keys()
    unseen = [entry for entry in entries if entry.event == "ok" and entry.job in lost]
    explained = set[str]()
    for number, failover in enumerate(done.failovers, 1):
        mine = _lost_by(failover, unseen, plan.oldest)
        explained |= {each.job for each in mine}
        when = ", ".join(f"{each.since:+.2f} s" for each in (mine[0], mine[-1])) if mine else "none"
        report.figure(
            f"failover {number}, {failover.way}",
            f"{len(mine):,} acknowledged jobs lost; the first and the last of them, from that moment: {when}; "
            f"{failover.back_at - failover.ended_at:.2f} s until the other took all",
        )
    again = Counter(entry.job for entry in entries if entry.event == "ended")
    report.figure("jobs acknowledged", len(told))
    report.figure("of them lost", len(lost))
    report.figure("jobs that ran to their end more than once", sum(count > 1 for count in again.values()))
    report.never(f"lost, and acknowledged more than {plan.oldest:g} s before a failover, or after it", lost - explained)
    figure_doubts(report, entries)
    figure_attempts(report, entries)
    check_ends(report, place, [job for job in told if job not in lost], ended(entries))
    # of those that are left: none by what they are
    del report.figures["lost: enqueued and not in the store"]


def _lost_by(failover: Failover, lost: list[Entry], oldest: float) -> list[Lost]:
    """Return what was lost by one failover, in the order of the acknowledgements."""
    # an answer may be noted a moment after it came
    until = failover.back_at if failover.way == "step back" else failover.fenced_at + 0.5
    found = [Lost(e.job, e.at - failover.ended_at) for e in lost if failover.ended_at - oldest <= e.at <= until]
    return sorted(found, key=lambda each: each.since)
