"""A standby takes over from its primary while servers and producers work: what it had received is worked to its end.

First with a standby that every commit waits for: nothing is lost. Then with one that is not waited for, which is kept
from receiving the last changes: lost is what it had not received, and nothing else.
"""

import time
from collections import Counter
from pathlib import Path

from proofs.children import Children
from proofs.failover.campaign import Campaign, Plan
from proofs.failover.checks import (
    acknowledged,
    check_attempts,
    check_met_work,
    check_nothing_lost,
    check_probe,
    check_returns,
    figure_doubts,
)
from proofs.failover.work import Load
from proofs.ledger import Entry, read
from proofs.readers.postgres import PostgresReader
from proofs.report import Report
from proofs.serving import Place, check_ends, check_store, ended, enqueue, figure_attempts, key
from proofs.stores import name_store
from tests.postgres.pair import Pair
from tests.postgres.private import DURABLE

__all__ = ["Load", "Plan", "prove"]

PROMISE = (
    "a standby takes over: with synchronous replication no job is lost, doubled or charged for it, without it exactly "
    "what was not replicated is lost; no stale end is accepted, and work goes on within 5 s"
)
UNWAITED = "asynchronous: "
CLOCKS_DIFFER = 0.05


def prove(folder: Path, plan: Plan) -> Report:
    report = Report("failover", PROMISE)
    _prove_part(report, folder / "synchronous", plan, synchronous=True)
    unwaited = Report("failover", PROMISE)
    _prove_part(unwaited, folder / "asynchronous", plan, synchronous=False)
    report.figures |= {UNWAITED + name: value for name, value in unwaited.figures.items()}
    report.violations |= {UNWAITED + name: found for name, found in unwaited.violations.items()}
    report.missing_evidence += [UNWAITED + name for name in unwaited.missing_evidence]
    return report


def _prove_part(report: Report, folder: Path, plan: Plan, *, synchronous: bool) -> None:
    folder.mkdir()
    with Pair(synchronous=synchronous, conf=DURABLE) as pair, Children(folder / "ledger") as children:
        # as most write it, who name several servers, and as psycopg needs it
        place = Place(f"{pair.url}?target_session_attrs=read-write", folder / "ledger")
        enqueue(place, [])
        campaign = Campaign(place, pair, plan, children)
        try:
            campaign.run(plan.failovers if synchronous else plan.unwaited)
        finally:
            campaign.close()
        name_store(report, place)
        entries = list(read(place.ledger))
        _check_failovers(report, plan, place, campaign)
        if synchronous:
            check_nothing_lost(report, place, entries)
            check_attempts(report, place, entries, campaign.probe)
        else:
            _check_loss(report, place, entries, campaign)
        _check_stale(report, place, entries, campaign)
        check_probe(report, campaign.probe, campaign.done, unreplicated=len(campaign.losses))
        check_returns(report, plan.load, place, campaign.done)
        report.never("what went wrong otherwise", campaign.done.failed)
        check_store(report, place, entries, kills=0)


def _check_failovers(report: Report, plan: Plan, place: Place, campaign: Campaign) -> None:
    """Each took place, and met work."""
    done = campaign.done
    [(timeline,)] = PostgresReader(place.url).rows("select timeline_id from pg_control_checkpoint()")
    ways = Counter(each.way for each in done.failovers)
    report.figure("failovers", len(done.failovers))
    report.figure("the primary was killed", ways["kill"])
    report.figure("the primary was stopped in a hurry", ways["immediate"])
    if ways["read-only"]:
        report.figure("the primary stayed, with its sessions, and took no writes", ways["read-only"])
    wanted = plan.unwaited if campaign.losses else plan.failovers
    report.needs(
        f"{wanted} failovers, by the database's own count", given=timeline - 1 == len(done.failovers) == wanted
    )
    check_met_work(report, done)


def _check_loss(report: Report, place: Place, entries: list[Entry], campaign: Campaign) -> None:
    """Lost is what was acknowledged and not received by the standby, no more; what it had received goes on."""
    rows, mine = place.reader.jobs(), campaign.probe.jobs
    told = acknowledged(entries)
    lost = set(told) - rows.keys()
    unreceived, gone, redone, undone, kept = (set[str]() for _ in range(5))
    for number, (failover, loss) in enumerate(zip(campaign.done.failovers, campaign.losses, strict=True), 1):
        again = {entry.job for entry in entries if entry.event == "begun" and entry.at > failover.fenced_at}
        before = {entry.job for entry in entries if entry.event == "ok" and entry.at < failover.ended_at}
        gone_now, redone_now = lost & loss.changed(replicated=False), again & loss.settled(replicated=False)
        report.figure(
            f"failover {number}",
            f"{loss.commits:,} commits not replicated: {len(gone_now):,} acknowledged jobs lost, "
            f"{len(redone_now):,} settled jobs ran again",
        )
        report.needs(f"jobs that were lost in failover {number}", given=bool(loss.commits and gone_now))
        unreceived |= loss.changed(replicated=False)
        gone |= gone_now
        redone |= redone_now
        undone |= (loss.changed(replicated=True) - rows.keys()) | (loss.settled(replicated=True) & again)
        kept |= loss.never_received() & before & rows.keys()
    rescued = {job for (job, _), outcome in place.reader.outcomes().items() if outcome == "rescued"} - mine
    report.figure("jobs acknowledged", len(told))
    report.figure("of them lost: not replicated", len(gone))
    report.figure("settled jobs that ran again: the settlement was not replicated", len(redone))
    report.figure("attempts charged in vain: what the server did was not replicated", len(rescued & unreceived))
    report.never("lost, and not among what was not replicated", lost - gone)
    report.never("replicated, and undone", undone)
    report.never("acknowledged, not replicated, and there", kept)
    report.never("attempts charged in vain otherwise", rescued - unreceived)
    figure_doubts(report, entries)
    figure_attempts(report, entries)
    check_ends(report, place, [job for job in told if job not in lost], ended(entries))
    # of those that are left: none by what they are
    del report.figures["lost: enqueued and not in the store"]


def _check_stale(report: Report, place: Place, entries: list[Entry], campaign: Campaign) -> None:
    """A success is written by the server that has ended that very delivery, and after that."""
    epoch = time.time() - time.monotonic()
    ends = {(key(entry), entry.process): entry.at + epoch for entry in entries if entry.event == "ended"}
    rows = PostgresReader(place.url).rows(
        "select id::text, delivery, worker, extract(epoch from finished_at)::float8 from windlass_job"
        " where state = 'succeeded'"
    )
    stale: list[str] = []
    for job, delivery, worker, finished_at in rows:
        ended_at = ends.get(((job, delivery), campaign.done.servers.get(worker, "by hand")))
        if ended_at is None or ended_at > finished_at + CLOCKS_DIFFER:
            stale.append(f"{job}, delivery {delivery}, settled by {worker}")
    report.never("stale ends accepted: a success of a server that had not ended that delivery", stale)
