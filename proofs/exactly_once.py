"""Effects written by `ctx.transaction()` while servers are killed, and others wake up too late: each is there once.

Two servers work on one store. One is killed and replaced, or it is stopped by SIGSTOP for longer than its leases, so
that the other one takes its jobs, and then goes on as if nothing had happened: the fence has to refuse it.
"""

import os
import random
import signal
import sqlite3
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, Final, LiteralString

from proofs import reader
from proofs.children import Children, eventually
from proofs.ledger import Tail
from proofs.postgres_reader import PostgresReader
from proofs.report import Report
from proofs.serving import (
    Place,
    begun_and_not_ended,
    check_ends,
    check_store,
    enqueue,
    figure_attempts,
    key,
    new_job,
    serve,
)
from proofs.stores import Kind, name_store, place_on
from windlass import NewJob, ServerConfig

PROMISE = "what a handler writes in the transaction that settles its claim is written exactly once"
MOST_ATTEMPTS = 50
SERVERS = 2


@dataclass(frozen=True)
class Plan:
    jobs: int = 10_000
    kills: int = 30
    stops: int = 10
    """How often a server is stopped for longer than its leases, and continued."""
    processes_every: int = 100
    longest: float = 0.3
    lease: float = 1.0
    fenced: bool = True
    """Without the fence effects must be found twice, or this proves nothing."""
    store: Kind = "sqlite"
    seconds: float = 300
    seed: int = 1


def prove(folder: Path, plan: Plan) -> Report:
    report = Report("exactly-once" if plan.store == "sqlite" else f"exactly-once-{plan.store}", PROMISE)
    with place_on(plan.store, folder) as place:
        name_store(report, place)
        _prove(report, place, plan)
    return report


def _prove(report: Report, place: Place, plan: Plan) -> None:
    chance = random.Random(plan.seed)
    ids = enqueue(place, [_job(number, plan, chance) for number in range(plan.jobs)], max_attempts=MOST_ATTEMPTS)
    _make_tables(place)
    with Children(place.ledger) as children:
        campaign = Campaign(place, plan, children, chance)
        campaign.run()
    campaign.tail.look()
    entries = campaign.tail.entries
    inside = {entry.process for entry in begun_and_not_ended(entries).values()} & campaign.killed
    refused = [entry for entry in entries if entry.event == "refused"]
    report.figure("jobs, each adds one", len(ids))
    report.figure("kills delivered", len(campaign.killed))
    report.figure("kills inside a job", len(inside))
    report.figure("servers stopped past their leases and continued", campaign.stopped)
    figure_attempts(report, entries)
    report.figure("attempts refused by the fence", len(refused))
    _check_effects(report, place, ids, {key(entry) for entry in refused})
    check_ends(report, place, ids, set(_effects(place)))
    check_store(report, place, entries, kills=plan.kills)
    report.never("last servers that did not end well", campaign.ended_badly)
    report.needs(f"{plan.kills} kills", given=len(campaign.killed) == plan.kills)
    report.needs("half of the kills inside a job", given=len(inside) * 2 >= plan.kills)
    report.needs("attempts refused by the fence", given=len(refused) > 0)


class Campaign:
    """Two servers, and what is done to them."""

    def __init__(self, place: Place, plan: Plan, children: Children, chance: random.Random) -> None:
        self._place = place
        self._plan = plan
        self._children = children
        self._chance = chance
        self._made = 0
        self._faults = plan.kills + plan.stops
        self.tail = Tail(place.ledger)
        self.killed: set[str] = set()
        self.stopped = 0
        self.ended_badly: list[str] = []
        self._servers = [self._start() for _ in range(SERVERS)]

    def run(self) -> None:
        faults = ["kill"] * self._plan.kills + ["stop"] * self._plan.stops
        self._chance.shuffle(faults)
        for fault in faults:
            victim = self._chance.randrange(SERVERS)
            self._let_work(self._servers[victim])
            if fault == "stop":
                self._stop_past_its_leases(self._servers[victim])
            else:
                self._kill(self._servers[victim])
                self._servers[victim] = self._start()
        eventually(lambda: self._place.reader.unfinished() == 0, self._plan.seconds)
        for server in self._servers:
            server.terminate()
        for server in self._servers:
            server.join(30)
        self.tail.look()
        at_work = {entry.process for entry in self.tail.entries}
        # one that was started when no job was left may be told to stop before it listens
        fair = {server.name for server in self._servers if server.exitcode == -signal.SIGTERM} - at_work
        self.ended_badly = [
            f"{server.name}: {server.exitcode}"
            for server in self._servers
            if server.exitcode != 0 and server.name not in fair
        ]

    def _start(self) -> SpawnProcess:
        config = ServerConfig(concurrency=20, lease=self._plan.lease, rescue_interval=0.3, shutdown_timeout=10)
        self._made += 1
        return self._children.start(f"server {self._made}", serve, self._place, config)

    def _let_work(self, victim: SpawnProcess) -> None:
        """Wait until `victim` is at work and a share of all jobs is done, so that some are left for every fault."""
        self.tail.look()
        enough = self._done() + int(self._plan.jobs / (self._faults + 1) * self._chance.uniform(0, 0.8))

        def worked() -> bool:
            self.tail.look()
            if self._done() < enough:
                return False
            return any(entry.process == victim.name for entry in begun_and_not_ended(self.tail.entries).values())

        eventually(worked, 20)
        time.sleep(self._chance.uniform(0, 0.02))

    def _done(self) -> int:
        return sum(entry.event == "ended" for entry in self.tail.entries)

    def _kill(self, server: SpawnProcess) -> None:
        alive = server.is_alive()
        server.kill()
        server.join(10)
        if alive and server.exitcode == -signal.SIGKILL:
            self.killed.add(server.name)

    def _stop_past_its_leases(self, server: SpawnProcess) -> None:
        assert server.pid is not None
        os.kill(server.pid, signal.SIGSTOP)
        self.tail.look()
        attempts = begun_and_not_ended(self.tail.entries).values()
        held = {(entry.job, entry.delivery + 1) for entry in attempts if entry.process == server.name}
        time.sleep(self._plan.lease * 2)
        # the other server may have been started a moment ago
        eventually(lambda: self._has_begun(held), 20)
        os.kill(server.pid, signal.SIGCONT)
        self.stopped += 1

    def _has_begun(self, attempts: set[tuple[str, int]]) -> bool:
        self.tail.look()
        return any(entry.event == "begun" and key(entry) in attempts for entry in self.tail.entries)


def _job(number: int, plan: Plan, chance: random.Random) -> NewJob:
    seconds = chance.uniform(0, plan.longest)
    if not plan.fenced:
        return new_job("add_without_a_fence", seconds)
    if number % plan.processes_every == 0:
        return new_job("add_in_a_process", seconds)
    return new_job(("add_on_the_loop", "add_in_a_thread")[number % 2], seconds)


TABLES: Final = (
    "create table proof_sum (total integer not null)",
    "insert into proof_sum values (0)",
    "create table proof_effect (job text not null, delivery integer not null)",
)


def _make_tables(place: Place) -> None:
    if isinstance(place.reader, PostgresReader):
        place.reader.write(*TABLES)
        return
    with closing(sqlite3.connect(place.database)) as connection, connection:
        for statement in TABLES:
            connection.execute(statement)


def _rows(place: Place, statement: LiteralString) -> list[tuple[Any, ...]]:
    if isinstance(place.reader, PostgresReader):
        return place.reader.rows(statement)
    with reader.reading(place.database) as connection:
        return connection.execute(statement).fetchall()


def _effects(place: Place) -> list[tuple[str, int]]:
    return [(job, delivery) for job, delivery in _rows(place, "select job, delivery from proof_effect")]


def _check_effects(report: Report, place: Place, ids: list[str], refused: set[tuple[str, int]]) -> None:
    [(total,)] = _rows(place, "select total from proof_sum")
    effects = _effects(place)
    counts = Counter(job for job, _ in effects)
    rows = place.reader.jobs()
    report.figure("attempts charged", sum(row.attempt for row in rows.values()))
    report.figure("the sum", total)
    report.never("the sum is off by", range(abs(total - len(ids))))
    report.never("jobs without their effect", [job for job in ids if not counts[job]])
    report.never("jobs with their effect more than once", [job for job, count in counts.items() if count > 1])
    report.never("effects of refused attempts", refused & set(effects))
    report.never(
        "effects of another delivery than the accepted one",
        [(job, delivery) for job, delivery in effects if rows[job].delivery != delivery],
    )
