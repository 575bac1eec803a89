"""`windlass bench`: a quick look at what this machine and a store reach together."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple, TypeVar

import click

from windlass.cli.options import output_options, store_argument, store_options
from windlass.cli.output import FAINT, Cell, note, print_json, print_table
from windlass.cli.progress import progress_bar
from windlass.cli.reach import Choice, Reached, outside, reached
from windlass.client.client import Client
from windlass.core.filters import JobFilter
from windlass.core.job import NewJob

R = TypeVar("R")

QUEUE: Final = "windlass-bench"
"""The queue that it works in; whatever is there is deleted, before and after."""
BATCH: Final = 100
CALLERS: Final = 10
PICKED: Final = 100
"""The most jobs that are waited for, one by one."""
MOST: Final = 10_000
"""The most jobs that one part makes: all are deleted again."""
PATIENCE: Final = 5.0
_PARTS: Final = 4


class Measured(NamedTuple):
    """What one part reached: how often in how many seconds, or how long each took."""

    name: str
    what: str
    jobs: int
    seconds: float
    p50: float | None = None
    p99: float | None = None

    @property
    def rate(self) -> float:
        """How often in a second."""
        return self.jobs / self.seconds if self.seconds else 0.0


@click.command()
@click.option(
    "--seconds",
    type=click.FloatRange(0.1, 60),
    default=6.0,
    show_default=True,
    metavar="N",
    help="About how long it measures, in all.",
)
@store_argument
@store_options
@output_options
def bench(*, seconds: float, app: str | None, url: str | None, as_json: bool) -> None:
    """Take a quick look at what this machine and a store reach.

    It works in a queue of its own, `windlass-bench`, whose jobs it deletes before and after. The queue stays in
    `windlass queues` with nothing in it, and its jobs count in the totals of the store. Without a store it takes a
    SQLite file that is gone in the end. The figures are of this moment and of one process: no benchmark of record.
    """
    found = asyncio.run(_measure(Choice(app, url), seconds / _PARTS))
    if as_json:
        print_json({"queue": QUEUE, "measured": [_document(each) for each in found]})
        return
    print_table(["PART", "WHAT", "RATE", "MEDIAN", "P99"], [_row(each) for each in found], folds=["WHAT"])
    note("one process, one moment: a hint, and no benchmark of record")


async def _measure(choice: Choice, seconds: float) -> list[Measured]:
    async with _reached(choice) as (client, _):
        await _empty(client)
        try:
            return await _parts(client, seconds)
        finally:
            await _empty(client)


@asynccontextmanager
async def _reached(choice: Choice) -> AsyncGenerator[Reached, None]:
    if choice.url or choice.app or outside(choice).value("url") or outside(choice).value("app"):
        async with reached(choice, changes=True) as found:
            yield found
        return
    with TemporaryDirectory(prefix="windlass-bench-") as folder:
        async with reached(Choice(None, f"sqlite:///{Path(folder) / 'jobs.db'}"), create=True) as found:
            yield found


async def _parts(client: Client, seconds: float) -> list[Measured]:
    async def one() -> int:
        await client.enqueue(QUEUE, b"x")
        return 1

    async def many() -> int:
        return len(await client.enqueue_many([NewJob(QUEUE, b"x")] * BATCH))

    async def work() -> int:
        claims = await client.claim_many(QUEUE, limit=CALLERS)
        await _together(client.ack(claim) for claim in claims)
        return len(claims)

    with progress_bar("bench", _PARTS) as advance:
        found = [await _repeat("enqueue", f"one job at a time, {CALLERS} callers", seconds, one, CALLERS)]
        advance(1)
        found.append(await _repeat("enqueue_many", f"{BATCH} jobs at a time", seconds, many, 1))
        advance(1)
        found.append(
            await _repeat("claim and ack", f"{CALLERS} jobs at a time, {CALLERS} callers", seconds, work, CALLERS)
        )
        advance(1)
        await _empty(client)
        found.append(await _pick_up(client, seconds))
        advance(1)
    return found


async def _repeat(
    name: str, what: str, seconds: float, call: Callable[[], Coroutine[Any, Any, int]], callers: int
) -> Measured:
    """Call again and again, by several at once, until the time is over or there is enough or nothing left to do."""
    began = time.monotonic()
    times: list[float] = []

    async def caller() -> int:
        count = 0
        while time.monotonic() - began < seconds and count < MOST // callers:
            at = time.monotonic()
            done = await call()
            times.append(time.monotonic() - at)
            count += done
            if not done:
                break
        return count

    counts = await _together(caller() for _ in range(callers))
    return Measured(name, what, sum(counts), time.monotonic() - began, *_spread(times))


async def _pick_up(client: Client, seconds: float) -> Measured:
    """Measure how long it is from an enqueue to the claim of somebody who waits for it."""
    began = time.monotonic()
    times: list[float] = []
    while len(times) < PICKED and time.monotonic() - began < seconds:
        [claimed_at, enqueued_at] = await _together([_claim_one(client), _enqueue_soon(client)])
        if claimed_at is None or enqueued_at is None:
            break
        times.append(claimed_at - enqueued_at)
    return Measured("pick-up", "from an enqueue to the claim of who waits", len(times), sum(times), *_spread(times))


async def _claim_one(client: Client) -> float | None:
    """Wait for a job and end it; return when it was claimed."""
    claim = await client.claim(QUEUE, wait=PATIENCE)
    if claim is None:
        return None
    at = time.monotonic()
    await client.ack(claim)
    return at


async def _enqueue_soon(client: Client) -> float:
    # whoever waits has looked once by then, and is asleep
    await asyncio.sleep(0.01)
    at = time.monotonic()
    await client.enqueue(QUEUE, b"x")
    return at


async def _together(calls: Iterable[Coroutine[Any, Any, R]]) -> list[R]:
    """Return what each of them returns; when one fails, or nobody wants them any more, none is left behind."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in calls]
    except BaseExceptionGroup as failed:
        # one error ends a command, and the others say the same
        raise failed.exceptions[0] from None
    return [task.result() for task in tasks]


def _spread(times: list[float]) -> tuple[float | None, float | None]:
    if len(times) < 2:  # noqa: PLR2004 - what two cuts need
        return (times[0], times[0]) if times else (None, None)
    # inclusive: never longer than the longest that was seen
    cuts = quantiles(times, n=100, method="inclusive")
    return cuts[49], cuts[98]


async def _empty(client: Client) -> None:
    # what a bench that was killed still holds
    await client.rescue(QUEUE, force=True, to="dead")
    await client.cancel_many(JobFilter(queue=QUEUE))
    await client.delete(JobFilter(queue=QUEUE))


def _row(each: Measured) -> list[Cell]:
    rate = "" if each.name == "pick-up" else f"{each.rate:,.0f} jobs/s"
    return [Cell(each.name), Cell(each.what, FAINT), Cell(rate), Cell(_ms(each.p50)), Cell(_ms(each.p99))]


def _ms(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1_000:.1f} ms"


def _document(each: Measured) -> dict[str, Any]:
    return {
        "name": each.name,
        "what": each.what,
        "jobs": each.jobs,
        "seconds": each.seconds,
        "jobs_per_second": None if each.name == "pick-up" else each.rate,
        "p50_seconds": each.p50,
        "p99_seconds": each.p99,
    }
