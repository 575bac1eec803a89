"""The story: what is done to the servers, and when, and the sentences that tell it."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import windlass
from windlass.demo import checker, ledger, second_reader
from windlass.demo.app import app, broken_report, yearly_report
from windlass.demo.crew import Crew
from windlass.demo.ledger import Claim, Event, Ledger
from windlass.demo.lookout import Lookout
from windlass.demo.producer import Producer
from windlass.demo.view import View, jobs
from windlass.demo.worker_command import PROCESSES, Trouble, WorkerCommand, worker_command

T = TypeVar("T")

KILL_AT: Final = 0.15
POISON_AT: Final = 0.35
PAUSE_AT: Final = 0.6
LAST_ORDERS_AT: Final = 0.9
"""Which part of the run is over when each thing is done; it is later where the one before it takes longer."""
LOOK_EVERY: Final = 0.05
PATIENCE: Final = 30.0
"""Seconds after which a story that does not move on is given up."""
LONGER: Final = 45.0
"""Seconds that a story may take longer than it was meant to: the machine may be a slow one."""
STOPS_WITHIN: Final = 15.0
INTO_THE_WORK: Final = 0.3
"""Seconds after which a job is surely in the middle of its work."""
SURELY_PAUSED: Final = 0.05
"""Seconds after which a process that was sent a signal has come to a halt, also on a machine with much to do."""
ANSWERS_WITHIN: Final = 0.5
"""Seconds in which the store has answered, unless somebody is in its way."""


@dataclass(frozen=True, slots=True)
class Scene:
    folder: Path
    seconds: float
    removed: str | None
    """A safeguard that the servers do without."""

    @property
    def database(self) -> Path:
        return self.folder / "jobs.db"

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger.jsonl"

    @property
    def url(self) -> str:
        return f"sqlite:///{self.database}"


class Stopped(Exception):
    """Somebody has asked for the end."""


async def tell(
    scene: Scene, view: View, stop: asyncio.Event, *, address: str | None = None
) -> tuple[checker.Plan, checker.Report]:
    """Run the story; return what was asked for, and what the checker found. `stop` ends it early.

    `address` is where it is shown in a browser, if it is.

    Raises `Trouble` when it could not be told to its end.
    """
    pen = Ledger(scene.ledger)
    try:
        # The servers end before the client closes: one that is paused could be in its way.
        async with app:
            with worker_command(scene.folder / "worker.log") as command:
                crew = Crew(pen)
                lookout = Lookout(crew, view, scene.ledger, seconds=scene.seconds, address=address)
                story = _Story(scene, view, command=command, crew=crew, lookout=lookout, stop=stop)
                await story.tell()
    finally:
        pen.close()
    view.say("What the jobs wrote is compared with the file, read by plain SQL.")
    return story.plan, checker.check(story.plan, ledger.read(scene.ledger), second_reader.read(scene.database))


class _Story:
    def __init__(
        self,
        scene: Scene,
        view: View,
        *,
        command: WorkerCommand,
        crew: Crew,
        lookout: Lookout,
        stop: asyncio.Event,
    ) -> None:
        self._scene = scene
        self._say = view.say
        self._command = command
        self._crew = crew
        self._lookout = lookout
        self._tally = lookout.tally
        self._stop = stop
        self._producer = Producer()
        self._reports: list[str] = []
        self._poison: list[str] = []
        self._stopped = False

    @property
    def plan(self) -> checker.Plan:
        return checker.Plan([*self._producer.enqueued, *self._reports, *self._poison], self._poison, self._stopped)

    async def tell(self) -> None:
        try:
            await self._begin()
            await self._middle()
            self._say("Last orders: no new customers. What is in line is worked off.")
            await self._lookout.ask()
            await self._until(self._all_is_done)
            self._say("No job is left. The worker stops.")
        except Stopped:
            self._stopped = True
            self._say("Asked to stop: the worker ends gracefully, and what waits stays.")
        was_up = bool(self._crew.lives)
        self._crew.stop()
        self._command.stop()
        stops_by = time.monotonic() + STOPS_WITHIN
        while not self._command.ended_well(was_up=was_up):
            if time.monotonic() > stops_by:
                raise Trouble(f"`windlass worker` did not stop within {STOPS_WITHIN:.0f} s")
            await asyncio.sleep(LOOK_EVERY)

    async def _begin(self) -> None:
        if self._scene.removed:
            self._say(f"The {self._scene.removed} is taken out: a stale token is as good as a valid one.")
        self._say(f"$ windlass worker windlass.demo.app:app --processes {PROCESSES}")
        await self._until(self._all_work)
        self._say(f"{self._names()} are up. Customers come, and jobs with them.")

    async def _middle(self) -> None:
        """Tell what happens while customers come; whatever that is, none is in the middle of something after it."""
        producing = asyncio.create_task(self._producer.produce())
        try:
            await self._kill_a_server()
            await self._bring_poison()
            await self._pause_a_server()
            await self._at(LAST_ORDERS_AT)
        finally:
            self._producer.ending.set()
            await producing

    # a process is killed

    async def _kill_a_server(self) -> None:
        await self._at(KILL_AT)
        victim = await self._until(self._a_busy_one)
        rescued, killed_at = self._lookout.total.totals.rescued, self._crew.kill(victim)
        self._lookout.read()
        held = [job for job, _ in self._tally.running[victim]]
        self._say(f"{self._crew.name(victim)} is killed with SIGKILL while it runs {jobs(len(held))}.")
        await self._until(lambda: self._lookout.total.totals.rescued > rescued)
        ends = [each for id in held if (job := await app.client.get(id)) is not None for each in job.history]
        back_at = [each.ended_at for each in ends if (each.worker, each.outcome) == (victim, "rescued")]
        if last := max((at.timestamp() for at in back_at if at is not None), default=None):
            self._say(f"They are back in line {last - killed_at:.2f} s later.")
        await self._until(self._all_work)
        self._say(f"{self._crew.name(self._crew.working()[-1])} has taken its place.")

    def _a_busy_one(self) -> str | None:
        """Return a server that holds several jobs, while all are at work."""
        busiest = max(self._crew.working(), key=lambda id: len(self._tally.running[id]), default="")
        return busiest if self._all_work() and len(self._tally.running[busiest]) > 2 else None

    # a job kills the processes that it runs in

    async def _bring_poison(self) -> None:
        await self._at(POISON_AT)
        await self._until(self._all_work)
        dead = self._lookout.total.dead
        self._poison.append((await broken_report.enqueue()).id)
        self._say("A poison is enqueued: a job that kills whatever process runs it.")
        told: list[Event] = []
        while self._lookout.total.dead == dead:
            await self._until(lambda: self._tally.deaths[len(told) :] or self._lookout.total.dead > dead)
            self._lookout.read()
            for death in self._tally.deaths[len(told) :]:
                beside = len(self._tally.running[death.worker].keys() - {death.claim})
                what_else = f"with {jobs(beside)} beside it" if beside else "alone"
                self._say(f"{self._crew.name(death.worker)} dies of it, {what_else}.")
                told.append(death)
        self._say(f"Its {len(told)} attempts are used up: the poison is dead, and it alone.")
        await self._until(self._all_work)
        self._say(f"{self._names()} are at work.")

    # a process is paused, and comes back too late

    async def _pause_a_server(self) -> None:
        await self._at(PAUSE_AT)
        sleeper, report = await self._pause_in_the_middle()
        self._say(f"{self._crew.name(sleeper)} is paused with SIGSTOP in the middle of a report.")
        other = await self._runner(report, run=2)
        self._say(f"Its lease of 4 s has run out: {self._crew.name(other)} runs the report again.")
        lost = await self._lost(sleeper)
        self._crew.resume(sleeper)
        self._say(f"{self._crew.name(sleeper)} is resumed and goes on as if nothing had happened.")
        await self._until(lambda: not lost & self._tally.running[sleeper].keys())
        await self._until(lambda: (report, 2) not in self._tally.running[other])
        accepted = len(lost & self._tally.accepted[sleeper])
        self._say(f"It settles {jobs(len(lost))} too late: {len(lost) - accepted} refused, {accepted} accepted.")

    async def _pause_in_the_middle(self) -> tuple[str, str]:
        """Pause a server that runs a report, at a moment at which it stands in nobody's way; return both."""
        while True:
            report = (await yearly_report.options(priority=windlass.PRIORITY_HIGH).enqueue(2024)).id
            self._reports.append(report)
            runner = await self._runner(report, run=1)
            await self._pass(INTO_THE_WORK)
            self._crew.pause(runner)
            # twice: what was on its way to the lock of the file when the signal came may get it before it stops
            probes = [await self._probe(), await self._probe()]
            self._lookout.read()
            if all(probe.done() for probe in probes) and (report, 1) in self._tally.running[runner]:
                return runner, report
            # it was paused while it wrote, and nobody else can until it goes on; or the report is over
            self._crew.resume(runner)
            await asyncio.gather(*probes)

    async def _probe(self) -> "asyncio.Task[None]":
        """Write to the store, and wait a moment for its answer."""
        probe = asyncio.create_task(app.client.kv.put("demo/probe", b"1"))
        await asyncio.wait([probe], timeout=ANSWERS_WITHIN)
        await asyncio.sleep(SURELY_PAUSED)
        return probe

    async def _lost(self, sleeper: str) -> set[Claim]:
        """Return what a server believes it runs, and what was taken back from it."""
        found = {claim: await app.client.get(claim[0]) for claim in list(self._tally.running[sleeper])}
        return {
            claim
            for claim, job in found.items()
            if job is not None and (job.state is not windlass.State.RUNNING or job.worker != sleeper)
        }

    async def _runner(self, job: str, *, run: int) -> str:
        """Return the server that starts `job` for the `run`th time, as soon as it does."""
        return (await self._until(lambda: self._tally.runners[job][run - 1 : run]))[0]

    # waiting

    def _all_work(self) -> bool:
        return len(self._crew.working()) == PROCESSES

    def _all_is_done(self) -> bool:
        total = self._lookout.total
        return not total.scheduled + total.pending + total.running

    def _names(self) -> str:
        return " and ".join(map(self._crew.name, self._crew.working()))

    async def _at(self, part: float) -> None:
        """Wait until this part of the run is over."""
        await self._until(lambda: self._lookout.elapsed >= part * self._scene.seconds)

    async def _pass(self, seconds: float) -> None:
        over_at = time.monotonic() + seconds
        await self._until(lambda: time.monotonic() >= over_at)

    async def _until(self, seek: Callable[[], T | None]) -> T:
        """Look after the run until `seek` finds something; return that. Raises `Stopped` and `Trouble`."""
        given_up_at = time.monotonic() + PATIENCE
        done = self._lookout.total.succeeded
        while True:
            if self._stop.is_set():
                raise Stopped
            self._command.look()
            await self._lookout.look()
            if found := seek():
                return found
            if self._lookout.total.succeeded > done:
                done, given_up_at = self._lookout.total.succeeded, time.monotonic() + PATIENCE
            if time.monotonic() > given_up_at:
                raise Trouble(f"nothing has moved for {PATIENCE:.0f} s")
            if self._lookout.elapsed > self._scene.seconds + LONGER:
                raise Trouble(f"it is not over after {self._lookout.elapsed:.0f} s")
            await asyncio.sleep(LOOK_EVERY)
