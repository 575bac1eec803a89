"""A server is stopped and started again, a hundred times, in the middle of its work: no job pays for it.

At the end it is also stopped while another connection holds the write lock of the file. Then nothing can be given back,
but the stop must not wait for it.
"""

import asyncio
import math
import random
import sqlite3
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from proofs.children import Children
from proofs.ledger import Entry, Ledger, Tail, read
from proofs.readers import sqlite as reader
from proofs.report import Report
from proofs.serving import (
    Place,
    check_ends,
    check_store,
    ended,
    enqueue,
    figure_attempts,
    key,
    new_job,
    serve_until_done,
    served_app,
)
from windlass import NewJob, Server, ServerConfig

PROMISE = "a stop ends within its grace and one second, and costs no job an attempt"
GRACES = (0.0, 0.02, 0.1, 0.5)
LONG = 1.0
"""Seconds that some jobs take, more than a server lives."""


@dataclass(frozen=True)
class Plan:
    stops: int = 100
    jobs: int = 15_000
    longest: float = 0.05
    longest_life: float = 0.3
    processes: int = 20
    """Jobs that run in child processes."""
    long: int = 8
    """Jobs that outlive every stop; half of them give themselves back."""
    locked: int = 10
    """Stops while the file is locked."""
    spare: float = 1.0
    """Seconds that a stop may take beyond its grace."""
    early: int = 10
    """One stop in so many comes at any moment after the start, also before there is a job."""
    lease: float = 30.0
    seconds: float = 600
    seed: int = 1


def prove(folder: Path, plan: Plan) -> Report:
    report = Report("stops", PROMISE)
    _under_load(report, Place.within(folder), plan)
    _while_locked(report, folder / "locked", plan)
    return report


def _under_load(report: Report, place: Place, plan: Plan) -> None:
    chance = random.Random(plan.seed)
    ids = enqueue(place, _jobs(plan, chance))
    with Children(place.ledger) as children:
        children.start("server", stop_again_and_again, place, plan)
        failed = children.wait(plan.seconds)
    entries = list(read(place.ledger))
    stops = [entry for entry in entries if entry.event == "fault"]
    busy = [stop for stop, running in zip(stops, _running_at(stops, entries), strict=True) if running]
    report.figure("jobs", len(ids))
    report.figure("stops", len(stops))
    report.figure("stops while jobs ran", len(busy))
    _check_times(report, "stops", entries, plan.spare)
    figure_attempts(report, entries)
    check_ends(report, place, ids, ended(entries))
    _check_costs(report, place, entries)
    check_store(report, place, entries, kills=0)
    report.never("processes that failed or did not end", failed)
    report.needs(f"{plan.stops} stops", given=len(stops) == plan.stops)
    report.needs("jobs at nine in ten of the stops", given=len(busy) * 10 >= plan.stops * 9)


def _jobs(plan: Plan, chance: random.Random) -> list[NewJob]:
    """Mostly short ones; what is given back keeps its place, so a few long ones come first in every life."""
    kinds = ("on_the_loop", "in_a_thread", "ignore_the_stop")
    jobs = [new_job(kinds[number % 3], chance.uniform(0, plan.longest)) for number in range(plan.jobs)]
    for number in range(plan.long):
        jobs[chance.randrange(plan.jobs // 2)] = new_job(("on_the_loop", "heed_the_stop")[number % 2], LONG)
    for _ in range(plan.processes):
        jobs[chance.randrange(plan.jobs)] = new_job("in_a_process", chance.uniform(0, plan.longest))
    return jobs


async def stop_again_and_again(ledger: Ledger, place: Place, plan: Plan) -> None:
    chance = random.Random(plan.seed)
    app = served_app(place, ledger.process)
    server = Server(app, ServerConfig(concurrency=20, lease=plan.lease, rescue_interval=1))
    async with app:
        tail = Tail(place.ledger)
        for number in range(plan.stops):
            tail.look()
            await server.start()
            if number % plan.early != plan.early - 1:
                await _begun(tail)
            await asyncio.sleep(chance.uniform(0, plan.longest_life))
            await _stop(ledger, server, chance.choice(GRACES))
        await serve_until_done(server, place)


async def _begun(tail: Tail) -> None:
    """Wait until an attempt has begun."""
    async with asyncio.timeout(30):
        while not any(entry.event == "begun" for entry in tail.look()):  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.005)


async def _stop(ledger: Ledger, server: Server, grace: float) -> None:
    """Stop, and note how many milliseconds it took beyond the grace."""
    ledger.write("fault", note="stop")
    began = time.monotonic()
    await server.stop(grace=grace)
    beyond = time.monotonic() - began - grace
    ledger.write("count", count=int(beyond * 1000), note=f"grace {grace} s")


def _running_at(stops: list[Entry], entries: list[Entry]) -> list[int]:
    """Return how many attempts ran at each of the stops."""
    ends = {key(entry): entry.at for entry in entries if entry.event == "ended"}
    begun = [(entry.at, ends.get(key(entry), math.inf)) for entry in entries if entry.event == "begun"]
    moments = [0.0, *(stop.at for stop in stops)]
    # one that never ended belongs to the life that it began in
    return [sum(before < begin <= stop < end for begin, end in begun) for before, stop in pairwise(moments)]


def _check_times(report: Report, what: str, entries: list[Entry], spare: float) -> None:
    times = [entry for entry in entries if entry.event == "count"]
    late = [f"{entry.note}, and {entry.count} ms" for entry in times if entry.count > spare * 1000]
    worst = max((entry.count for entry in times), default=0)
    report.figure(f"{what}: the longest, beyond its grace", f"{max(worst, 0):,} ms")
    report.never(f"{what} that took more than {spare:g} s beyond their grace", late)


def _check_costs(report: Report, place: Place, entries: list[Entry]) -> None:
    rows = reader.jobs(place.database)
    ends = Counter(entry.job for entry in entries if entry.event == "ended")
    outcomes = Counter(reader.outcomes(place.database).values())
    report.figure("deliveries given back", outcomes["released"])
    report.never("deliveries that ended otherwise", [outcome for outcome in outcomes if outcome != "released"])
    report.never("attempts burnt", [row for row in rows.values() if row.attempt != 1])
    report.never("worked to the end more than once", [job for job, count in ends.items() if count > 1])
    report.needs("jobs that were given back", given=outcomes["released"] > 0)


def _while_locked(report: Report, folder: Path, plan: Plan) -> None:
    folder.mkdir()
    place = Place.within(folder)
    chance = random.Random(plan.seed)
    jobs = [new_job("on_the_loop", chance.uniform(0, plan.longest)) for _ in range(200 * plan.locked)]
    ids = enqueue(place, jobs, max_attempts=2 * plan.locked + 3)
    with Children(place.ledger) as children:
        children.start("server", stop_while_locked, place, plan)
        failed = children.wait(plan.seconds)
    entries = list(read(place.ledger))
    stops = sum(entry.event == "fault" for entry in entries)
    rows = reader.jobs(place.database)
    report.figure("stops while the file was locked", stops)
    _check_times(report, "stops while locked", entries, plan.spare)
    report.never("of their jobs lost", set(ids) - rows.keys())
    report.never("of their jobs not succeeded", [row for row in rows.values() if row.state != "succeeded"])
    report.never("their processes that failed or did not end", failed)
    report.needs(f"{plan.locked} stops while the file was locked", given=stops == plan.locked)


async def stop_while_locked(ledger: Ledger, place: Place, plan: Plan) -> None:
    chance = random.Random(plan.seed)
    app = served_app(place, ledger.process)
    # a lease that soon runs out: what was not given back is taken back
    server = Server(app, ServerConfig(concurrency=20, lease=1, rescue_interval=0.3))
    async with app:
        for _ in range(plan.locked):
            await server.start()
            await asyncio.sleep(chance.uniform(0, plan.longest_life))
            with closing(sqlite3.connect(place.database, timeout=30)) as stranger:
                stranger.execute("begin immediate")
                await asyncio.sleep(chance.uniform(0, 0.2))
                await _stop(ledger, server, chance.choice(GRACES))
        await serve_until_done(server, place)
