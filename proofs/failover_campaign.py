"""What is done to the pair: again and again its primary is lost, or refuses writes, and its standby takes over."""

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.sharedctypes import Synchronized
from typing import Literal, NamedTuple

from proofs.children import SPAWN, Children, eventually
from proofs.commands import Command
from proofs.failover_loss import Loss, read_loss
from proofs.failover_probe import Held, Probe
from proofs.failover_producers import produce_until
from proofs.fleet_producers import Order
from proofs.ledger import Tail
from proofs.postgres_reader import PostgresReader
from proofs.serving import Place, key
from tests.postgres.pair import Pair

Way = Literal["kill", "immediate", "read-only"]
WAYS: tuple[Way, ...] = ("kill", "immediate", "read-only")
COMES_UP = 60.0
PATIENCE = 60.0
LOOK_EVERY = 0.01
MOST = 1_000_000
"""Jobs that a producer never comes to the end of."""


@dataclass(frozen=True)
class Plan:
    failovers: int = 20
    """With a standby that every commit waits for."""
    unwaited: int = 6
    """With one that is not waited for."""
    jobs_each: int = 200
    """Jobs that come to their end before each failover, at most."""
    unreplicated: int = 40
    """Jobs that are acknowledged while the standby receives nothing, before it takes over."""
    servers: int = 2
    producers: int = 2
    longest: float = 0.3
    lease: float = 10.0
    back_within: float = 5.0
    """Seconds after the standby has taken over within which work must go on."""
    ahead: int = 60
    """Jobs that the producers are ahead of the servers at least."""
    seconds: float = 300
    seed: int = 1


class Failover(NamedTuple):
    """One of them; times in seconds of the ledger."""

    way: Way
    ended_at: float
    """When the primary was about to be ended."""
    fenced_at: float
    """When it took no more writes."""
    back_at: float
    """When the standby took writes."""
    inside: int
    """Attempts that were under way."""
    calling: int
    """Jobs that producers were about to enqueue."""


@dataclass
class Done:
    """What was done, for the checks."""

    failovers: list[Failover] = field(default_factory=list[Failover])
    losses: list[Loss] = field(default_factory=list[Loss])
    servers: dict[str, str] = field(default_factory=dict[str, str])
    """The name in the ledger of each server, by its id."""
    failed: list[str] = field(default_factory=list[str])


class Campaign:
    """Servers and producers on a pair that fails over and over."""

    def __init__(self, place: Place, pair: Pair, plan: Plan, children: Children) -> None:
        self._place = place
        self._pair = pair
        self._plan = plan
        self._children = children
        self._failovers = plan.failovers if pair.synchronous else plan.unwaited
        self._chance = random.Random(plan.seed)
        self._reader = PostgresReader(place.url)
        self._tail = Tail(place.ledger)
        self._ended = self._lost = 0
        self._acknowledged = Counter[str]()
        """Jobs that each producer was told are stored."""
        self._stopping = False
        self._started: dict[int, str] = {}
        self._inside: set[tuple[str, int]] = set()
        self._calling: set[str] = set()
        self._allowed: Synchronized[int] = SPAWN.Value("q", 0)
        self._enough: Synchronized[int] = SPAWN.Value("q", 0)
        self._commands: list[Command] = []
        self._producers = [f"producer {number}" for number in range(plan.producers)]
        self.probe = Probe(pair.url, place)
        self.done = Done()

    def run(self) -> None:
        self._start()
        for number in range(1, self._failovers + 1):
            self._let_work(self._plan.jobs_each * self._chance.uniform(0.5, 1.0))
            if self._pair.synchronous:
                self._fail_over(WAYS[number % len(WAYS)])
            else:
                self._fail_over_unwaited(WAYS[number % 2])
        self._finish()

    def close(self) -> None:
        for command in self._commands:
            command.children |= set(self._started)
            command.__exit__()
        self.probe.close()

    def _start(self) -> None:
        plan = self._plan
        options = ["--processes", "1", "--concurrency", "10", "--rescue-interval", "1s", "--lease", f"{plan.lease:g}s"]
        names = [f"server {number}" for number in range(plan.servers)]
        self._commands = [Command(self._place, options, max_attempts=50, name=name) for name in names]
        for number, producer in enumerate(self._producers):
            # in no child process: there an attempt could not be told from its server's by its name
            order = Order(MOST, plan.longest, processes_every=1, seed=number)
            self._children.start(producer, produce_until, self._pair.url, order, self._allowed, self._enough)
        if not eventually(lambda: self._look() and len(self._known()) == plan.servers, COMES_UP, 0.1):
            self.done.failed.append(f"servers that came up: {self._known()}")
        self.done.servers = self._known()

    def _known(self) -> dict[str, str]:
        return {server: self._started[pid] for pid, server in self._reader.pids().items() if pid in self._started}

    # failovers

    def _fail_over(self, way: Way) -> None:
        good, expired = self.probe.before(more=False)
        self._take_over(way)
        self._let_work(self._plan.jobs_each / 4)
        self._pair.join()
        self.probe.after(Held(good, expired, None))

    def _fail_over_unwaited(self, way: Way) -> None:
        """Let the standby miss the last changes, and look afterwards what exactly it had missed."""
        good, expired = self.probe.before(more=True)
        self._pair.catch_up()
        self._pair.part()
        unreplicated = self.probe.unreplicated()
        self._look()
        enough = self._acknowledged.total() + self._plan.unreplicated
        self._grant(self._plan.unreplicated)
        if not self._eventually(lambda: self._acknowledged.total() >= enough):
            self.done.failed.append("too few jobs came while the standby received nothing")
        self._take_over(way)
        loss = read_loss(self._pair)
        self.done.losses.append(loss)
        # nobody will ever end them, and producers bring as many as are ended
        self._lost += len(loss.jobs.keys() - self._reader.jobs().keys())
        self._let_work(self._plan.jobs_each / 4)
        self._pair.join()
        self.probe.after(Held(good, expired, unreplicated))

    def _take_over(self, way: Way) -> None:
        # producers have something to bring then, and at once afterwards
        self._grant(self._plan.ahead)
        self._eventually(lambda: bool(self._inside and self._calling), 2)
        inside, calling = len(self._inside), len(self._calling)
        ended_at = time.monotonic()
        if way == "read-only":
            self._pair.refuse_writes()
        else:
            self._pair.fence(way)
        fenced_at = time.monotonic()
        back_at = self._pair.promote()
        self.done.failovers.append(Failover(way, ended_at, fenced_at, back_at, inside, calling))
        self._look()
        self._grant(self._plan.ahead)

    def _let_work(self, jobs: float) -> None:
        """Wait until so many jobs more have ended."""
        self._look()
        enough = self._ended + jobs
        if not self._eventually(lambda: self._ended >= enough):
            self.done.failed.append(f"after {len(self.done.failovers)} failovers jobs came to their end too slowly")

    # the ledger

    def _look(self) -> bool:
        """Read on in the ledger, and let producers bring more as jobs come to their end."""
        for entry in self._tail.look():
            match entry.event:
                case "started":
                    self._started[entry.count] = entry.process
                case "begun":
                    self._inside.add(key(entry))
                case "ended":
                    self._ended += 1
                    self._inside.discard(key(entry))
                case "invoked":
                    self._calling.add(entry.note)
                case "ok":
                    self._acknowledged[entry.process] += 1
                    self._calling.discard(entry.note)
                case _:
                    pass
        self._tail.entries.clear()
        self._allow((self._ended + self._lost + self._plan.ahead) // self._plan.producers)
        return True

    def _grant(self, jobs: int) -> None:
        """Let each producer bring so many more than it has brought until now, however far the servers are behind."""
        self._allow(max(self._acknowledged[producer] for producer in self._producers) + jobs)

    def _allow(self, jobs: int) -> None:
        """Let each producer have brought so many, all in all, if it was not allowed more before."""
        if not self._stopping:
            self._allowed.value = max(self._allowed.value, jobs)

    def _brought_all(self) -> bool:
        done = all(self._acknowledged[producer] >= self._allowed.value for producer in self._producers)
        return done and not self._calling

    def _eventually(self, true: Callable[[], bool], seconds: float = PATIENCE) -> bool:
        return eventually(lambda: self._look() and true(), seconds, LOOK_EVERY)

    # the end

    def _finish(self) -> None:
        self._stopping = True
        if not self._eventually(self._brought_all):
            self.done.failed.append("producers did not come to an end")
        self._enough.value = 1
        until = time.monotonic() + self._plan.seconds
        self.done.failed += [
            f"producer that did not end well: {each}" for each in self._children.wait(self._plan.seconds)
        ]
        if not eventually(lambda: self._reader.unfinished() == 0, until - time.monotonic(), 0.2):
            self.done.failed.append(f"jobs that never ended: {self._reader.unfinished()}")
        for number, command in enumerate(self._commands):
            if command.process.poll() is not None:
                self.done.failed.append(f"server {number} ended by itself with {command.process.returncode}")
            elif (code := command.stop(10)[0]) != 0:
                self.done.failed.append(f"server {number} ended with {code}")
