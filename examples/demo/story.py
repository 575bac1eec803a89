"""The story: what is done to the workers, and when, and the sentences that tell it."""

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import windlass
from examples.demo import ledger, second_reader
from examples.demo.checker import Report, check
from examples.demo.crew import Crew, Life, Trouble
from examples.demo.ledger import Event, Follower, Ledger, Tally, What
from examples.demo.view import Standing, View, Worker
from examples.demo.worker import QUEUE, Work

T = TypeVar("T")

PATIENCE: Final = 30.0
"""Seconds after which a story that does not move on is given up."""
LOOK_EVERY: Final = 0.02
RESCUE_EVERY: Final = 0.1
REPORT_TAKES: Final = 1.0
"""Seconds of the urgent job: while one worker runs it again, the paused one has ample time to come too late."""
INTO_THE_WORK: Final = 0.25
"""Seconds after which a worker is surely done with its claim call: paused inside of it, it could stop all others."""


@dataclass(frozen=True, slots=True)
class Plan:
    folder: Path
    jobs: int
    removed: str | None
    """A safeguard that the workers do without."""

    @property
    def database(self) -> Path:
        return self.folder / "jobs.db"

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger.jsonl"

    @property
    def url(self) -> str:
        return f"sqlite:///{self.database}"


async def tell(plan: Plan, view: View) -> Report:
    """Run the story; return what the checker found. Raises `Trouble` when it could not be told to its end."""
    pen = Ledger(plan.ledger)
    try:
        # The workers end before the client closes: one that is paused could be in its way.
        async with windlass.connect(plan.url, worker="narrator") as client:
            with Crew(plan.folder, url=plan.url, ledger=plan.ledger, removed=plan.removed) as crew:
                story = _Story(plan, view, client, crew, pen)
                await story.tell()
    finally:
        pen.close()
    view.say("The workers' ledger is compared with the file, which plain SQL reads.")
    return check(story.enqueued, ledger.read(plan.ledger), second_reader.read(plan.database))


class _Story:
    def __init__(self, plan: Plan, view: View, client: windlass.Client, crew: Crew, pen: Ledger) -> None:
        self.enqueued: list[str] = []
        self._plan = plan
        self._view = view
        self._client = client
        self._crew = crew
        self._pen = pen
        self._follower = Follower(plan.ledger)
        self._tally = Tally()
        self._done = 0
        self._waiting = 0
        self._rescued = 0
        self._rescue_at = 0.0

    async def tell(self) -> None:
        await self._begin()
        await self._kill_a_worker()
        await self._pause_a_worker()
        await self._end()

    async def _begin(self) -> None:
        say = self._view.say
        if self._plan.removed:
            say(f"The {self._plan.removed} is taken out: a stale token is as good as a valid one.")
        rng = random.Random(1)
        jobs = [windlass.NewJob(QUEUE, Work(rng.uniform(0.010, 0.030))) for _ in range(self._plan.jobs - 1)]
        self.enqueued += [done.id for done in await self._client.enqueue_many(jobs)]
        say(f"{len(jobs):,} jobs are enqueued to a fresh SQLite file. One more comes later.")
        say(f"Two worker processes start: {self._crew.start()} and {self._crew.start()}.")

    async def _kill_a_worker(self) -> None:
        await self._until(lambda: self._done >= self._plan.jobs // 4)
        victim = await self._kill_one_that_holds()
        held = len(self._tally.held(victim))
        self._view.say(f"{victim} is killed with SIGKILL while it holds {_claims(held)}.")
        self._view.say(f"{self._crew.start()} takes its place.")
        rescued = await self._next_rescue()
        self._view.say(f"The lease of {victim} has run out: {_claims(rescued)} rescued, and back in line.")

    async def _kill_one_that_holds(self) -> str:
        while True:
            victim = await self._until(self._in_the_middle)
            self._crew.kill(victim)
            self._pen.write(Event(What.KILLED, victim))
            self._read()
            if self._tally.held(victim):
                return victim
            self._crew.start()

    def _in_the_middle(self) -> str | None:
        """Return a worker that is at work on one job and holds others."""
        for name in self._working():
            last = self._tally.last.get(name)
            if last is not None and last.what is What.STARTED and len(self._tally.held(name)) > 1:
                return name
        return None

    async def _pause_a_worker(self) -> None:
        say = self._view.say
        await self._until(lambda: self._done >= self._plan.jobs // 2 or not self._waiting)
        report = await self._client.enqueue(QUEUE, Work(REPORT_TAKES), priority=windlass.PRIORITY_HIGH)
        self.enqueued.append(report.id)
        say("The last job is enqueued: an urgent one that takes a second.")
        sleeper = await self._runner(report.id, run=1)
        await self._pass(INTO_THE_WORK)
        self._crew.pause(sleeper)
        self._pen.write(Event(What.PAUSED, sleeper))
        say(f"{sleeper} has begun it, and is paused with SIGSTOP. It will not notice.")
        rescued = await self._next_rescue()
        say(f"The lease of {sleeper} has run out: {_claims(rescued)} rescued.")
        other = await self._runner(report.id, run=2)
        stale = set(self._tally.held(sleeper))
        self._pen.write(Event(What.RESUMED, sleeper))
        self._crew.resume(sleeper)
        say(f"{other} runs the urgent job again. {sleeper} is resumed, and goes on.")
        await self._until(lambda: not stale & self._tally.held(sleeper))
        refused = self._tally.refused[sleeper]
        say(f"{sleeper} settles too late: {refused} refused, {len(stale) - refused} accepted.")

    async def _end(self) -> None:
        await self._until(lambda: not self._waiting)
        self._view.say("No job is left in line. The workers stop.")
        self._crew.stop()
        await self._until(self._crew.stopped)

    async def _runner(self, job: str, *, run: int) -> str:
        """Return the worker that starts `job` for the `run`th time, as soon as it does."""
        await self._until(lambda: len(self._tally.runs.get(job, [])) >= run)
        return self._tally.runs[job][run - 1]

    async def _next_rescue(self) -> int:
        """Return how many claims were rescued, as soon as some are."""
        before = self._rescued
        await self._until(lambda: self._rescued > before)
        return self._rescued - before

    async def _pass(self, seconds: float) -> None:
        over_at = time.monotonic() + seconds
        await self._until(lambda: time.monotonic() >= over_at)

    async def _until(self, seek: Callable[[], T | None]) -> T:
        """Look after the run until `seek` finds something; return that."""
        given_up_at = time.monotonic() + PATIENCE
        done = self._done
        while True:
            await self._look()
            if found := seek():
                return found
            if self._done > done:
                done, given_up_at = self._done, time.monotonic() + PATIENCE
            if time.monotonic() > given_up_at:
                raise Trouble(f"nothing has moved for {PATIENCE:.0f} s")
            await asyncio.sleep(LOOK_EVERY)

    async def _look(self) -> None:
        self._crew.look()
        self._read()
        if (now := time.monotonic()) >= self._rescue_at:
            # A server would do this by itself, every few seconds; here nobody should have to wait for it.
            self._rescue_at = now + RESCUE_EVERY
            self._rescued += await self._client.rescue(QUEUE)
            stats = await self._client.stats(QUEUE)
            self._done = stats.succeeded
            self._waiting = stats.pending + stats.running
        self._show()

    def _read(self) -> None:
        self._tally.add(self._follower.news())

    def _show(self) -> None:
        workers = [
            Worker(name, life, self._tally.done[name], 0 if life is Life.KILLED else len(self._tally.held(name)))
            for name, life in self._crew.lives.items()
        ]
        self._view.show(Standing(self._done, self._plan.jobs, workers))

    def _working(self) -> list[str]:
        return [name for name, life in self._crew.lives.items() if life is Life.WORKING]


def _claims(count: int) -> str:
    return "1 claim" if count == 1 else f"{count} claims"
