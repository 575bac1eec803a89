"""A standby takes over from its primary while servers and producers work: what it had received is worked to its end.

First with a standby that every commit waits for: nothing is lost. Then with one that is not waited for, which is kept
from receiving the last changes: lost is what it had not received, and nothing else.
"""

import json
import math
import statistics
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from proofs.children import Children
from proofs.failover_campaign import Campaign, Done, Failover, Plan
from proofs.failover_probe import Probe
from proofs.fleet_producers import NUMBER
from proofs.ledger import Entry, read
from proofs.postgres_reader import PostgresReader
from proofs.report import Report
from proofs.serving import Place, check_ends, check_store, ended, enqueue, figure_attempts, key
from proofs.stores import name_store
from tests.postgres.pair import Pair
from tests.postgres.private import DURABLE

__all__ = ["Plan", "prove"]

PROMISE = (
    "a standby takes over: with synchronous replication no job is lost, doubled or charged for it, without it exactly "
    "what was not replicated is lost; no stale end is accepted, and work goes on within 5 s"
)
UNWAITED = "asynchronous: "
CLOCKS_DIFFER = 0.05


class Seen(NamedTuple):
    """What a server or a producer did, by the database's clock, in seconds since 1970."""

    at: float
    who: str


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
            campaign.run()
        finally:
            campaign.close()
        name_store(report, place)
        entries = list(read(place.ledger))
        _check_failovers(report, plan, place, campaign.done)
        if synchronous:
            _check_nothing_lost(report, place, entries)
            _check_attempts(report, place, entries, campaign)
        else:
            _check_loss(report, place, entries, campaign)
        _check_stale(report, place, entries, campaign)
        _check_probe(report, campaign.probe, campaign.done)
        _check_returns(report, plan, place, campaign.done)
        report.never("what went wrong otherwise", campaign.done.failed)
        check_store(report, place, entries, kills=0)


def _check_failovers(report: Report, plan: Plan, place: Place, done: Done) -> None:
    """Each took place, and met work."""
    [(timeline,)] = PostgresReader(place.url).rows("select timeline_id from pg_control_checkpoint()")
    ways = Counter(each.way for each in done.failovers)
    report.figure("failovers", len(done.failovers))
    report.figure("the primary was killed", ways["kill"])
    report.figure("the primary was stopped in a hurry", ways["immediate"])
    if ways["read-only"]:
        report.figure("the primary stayed, with its sessions, and took no writes", ways["read-only"])
    report.figure("attempts under way at those moments", sum(each.inside for each in done.failovers))
    report.figure("jobs that were being enqueued at those moments", sum(each.calling for each in done.failovers))
    wanted = plan.unwaited if done.losses else plan.failovers
    report.needs(
        f"{wanted} failovers, by the database's own count", given=timeline - 1 == len(done.failovers) == wanted
    )
    report.needs("attempts under way at each failover", given=all(each.inside for each in done.failovers))
    report.needs(
        "jobs being enqueued at half of the failovers",
        given=sum(each.calling > 0 for each in done.failovers) * 2 >= len(done.failovers),
    )


def _check_nothing_lost(report: Report, place: Place, entries: list[Entry]) -> None:
    """Each job that a producer asked for is there once, under the id that it was told, and has come to its end."""
    mine = [entry for entry in entries if entry.process.startswith("producer")]
    told = {entry.note: entry.job for entry in mine if entry.event == "ok"}
    asked = {entry.note for entry in mine if entry.event == "invoked"}
    found = [(headers[NUMBER], job) for job, headers in PostgresReader(place.url).headers().items()]
    counts = Counter(number for number, _ in found)
    report.figure("jobs asked for by producers", len(asked))
    _figure_doubts(report, mine)
    report.never("double: asked for once and there twice", [number for number, count in counts.items() if count > 1])
    report.never("lost: asked for and not there", asked - counts.keys())
    report.never("there under another id than was told", [n for n, job in found if told.get(n) != job])
    report.never("asked for and never answered", asked - told.keys())
    figure_attempts(report, entries)
    check_ends(report, place, _acknowledged(entries), ended(entries))


def _check_attempts(report: Report, place: Place, entries: list[Entry], campaign: Campaign) -> None:
    """No lease was as short as a failover, so none may have cost an attempt; only those by hand were."""
    mine = campaign.probe.jobs
    rows = [row for row in place.reader.jobs().values() if row.id not in mine]
    outcomes = place.reader.outcomes()
    report.never("attempts charged in vain", [row for row in rows if (row.attempt, row.delivery) != (1, 1)])
    report.never("claims taken back or given back", [each for each in outcomes if each[0] not in mine])
    twice = Counter(key(entry) for entry in entries if entry.event == "begun")
    report.never("deliveries that were begun twice", [each for each, count in twice.items() if count > 1])


def _check_loss(report: Report, place: Place, entries: list[Entry], campaign: Campaign) -> None:
    """Lost is what was acknowledged and not received by the standby, no more; what it had received goes on."""
    rows, mine = place.reader.jobs(), campaign.probe.jobs
    acknowledged = _acknowledged(entries)
    lost = set(acknowledged) - rows.keys()
    unreceived, gone, redone, undone, kept = (set[str]() for _ in range(5))
    for number, (failover, loss) in enumerate(zip(campaign.done.failovers, campaign.done.losses, strict=True), 1):
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
    report.figure("jobs acknowledged", len(acknowledged))
    report.figure("of them lost: not replicated", len(gone))
    report.figure("settled jobs that ran again: the settlement was not replicated", len(redone))
    report.figure("attempts charged in vain: what the server did was not replicated", len(rescued & unreceived))
    report.never("lost, and not among what was not replicated", lost - gone)
    report.never("replicated, and undone", undone)
    report.never("acknowledged, not replicated, and there", kept)
    report.never("attempts charged in vain otherwise", rescued - unreceived)
    _figure_doubts(report, entries)
    figure_attempts(report, entries)
    check_ends(report, place, [job for job in acknowledged if job not in lost], ended(entries))
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


def _check_probe(report: Report, probe: Probe, done: Done) -> None:
    count = len(done.failovers)
    unreplicated = len(done.losses)
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


def _check_returns(report: Report, plan: Plan, place: Place, done: Done) -> None:
    """After each failover every server claims, and every producer enqueues, within a few seconds."""
    reader = PostgresReader(place.url)
    claims = [Seen(claim.at, claim.worker) for claim in reader.claims() if claim.worker in done.servers]
    enqueues = [
        Seen(at, json.loads(headers)[NUMBER].partition(":")[0])
        for at, headers in reader.rows(
            "select extract(epoch from created_at)::float8, headers from windlass_job where headers is not null"
        )
    ]
    producers = {f"producer {number}" for number in range(plan.producers)}
    took = [each.back_at - each.ended_at for each in done.failovers]
    report.figure("from the end of the primary until its standby took writes", _spread(took))
    late: list[str] = []
    for what, events, who in (
        ("each server claimed again", claims, set(done.servers)),
        ("each producer enqueued again", enqueues, producers),
    ):
        waits = [wait for each in done.failovers for wait in _waits(events, who, each)]
        report.figure(f"from then until {what}", _spread(waits))
        late += [f"{wait:.1f} s until {what}" for wait in waits if wait > plan.back_within]
    report.never(f"not within {plan.back_within:g} s", late)


def _waits(events: list[Seen], who: set[str], failover: Failover) -> list[float]:
    """Return how long it took each of them from the takeover to its first event; for ever where none came."""
    epoch = time.time() - time.monotonic()
    first: dict[str, float] = dict.fromkeys(who, math.inf)
    for at, name in events:
        # by the database's clock: what is later than the fence was done by the new primary
        if at - epoch > failover.fenced_at:
            first[name] = min(first[name], max(0.0, at - epoch - failover.back_at))
    return list(first.values())


def _spread(seconds: list[float]) -> str:
    return f"median {statistics.median(seconds):.2f} s, longest {max(seconds):.2f} s"


def _figure_doubts(report: Report, entries: list[Entry]) -> None:
    doubts = Counter(entry.note.partition(":")[0] for entry in entries if entry.event == "fault")
    for what, count in sorted(doubts.items()):
        report.figure(f"calls of producers that ended in {what} and were repeated", count)


def _acknowledged(entries: list[Entry]) -> list[str]:
    return [entry.job for entry in entries if entry.event == "ok"]
