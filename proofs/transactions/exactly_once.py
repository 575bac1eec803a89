"""Effects written by `ctx.transaction()` while servers are killed, and others wake up too late: each is there once.

Two servers work on one store. One is killed and replaced, or it is stopped by SIGSTOP for longer than its leases, so
that the other one takes its jobs, and then goes on as if nothing had happened: the fence has to refuse it.

Nothing of this is left to chance: jobs are added when the line runs dry, a server is killed only while it holds a job,
and one that was stopped goes on only when the other one has begun a job that it holds in a thread, where nothing but
the fence can keep it from writing.
"""

import random
import signal
import time
from dataclasses import dataclass
from functools import partial
from multiprocessing.context import SpawnProcess
from pathlib import Path

from proofs.children import Children, eventually, go_on, stand_still
from proofs.ledger import Entry, Tail
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
from proofs.transactions.effects import check_effects, effects_of, is_locked, make_tables
from windlass import NewJob, ServerConfig

PROMISE = "what a handler writes in the transaction that settles its claim is written exactly once"
MOST_ATTEMPTS = 50
SERVERS = 2
SLOTS = 20
IN_THREADS = ("thread", "unfenced")
"""Where a handler goes on that has lost its claim."""
TRIES = 50


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
    ids = _bring(place, plan, chance, range(plan.jobs))
    make_tables(place)
    with Children(place.ledger) as children:
        campaign = Campaign(place, plan, children, chance, ids)
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
    check_effects(report, place, ids, {key(entry) for entry in refused})
    check_ends(report, place, ids, set(effects_of(place)))
    check_store(report, place, entries, kills=plan.kills)
    report.never("last servers that did not end well", campaign.ended_badly)
    report.needs(f"{plan.kills} kills", given=len(campaign.killed) == plan.kills)
    report.needs("half of the kills inside a job", given=len(inside) * 2 >= plan.kills)
    report.needs("attempts refused by the fence", given=len(refused) > 0)


class Campaign:
    """Two servers, and what is done to them."""

    def __init__(self, place: Place, plan: Plan, children: Children, chance: random.Random, ids: list[str]) -> None:
        """Add to `ids` the jobs that are brought on the way."""
        self._place = place
        self._plan = plan
        self._children = children
        self._chance = chance
        self._ids = ids
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
        config = ServerConfig(concurrency=SLOTS, lease=self._plan.lease, rescue_interval=0.3, shutdown_timeout=10)
        self._made += 1
        return self._children.start(f"server {self._made}", serve, self._place, config)

    def _kill(self, server: SpawnProcess) -> None:
        for _ in range(TRIES):
            if self._stop_at_work(server):
                break
            go_on(_pid(server))
        alive = server.is_alive()
        server.kill()
        server.join(10)
        if alive and server.exitcode == -signal.SIGKILL:
            self.killed.add(server.name)

    def _stop_past_its_leases(self, server: SpawnProcess) -> None:
        for _ in range(TRIES):
            held = {key(entry) for entry in self._stop_at_work(server) if entry.note in IN_THREADS}
            # one that was stopped inside of a transaction stands in the way of whoever would take its jobs
            if not held or is_locked(self._place):
                go_on(_pid(server))
                continue
            taken = eventually(partial(self._begun_again, held), 20)
            go_on(_pid(server))
            if taken:
                self.stopped += 1
                eventually(partial(self._has_told, self._begun_again(held)), 30)
                return

    def _stop_at_work(self, server: SpawnProcess) -> list[Entry]:
        """Stop a server when it has worked for a while; return what it holds."""
        self._let_work(server)
        stand_still(_pid(server))
        return self._inside(server)

    def _let_work(self, victim: SpawnProcess) -> None:
        """Wait until `victim` is at work and a share of all jobs is done, so that some are left for every fault."""
        self.tail.look()
        enough = self._done() + int(self._plan.jobs / (self._faults + 1) * self._chance.uniform(0, 0.8))
        for _ in range(TRIES):
            if eventually(lambda: bool(self._inside(victim)) and self._done() >= enough, 1):
                break
            # the other one may have done all while this one was started
            if self._place.reader.unfinished() < SERVERS * SLOTS:
                more = range(len(self._ids), len(self._ids) + SERVERS * SLOTS * 2)
                self._ids += _bring(self._place, self._plan, self._chance, more)
        time.sleep(self._chance.uniform(0, 0.02))

    def _inside(self, server: SpawnProcess) -> list[Entry]:
        """Return the attempts of a server that are under way; a job whose claim was lost is another's by now."""
        self.tail.look()
        last: dict[str, Entry] = {}
        for entry in self.tail.entries:
            if entry.event == "begun":
                last[entry.job] = entry
            elif entry.event in ("ended", "refused") and entry.job in last and key(last[entry.job]) == key(entry):
                del last[entry.job]
        return [entry for entry in last.values() if entry.process == server.name]

    def _done(self) -> int:
        return sum(entry.event == "ended" for entry in self.tail.entries)

    def _begun_again(self, attempts: set[tuple[str, int]]) -> set[tuple[str, int]]:
        """Return those of `attempts` whose job has begun once more since."""
        self.tail.look()
        begun = {key(entry) for entry in self.tail.entries if entry.event == "begun"}
        return {(job, delivery) for job, delivery in attempts if (job, delivery + 1) in begun}

    def _has_told(self, attempts: set[tuple[str, int]]) -> bool:
        """Whether some of `attempts`, which go on too late, have told how they ended."""
        self.tail.look()
        return any(entry.event in ("ended", "refused") and key(entry) in attempts for entry in self.tail.entries)


def _pid(server: SpawnProcess) -> int:
    assert server.pid is not None
    return server.pid


def _bring(place: Place, plan: Plan, chance: random.Random, numbers: range) -> list[str]:
    return enqueue(place, [_job(number, plan, chance) for number in numbers], max_attempts=MOST_ATTEMPTS)


def _job(number: int, plan: Plan, chance: random.Random) -> NewJob:
    seconds = chance.uniform(0, plan.longest)
    if not plan.fenced:
        return new_job("add_without_a_fence", seconds)
    if number % plan.processes_every == 0:
        return new_job("add_in_a_process", seconds)
    return new_job(("add_on_the_loop", "add_in_a_thread")[number % 2], seconds)
