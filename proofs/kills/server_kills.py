"""A server is killed by SIGKILL, again and again, and another one goes on: every job comes to its end, once.

A job may run again where a kill explains it, and nowhere else: its earlier attempts were in servers that were killed.
"""

import random
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from proofs.children import Children, eventually
from proofs.ledger import Entry, Tail, read
from proofs.readers import sqlite as reader
from proofs.report import Report
from proofs.serving import (
    Place,
    begun_and_not_ended,
    check_ends,
    check_store,
    ended,
    enqueue,
    figure_attempts,
    key,
    new_job,
    serve,
)
from windlass import NewJob, ServerConfig

PROMISE = "however often the server is killed, no job is lost, none dies of it, and no stale end is accepted"
MOST_ATTEMPTS = 20
LONGEST_LIFE = 30.0
CLOCKS_DIFFER = 2_000
"""Microseconds that the two clocks may drift apart in one run."""


@dataclass(frozen=True)
class Plan:
    jobs: int = 10_000
    kills: int = 50
    processes_every: int = 50
    """One job in so many runs in a child process, and takes longer: a kill is to meet it there."""
    longest: float = 0.1
    lease: float = 5.0
    seconds: float = 300
    """How long the last server may take for what is left."""
    seed: int = 1


def prove(folder: Path, plan: Plan) -> Report:
    place = Place.within(folder)
    report = Report("server-kills", PROMISE)
    chance = random.Random(plan.seed)
    epoch = time.time() - time.monotonic()
    ids = enqueue(place, [_job(number, plan, chance) for number in range(plan.jobs)], max_attempts=MOST_ATTEMPTS)
    kills = [_life(number, place, plan, chance) for number in range(plan.kills)]
    ended_well = _last_life(place, plan)
    entries = list(read(place.ledger))
    cut_short = begun_and_not_ended(entries).values()
    inside = {entry.process for entry in cut_short}
    report.figure("jobs", len(ids))
    report.figure("kills delivered", sum(kills))
    report.figure("kills inside a job", len(inside))
    for note, count in sorted(Counter(entry.note for entry in cut_short).items()):
        report.figure(f"attempts cut short: {note}", count)
    figure_attempts(report, entries)
    check_ends(report, place, ids, ended(entries))
    _check_attempts(report, place, entries, epoch)
    check_store(report, place, entries, kills=plan.kills)
    report.never("last servers that did not end well", [] if ended_well else ["the last one"])
    report.needs(f"{plan.kills} kills", given=all(kills))
    report.needs("half of the kills inside a job", given=len(inside) * 2 >= plan.kills)
    report.needs("kills on the loop, in threads and in child processes", given=len({e.note for e in cut_short}) == 3)
    return report


def _job(number: int, plan: Plan, chance: random.Random) -> NewJob:
    seconds = chance.uniform(0, plan.longest)
    if number % plan.processes_every == 0:
        return new_job("in_a_process", 3 * plan.longest + 2 * seconds)
    return new_job(("on_the_loop", "in_a_thread")[number % 2], seconds)


def _config(plan: Plan) -> ServerConfig:
    return ServerConfig(concurrency=20, lease=plan.lease, rescue_interval=1, shutdown_timeout=10)


def _life(number: int, place: Place, plan: Plan, chance: random.Random) -> bool:
    """Let a server work for a while, then kill it; return whether it was alive until then.

    Every fifth is killed while a child process of it works, every tenth about when it has started.
    """
    enough = int(plan.jobs / (plan.kills + 1) * chance.uniform(0.2, 1.0))
    tail = Tail(place.ledger)
    tail.look()
    tail.entries.clear()

    def worked() -> bool:
        tail.look()
        if number % 5 == 0:
            return "process" in {entry.note for entry in begun_and_not_ended(tail.entries).values()}
        return sum(entry.event == "ended" for entry in tail.entries) >= enough

    with Children(place.ledger) as children:
        server = children.start(f"life {number}", serve, place, _config(plan))
        if number % 10 == 9:
            time.sleep(chance.uniform(0.2, 1.0))
        else:
            eventually(lambda: worked() or not server.is_alive(), LONGEST_LIFE)
            if number % 5:
                time.sleep(chance.uniform(0, 0.02))
        alive = server.is_alive()
        server.kill()
        server.join(10)
        return alive and server.exitcode == -9


def _last_life(place: Place, plan: Plan) -> bool:
    """Let a server work until nothing is left, then stop it gracefully."""
    before = set(reader.servers(place.database))

    def done() -> bool:
        # one that is not up yet does not hear that it shall stop
        up = set(reader.servers(place.database)) - before
        return bool(up) and reader.unfinished(place.database) == 0

    with Children(place.ledger) as children:
        server = children.start("last", serve, place, _config(plan))
        eventually(lambda: not server.is_alive() or done(), plan.seconds)
        server.terminate()
        server.join(30)
        return server.exitcode == 0


def _check_attempts(report: Report, place: Place, entries: list[Entry], epoch: float) -> None:
    """Each attempt but a job's last was ended by a kill and taken back, and the last one is what was accepted."""
    rows = reader.jobs(place.database)
    outcomes = reader.outcomes(place.database)
    begun = [entry for entry in entries if entry.event == "begun"]
    in_one_life = Counter((entry.process, entry.job) for entry in begun)
    report.never(
        "begun twice by one server, without a kill between", [pair for pair, n in in_one_life.items() if n > 1]
    )
    report.never(
        "earlier attempts that ended otherwise than by a rescue",
        [
            f"{key(entry)}: {outcomes.get(key(entry))}"
            for entry in begun
            if entry.delivery < rows[entry.job].delivery and outcomes.get(key(entry)) != "rescued"
        ],
    )
    rescues = Counter(job for (job, _), outcome in outcomes.items() if outcome == "rescued")
    report.figure("deliveries rescued", sum(rescues.values()))
    report.never(
        "jobs charged otherwise than once for each rescue and for the success",
        [row for row in rows.values() if row.attempt != rescues[row.id] + 1],
    )
    report.never(
        "stale ends accepted: a success written before the last attempt had ended",
        [
            entry.job
            for entry in entries
            if entry.event == "ended"
            and entry.delivery == rows[entry.job].delivery
            and _micros(entry, epoch) > (rows[entry.job].finished_at or 0) + CLOCKS_DIFFER
        ],
    )


def _micros(entry: Entry, epoch: float) -> int:
    return int((entry.at + epoch) * 1_000_000)
