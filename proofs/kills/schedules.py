"""Servers are killed by SIGKILL and started again while schedules come due each second: each due time makes one job.

Three schedules differ in `catch_up`. With `all` every due time makes its job in the end, down time or not; with `none`
those do that a server was there for, and those of down time do not. None ever makes two.
"""

import asyncio
import logging
import random
import signal
import time
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import NamedTuple

import windlass
from proofs.children import Children, eventually
from proofs.ledger import Entry, Ledger, read
from proofs.readers import sqlite as reader
from proofs.report import Report
from proofs.serving import Place, check_store
from windlass import App, NewJob, Server, ServerConfig

PROMISE = (
    "however often servers are killed, no due time makes two jobs, and each one that a server lived through makes one"
)
WATCHING = "watching"
RULE = "* * * * * *"
MICROS = 1_000_000
CLOCKS_DIFFER = 2_000
"""Microseconds that the two clocks may drift apart in one run."""


@dataclass(frozen=True)
class Plan:
    seconds: float = 60
    servers: int = 4
    kills: int = 30
    together: int = 5
    """One kill in so many takes all servers at once, so that there is down time."""
    shortest_pause: float = 1.0
    longest_pause: float = 4.0
    """Seconds of such down time."""
    slack: float = 3.0
    """Seconds after a due time within which a server that is killed need not have fired."""
    seed: int = 1


class Life(NamedTuple):
    """When a server was there, in microseconds since 1970."""

    begun: int
    watching: int | None
    ended: int


@dataclass
class Crew:
    """The servers of the campaign, as they come and go."""

    children: Children
    place: Place
    chance: random.Random
    started: int = 0
    killed: int = 0
    begun: dict[str, float] = field(default_factory=dict[str, float])
    ended: dict[str, float] = field(default_factory=dict[str, float])
    live: list[SpawnProcess] = field(default_factory=list[SpawnProcess])

    def start(self) -> None:
        self.started += 1
        name = f"life {self.started}"
        self.begun[name] = time.monotonic()
        self.live.append(self.children.start(name, serve, self.place))

    def kill(self, servers: Collection[SpawnProcess]) -> None:
        for server in servers:
            server.kill()
        for server in servers:
            server.join(10)
            self.ended[server.name] = time.monotonic()
            self.killed += server.exitcode == -signal.SIGKILL
            self.live.remove(server)


async def serve(ledger: Ledger, place: Place) -> None:
    """Run a server until it is killed, or stopped gracefully by SIGTERM; tell when it has begun to watch."""
    logging.getLogger("windlass").setLevel(logging.ERROR)
    told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)
    app = App(place.url)

    @app.job
    async def at_once() -> None: ...

    ledger.write("started")
    async with app, Server(app, ServerConfig(concurrency=4)):
        ledger.write("ok", note=WATCHING)
        await told.wait()


def prove(folder: Path, plan: Plan) -> Report:
    place = Place.within(folder)
    report = Report("schedules", PROMISE)
    epoch = time.time() - time.monotonic()
    asyncio.run(_put(place))
    with Children(place.ledger) as children:
        crew = Crew(children, place, random.Random(plan.seed))
        for _ in range(plan.servers):
            crew.start()
        _harass(crew, plan)
        end = _last_second(crew, plan)
        ended_well = _end(crew)
    entries = list(read(place.ledger))
    lives = _lives(crew, entries, epoch)
    _check(report, plan, place, lives, end)
    check_store(report, place, entries, kills=crew.killed)
    report.figure("kills delivered", crew.killed)
    report.figure("servers started", crew.started)
    report.never("last servers that did not end well", [] if ended_well else ["one of the last"])
    report.needs(f"{plan.kills} kills", given=crew.killed >= plan.kills)
    return report


async def _put(place: Place) -> None:
    async with windlass.connect(place.url) as client:
        for catch_up in ("none", "one", "all"):
            await client.schedules.put(catch_up, RULE, NewJob("default", {}, kind="at_once"), catch_up=catch_up)


def _harass(crew: Crew, plan: Plan) -> None:
    """Kill and start servers at random moments, until time is over and there were kills enough."""
    over = time.monotonic() + plan.seconds
    step = plan.seconds / (plan.kills + 1)
    rounds = 0
    while time.monotonic() < over + (plan.seconds if crew.killed < plan.kills else 0):
        rounds += 1
        time.sleep(crew.chance.uniform(0, 2 * step))
        crew.kill(list(crew.live) if rounds % plan.together == 0 else crew.chance.sample(crew.live, 1))
        if not crew.live:
            time.sleep(crew.chance.uniform(plan.shortest_pause, plan.longest_pause))
        while len(crew.live) < plan.servers:
            crew.start()


def _last_second(crew: Crew, plan: Plan) -> int:
    """Let the last servers live for a while; return the due time up to which all must be made by then."""
    names = {server.name for server in crew.live}
    eventually(lambda: names <= _watching(read(crew.place.ledger)).keys(), 60)
    end = int(time.time() + plan.slack + 2) * MICROS
    eventually(lambda: all(at > end for at in reader.next_runs(crew.place.database).values()), 60)
    return end


def _watching(entries: Iterable[Entry]) -> dict[str, float]:
    """Return when each server has told that it watches."""
    return {entry.process: entry.at for entry in entries if entry.note == WATCHING}


def _end(crew: Crew) -> bool:
    """Stop the servers that are left, gracefully, when nothing is left to do."""
    servers = list(crew.live)
    for server in servers:
        server.terminate()
    for server in servers:
        server.join(40)
        crew.ended[server.name] = time.monotonic()
    return all(server.exitcode == 0 for server in servers)


def _lives(crew: Crew, entries: list[Entry], epoch: float) -> list[Life]:
    def micros(at: float) -> int:
        return int((at + epoch) * MICROS)

    watching = _watching(entries)
    return [
        Life(micros(begun), micros(watching[name]) if name in watching else None, micros(crew.ended[name]))
        for name, begun in crew.begun.items()
    ]


def _check(report: Report, plan: Plan, place: Place, lives: list[Life], end: int) -> None:
    ticks = reader.ticks(place.database)
    first = min(tick.due_at for tick in ticks)
    every = range(first, end + 1, MICROS)
    slack = int(plan.slack * MICROS)
    lived_through = {
        due
        for due in every
        if any(life.watching is not None and life.watching <= due and life.ended >= due + slack for life in lives)
    }
    # a life begins to watch somewhere between its begin and when it says so
    alone = {due for due in every if not any(life.begun <= due <= life.ended + CLOCKS_DIFFER for life in lives)}
    made = Counter((tick.schedule, tick.due_at) for tick in ticks)
    report.figure("due times", len(every))
    report.figure("due times that a server lived through", len(lived_through))
    report.figure("due times without any server", len(alone))
    report.never("made twice", [tick for tick, count in made.items() if count > 1])
    for name in ("none", "one", "all"):
        mine = {due for schedule, due in made if schedule == name}
        report.figure(f"jobs, catch_up={name}", len(mine))
        report.never(f"lived through and not made, catch_up={name}", sorted(lived_through - mine))
        report.never(f"made and never due, catch_up={name}", [due for due in mine if due % MICROS])
    report.never(
        "made without any server, catch_up=none", sorted({due for name, due in made if name == "none"} & alone)
    )
    report.never("not made at all, catch_up=all", sorted(set(every) - {due for name, due in made if name == "all"}))
    late = sorted(tick.created_at - tick.due_at for tick in ticks if tick.due_at in lived_through)
    report.figure("how late, median", f"{late[len(late) // 2] / 1000:,.1f} ms" if late else "-")
    report.figure("how late, 99 of 100", f"{late[len(late) * 99 // 100] / 1000:,.1f} ms" if late else "-")
    report.never("made before their time", [each for each in late if each < 0])
    report.needs("due times that a server lived through", given=bool(lived_through))
    report.needs("due times without any server", given=bool(alone))
