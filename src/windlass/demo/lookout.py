"""The lookout: reads the ledger and asks the store while the story runs, and shows how things stand."""

import time
from collections import Counter, deque
from pathlib import Path
from typing import Final

import windlass
from windlass.demo.app import app
from windlass.demo.crew import Crew, Life
from windlass.demo.ledger import Follower
from windlass.demo.tally import Tally
from windlass.demo.view import Queue, Server, Standing, Timetable, View

ASK_EVERY: Final = 0.2
"""Seconds between two questions to the store."""
SECONDS_KEPT: Final = 60
WORDS: Final = {
    "send_email": ("email", "emails"),
    "make_thumbnail": ("thumbnail", "thumbnails"),
    "daily_digest": ("digest", "digests"),
    "yearly_report": ("report", "reports"),
    "broken_report": ("poison", "poisons"),
}


class Lookout:
    def __init__(self, crew: Crew, view: View, ledger: Path, *, seconds: float, address: str | None = None) -> None:
        self._crew = crew
        self._view = view
        self._seconds = seconds
        self._address = address
        self._follower = Follower(ledger)
        self._began = time.monotonic()
        self._ask_at = 0.0
        self._rates: deque[int] = deque([0], maxlen=SECONDS_KEPT)
        self._second = 0
        self.tally = Tally()
        self.stats: list[windlass.QueueStats] = []
        self._timetable: Timetable | None = None
        self._due_at = 0.0

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._began

    @property
    def succeeded(self) -> int:
        return sum(queue.succeeded for queue in self.stats)

    @property
    def unfinished(self) -> int:
        return sum(queue.scheduled + queue.pending + queue.running for queue in self.stats)

    @property
    def dead(self) -> int:
        return sum(queue.dead for queue in self.stats)

    @property
    def rescued(self) -> int:
        return sum(queue.totals.rescued for queue in self.stats)

    def read(self) -> None:
        """Take in what was written to the ledger."""
        self.tally.add(self._follower.news())
        for death in self.tally.deaths:
            self._crew.died(death.worker)

    async def look(self) -> None:
        """Take in all there is to know, and show it."""
        self.read()
        if self.elapsed >= self._ask_at:
            self._ask_at = self.elapsed + ASK_EVERY
            await self.ask()
        self._view.show(self._standing())

    async def ask(self) -> None:
        """Ask the store."""
        store = app.client.store
        self._crew.meet(await store.servers())
        before, self.stats = self.succeeded, await store.stats()
        self._count(self.succeeded - before)
        for schedule in await app.client.schedules.list():
            due_at = schedule.next_run_at
            self._due_at = 0.0 if due_at is None else due_at.timestamp()
            fired = sum(queue.totals.enqueued for queue in self.stats if queue.queue == schedule.queue)
            self._timetable = Timetable(schedule.id, schedule.rule, None, fired)

    def _count(self, succeeded: int) -> None:
        second = int(self.elapsed)
        for _ in range(second - self._second):
            self._rates.append(0)
        self._second = second
        self._rates[-1] += succeeded

    def _standing(self) -> Standing:
        timetable = self._timetable
        if timetable is not None and self._due_at:
            timetable = timetable._replace(next_in=self._due_at - time.time())
        return Standing(
            elapsed=self.elapsed,
            total=self._seconds,
            queues=self._queues(),
            servers=self._servers(),
            timetable=timetable,
            # the second that is not over yet would always look like a fall
            rates=list(self._rates)[:-1],
            retried=sum(queue.totals.retried for queue in self.stats),
            rescued=self.rescued,
            address=self._address,
        )

    def _queues(self) -> list[Queue]:
        """Return every queue of the app, so that no line comes later than others."""
        known = {each.queue: each for each in self.stats}
        stats = [known.get(name, windlass.QueueStats(name)) for name in sorted(app.queues)]
        return [
            Queue(str(each.queue), each.pending, each.running, each.scheduled, each.succeeded, each.dead)
            for each in stats
        ]

    def _servers(self) -> list[Server]:
        """Return all that are alive, after the last that are not."""
        lives = sorted(self._crew.lives.items(), key=lambda one: one[1] in (Life.WORKING, Life.PAUSED))
        return [
            Server(self._crew.name(id), life, len(self.tally.accepted(id)), self._runs(id, life)) for id, life in lives
        ]

    def _runs(self, id: str, life: Life) -> str:
        if life in (Life.KILLED, Life.POISONED):
            return ""
        kinds = Counter(self.tally.running(id).values())
        return ", ".join(f"{count} {WORDS[kind][count > 1]}" for kind, count in sorted(kinds.items()))
