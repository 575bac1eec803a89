"""The children of `windlass worker` are killed, fifty times: each is started again, and its jobs are back at once.

Leases last an hour and no service looks for servers that have ended. So what comes back does so by the word of the
parent, which has seen its child end.
"""

import os
import random
import signal
import statistics
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from proofs.children import eventually, go_on, stand_still
from proofs.commands import Command
from proofs.ledger import Entry, Tail, read
from proofs.readers import sqlite as reader
from proofs.report import Report
from proofs.serving import Place, begun_and_not_ended, check_ends, check_store, ended, enqueue, figure_attempts, new_job
from proofs.serving import lives as is_alive
from windlass import NewJob

PROMISE = "a child that is killed is started again, and what it held runs again at once, by the word of its parent"
MOST_ATTEMPTS = 20
COMES_UP = 40.0
TRIES = 20


@dataclass(frozen=True)
class Plan:
    kills: int = 50
    kills_in_a_life: int = 5
    """Kills of the children of one parent: with more of them it takes its time with the next start."""
    jobs: int = 24
    """Jobs for each kill."""
    longest: float = 0.3
    at_once: float = 3.0
    """Seconds within which a job that was cut short must run again; a free slot is waited for as well."""
    seconds: float = 120
    seed: int = 1


@dataclass
class Seen:
    kills: list[tuple[int, float]] = field(default_factory=list[tuple[int, float]])
    """The process and the moment of each."""
    restarts: list[float] = field(default_factory=list[float])
    """Seconds until another child was there."""
    failed: list[str] = field(default_factory=list[str])
    ids: list[str] = field(default_factory=list[str])


def prove(folder: Path, plan: Plan) -> Report:
    place = Place.within(folder)
    report = Report("child-kills", PROMISE)
    chance, seen = random.Random(plan.seed), Seen()
    epoch = time.time() - time.monotonic()
    enqueue(place, [])
    tail = Tail(place.ledger)
    while len(seen.kills) < plan.kills and not seen.failed:
        _life(place, plan, chance, tail, seen)
    entries = list(read(place.ledger))
    killed = dict(seen.kills)
    cut_short = [entry for entry in begun_and_not_ended(entries).values() if _pid(entry) in killed]
    back = _times_until_back(place, cut_short, killed, epoch)
    again = _times_until_again(entries, cut_short, killed)
    report.figure("jobs", len(seen.ids))
    report.figure("kills", len(seen.kills))
    report.figure("children started again", len(seen.restarts))
    report.figure("attempts cut short", len(cut_short))
    measured = {
        "until a job was given back": back,
        "until a job ran again": again,
        "until a child was there again": seen.restarts,
    }
    for what, times in measured.items():
        if times:
            report.figure(f"{what}: median", f"{statistics.median(times) * 1000:.0f} ms")
            report.figure(f"{what}: longest", f"{max(times) * 1000:.0f} ms")
    report.never(
        f"jobs that did not run again within {plan.at_once:g} s", [each for each in again if each > plan.at_once]
    )
    report.never("what went wrong", seen.failed)
    figure_attempts(report, entries)
    check_ends(report, place, seen.ids, ended(entries))
    _check_costs(report, place)
    check_store(report, place, entries, kills=plan.kills)
    report.needs(f"{plan.kills} kills", given=len(seen.kills) >= plan.kills)
    report.needs("a job inside of each kill", given={_pid(entry) for entry in cut_short} == killed.keys())
    report.needs("a run again of all that was cut short", given=len(back) == len(again) == len(cut_short))
    return report


def _life(place: Place, plan: Plan, chance: random.Random, tail: Tail, seen: Seen) -> None:
    """Start a worker, kill some of its children, and stop it gracefully."""
    options = ["--processes", "2", "--concurrency", "8", "--lease", "1h", "--rescue-interval", "1h"]
    with Command(place, options, max_attempts=MOST_ATTEMPTS) as command:
        for _ in range(min(plan.kills_in_a_life, plan.kills - len(seen.kills))):
            victim = _stop_one_at_work(place, plan, chance, tail, seen)
            if victim is None or not _kill(victim, command, tail, seen):
                return
            if not eventually(lambda: not reader.unfinished(place.database), plan.seconds):
                seen.failed.append("jobs that never ended")
                return
        code, _ = command.stop(30)
        if code != 0:
            seen.failed.append(f"exit code {code}")


def _stop_one_at_work(place: Place, plan: Plan, chance: random.Random, tail: Tail, seen: Seen) -> int | None:
    """Bring jobs, and stop the child inside of one that was there longest."""
    for _ in range(TRIES):
        seen.ids += enqueue(place, _jobs(plan, chance), max_attempts=MOST_ATTEMPTS)
        if not eventually(lambda: tail.look() and _busy(tail), COMES_UP):
            seen.failed.append("no child has begun a job")
            return None
        time.sleep(chance.uniform(0, 0.05))
        tail.look()
        for child in _busy(tail):
            stand_still(child)
            tail.look()
            if child in _busy(tail):
                return child
            # it has ended its last one meanwhile
            go_on(child)
    seen.failed.append("no child was inside of a job")
    return None


def _jobs(plan: Plan, chance: random.Random) -> list[NewJob]:
    kinds = ("on_the_loop", "in_a_thread")
    return [new_job(chance.choice(kinds), chance.uniform(0.05, plan.longest)) for _ in range(plan.jobs)]


def _kill(victim: int, command: Command, tail: Tail, seen: Seen) -> bool:
    """Kill a child and wait for its successor."""
    before = _started(tail)
    os.kill(victim, signal.SIGKILL)
    killed_at = time.monotonic()
    seen.kills.append((victim, killed_at))
    command.children |= before
    if not eventually(lambda: bool(tail.look()) and bool(_started(tail) - before), COMES_UP):
        seen.failed.append("no child was started again")
        return False
    seen.restarts.append(time.monotonic() - killed_at)
    return True


def _busy(tail: Tail) -> list[int]:
    """Return the children that live and are inside of a job, the oldest first."""
    busy = {_pid(entry) for entry in begun_and_not_ended(tail.entries).values()}
    return [pid for pid in _in_order(tail) if pid in busy and is_alive(pid)]


def _in_order(tail: Tail) -> list[int]:
    return [entry.count for entry in tail.entries if entry.event == "started"]


def _started(tail: Tail) -> set[int]:
    return set(_in_order(tail))


def _pid(entry: Entry) -> int:
    return int(entry.process.rpartition(" ")[2])


def _times_until_back(place: Place, cut_short: list[Entry], killed: dict[int, float], epoch: float) -> list[float]:
    """Return how long it took until each job that a kill cut short was in line again."""
    rescued = reader.rescued_at(place.database)
    moments = [(entry, rescued.get((entry.job, entry.delivery))) for entry in cut_short]
    return [at / 1_000_000 - epoch - killed[_pid(entry)] for entry, at in moments if at is not None]


def _times_until_again(entries: list[Entry], cut_short: list[Entry], killed: dict[int, float]) -> list[float]:
    """Return how long it took until each of them had a slot, and ran."""
    begun = {(entry.job, entry.delivery): entry.at for entry in entries if entry.event == "begun"}
    moments = [(entry, begun.get((entry.job, entry.delivery + 1))) for entry in cut_short]
    return [at - killed[_pid(entry)] for entry, at in moments if at is not None]


def _check_costs(report: Report, place: Place) -> None:
    rows = reader.jobs(place.database)
    outcomes = reader.outcomes(place.database)
    rescues = Counter(job for (job, _), outcome in outcomes.items() if outcome == "rescued")
    report.figure("deliveries rescued", sum(rescues.values()))
    report.never(
        "deliveries that ended otherwise than by a rescue or a release",
        [outcome for outcome in outcomes.values() if outcome not in ("rescued", "released")],
    )
    report.never(
        "jobs charged otherwise than once for each rescue and for the success",
        [row for row in rows.values() if row.attempt != rescues[row.id] + 1],
    )
