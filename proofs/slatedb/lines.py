"""Bad lines to the object store, all at once and each to a store of its own: the work is done over every one."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, TypeVar
from uuid import uuid4

import windlass
from proofs.readers.slatedb import SlateReader
from proofs.report import Report
from proofs.slatedb.buckets import admitted
from proofs.slatedb.faulty_s3 import FaultyS3
from proofs.slatedb.s3_faults import LINES
from tests.slatedb.s3 import BUCKET
from tests.slatedb.weed import Weed
from windlass import Claim, ClaimLost, Client, NewJob, OutcomeUnknown, StoreUnavailable

T = TypeVar("T")

PROMISE: Final = "however bad the line to the object store is, every job is done over it, and nothing is lost or torn"
QUEUE: Final = "work"
BATCH: Final = 5
LEASE: Final = 600.0
DEADLINE: Final = 60


@dataclass(frozen=True)
class Plan:
    jobs: int = 40
    """Jobs over each line, of which the slowest passes a kilobyte in a second."""
    lines: Sequence[str] = tuple(LINES)
    seconds: float = 400
    seed: int = 1


class Passed(NamedTuple):
    """What was done over a line."""

    enqueued: set[str]
    settled: list[tuple[str, str]]
    """The job and the token of each settlement that was acknowledged."""
    refused: list[str]
    """The jobs of settlements that were told that their claim was lost."""
    given: list[str]
    """The token of each claim."""
    repeated: int
    """Calls that were repeated, since they ended with an error."""
    took: float


def prove(_: Path, plan: Plan) -> Report:
    """Let it happen in a bucket of SeaweedFS."""
    report = Report("slatedb-s3-lines", PROMISE)
    with admitted(), Weed() as weed:
        with ExitStack() as lines:
            proxies = {
                name: lines.enter_context(FaultyS3(weed.endpoint, LINES[name], seed=plan.seed)) for name in plan.lines
            }
            passed = asyncio.run(_pass_all(proxies, plan))
        report.store = SlateReader(weed.url("")).version()
        report.figure("lines", len(passed))
        report.figure("jobs over each line", plan.jobs)
        for number, (name, proxy) in enumerate(proxies.items()):
            _check(report, name, passed[name], proxy, SlateReader(weed.url(_prefix(number))))
        report.never(
            "lines over which not all jobs were done",
            [name for name, each in passed.items() if {job for job, _ in each.settled} != each.enqueued],
        )
    return report


async def _pass_all(proxies: dict[str, FaultyS3], plan: Plan) -> dict[str, Passed]:
    urls = [
        f"slatedb+s3://{BUCKET}/{_prefix(number)}?endpoint={proxy.endpoint}&timeout={DEADLINE}"
        for number, proxy in enumerate(proxies.values())
    ]
    async with asyncio.timeout(plan.seconds):
        return dict(zip(proxies, await asyncio.gather(*(_Line().work(url, plan.jobs) for url in urls)), strict=True))


class _Line:
    def __init__(self) -> None:
        self._repeated = 0
        self._settled: list[tuple[str, str]] = []
        self._refused: list[str] = []
        self._given: list[str] = []

    async def work(self, url: str, jobs: int) -> Passed:
        """Enqueue jobs, and claim and settle each of them."""
        began = time.monotonic()
        enqueued = {str(uuid4()) for _ in range(jobs)}
        left = sorted(enqueued)
        client = windlass.connect(url)
        await self._until_done(client.open)
        try:
            batches = [left[at : at + BATCH] for at in range(0, jobs, BATCH)]
            await asyncio.gather(*(self._enqueue(client, batch) for batch in batches))
            while claims := await self._until_done(partial(client.claim_many, QUEUE, limit=jobs, lease=LEASE)):
                self._given += [claim.token for claim in claims]
                await asyncio.gather(*(self._settle(client, claim) for claim in claims))
        finally:
            await client.close()
        took = time.monotonic() - began
        return Passed(enqueued, self._settled, self._refused, self._given, self._repeated, took)

    async def _enqueue(self, client: Client, batch: list[str]) -> None:
        jobs = [NewJob(QUEUE, b"work", id=job) for job in batch]
        await self._until_done(partial(client.enqueue_many, jobs))

    async def _settle(self, client: Client, claim: Claim) -> None:
        try:
            await self._until_done(partial(client.ack, claim))
        except ClaimLost:
            self._refused.append(claim.job.id)
        else:
            self._settled.append((claim.job.id, claim.token))

    async def _until_done(self, call: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                return await call()
            except (StoreUnavailable, OutcomeUnknown):
                self._repeated += 1


def _check(report: Report, name: str, passed: Passed, proxy: FaultyS3, reader: SlateReader) -> None:
    calls, faulty = proxy.calls.total(), proxy.faulty
    report.figure(
        f"{name}: calls", f"{calls:,}, {faulty:,} of them faulty; {passed.repeated} repeated; {passed.took:.1f} s"
    )
    rows = reader.jobs()
    report.never(f"{name}: jobs lost", passed.enqueued - rows.keys())
    report.never(f"{name}: jobs that have not succeeded", [row for row in rows.values() if row.state != "succeeded"])
    report.never(f"{name}: claims that were lost, of which none had ended", passed.refused)
    report.never(f"{name}: tokens handed out twice", _more_than_one(passed.given))
    report.never(f"{name}: jobs settled twice", _more_than_one(job for job, _ in passed.settled))
    tokens = reader.tokens()
    report.never(
        f"{name}: settlements that another token has written",
        [job for job, token in passed.settled if tokens.get(job) != token],
    )
    _, succeeded = reader.totals()
    report.never(f"{name}: successes counted, but not one for each job", range(abs(succeeded - len(rows))))
    report.never(f"{name}: counts or places that are off", [*reader.counts_off(), *reader.integrity()])
    if LINES[name].share:
        report.needs(f"faults of the line {name}", given=faulty > 0)


def _more_than_one(names: Iterable[str]) -> list[str]:
    return [name for name, count in Counter(names).items() if count > 1]


def _prefix(number: int) -> str:
    return f"line-{number}"
