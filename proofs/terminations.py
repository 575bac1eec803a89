"""The database ends ten sessions a second: no server ends of it, and work goes on at nearly its usual rate."""

import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import psycopg

from proofs.children import eventually
from proofs.commands import Command
from proofs.ledger import Entry, read
from proofs.postgres_reader import APPLICATION
from proofs.report import Report
from proofs.serving import Place, check_ends, check_store, ended, enqueue, figure_attempts, new_job
from proofs.stores import durable_postgres, name_store
from windlass import NewJob

PROMISE = "sessions that the database ends cost no job, no attempt, no server, and little of the rate"
ENDING = """
select count(*) filter (where ended), count(*) filter (where ended and state <> 'idle') from (
    select pg_terminate_backend(pid) as ended, state from (
        select pid, state from pg_stat_activity where application_name = %s order by random() limit 1
    ) victim
) ending
"""


@dataclass(frozen=True)
class Plan:
    servers: int = 2
    calm: float = 15.0
    """Seconds of undisturbed work, for the rate to compare with."""
    seconds: float = 30.0
    rate: int = 10
    """Sessions that are ended in a second."""
    per_second: int = 900
    """Jobs for each second: more than two servers with twenty slots can do."""
    job: float = 0.05
    least: float = 0.8
    """The share of the usual rate that must be left."""
    finish: float = 300.0


def prove(folder: Path, plan: Plan) -> Report:
    report = Report("terminations", PROMISE)
    with durable_postgres() as cluster:
        place = Place(cluster.url, folder / "ledger")
        name_store(report, place)
        count = int(plan.per_second * (plan.calm + plan.seconds))
        ids = [job for _ in range(-(-count // 5_000)) for job in enqueue(place, [_job(plan)] * min(count, 5_000))]
        _disturb(report, place, plan, ids)
    return report


def _job(plan: Plan) -> NewJob:
    return new_job("on_the_loop", plan.job)


def _disturb(report: Report, place: Place, plan: Plan, ids: list[str]) -> None:
    options = ["--processes", "1", "--concurrency", "20", "--lease", "10s", "--rescue-interval", "1s"]
    commands = [Command(place, options, name=f"server {number}") for number in range(plan.servers)]
    try:
        eventually(lambda: len(_working(place)) == plan.servers, 60, 0.1)
        began = time.monotonic()
        time.sleep(plan.calm)
        calm_until = time.monotonic()
        cut, busy = _end_sessions(place, plan)
        until = time.monotonic()
        finished = eventually(lambda: place.reader.unfinished() == 0, plan.finish, 0.2)
        exits = [f"by itself: {each.process.poll()}" for each in commands if each.process.poll() is not None]
        codes = [each.stop(10)[0] for each in commands]
    finally:
        for each in commands:
            each.__exit__()
    entries = list(read(place.ledger))
    calm, disturbed = _rate(entries, began, calm_until), _rate(entries, calm_until, until)
    report.figure("sessions ended", cut)
    report.figure("of them inside a statement or a transaction", busy)
    report.figure("jobs a second, undisturbed", f"{calm:,.0f}")
    report.figure("jobs a second meanwhile", f"{disturbed:,.0f} ({disturbed / calm if calm else 0:.0%})")
    report.never(f"less than {plan.least:.0%} of the usual rate", [disturbed] if disturbed < calm * plan.least else [])
    report.never("servers that ended", exits + [f"at the stop: {code}" for code in codes if code != 0])
    report.never("servers that were started again", _restarts(entries, plan))
    figure_attempts(report, entries)
    check_ends(report, place, ids, ended(entries))
    rows = place.reader.jobs()
    report.never("attempts charged in vain", [row for row in rows.values() if row.attempt != 1])
    report.never("claims taken back", [o for o in place.reader.outcomes().values() if o == "rescued"])
    check_store(report, place, entries, kills=0)
    report.needs(f"{plan.rate} ended sessions a second", given=cut >= plan.rate * plan.seconds * 0.8)
    report.needs("all jobs done, and not before the end", given=finished and len(ended(entries)) == len(ids))


def _working(place: Place) -> set[str]:
    return {entry.process for entry in read(place.ledger) if entry.event == "ended"} if place.ledger.exists() else set()


def _end_sessions(place: Place, plan: Plan) -> tuple[int, int]:
    """End sessions at the rate of the plan; return how many, and how many of them were at work."""
    cut = busy = 0
    until = time.monotonic() + plan.seconds
    with psycopg.connect(place.url, autocommit=True) as connection:
        while time.monotonic() < until:
            [(one, at_work)] = connection.execute(ENDING, [APPLICATION]).fetchall()
            cut, busy = cut + one, busy + at_work
            time.sleep(1 / plan.rate)
    return cut, busy


def _rate(entries: list[Entry], since: float, until: float) -> float:
    return sum(entry.event == "ended" and since < entry.at <= until for entry in entries) / (until - since)


def _restarts(entries: list[Entry], plan: Plan) -> list[str]:
    started = Counter(entry.process for entry in entries if entry.event == "started")
    return sorted(started)[plan.servers :]
