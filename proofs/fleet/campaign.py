"""What is done to the fleet: servers are killed or stand still, sessions are ended, the database itself is killed."""

import os
import random
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.sharedctypes import Synchronized
from typing import NamedTuple

from proofs.children import SPAWN, Children, eventually, go_on, stand_still
from proofs.commands import Command
from proofs.fleet.database import Database
from proofs.fleet.producers import Order, produce
from proofs.ledger import Tail
from proofs.serving import QUEUE, Place, key, lives

CHILD_KILLS_IN_A_LIFE = 2
"""Kills of the children of one parent: after more of them it takes its time with the next start."""
COMES_UP = 60.0
LOOK_EVERY = 0.02
LEARN_EVERY = 0.3
TRIES = 50
TELLS_WITHIN = 20.0


@dataclass(frozen=True)
class Plan:
    jobs: int = 50_000
    queues: tuple[str, ...] = (QUEUE,)
    servers: int = 4
    producers: int = 4
    kills: int = 100
    standstills: int = 0
    """How often a server is stopped by SIGSTOP until others have its jobs, and continued: what it settles is stale."""
    fenced: bool = True
    """Without the fence stale ends must be found that were accepted, or this proves nothing; not on Redis."""
    cuts: int = 200
    """Sessions of Windlass that the database ends, by `pg_terminate_backend` or `CLIENT KILL`."""
    crashes: int = 5
    """Kills of the database server itself."""
    stops_too: bool = False
    """Whether every other time it is stopped instead, on Postgres in a hurry: `pg_ctl stop -m immediate`."""
    steady: bool = False
    """Whether there is so much work between two faults that the return to the usual rate can be measured."""
    longest_down: float = 5.0
    longest: float = 0.8
    """Seconds of the longest job: long enough that a server is hardly ever killed outside of one."""
    processes_every: int = 200
    """One job in so many runs in a child process."""
    lease: float = 10.0
    back_within: float = 5.0
    """Seconds after the database is back within which work must go on."""
    ahead: int = 1_000
    """Jobs that the producers are ahead of the servers, more or less."""
    pause: float = 0.0
    """Seconds between two calls of a producer's task: with some they are held back by nothing else."""
    seconds: float = 900
    seed: int = 1
    killed: str = "the database"
    """What is killed by `crashes`, for the report."""


class Outage(NamedTuple):
    """When the database was killed, and when it answered again, in seconds since 1970."""

    down_at: float
    back_at: float


class Standstill(NamedTuple):
    """When a server was stopped, and when it went on, in seconds since 1970."""

    server: str
    stopped_at: float
    went_on_at: float


@dataclass
class Done:
    """What was done, for the checks."""

    killed_at: dict[str, float] = field(default_factory=dict[str, float])
    """When each server was killed, by its id, in seconds since 1970."""
    killed: set[str] = field(default_factory=set[str])
    """The processes that were killed, by their name in the ledger."""
    child_kills: int = 0
    whole_kills: int = 0
    cut_states: list[str] = field(default_factory=list[str])
    """What each session did at the moment when it was ended."""
    standstills: list[Standstill] = field(default_factory=list[Standstill])
    """The servers that stood still until others had begun what they held."""
    outages: list[Outage] = field(default_factory=list[Outage])
    pids: dict[str, int] = field(default_factory=dict[str, int])
    """The process of each server."""
    failed: list[str] = field(default_factory=list[str])


class Life:
    """One start of `windlass worker`: a parent and the children that it starts."""

    def __init__(self, place: Place, plan: Plan, name: str) -> None:
        options = ["--processes", "1", "--concurrency", "20", "--rescue-interval", "1s", "--lease", f"{plan.lease:g}s"]
        options += ["--queues", ",".join(plan.queues)]
        self.name = name
        more = {} if plan.fenced else {"PROOF_UNFENCED": "1"}
        self.command = Command(place, options, max_attempts=50, name=name, more=more)
        self.child_kills = 0


class Campaign:
    """The fleet, and whoever brings misfortune to it."""

    def __init__(self, place: Place, database: Database, plan: Plan, children: Children) -> None:
        self._place = place
        self._database = database
        self._plan = plan
        self._children = children
        self._chance = random.Random(plan.seed)
        self._reader = place.fleet_reader
        self._tail = Tail(place.ledger)
        self._ended = 0
        self._learnt_at = 0.0
        self._started: dict[int, str] = {}
        self._inside: dict[str, set[tuple[str, int]]] = {}
        """The attempts that each process is inside of."""
        self._begun: set[tuple[str, int]] = set()
        self._late = 0
        """Settlements that were refused because they came too late."""
        self._lives_begun = 0
        self._allowed: Synchronized[int] = SPAWN.Value("q", 0)
        self._fleet: list[Life] = []
        self.done = Done()

    def run(self) -> None:
        plan = self._plan
        self._fleet = [self._start() for _ in range(plan.servers)]
        if plan.pause and not self._eventually(lambda: len(self.done.pids) == plan.servers, COMES_UP):
            self.done.failed.append(f"servers that came up: {self.done.pids}")
        for number in range(plan.producers):
            share = plan.jobs // plan.producers + (number < plan.jobs % plan.producers)
            order = Order(share, plan.longest, plan.processes_every, number, plan.pause, plan.queues)
            self._children.start(f"producer {number}", produce, self._place.url, order, self._allowed)
        faults = [*[self._kill] * plan.kills, *[self._cut] * plan.cuts, *[self._crash] * plan.crashes]
        self._chance.shuffle(faults)
        for _ in range(plan.standstills):
            # they take as long as a lease, for which others work on: in the first half, so that jobs are left for all
            faults.insert(self._chance.randrange(len(faults) // 2 + 1), self._stand_still)
        for number, fault in enumerate(faults, 1):
            left = plan.jobs - plan.ahead / 2 * faults[number - 1 :].count(self._crash)
            self._allow(plan.jobs if plan.pause else min(plan.jobs * number / (len(faults) + 1) + plan.ahead, left))
            jobs = plan.jobs / (len(faults) + 1) * self._chance.uniform(0.8 if plan.steady else 0.2, 1.0)
            # who is held back by nothing brings more while a fault is waited for
            self._let_work(jobs / 2 if plan.pause else jobs)
            fault()
        self._allow(plan.jobs)
        self._finish()

    def close(self) -> None:
        for life in self._fleet:
            life.command.children |= {pid for pid, name in self._started.items() if name.startswith(f"{life.name} ")}
            life.command.__exit__()

    def _start(self) -> Life:
        self._lives_begun += 1
        return Life(self._place, self._plan, f"server {self._lives_begun}")

    def _allow(self, jobs: float) -> None:
        """Let the producers have brought so many, all in all, if they might not bring more already."""
        self._allowed.value = max(self._allowed.value, -int(-jobs // self._plan.producers))

    def _let_jobs_wait(self) -> None:
        """Let the producers be ahead: servers that were quick, while others stood still, have nothing left to do."""
        self._look()
        self._allow(self._ended + self._plan.ahead)

    def _let_work(self, share: float) -> None:
        """Wait until so many jobs more have ended, so that every fault meets work."""
        self._look()
        enough = min(self._ended + share, self._allowed.value * self._plan.producers - 1, self._plan.jobs - 1)
        self._eventually(lambda: self._ended >= enough, 20)

    def _look(self) -> bool:
        """Read on in the ledger, and learn which servers there are."""
        for entry in self._tail.look():
            if entry.event == "started":
                self._started[entry.count] = entry.process
            elif entry.event == "begun":
                self._begun.add(key(entry))
                self._inside.setdefault(entry.process, set()).add(key(entry))
            elif entry.event == "ended":
                self._ended += 1
                self._inside[entry.process].discard(key(entry))
            elif entry.event == "late":
                self._late += 1
        self._tail.entries.clear()
        if time.monotonic() > self._learnt_at + LEARN_EVERY:
            self._learnt_at = time.monotonic()
            self.done.pids |= self._reader.pids()
        return True

    def _eventually(self, true: Callable[[], bool], seconds: float) -> bool:
        return eventually(lambda: self._look() and true(), seconds, LOOK_EVERY)

    # servers

    def _kill(self) -> None:
        """Kill a server that works: its process alone, so that its parent starts it again, or parent and child."""
        victim = self._chance.randrange(len(self._fleet))
        life = self._fleet[victim]
        if not self._eventually(lambda: bool(self._servers_of(life)), COMES_UP):
            self.done.failed.append(f"{life.name} did not come up")
            return
        at_work = self._eventually(lambda: self._is_at_work(life), 10)
        servers = self._servers_of(life)
        if at_work:
            # a busy machine lets much go by between the look and the kill
            self._stop_inside_jobs(next(iter(servers)))
        whole = life.child_kills >= CHILD_KILLS_IN_A_LIFE or self._chance.random() < 0.5
        if whole:
            life.command.process.send_signal(signal.SIGKILL)
        for pid in servers:
            os.kill(pid, signal.SIGKILL)
        self._note_kill(life, servers, whole=whole)
        if whole:
            self._fleet[victim] = self._start()

    def _servers_of(self, life: Life) -> dict[int, str]:
        """Return the servers of one start that live and are known to the store, by process."""
        # the youngest of a process: one that could not start may still be registered under its first id
        known = {pid: server for server, pid in sorted(self.done.pids.items()) if server not in self.done.killed_at}
        mine = [pid for pid, name in self._started.items() if name.startswith(f"{life.name} ")]
        return {pid: known[pid] for pid in mine if pid in known and lives(pid)}

    def _is_at_work(self, life: Life) -> bool:
        return any(self._inside.get(self._started[pid]) for pid in self._servers_of(life))

    def _note_kill(self, life: Life, servers: dict[int, str], *, whole: bool) -> None:
        now = time.time()
        gone = eventually(lambda: not any(map(lives, servers)), 10)
        if whole:
            gone = gone and life.command.process.wait(10) == -signal.SIGKILL
            life.command.__exit__()
            self.done.whole_kills += gone
        else:
            life.child_kills += 1
            self.done.child_kills += gone
        self.done.killed.update(self._started[pid] for pid in servers)
        for server, pid in self.done.pids.items():
            if pid in servers:
                self.done.killed_at.setdefault(server, now)

    def _stand_still(self) -> None:
        """Stop a server that works until others have begun most of what it holds, and wait for its late ends."""
        life = self._chance.choice(self._fleet)
        self._let_jobs_wait()
        if not self._eventually(lambda: self._is_at_work(life), COMES_UP):
            waiting = self._reader.waiting()
            self.done.failed.append(f"{life.name} did not come to work, and {waiting} jobs waited")
            return
        [(pid, server), *_] = self._servers_of(life).items()
        held, stopped_at = self._stop_inside_jobs(pid), time.time()
        taken = self._eventually(lambda: self._are_taken(held), self._plan.lease + COMES_UP)
        late = self._late
        went_on_at = time.time()
        go_on(pid)
        if taken and held and self._eventually(lambda: self._late > late, TELLS_WITHIN):
            self.done.standstills.append(Standstill(server, stopped_at, went_on_at))
        else:
            self.done.failed.append(f"{life.name} stood still, and of {len(held)} jobs none was settled too late")

    def _stop_inside_jobs(self, pid: int) -> set[tuple[str, int]]:
        """Stop a server; return the attempts that it is inside of."""
        for _ in range(TRIES):
            stand_still(pid)
            self._look()
            if held := self._inside.get(self._started[pid], set()):
                return held.copy()
            go_on(pid)
            self._eventually(lambda: bool(self._inside.get(self._started[pid])), 1)
        return set()

    def _are_taken(self, held: set[tuple[str, int]]) -> bool:
        """Whether others have begun most of these anew."""
        return sum((job, delivery + 1) in self._begun for job, delivery in held) * 2 >= len(held)

    # the database

    def _cut(self) -> None:
        """Let the database end one session of Windlass; every other time one that is at work, if there is one."""
        busy = len(self.done.cut_states) % 2 == 0
        if busy and eventually(lambda: self._cut_one(busy=True), 2, LOOK_EVERY / 4):
            return
        # one that was chosen may be gone, or be on its way out, by the time it is ended
        eventually(lambda: self._cut_one(busy=False), 10)

    def _cut_one(self, *, busy: bool) -> bool:
        state = self._database.cut(busy=busy)
        if state is not None:
            self.done.cut_states.append(state)
        return state is not None

    def _crash(self) -> None:
        """Kill the database while many jobs wait, and start it again after a while."""
        self._let_jobs_wait()
        if not self._eventually(lambda: self._reader.waiting() >= self._plan.ahead / 4, 20):
            self.done.failed.append("too few jobs waited for a kill of the database")
        before = self._database.pid
        down_at = time.time()
        if self._plan.stops_too and len(self.done.outages) % 2:
            self._database.stop()
        else:
            self._database.kill()
        time.sleep(self._chance.uniform(0, self._plan.longest_down))
        self._database.start()
        if self._database.pid != before:
            self.done.outages.append(Outage(down_at, time.time()))
        # what is measured is how this very outage was got over
        self._let_work(self._plan.ahead / 8)

    # the end

    def _finish(self) -> None:
        until = time.monotonic() + self._plan.seconds
        self.done.failed += [
            f"producer that did not end well: {each}" for each in self._children.wait(self._plan.seconds)
        ]
        if not eventually(lambda: self._look() and self._reader.unfinished() == 0, until - time.monotonic(), 0.2):
            self.done.failed.append(f"jobs that never ended: {self._reader.unfinished()}")
        for life in self._fleet:
            code, _ = life.command.stop(10)
            if code != 0:
                self.done.failed.append(f"{life.name} ended with {code}")
