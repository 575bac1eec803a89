"""A shop's store as it may look on a busy afternoon, for the pictures of the docs: an hour of jobs in a second or two.

Every job goes through the client as it would in earnest, by a clock that is behind; at the end it has caught up.
"""
# ruff: noqa: INP001 - a program in a folder of pages

import heapq
import itertools
import linecache
import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Coroutine, Mapping
from datetime import datetime, timedelta
from functools import partial
from random import Random
from typing import Any, Final, NamedTuple, TypeAlias
from uuid import UUID

import windlass
from windlass import Claim, NewJob, Progress
from windlass.client.client import Client
from windlass.core.clock import Timer
from windlass.core.job import Note
from windlass.core.looks import AuditEntry, ServerRecord
from windlass.core.stats import BOUNDS, TimingCount
from windlass.system import SystemClock

LONG: Final = timedelta(minutes=62)
"""How far back the first job is."""
OUTAGE: Final = (timedelta(minutes=27), timedelta(minutes=21))
"""From when until when, before now, the mail server answers nobody."""
HOUR: Final = timedelta(hours=1)
MINUTE: Final = timedelta(minutes=1)

Step: TypeAlias = Callable[[], Coroutine[Any, Any, None]]

SOURCES: Final = {
    "shop/mail.py": """\
import smtplib


def send(order):
    with smtplib.SMTP("smtp.example.com") as server:
        server.send_message(receipt_of(order))


class smtplib:
    @staticmethod
    def SMTP(host):
        raise ConnectionRefusedError(111, f"connection refused by {host}:587")
""",
    "shop/cards.py": """\
class CardDeclined(Exception):
    pass


def charge(order):
    raise CardDeclined(f"order {order}: insufficient funds")
""",
    "shop/pictures.py": """\
def shrink(picture):
    header = read_header(picture)


def read_header(picture):
    raise ValueError(f"picture {picture} is no JPEG: it begins with '<!DOCTYPE html>'")
""",
}
"""What the shop's own code would be, as far as its tracebacks show it."""


class Kind(NamedTuple):
    """What a kind of job is like: its queue, how many a minute, how many seconds they run, how often they fail."""

    queue: str
    a_minute: float
    seconds: float
    fails: float = 0.0


KINDS: Final[Mapping[str, Kind]] = {
    "send_receipt": Kind("emails", 9, 0.4, 0.02),
    "send_newsletter": Kind("emails", 4, 0.3, 0.02),
    "charge_card": Kind("payments", 8, 1.2, 0.03),
    "make_thumbnail": Kind("images", 14, 0.9, 0.004),
    "index_product": Kind("search", 6, 0.12),
    "export_orders": Kind("reports", 0.25, 22.0),
}
SLOTS: Final = {"emails": 4, "payments": 3, "images": 2, "search": 2, "reports": 2}
PEOPLE: Final = ("ada", "grace", "linus", "margaret", "barbara", "edsger")
TENANTS: Final = ("acme", "globex", "initech")


class ClockBehind:
    """Shows a time of the past, and lets timers go by the system's."""

    goes_by_itself = True

    def __init__(self) -> None:
        self._clock = SystemClock()
        self.behind = LONG

    def now(self) -> datetime:
        """Return the time that is shown."""
        return self._clock.now() - self.behind

    def monotonic(self) -> float:
        """Return seconds, as the system counts them."""
        return self._clock.monotonic()

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        """Call later, by the system's time."""
        return self._clock.call_later(delay, callback)

    async def sleep(self, delay: float) -> None:
        """Sleep, by the system's time."""
        await self._clock.sleep(delay)


class StagedShop:
    """Plays the hour; `client` is the store afterwards, at the time of now."""

    def __init__(self) -> None:
        self.clock: Final = ClockBehind()
        self.client: Final[Client] = self._connect("web")
        self._end = SystemClock().now()
        self._chance = Random(7)  # noqa: S311 - the same shop each time
        self._servers = [f"shop#{UUID(int=self._chance.getrandbits(128), version=4)}" for _ in range(3)]
        self._workers = [self._connect(name) for name in self._servers]
        self._steps: list[tuple[datetime, int, Step]] = []
        self._number = itertools.count()
        self._order = itertools.count(48_201)
        self._busy: defaultdict[str, int] = defaultdict(int)
        self._timings: list[TimingCount] = []
        for name, source in SOURCES.items():
            linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name

    async def play(self) -> None:
        """Let the hour pass."""
        for name, kind in KINDS.items():
            self._plan_orders(name, kind)
        for at in _moments(self._end - LONG, self._end, timedelta(seconds=5)):
            self._at(at, self._tick)
        self._at(self._end - timedelta(minutes=9), self._pause_search)
        while self._steps:
            at, _, step = heapq.heappop(self._steps)
            if at > self._end:
                break
            self.clock.behind = SystemClock().now() - at
            await step()
        self.clock.behind = timedelta(0)
        await self.client.store.write_timings(_summed(self._timings))
        await self._put_schedules()
        await self._leave_some_at_work()
        await self._write_audit()
        await self.beat()

    async def beat(self) -> None:
        """Let the servers tell that they are there."""
        for n, server in enumerate(self._servers):
            await self.client.store.beat(
                ServerRecord(
                    id=server,
                    name="shop",
                    host=f"shop-{n + 1}",
                    pid=4_100 + n,
                    version=windlass.__version__,
                    started_at=self._end - HOUR * (26 if n else 2),
                    seen_at=self.clock.now(),
                    queues=tuple(SLOTS),
                    kinds=(*KINDS, "monthly_report", "count_stock", "load_rates", "empty_carts"),
                    running=(2, 3, 2)[n],
                    details={"slots": "20", "memory": str((148 + 9 * n) * 1024**2)},
                )
            )

    def _connect(self, worker: str) -> Client:
        return windlass.connect(
            "memory://staged-shop",
            worker=worker,
            clock=self.clock,
            keep_succeeded=HOUR * 24,
            max_attempts=4,
            retry=windlass.Exponential(base=40, cap=300),
        )

    # what comes in

    def _plan_orders(self, name: str, kind: Kind) -> None:
        at = self._end - LONG
        while at < self._end:
            # busier and quieter by turns, as days are
            wave = (
                1
                + 0.45 * math.sin((self._end - at) / timedelta(minutes=9))
                + 0.25 * math.sin((self._end - at) / MINUTE)
            )
            at += MINUTE * self._chance.expovariate(kind.a_minute * max(0.2, wave))
            self._at(at, partial(self._enqueue, name, kind))

    async def _enqueue(self, name: str, kind: Kind) -> None:
        await self.client.enqueue_many([self._job(name, kind)])
        await self._work(kind.queue)

    def _job(self, name: str, kind: Kind) -> NewJob:
        order = next(self._order)
        person = self._chance.choice(PEOPLE)
        payload: dict[str, object] = {"order": order}
        if name in ("send_receipt", "send_newsletter"):
            payload["to"] = f"{person}@example.com"
        if name == "charge_card":
            payload |= {"amount": f"{self._chance.randint(5, 240)}.90 EUR", "card_token": f"tok_{order}"}
        tenant = self._chance.choice(TENANTS)
        return NewJob(kind.queue, payload, kind=name, tenant=tenant, headers={"request": f"req-{order}"})

    # what is worked

    async def _tick(self) -> None:
        await self.client.store.promote(limit=1_000)
        for queue in SLOTS:
            await self._work(queue)

    async def _work(self, queue: str) -> None:
        free = SLOTS[queue] - self._busy[queue]
        if free <= 0:
            return
        worker = self._chance.choice(self._workers)
        for claim in await worker.claim_many([queue], limit=free, lease=HOUR):
            self._busy[queue] += 1
            kind = KINDS[str(claim.job.kind)]
            ran = kind.seconds * self._chance.lognormvariate(0, 0.5)
            self._at(self.clock.now() + timedelta(seconds=ran), partial(self._settle, claim, ran))

    async def _settle(self, claim: Claim, ran: float) -> None:
        job = claim.job
        self._busy[job.queue] -= 1
        self._time(claim, ran)
        error = self._failure(job)
        if error is None:
            await self.client.ack(claim, self._result(job), then=self._followers(job))
        elif job.queue == "emails":
            await self.client.nack(claim, error)
        else:
            await self.client.dead_letter(claim, error)
        await self._work(job.queue)

    def _time(self, claim: Claim, ran: float) -> None:
        job = claim.job
        minute = self.clock.now().replace(second=0, microsecond=0)
        waited = max(0.004, (self.clock.now() - job.run_at).total_seconds() - ran)
        for what, seconds in (("ran", ran), ("waited", waited)):
            place = bisect_left(BOUNDS, seconds)
            self._timings.append(
                TimingCount(minute, job.queue, str(job.kind), "ran" if what == "ran" else "waited", place, 1)
            )

    def _failure(self, job: windlass.Job) -> BaseException | None:
        order = self.client.decode(job)["order"]
        begins, ends = OUTAGE
        down = job.queue == "emails" and ends <= self.clock.behind <= begins
        if not down and self._chance.random() >= KINDS[str(job.kind)].fails:
            return None
        if job.queue == "emails":
            return _raised("shop/mail.py", "send", order)
        if job.queue == "payments":
            return _raised("shop/cards.py", "charge", order)
        return _raised("shop/pictures.py", "shrink", order)

    def _result(self, job: windlass.Job) -> object:
        if job.kind == "make_thumbnail":
            return {"width": 160, "height": 120, "bytes": self._chance.randint(4_000, 9_000)}
        return {"charge": f"ch_{self._chance.randint(10_000, 99_999)}"} if job.kind == "charge_card" else None

    def _followers(self, job: windlass.Job) -> list[NewJob]:
        if job.kind != "charge_card":
            return []
        receipt = {"order": self.client.decode(job)["order"], "to": f"{self._chance.choice(PEOPLE)}@example.com"}
        return [NewJob("emails", receipt, kind="send_receipt", tenant=job.tenant)]

    # what is there at the end

    async def _leave_some_at_work(self) -> None:
        self.clock.behind = timedelta(minutes=6, seconds=2)
        report = {"month": "2026-10", "format": "xlsx", "api_key": "sk_live_4f1c9e"}
        await self.client.enqueue("reports", report, kind="monthly_report", tenant="acme", max_attempts=3)
        self.clock.behind = timedelta(minutes=6)
        [first] = await self._workers[0].claim_many(["reports"], kinds=["monthly_report"], lease=HOUR)
        self.clock.behind = timedelta(minutes=5, seconds=20)
        await self.client.nack(first, _raised("shop/mail.py", "send", 48_977), delay=0.1)
        self.clock.behind = timedelta(minutes=4, seconds=40)
        await self.client.store.promote(limit=100)
        [claim] = await self._workers[1].claim_many(["reports"], kinds=["monthly_report"], lease=HOUR)
        for behind, level, text in (
            (270, "info", "reading the orders of October 2026"),
            (255, "info", "12,408 orders of 3,120 customers"),
            (140, "warning", "order 48977 has no address: it is left out"),
            (22, "info", "writing sheet 3 of 5"),
        ):
            self.clock.behind = timedelta(seconds=behind)
            await self.client.store.note([Note(claim.job.id, claim.token, lines=[(level, text)])])
        self.clock.behind = timedelta(seconds=3)
        done = Progress(7_940, 12_408, "sheet 3 of 5: refunds")
        await self.client.store.note([Note(claim.job.id, claim.token, progress=done)])
        self.clock.behind = timedelta(0)
        self.clock.behind = timedelta(seconds=4)
        mixed = self._chance.choices(list(KINDS), [3, 1, 4, 6, 0, 1], k=12)
        await self.client.enqueue_many([self._job(name, KINDS[name]) for name in mixed])
        self.clock.behind = timedelta(seconds=2)
        for n, queue in enumerate(["images", "payments", "images", "emails", "payments", "reports"]):
            await self._workers[n % len(self._workers)].claim_many([queue], lease=HOUR)
        self.clock.behind = timedelta(0)
        await self.client.enqueue("emails", {"campaign": "winter"}, kind="send_newsletter", delay=HOUR * 3)

    async def _pause_search(self) -> None:
        await self.client.store.set_paused("search", paused=True)

    async def _put_schedules(self) -> None:
        put = self.client.schedules.put
        await put("nightly-stock", "30 2 * * *", NewJob("reports", {}, kind="count_stock"), timezone="Europe/Berlin")
        await put(
            "weekly-digest", "0 9 * * mon", NewJob("emails", {}, kind="send_newsletter"), timezone="Europe/Berlin"
        )
        await put("rates", timedelta(minutes=15), NewJob("payments", {}, kind="load_rates"), overlap="skip")
        await put("empty-old-carts", "0 * * * *", NewJob("search", {}, kind="empty_carts"))
        await self.client.schedules.pause("empty-old-carts")
        for schedule in ("nightly-stock", "rates", "rates"):
            self.clock.behind = timedelta(minutes=15 if schedule == "rates" else 900)
            await self.client.schedules.run_now(schedule)
            for claim in await self._workers[0].claim_many(
                ["reports", "payments"], kinds=["count_stock", "load_rates"]
            ):
                await self.client.ack(claim)
        self.clock.behind = timedelta(0)

    async def _write_audit(self) -> None:
        now = self.clock.now()
        await self.client.store.write_audit(
            [
                AuditEntry(now - MINUTE * 31, "ada", "retry", "14 jobs", {"error": "ConnectionRefusedError"}),
                AuditEntry(now - MINUTE * 19, "grace", "retry", "22 jobs", {"queue": "emails", "state": "dead"}),
                AuditEntry(now - MINUTE * 12, "grace", "pause schedule", "empty-old-carts", {}),
                AuditEntry(now - MINUTE * 9, "ada", "pause", "search", {}),
                AuditEntry(now - MINUTE * 2, "ada@shop-1", "delete", "3 jobs", {"kind": "make_thumbnail"}),
            ]
        )

    def _at(self, at: datetime, step: Step) -> None:
        heapq.heappush(self._steps, (at, next(self._number), step))


def _raised(file: str, function: str, order: int) -> BaseException:
    """Return the error of the shop's own code, with a traceback of that code alone."""
    names: dict[str, Any] = {}
    exec(compile(SOURCES[file], file, "exec"), names)  # noqa: S102 - of this page
    try:
        names[function](order)
    except Exception as error:  # noqa: BLE001 - whatever the shop raises
        return error.with_traceback(None if error.__traceback__ is None else error.__traceback__.tb_next)
    raise AssertionError


def _moments(begin: datetime, end: datetime, every: timedelta) -> list[datetime]:
    return [begin + every * n for n in range(int((end - begin) / every))]


def _summed(timings: list[TimingCount]) -> list[TimingCount]:
    counted: defaultdict[TimingCount, int] = defaultdict(int)
    for timing in timings:
        counted[timing] += 1
    return [timing._replace(attempts=count) for timing, count in counted.items()]
