"""A job that takes its server along, each time it runs: it ends as the only dead one, and no job beside it does."""

import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from proofs.children import Children, eventually
from proofs.ledger import Entry, read
from proofs.readers import sqlite as reader
from proofs.report import Report
from proofs.serving import Place, begun_and_not_ended, check_store, enqueue, new_job, serve
from windlass import ServerConfig

PROMISE = "a job that kills its server at every attempt is dead in the end, and no other job is"
POISON = "take_the_server_along"
EXIT_CODE = 66


@dataclass(frozen=True)
class Plan:
    rounds: int = 10
    jobs: int = 1_000
    """Beside the poison, in each round."""
    attempts: int = 3
    longest: float = 0.03
    most_servers: int = 10
    seconds: float = 120
    seed: int = 1


def prove(folder: Path, plan: Plan) -> Report:
    report = Report("poison", PROMISE)
    chance = random.Random(plan.seed)
    places = [Place.within(folder / str(number)) for number in range(plan.rounds)]
    codes = [_round(place, plan, chance) for place in places]
    entries = [list(read(place.ledger)) for place in places]
    deaths = [each.count(EXIT_CODE) for each in codes]
    report.figure("rounds", plan.rounds)
    report.figure("jobs beside the poison", plan.rounds * plan.jobs)
    report.figure("servers taken along", sum(deaths))
    _figure_bystanders(report, entries)
    _check(report, places, plan)
    check_store(report, places, [entry for each in entries for entry in each], kills=sum(deaths))
    report.never("servers that ended otherwise", [code for each in codes for code in each[:-1] if code != EXIT_CODE])
    report.never("rounds whose last server did not end well", [each for each in codes if each[-1] != 0])
    report.needs(f"{plan.attempts} servers taken along in each round", given=set(deaths) == {plan.attempts})
    return report


def _round(place: Place, plan: Plan, chance: random.Random) -> list[int | None]:
    """Work all jobs, with a new server whenever one has died; return how the servers ended."""
    place.database.parent.mkdir()
    jobs = [new_job("on_the_loop", chance.uniform(0, plan.longest)) for _ in range(plan.jobs)]
    jobs.insert(chance.randrange(plan.jobs), new_job(POISON, chance.uniform(0, plan.longest)))
    enqueue(place, jobs, max_attempts=plan.attempts)
    codes: list[int | None] = []
    while len(codes) < plan.most_servers and codes[-1:] != [0]:
        codes.append(_life(f"server {len(codes)}", place, plan))
    return codes


def _life(name: str, place: Place, plan: Plan) -> int | None:
    config = ServerConfig(concurrency=20, lease=5, rescue_interval=1, shutdown_timeout=10)
    with Children(place.ledger) as children:
        server = children.start(name, serve, place, config)
        eventually(lambda: not server.is_alive() or reader.unfinished(place.database) == 0, plan.seconds)
        server.terminate()
        server.join(30)
        return server.exitcode


def _figure_bystanders(report: Report, entries: list[list[Entry]]) -> None:
    cut_short = Counter(job for each in entries for job, _ in _bystanders(each))
    report.figure("attempts beside it that were cut short", cut_short.total())
    report.figure("jobs beside it that were cut short twice", sum(count == 2 for count in cut_short.values()))
    report.never(
        "jobs beside it that were cut short more often", [job for job, count in cut_short.items() if count > 2]
    )
    last = [_beside_the_last(each) for each in entries]
    report.never("attempts cut short by the last attempt of a poison", [job for each in last for job in each])
    report.needs("jobs beside the poison that were cut short", given=cut_short.total() > 0)


def _bystanders(entries: list[Entry]) -> list[tuple[str, int]]:
    return [key for key, entry in begun_and_not_ended(entries).items() if entry.note != "poison"]


def _beside_the_last(entries: list[Entry]) -> list[str]:
    """Return the attempts that the last server which was taken along has cut short: the poison ran alone in it."""
    last = max((entry for entry in entries if entry.note == "poison"), key=lambda entry: entry.delivery)
    return [job for job, _ in _bystanders([entry for entry in entries if entry.process == last.process])]


def _check(report: Report, places: list[Place], plan: Plan) -> None:
    rows = [reader.jobs(place.database) for place in places]
    dead = [[row.kind for row in each.values() if row.state == "dead"] for each in rows]
    succeeded = [sum(row.state == "succeeded" for row in each.values()) for each in rows]
    report.figure("dead", sum(map(len, dead)))
    report.figure("succeeded", sum(succeeded))
    report.never("rounds in which not exactly the poison is dead", [each for each in dead if each != [POISON]])
    report.never("rounds in which not all others have succeeded", [each for each in succeeded if each != plan.jobs])
    report.never(
        "poisons charged otherwise than for each attempt",
        [row for each in rows for row in each.values() if row.kind == POISON and row.attempt != plan.attempts],
    )
