"""A fleet on a database, with all that can happen to it: every job comes to its end, and every attempt has its reason.

Four servers and four producers work while servers are killed, sessions are ended by the database, and the database
itself is killed. A lost connection alone must cost nothing: neither a job, nor a second one, nor an attempt. Others are
stopped by SIGSTOP until their jobs are somebody else's, and go on as if nothing had happened: what they settle then has
to be refused.
"""

import math
import time
from collections import Counter
from pathlib import Path

from proofs.children import Children
from proofs.fleet.campaign import Campaign, Done, Outage, Plan
from proofs.fleet.database import Database, PgBouncerDatabase
from proofs.fleet.producers import NUMBER
from proofs.fleet.recovery import check_recovery
from proofs.ledger import Entry, read
from proofs.readers.sqlite import Claimed, Delivery, FleetReader
from proofs.report import Report
from proofs.serving import Place, begun_and_not_ended, check_ends, check_store, ended, enqueue, figure_attempts, key
from proofs.stores import durable_postgres, name_store, postgres_database, redis_cluster_database, redis_database
from tests.postgres.private_pgbouncer import PrivatePgBouncer

__all__ = [
    "Plan",
    "check",
    "prove",
    "prove_on_a_cluster",
    "prove_on_redis",
    "prove_restarts",
    "prove_restarts_on_redis",
    "prove_through_pgbouncer",
    "work",
]

PROMISE = (
    "whatever dies, servers, sessions or the database: no job is lost or doubled, no stale end is accepted, every "
    "attempt is charged for a reason, and work goes on within 5 s after the database is back"
)
RESTARTS = (
    "however often the database is killed or stopped in a hurry, and for how long: no job is lost or doubled, attempts "
    "are charged only where a lease ran out meanwhile, work goes on within 5 s after it is back, and 95 % of the usual "
    "rate are reached within 30 s"
)
WHY_SO_MANY = (
    "Twenty kills of up to 15 s, where a longer campaign has fifty of up to a minute and takes half an hour: some are "
    "shorter and some longer than the lease of 10 s, and behind that a longer one meets servers that only try again."
)
RESCUED_SOON = 3.0
"""Seconds after the database is back within which leases are taken back that ran out while it was down."""
CLOCKS_DIFFER = 0.05


def prove(folder: Path, plan: Plan) -> Report:
    """Let it happen on Postgres."""
    with postgres_database() as database:
        return _prove(folder, plan, Report("fleet", PROMISE), database)


def prove_through_pgbouncer(folder: Path, plan: Plan) -> Report:
    """Let it happen on Postgres, with a PgBouncer in transaction mode before it that is killed every other time."""
    report = Report("fleet-pgbouncer", PROMISE)
    with durable_postgres() as cluster:
        with PrivatePgBouncer(cluster) as pool:
            place = Place(pool.url, folder / "ledger", direct=cluster.url)
            database = PgBouncerDatabase(cluster, pool)
            done = work(place, database, plan)
        # it keeps sessions for its next client: they are gone with it, and those that are left are of servers
        name_store(report, place)
        report.store += " behind PgBouncer"
        check(report, place, plan, done, database.at_work)
    return report


def prove_on_redis(folder: Path, plan: Plan) -> Report:
    """Let it happen on a Redis that syncs each write before it is answered."""
    with redis_database() as database:
        return _prove(folder, plan, Report("redis-fleet", PROMISE), database)


def prove_on_a_cluster(folder: Path, plan: Plan, *, spread: bool = False) -> Report:
    """Let it happen on three masters of a Redis Cluster, of which one after the other is killed."""
    with redis_cluster_database(spread=spread) as database:
        return _prove(folder, plan, Report("redis-spread" if spread else "redis-cluster", PROMISE), database)


def prove_restarts(folder: Path, plan: Plan) -> Report:
    """Let nothing happen but that Postgres is gone for a while, and measure how soon all is as it was."""
    with postgres_database() as database:
        return _prove(folder, plan, Report("restarts", RESTARTS, remark=WHY_SO_MANY), database)


def prove_restarts_on_redis(folder: Path, plan: Plan) -> Report:
    """Let nothing happen but that a Redis is gone for a while, one that syncs each write before it is answered."""
    with redis_database() as database:
        return _prove(folder, plan, Report("redis-restarts", RESTARTS, remark=WHY_SO_MANY), database)


def _prove(folder: Path, plan: Plan, report: Report, database: Database) -> Report:
    place = Place(database.url, folder / "ledger")
    done = work(place, database, plan)
    name_store(report, place)
    check(report, place, plan, done, database.at_work)
    return report


def work(place: Place, database: Database, plan: Plan) -> Done:
    """Let a fleet work until nothing is left, whatever happens meanwhile; return what did."""
    enqueue(place, [])
    with Children(place.ledger) as children:
        campaign = Campaign(place, database, plan, children)
        try:
            campaign.run()
        finally:
            campaign.close()
    return campaign.done


def check(report: Report, place: Place, plan: Plan, done: Done, at_work: str) -> None:
    """Compare what was done and told with what is in the store; `at_work` is what a session did that was not idle."""
    entries = list(read(place.ledger))
    reader = place.fleet_reader
    _check_faults(report, plan, done, entries, at_work)
    _check_jobs(report, plan, reader, entries)
    figure_attempts(report, entries)
    check_ends(report, place, [entry.job for entry in entries if entry.event == "ok"], ended(entries))
    _check_attempts(report, plan, reader, entries, done)
    _check_stale(report, reader, entries)
    check_tokens(report, reader, entries)
    check_returns(report, plan, reader.claims(), done)
    if plan.steady:
        check_recovery(report, plan, entries, done.outages)
    report.never("what went wrong otherwise", done.failed)
    report.never("servers registered that were not killed", set(reader.servers()) - done.killed_at.keys())
    check_store(report, place, entries, kills=plan.kills)


def _check_faults(report: Report, plan: Plan, done: Done, entries: list[Entry], at_work: str) -> None:
    """Every fault was delivered, and met work."""
    inside = {entry.process for entry in begun_and_not_ended(entries).values()} & done.killed
    busy = [state for state in done.cut_states if state != "idle"]
    report.figure("kills of a server whose parent started it again", done.child_kills)
    report.figure("kills of a server and its parent", done.whole_kills)
    report.figure("kills inside a job", len(inside))
    if plan.standstills:
        late = sum(entry.event == "late" for entry in entries)
        report.figure("servers that stood still past their leases, and went on", len(done.standstills))
        report.figure("stale settlements that were refused", late)
        report.needs(f"{plan.standstills} servers stood still", given=len(done.standstills) == plan.standstills)
        report.needs("stale settlements, refused, of each of them", given=late >= plan.standstills)
    report.figure("sessions that were ended", len(done.cut_states))
    report.figure(f"of them {at_work}", len(busy))
    report.figure(f"kills of {plan.killed}", len(done.outages))
    report.needs(f"{plan.kills} kills of servers", given=done.child_kills + done.whole_kills == plan.kills)
    report.needs("half of the kills inside a job", given=len(inside) * 2 >= plan.kills)
    report.needs(f"{plan.cuts} ended sessions", given=len(done.cut_states) == plan.cuts)
    report.needs("a tenth of them at work", given=len(busy) * 10 >= plan.cuts)
    report.needs(f"{plan.crashes} kills of {plan.killed}", given=len(done.outages) == plan.crashes)


def _check_jobs(report: Report, plan: Plan, reader: FleetReader, entries: list[Entry]) -> None:
    """Each job that a producer asked for is there once, under the id that it was told."""
    told = {entry.note: entry.job for entry in entries if entry.event == "ok"}
    asked = {entry.note for entry in entries if entry.event == "invoked"}
    found = [(headers[NUMBER], job) for job, headers in reader.headers().items()]
    counts = Counter(number for number, _ in found)
    doubts = Counter(entry.note.partition(":")[0] for entry in entries if entry.event == "fault")
    report.figure("jobs asked for by producers", len(asked))
    for what, count in sorted(doubts.items()):
        report.figure(f"calls of producers that ended in {what} and were repeated", count)
    report.never("double: asked for once and there twice", [number for number, count in counts.items() if count > 1])
    report.never("lost: asked for and not there", asked - counts.keys())
    report.never("there under another id than was told", [n for n, job in found if told.get(n) != job])
    report.never("asked for and never answered", asked - told.keys())
    report.needs(f"{plan.jobs:,} jobs", given=len(asked) == plan.jobs)


def _check_attempts(report: Report, plan: Plan, reader: FleetReader, entries: list[Entry], done: Done) -> None:
    """Each attempt that was charged beside the last one was of a server that died or stood still, or met an outage."""
    deliveries = reader.deliveries()
    rescued = [each for each in deliveries if each.outcome == "rescued"]
    reasons = {(each.job, each.delivery): _reason(each, done) for each in rescued}
    outcomes = {(each.job, each.delivery): each.outcome for each in deliveries}
    rescues = Counter(each.job for each in rescued)
    rows = reader.jobs()
    counted = Counter(reasons.values())
    report.figure("attempts charged in vain: the server was killed", counted["kill"])
    if plan.standstills:
        report.figure("attempts charged in vain: the server stood still", counted["standstill"])
    report.figure(f"attempts charged in vain: the lease ran out while {plan.killed} was down", counted["outage"])
    report.never(
        "attempts charged by a lost connection alone",
        [each for each in rescued if not reasons[each.job, each.delivery]],
    )
    report.figure("claims given back, at no cost", sum(each.outcome == "released" for each in deliveries))
    report.never(
        "deliveries that ended otherwise than by a rescue or a release",
        [each for each in deliveries if each.outcome not in ("rescued", "released")],
    )
    report.never(
        "jobs charged otherwise than once for each rescue and for the success",
        [row for row in rows.values() if row.attempt != rescues[row.id] + 1],
    )
    report.never(
        "jobs that ran again without a rescue in between",
        [
            key(entry)
            for entry in entries
            if entry.event == "begun"
            and entry.job in rows
            and entry.delivery < rows[entry.job].delivery
            and outcomes.get(key(entry)) != "rescued"
        ],
    )


def _reason(rescue: Delivery, done: Done) -> str:
    """Return why a claim was not settled by whoever had it; nothing when only connections can have been lost."""
    killed_at = done.killed_at.get(rescue.worker)
    if killed_at is not None and killed_at <= rescue.ended_at:
        return "kill"
    if any(
        each.server == rescue.worker and each.stopped_at <= rescue.ended_at <= each.went_on_at + RESCUED_SOON
        for each in done.standstills
    ):
        return "standstill"
    if any(each.down_at <= rescue.ended_at <= each.back_at + RESCUED_SOON for each in done.outages):
        return "outage"
    return ""


def _check_stale(report: Report, reader: FleetReader, entries: list[Entry]) -> None:
    """A success is written after the work of that very delivery has ended."""
    rows = reader.jobs()
    last = [e for e in entries if e.event == "ended" and e.job in rows and e.delivery == rows[e.job].delivery]
    epoch = time.time() - time.monotonic()
    report.never(
        "stale ends accepted: a success written before the last attempt had ended",
        [e.job for e in last if e.at + epoch > (rows[e.job].finished_at or 0) / 1_000_000 + CLOCKS_DIFFER],
    )
    twice = Counter(key(entry) for entry in entries if entry.event == "ended")
    report.never("deliveries that were worked twice", [each for each, count in twice.items() if count > 1])


def check_tokens(report: Report, reader: FleetReader, entries: list[Entry]) -> None:
    """Each claim has a token of its own, and a success was written by the one whose work had ended."""
    rows, tokens = reader.jobs(), reader.tokens()
    epoch = time.time() - time.monotonic()
    begun = Counter(entry.token for entry in entries if entry.event == "begun")
    ends = {(entry.job, entry.token): entry.at + epoch for entry in entries if entry.event == "ended"}
    succeeded = [row for row in rows.values() if row.state == "succeeded"]
    report.figure("tokens that were handed out and seen by a handler", len(begun))
    report.never("tokens handed out twice", [token for token, count in begun.items() if count > 1])
    report.never(
        "stale ends accepted: a success by another token than one whose work had ended by then",
        [
            row.id
            for row in succeeded
            if ends.get((row.id, tokens.get(row.id, "")), math.inf) > (row.finished_at or 0) / 1_000_000 + CLOCKS_DIFFER
        ],
    )
    _, settled = reader.totals()
    report.never("settled twice: successes counted beyond one for each job", range(abs(settled - len(succeeded))))


def check_returns(report: Report, plan: Plan, claims: list[Claimed], done: Done) -> None:
    """After the database is back, every server that lived through it claims within a few seconds."""
    late: list[str] = []
    for number, outage in enumerate(done.outages, 1):
        lived = {c.worker for c in claims if c.at < outage.down_at and _lives(c.worker, done, outage.back_at)}
        waits = _waits([claim for claim in claims if claim.worker in lived], outage)
        report.figure(
            f"kill {number} of {plan.killed}",
            f"{outage.back_at - outage.down_at:.1f} s down; servers claim again after "
            + ", ".join(f"{wait:.2f} s" for wait in sorted(waits.values())),
        )
        until = outage.back_at + plan.back_within
        late += [f"{server} after {wait:.1f} s" for server, wait in waits.items() if wait > plan.back_within]
        late += [f"{server} never" for server in lived - waits.keys() if _lives(server, done, until)]
        report.needs(f"servers that lived through kill {number} of {plan.killed}", given=bool(waits))
    report.never(f"servers that did not work on within {plan.back_within:g} s after it was back", late)


def _lives(server: str, done: Done, at: float) -> bool:
    """Whether nobody has killed this server before then."""
    return done.killed_at.get(server, at) >= at


def _waits(claims: list[Claimed], outage: Outage) -> dict[str, float]:
    """Return how long it took each server from the return of the database to its next claim."""
    waits: dict[str, float] = {}
    for claim in claims:
        if claim.at > outage.back_at:
            waits.setdefault(claim.worker, claim.at - outage.back_at)
    return waits
