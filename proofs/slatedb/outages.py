"""The object store is gone: every kind of call ends in time with a clear error, and works again when it is back.

It is gone in two ways: nobody takes connections, or somebody does and never answers.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple, TypeAlias
from uuid import uuid4

import windlass
from proofs.readers.slatedb import SlateReader
from proofs.report import Report
from proofs.slatedb.faulty_s3 import FaultyS3
from proofs.slatedb.s3_faults import NONE, Faults
from windlass import Claim, Client, NewJob, OutcomeUnknown, StoreUnavailable

QUEUE: Final = "outages"
DEADLINE: Final = 2.0
"""Seconds that a call has, by `?timeout=`."""
BACK_WITHIN: Final = 30.0
LEASE: Final = 300.0
QUEUES: Final = 8
FLUSHES: Final = 300
"""Writes after which most of them are in tables, and not read again when the store is opened."""
READY: Final = 12
"""Jobs that wait when the object store goes."""
SILENT: Final = Faults(share=1.0, kinds=("stall",), stall=600.0)
MUST_FAIL: Final = frozenset({"enqueue", "enqueue many", "claim", "settle", "renew", "kv put", "open"})
"""The calls that cannot be done without the object store; others may be answered from memory."""


Calls: TypeAlias = dict[str, Callable[[], Awaitable[object]]]
"""Calls that are made at once, by what each of them does."""


class Call(NamedTuple):
    """How a call ended while the object store was gone."""

    what: str
    took: float
    error: Exception | None


@dataclass
class Outages:
    """What was seen."""

    calls: list[Call] = field(default_factory=list[Call])
    back: list[float] = field(default_factory=list[float])
    """Seconds from the return of the object store until all kinds of calls were done again."""
    failed: list[str] = field(default_factory=list[str])
    enqueued: set[str] = field(default_factory=set[str])
    """The jobs whose enqueue was acknowledged."""
    unsure: set[str] = field(default_factory=set[str])
    settled: set[str] = field(default_factory=set[str])

    def check(self, report: Report, url: str, slack: float) -> None:
        """Tell of them, and of what is in the store in the end, by an address that no fault stands before.

        A call may take `slack` seconds longer than its deadline.
        """
        report.figure("outages of the object store", len(self.back))
        for what in sorted({call.what for call in self.calls}):
            took = [call.took for call in self.calls if call.what == what]
            errors = {type(call.error).__name__ for call in self.calls if call.what == what and call.error}
            said = f"{', '.join(sorted(errors)) or 'answered'} within {max(took):.1f} s"
            report.figure(f"{what}, while it was gone", said)
        report.never(
            f"calls that took longer than their deadline of {DEADLINE:g} s",
            [f"{call.what}: {call.took:.1f} s" for call in self.calls if call.took > DEADLINE + slack],
        )
        report.never(
            "errors that do not say what is wrong",
            [f"{call.what}: {call.error!r}" for call in self.calls if call.error and not _is_clear(call.error)],
        )
        report.never(
            "calls that were done without the object store",
            [call.what for call in self.calls if call.what in MUST_FAIL and call.error is None],
        )
        report.figure("work goes on after its return, slowest", f"{max(self.back, default=0):.1f} s")
        report.never("calls that did not work again, without a restart", self.failed)
        self._check_jobs(report, SlateReader(url))

    def _check_jobs(self, report: Report, reader: SlateReader) -> None:
        rows = reader.jobs()
        ended = {row.id for row in rows.values() if row.state == "succeeded"}
        report.never("outages: jobs lost that were acknowledged", self.enqueued - rows.keys())
        report.never("outages: jobs that nobody asked for", rows.keys() - self.enqueued - self.unsure)
        report.never("outages: settlements lost that were acknowledged", self.settled - ended)
        report.never("outages: counts that are off", reader.counts_off())
        report.never("outages: complaints about the store's integrity", reader.integrity())


def go_through(url: str, proxy: FaultyS3, outages: int) -> Outages:
    """Let the object store go and come back so many times, while one client stays."""
    return asyncio.run(_go_through(f"{url}&timeout={DEADLINE:g}", proxy, outages))


async def _go_through(url: str, proxy: FaultyS3, outages: int) -> Outages:
    seen = Outages()
    async with windlass.connect(url) as client:
        for number in range(outages):
            claims = await _prepare(client, seen)
            calls = _calls(client, claims, seen, url.replace("/outages", f"/never-{number}"))
            await _go_through_one(proxy, calls, seen, silently=number % 2 == 1)
            began = time.monotonic()
            await _work_again(client, claims, seen)
            seen.back.append(time.monotonic() - began)
    await _go_through_cold(url, proxy, seen)
    return seen


async def _go_through_cold(url: str, proxy: FaultyS3, seen: Outages) -> None:
    """Let the object store go when the store has just been opened: whatever is called for has to be read first."""
    queues = [f"cold-{number}" for number in range(QUEUES)]
    async with windlass.connect(url) as client:
        for number in range(FLUSHES):
            job = str(uuid4())
            await client.enqueue(queues[number % QUEUES], b"work", id=job)
            seen.enqueued.add(job)
    async with windlass.connect(url) as client:
        calls: Calls = {f"claim from {queue}": partial(client.claim, queue, lease=LEASE) for queue in queues}
        calls |= {
            "look at counts, at first": client.stats,
            "look at all jobs, at first": partial(client.jobs, limit=50),
        }
        before = len(seen.calls)
        await _go_through_one(proxy, calls, seen, silently=True)
        # of many queues it is told what became of the slowest
        claims = [call for call in seen.calls[before:] if call.what.startswith("claim")]
        seen.calls = [call for call in seen.calls if call not in claims]
        seen.calls.append(max(claims, key=lambda call: call.took)._replace(what="claim, at first"))
        began = time.monotonic()
        for queue in queues:
            await _again(f"claim from {queue}", partial(client.claim, queue, lease=LEASE), seen)
        seen.back.append(time.monotonic() - began)


async def _go_through_one(proxy: FaultyS3, calls: Calls, seen: Outages, *, silently: bool) -> None:
    _go(proxy, silently=silently)
    try:
        seen.calls += await asyncio.gather(*(_try(what, call) for what, call in calls.items()))
    finally:
        _come_back(proxy)


async def _prepare(client: Client, seen: Outages) -> list[Claim]:
    """Let some jobs wait, and hold some."""
    jobs = [str(uuid4()) for _ in range(READY)]
    await client.enqueue_many([NewJob(QUEUE, b"work", id=job) for job in jobs])
    seen.enqueued |= {*jobs}
    return await client.claim_many(QUEUE, limit=3, lease=LEASE)


def _go(proxy: FaultyS3, *, silently: bool) -> None:
    if silently:
        proxy.change(SILENT)
    else:
        proxy.go_away()


def _come_back(proxy: FaultyS3) -> None:
    proxy.change(NONE)
    proxy.go_away()
    proxy.come_back()


def _calls(client: Client, claims: list[Claim], seen: Outages, elsewhere: str) -> Calls:
    """Return one call of each kind."""
    alone, *batch = (str(uuid4()) for _ in range(4))
    seen.unsure |= {alone, *batch}
    return {
        "enqueue": lambda: client.enqueue(QUEUE, b"work", id=alone),
        "enqueue many": lambda: client.enqueue_many([NewJob(QUEUE, b"work", id=job) for job in batch]),
        "claim": lambda: client.claim(QUEUE, lease=LEASE),
        "settle": lambda: client.ack(claims[0]),
        "renew": lambda: client.renew(claims[1], LEASE),
        "kv put": lambda: client.kv.put("key", b"value"),
        "look at counts": client.stats,
        "look at a job": lambda: client.get(claims[0].job.id),
        "look at all jobs": lambda: client.jobs(limit=5),
        "open": lambda: _open(elsewhere),
    }


async def _open(url: str) -> None:
    async with windlass.connect(url):
        pass


async def _try(what: str, call: Callable[[], Awaitable[object]]) -> Call:
    began = time.monotonic()
    error: Exception | None = None
    try:
        await asyncio.wait_for(call(), BACK_WITHIN)
    except Exception as raised:  # noqa: BLE001 - whatever it is, it is told
        error = raised
    return Call(what, time.monotonic() - began, error)


def _is_clear(error: Exception) -> bool:
    return isinstance(error, (StoreUnavailable, OutcomeUnknown)) and bool(str(error))


async def _work_again(client: Client, claims: list[Claim], seen: Outages) -> None:
    """Do with the same client what could not be done before; each claim still holds."""
    job = str(uuid4())
    seen.unsure.add(job)
    if await _again("enqueue", lambda: client.enqueue(QUEUE, b"work", id=job), seen):
        seen.enqueued.add(job)
    for claim in claims:
        if await _again("settle", partial(client.ack, claim), seen):
            seen.settled.add(claim.job.id)
    await _again("claim", lambda: client.claim(QUEUE, lease=LEASE), seen)
    await _again("look", client.stats, seen)


async def _again(what: str, call: Callable[[], Awaitable[object]], seen: Outages) -> bool:
    """Repeat a call until it is done."""
    until = time.monotonic() + BACK_WITHIN
    while True:
        try:
            await call()
        except (StoreUnavailable, OutcomeUnknown) as error:
            if time.monotonic() > until:
                seen.failed.append(f"{what}: {error!r}")
                return False
            await asyncio.sleep(0.05)
        else:
            return True
