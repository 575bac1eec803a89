"""The lookout: reads the ledger and asks the store while the story runs, and shows how things stand."""

import time
from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import windlass
from windlass.core.stats import total
from windlass.demo.app import app
from windlass.demo.crew import Crew, Life
from windlass.demo.ledger import Claim, Event, Follower, What
from windlass.demo.view import Server, Standing, Timetable, View

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


class Tally:
    """What the ledger says so far, server by server."""

    def __init__(self) -> None:
        self.deaths: list[Event] = []
        """Servers that the poison took along."""
        self.runners: defaultdict[str, list[str]] = defaultdict(list)
        """The servers that started a job, in order."""
        self.accepted: defaultdict[str, set[Claim]] = defaultdict(set)
        """What has succeeded in a server, by its own word."""
        self.running: defaultdict[str, dict[Claim, str]] = defaultdict(dict)
        """What has begun in a server and not ended there, each with the kind of the job."""

    def add(self, events: Iterable[Event]) -> None:
        for event in events:
            match event.what:
                case What.STARTED:
                    self.running[event.worker][event.claim] = event.note
                    self.runners[event.job].append(event.worker)
                case What.RETURNED | What.RAISED:
                    self.running[event.worker].pop(event.claim, None)
                case What.ACCEPTED:
                    self.accepted[event.worker].add(event.claim)
                case What.POISONED:
                    self.deaths.append(event)
                case _:
                    pass


class Lookout:
    def __init__(self, crew: Crew, view: View, ledger: Path, *, seconds: float, address: str | None = None) -> None:
        self._crew = crew
        self._view = view
        self._follower = Follower(ledger)
        self._began = time.monotonic()
        self._ask_at = 0.0
        self._rates: deque[int] = deque([0], maxlen=SECONDS_KEPT)
        self._second = 0
        self._due_at = 0.0
        self._standing = Standing(total=seconds, address=address)
        self.tally = Tally()
        self.total = total(())
        """The sum over the queues, when the store was asked last."""

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self._began

    def read(self) -> None:
        """Take in what was written to the ledger."""
        self.tally.add(self._follower.news())
        for death in self.tally.deaths:
            self._crew.lives[death.worker] = Life.POISONED

    async def look(self) -> None:
        """Take in all there is to know, and show it."""
        self.read()
        if self.elapsed >= self._ask_at:
            self._ask_at = self.elapsed + ASK_EVERY
            await self.ask()
        timetable = self._standing.timetable
        if timetable is not None and self._due_at:
            timetable = timetable._replace(next_in=self._due_at - time.time())
        now = self._standing._replace(elapsed=self.elapsed, servers=self._servers(), timetable=timetable)
        self._view.show(now)

    async def ask(self) -> None:
        """Ask the store."""
        self._crew.meet(await app.client.store.servers())
        found = {each.queue: each for each in await app.client.store.stats()}
        before, self.total = self.total.succeeded, total(found.values())
        self._count(self.total.succeeded - before)
        timetable = None
        for schedule in await app.client.schedules.list():
            self._due_at = 0.0 if schedule.next_run_at is None else schedule.next_run_at.timestamp()
            fired = found[schedule.queue].totals.enqueued if schedule.queue in found else 0
            timetable = Timetable(schedule.id, schedule.rule, None, fired)
        self._standing = self._standing._replace(
            # every queue of the app, so that no line comes later than others
            queues=[found.get(name, windlass.QueueStats(name)) for name in sorted(app.queues)],
            timetable=timetable,
            # the second that is not over yet would always look like a fall
            rates=list(self._rates)[:-1],
            retried=self.total.totals.retried,
            rescued=self.total.totals.rescued,
        )

    def _count(self, succeeded: int) -> None:
        self._rates.extend([0] * (int(self.elapsed) - self._second))
        self._second = int(self.elapsed)
        self._rates[-1] += succeeded

    def _servers(self) -> list[Server]:
        """Return all that are alive, after the last that are not."""
        lives = sorted(self._crew.lives.items(), key=lambda one: one[1] in (Life.WORKING, Life.PAUSED))
        return [
            Server(self._crew.name(id), life, len(self.tally.accepted[id]), self._runs(id, life)) for id, life in lives
        ]

    def _runs(self, id: str, life: Life) -> str:
        if life in (Life.KILLED, Life.POISONED):
            return ""
        kinds = Counter(self.tally.running[id].values())
        return ", ".join(f"{count} {WORDS[kind][count > 1]}" for kind, count in sorted(kinds.items()))
