"""`windlass worker` gets SIGTERM, a hundred times, in the middle of its work: no job pays for it."""

import random
import signal
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from proofs.children import eventually
from proofs.commands import Command
from proofs.ledger import Tail, read
from proofs.readers import sqlite as reader
from proofs.report import Report
from proofs.serving import Place, check_ends, check_store, ended, enqueue, figure_attempts, new_job
from windlass import NewJob

PROMISE = (
    "a worker of two processes that gets SIGTERM ends within its grace and one second, and costs no job an attempt"
)
GRACES = (0.0, 0.02, 0.1, 0.5)
LONG = 1.5
"""Seconds that some jobs take, more than a worker lives."""
COMES_UP = 30.0


@dataclass(frozen=True)
class Plan:
    stops: int = 100
    jobs: int = 25_000
    longest: float = 0.1
    longest_life: float = 0.3
    early: int = 10
    """One stop in so many comes at any moment after the start, also before there is a server."""
    processes: int = 20
    """Jobs that run in child processes of the server."""
    long: int = 9
    """Jobs that outlive every stop: on the loop, in a thread, and heeding the stop."""
    spare: float = 1.0
    """Seconds that an end may take beyond its grace."""
    seconds: float = 600
    seed: int = 1


@dataclass
class Stop:
    code: int | None
    beyond: float
    busy: bool


def prove(folder: Path, plan: Plan) -> Report:
    place = Place.within(folder)
    report = Report("signals", PROMISE)
    chance = random.Random(plan.seed)
    jobs = _jobs(plan, chance)
    ids = enqueue(place, jobs)
    tail = Tail(place.ledger)
    stops = [_life(number, place, plan, chance, tail) for number in range(plan.stops)]
    last = _last_life(place, plan)
    entries = list(read(place.ledger))
    report.figure("jobs", len(ids))
    report.figure("stops by SIGTERM", len(stops))
    report.figure("stops while jobs ran", sum(stop.busy for stop in stops))
    beyond = sorted(stop.beyond for stop in stops)
    report.figure("the longest end, beyond its grace", f"{max(0, beyond[-1]) * 1000:.0f} ms")
    report.never(
        f"ends more than {plan.spare:g} s beyond their grace",
        [f"{stop.beyond:.2f} s beyond" for stop in stops if stop.beyond > plan.spare],
    )
    report.never("exit codes other than 0", [stop.code for stop in (*stops, last) if stop.code != 0])
    figure_attempts(report, entries)
    check_ends(report, place, ids, ended(entries))
    # a thread that was let go may still come to its end while its process does
    let_go = {job for job, new in zip(ids, jobs, strict=True) if _is_long_thread(new)}
    _check_costs(report, place, Counter(e.job for e in entries if e.event == "ended" and e.job not in let_go))
    check_store(report, place, entries, kills=plan.stops)
    report.needs(f"{plan.stops} stops", given=len(stops) == plan.stops)
    report.needs("jobs at half of the stops", given=sum(stop.busy for stop in stops) * 2 >= plan.stops)
    return report


def _jobs(plan: Plan, chance: random.Random) -> list[NewJob]:
    """Mostly short ones; what is given back keeps its place, so the long ones come first in every life."""
    kinds = ("on_the_loop", "in_a_thread", "ignore_the_stop")
    jobs = [new_job(kinds[number % 3], chance.uniform(0, plan.longest)) for number in range(plan.jobs)]
    for number in range(plan.long):
        jobs[chance.randrange(plan.jobs // 2)] = new_job(
            ("on_the_loop", "heed_the_stop", "in_a_thread")[number % 3], LONG
        )
    for _ in range(plan.processes):
        jobs[chance.randrange(plan.jobs // 2)] = new_job("in_a_process", chance.uniform(0, plan.longest))
    return jobs


def _is_long_thread(job: NewJob) -> bool:
    return job.kind == "in_a_thread" and job.payload == {"seconds": LONG}


def _life(number: int, place: Place, plan: Plan, chance: random.Random, tail: Tail) -> Stop:
    """Start a worker, let it work for a moment, and stop it."""
    grace = chance.choice(GRACES)
    tail.look()
    with Command(place, [*_options(), "--shutdown-timeout", f"{grace}s"]) as command:
        if number % plan.early == plan.early - 1:
            eventually(lambda: _hears(command.process.pid), COMES_UP)
            time.sleep(chance.uniform(0, 0.8))
        else:
            eventually(lambda: any(entry.event == "begun" for entry in tail.look()), COMES_UP)
            time.sleep(chance.uniform(0, plan.longest_life))
        busy = bool(reader.running(place.database))
        return Stop(*command.stop(grace), busy)


def _hears(pid: int) -> bool:
    """Whether the parent has taken SIGTERM over: before, it ends the interpreter, which has started nothing yet."""
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    [caught] = [line.split()[1] for line in status if line.startswith("SigCgt:")]
    return bool(int(caught, 16) & 1 << (signal.SIGTERM - 1))


def _last_life(place: Place, plan: Plan) -> Stop:
    """Let a worker finish what is left."""
    with Command(place, _options()) as command:
        eventually(lambda: command.process.poll() is not None or not reader.unfinished(place.database), plan.seconds)
        return Stop(*command.stop(30), busy=False)


def _options() -> list[str]:
    return ["--processes", "2", "--concurrency", "10", "--lease", "1h", "--rescue-interval", "1h"]


def _check_costs(report: Report, place: Place, ends: Counter[str]) -> None:
    rows = reader.jobs(place.database)
    outcomes = Counter(reader.outcomes(place.database).values())
    report.figure("deliveries given back", outcomes["released"])
    report.never("deliveries that ended otherwise", [outcome for outcome in outcomes if outcome != "released"])
    report.never("attempts burnt", [row for row in rows.values() if row.attempt != 1])
    report.never("worked to the end more than once", [job for job, count in ends.items() if count > 1])
    report.needs("jobs that were given back", given=outcomes["released"] > 0)
