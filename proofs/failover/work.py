"""Servers and producers on a server that fails over and over, whatever kind of server that is."""

import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.sharedctypes import Synchronized
from typing import Final, NamedTuple

from proofs.children import SPAWN, Children, eventually
from proofs.commands import Command
from proofs.failover.probe import Probe
from proofs.failover.producers import produce_until
from proofs.fleet.producers import Order
from proofs.ledger import Tail
from proofs.serving import Place, key

COMES_UP = 60.0
PATIENCE = 60.0
LOOK_EVERY = 0.01
MOST = 1_000_000
"""Jobs that a producer never comes to the end of."""


@dataclass(frozen=True)
class Load:
    """Who works meanwhile, and how much."""

    jobs_each: int = 200
    """Jobs that come to their end before each failover, at most."""
    servers: int = 2
    producers: int = 2
    longest: float = 0.3
    lease: float = 10.0
    back_within: float = 5.0
    """Seconds after the takeover within which work must go on."""
    ahead: int = 60
    """Jobs that the producers are ahead of the servers at least."""
    pause: float = 0.0
    """Seconds between two calls of a producer's task: with some they are held back by nothing else."""
    seconds: float = 300
    seed: int = 1


class Failover(NamedTuple):
    """One of them; times in seconds of the ledger."""

    way: str
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
    servers: dict[str, str] = field(default_factory=dict[str, str])
    """The name in the ledger of each server, by its id."""
    failed: list[str] = field(default_factory=list[str])


class FailoverWork(ABC):
    """Servers and producers; a campaign lets one failover after the other happen to them."""

    def __init__(self, place: Place, url: str, load: Load, children: Children) -> None:
        """Let producers and claims by hand use `url`, which may differ from that of the place in its options."""
        self._place = place
        self._url = url
        self._load = load
        self._children = children
        self._reader = place.fleet_reader
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
        self._producers = [f"producer {number}" for number in range(load.producers)]
        self.probe: Final = Probe(url, place)
        self.done: Final = Done()

    def run(self, failovers: int) -> None:
        self._start()
        for number in range(1, failovers + 1):
            self._fail_over(number)
        self._finish()

    @abstractmethod
    def _fail_over(self, number: int) -> None:
        """Let work go on for a while, then one fail and another take over."""

    def close(self) -> None:
        for command in self._commands:
            command.children |= set(self._started)
            command.__exit__()
        self.probe.close()

    def _start(self) -> None:
        load = self._load
        options = ["--processes", "1", "--concurrency", "10", "--rescue-interval", "1s", "--lease", f"{load.lease:g}s"]
        names = [f"server {number}" for number in range(load.servers)]
        self._commands = [Command(self._place, options, max_attempts=50, name=name) for name in names]
        for number, producer in enumerate(self._producers):
            # in no child process: there an attempt could not be told from its server's by its name
            order = Order(MOST, load.longest, processes_every=1, seed=number, pause=load.pause)
            self._children.start(producer, produce_until, self._url, order, self._allowed, self._enough)
        if not eventually(lambda: self._look() and len(self._known()) == load.servers, COMES_UP, 0.1):
            self.done.failed.append(f"servers that came up: {self._known()}")
        self.done.servers.update(self._known())

    def _known(self) -> dict[str, str]:
        return {server: self._started[pid] for server, pid in self._reader.pids().items() if pid in self._started}

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
        self._allow((self._ended + self._lost + self._load.ahead) // self._load.producers)
        return True

    def _grant(self, jobs: int) -> None:
        """Let each producer bring so many more than it has brought until now, however far the servers are behind."""
        self._allow(max(self._acknowledged[producer] for producer in self._producers) + jobs)

    def _allow(self, jobs: int) -> None:
        """Let each producer have brought so many, all in all, if it was not allowed more before."""
        if not self._stopping:
            self._allowed.value = MOST if self._load.pause else max(self._allowed.value, jobs)

    def _brought_all(self) -> bool:
        done = all(self._acknowledged[producer] >= self._allowed.value for producer in self._producers)
        return done and not self._calling

    def _eventually(self, true: Callable[[], bool], seconds: float = PATIENCE) -> bool:
        return eventually(lambda: self._look() and true(), seconds, LOOK_EVERY)

    # the end

    def _finish(self) -> None:
        self._stopping = True
        if self._load.pause:
            # who was allowed to a moment ago has begun to call by then
            self._allowed.value = 0
            time.sleep(0.2)
        if not self._eventually(self._brought_all):
            self.done.failed.append("producers did not come to an end")
        self._enough.value = 1
        until = time.monotonic() + self._load.seconds
        self.done.failed += [
            f"producer that did not end well: {each}" for each in self._children.wait(self._load.seconds)
        ]
        if not eventually(lambda: self._reader.unfinished() == 0, until - time.monotonic(), 0.2):
            self.done.failed.append(f"jobs that never ended: {self._reader.unfinished()}")
        for number, command in enumerate(self._commands):
            if command.process.poll() is not None:
                self.done.failed.append(f"server {number} ended by itself with {command.process.returncode}")
            elif (code := command.stop(10)[0]) != 0:
                self.done.failed.append(f"server {number} ended with {code}")
