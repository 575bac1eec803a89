"""The database ends ten sessions a second: no server ends of it, and work goes on at nearly its usual rate."""

import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from proofs.children import eventually
from proofs.commands import Command
from proofs.fleet.database import IDLE, Database
from proofs.ledger import Entry, read
from proofs.report import Report
from proofs.serving import Place, check_ends, check_store, ended, enqueue, figure_attempts, new_job
from proofs.stores import name_store, postgres_database, redis_database
from windlass import NewJob

PROMISE = "sessions that the database ends cost no job, no attempt, no server, and little of the rate"
ONE_AT_WORK_IN = 3
"""Of so many that are ended one is looked for that is at work: who is chosen by chance hardly ever is."""
LOOK_EVERY = 0.005


@dataclass(frozen=True)
class Plan:
    servers: int = 2
    calm: float = 15.0
    """Seconds of undisturbed work, for the rate to compare with."""
    seconds: float = 300.0
    rate: int = 10
    """Sessions that are ended in a second."""
    per_second: int = 900
    """Jobs for each second: more than two servers with twenty slots can do."""
    job: float = 0.05
    least: float = 0.8
    """The share of the usual rate that must be left."""
    finish: float = 300.0


def prove(folder: Path, plan: Plan) -> Report:
    with postgres_database() as database:
        return _prove(folder, plan, Report("terminations", PROMISE), database)


def prove_on_redis(folder: Path, plan: Plan) -> Report:
    with redis_database() as database:
        return _prove(folder, plan, Report("redis-terminations", PROMISE), database)


def _prove(folder: Path, plan: Plan, report: Report, database: Database) -> Report:
    place = Place(database.url, folder / "ledger")
    name_store(report, place)
    count = int(plan.per_second * (plan.calm + plan.seconds))
    ids = [job for _ in range(-(-count // 5_000)) for job in enqueue(place, [_job(plan)] * min(count, 5_000))]
    _disturb(report, place, plan, ids, database)
    return report


def _job(plan: Plan) -> NewJob:
    return new_job("on_the_loop", plan.job)


def _disturb(report: Report, place: Place, plan: Plan, ids: list[str], database: Database) -> None:
    options = ["--processes", "1", "--concurrency", "20", "--lease", "10s", "--rescue-interval", "1s"]
    commands = [Command(place, options, name=f"server {number}") for number in range(plan.servers)]
    try:
        eventually(lambda: len(_working(place)) == plan.servers, 60, 0.1)
        began = time.monotonic()
        time.sleep(plan.calm)
        calm_until = time.monotonic()
        states = _end_sessions(database, plan)
        until = time.monotonic()
        finished = eventually(lambda: place.reader.unfinished() == 0, plan.finish, 0.2)
        exits = [f"by itself: {each.process.poll()}" for each in commands if each.process.poll() is not None]
        codes = [each.stop(10)[0] for each in commands]
    finally:
        for each in commands:
            each.__exit__()
    entries = list(read(place.ledger))
    calm, disturbed = _rate(entries, began, calm_until), _rate(entries, calm_until, until)
    cut, busy = len(states), sum(state != IDLE for state in states)
    report.figure("sessions ended", cut)
    report.figure(f"of them {database.at_work}", busy)
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
    report.needs("a tenth of them at work", given=busy * 10 >= cut)
    report.needs("all jobs done, and not before the end", given=finished and len(ended(entries)) == len(ids))


def _working(place: Place) -> set[str]:
    return {entry.process for entry in read(place.ledger) if entry.event == "ended"} if place.ledger.exists() else set()


def _cut_one(database: Database, states: list[str], *, busy: bool) -> bool:
    state = database.cut(busy=busy)
    if state is not None:
        states.append(state)
    return state is not None


def _end_sessions(database: Database, plan: Plan) -> list[str]:
    """End sessions at the rate of the plan; return what each did."""
    states: list[str] = []
    began = time.monotonic()
    for number in range(int(plan.rate * plan.seconds)):
        if number % ONE_AT_WORK_IN or not eventually(lambda: _cut_one(database, states, busy=True), 0.5, LOOK_EVERY):
            # one that was chosen may be gone by the time it is ended
            eventually(lambda: _cut_one(database, states, busy=False), 5)
        time.sleep(max(0.0, began + (number + 1) / plan.rate - time.monotonic()))
    return states


def _rate(entries: list[Entry], since: float, until: float) -> float:
    return sum(entry.event == "ended" and since < entry.at <= until for entry in entries) / (until - since)


def _restarts(entries: list[Entry], plan: Plan) -> list[str]:
    started = Counter(entry.process for entry in entries if entry.event == "started")
    return sorted(started)[plan.servers :]
