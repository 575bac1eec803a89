"""How often a bucket is called for a million jobs, and how long they take: `make bench PART=slatedb-requests`.

One server and the program that enqueues to it are in one process, on a bucket in another that counts its calls and
takes some milliseconds for each. Jobs come at even gaps, each by a call of its own, or by the thousand. It prints
Markdown.
"""

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import windlass
from benchmarks.measuring.workload import FIRST_NUMBER, TEXT, percentile
from benchmarks.servers.app import BenchApp
from benchmarks.servers.counted_bucket import Calls, CountedBucket, counted_bucket

MILLION = 1_000_000
HOUR = 3_600.0
SETTLING = 2.0
"""Seconds from the start of a server to the first job: what a start costs is not part of a job."""
IN_BULK = 20_000
LONG = 300.0


@dataclass(frozen=True, slots=True)
class Seen:
    """What one run came to; a run without a rate got all jobs at once."""

    flush: str
    rate: int | None
    jobs: int
    seconds: float
    calls: Calls
    enqueue_ms: list[float]
    pickup_ms: list[float]


async def steady(bucket: CountedBucket, flush: str, *, rate: int, seconds: float) -> Seen:
    """Enqueue `rate` jobs a second, each when its time has come, whether or not those before are answered."""
    jobs = max(1, round(rate * seconds))
    sent: dict[int, float] = {}
    arrivals: dict[int, float] = {}
    answered: list[float] = []

    def arrived(number: int) -> None:
        arrivals[number] = time.perf_counter()

    made = BenchApp(bucket.url(f"steady-{flush}-{rate}", flush=flush), arrived=arrived)

    async def enqueue(number: int) -> None:
        sent[number] = time.perf_counter()
        await made.arrive.enqueue(FIRST_NUMBER + number, TEXT)
        answered.append((time.perf_counter() - sent[number]) * 1e3)

    async with made.app, windlass.Server(made.app):
        await asyncio.sleep(SETTLING)
        before, began = bucket.calls(), time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for number in range(jobs):
                await asyncio.sleep(began + number / rate - time.perf_counter())
                group.create_task(enqueue(number))
        await made.count.wait(jobs, LONG)
        await made.all_succeeded(jobs, look_every=0.01)
        calls, lasted = bucket.calls().since(before), time.perf_counter() - began
    picked_up = [(arrivals[number] - at) * 1e3 for number, at in sent.items()]
    return Seen(flush, rate, jobs, lasted, calls, answered, picked_up)


async def in_bulk(bucket: CountedBucket, flush: str) -> Seen:
    """Enqueue by the thousand, and work at full speed."""
    made = BenchApp(bucket.url(f"bulk-{flush}", flush=flush))
    async with made.app:
        before, began = bucket.calls(), time.perf_counter()
        await made.fill(made.nothing, IN_BULK)
        async with windlass.Server(made.app):
            await made.count.wait(IN_BULK, LONG)
            await made.all_succeeded(IN_BULK, look_every=0.01)
            calls, lasted = bucket.calls().since(before), time.perf_counter() - began
    return Seen(flush, None, IN_BULK, lasted, calls, [], [])


async def idle(bucket: CountedBucket, seconds: float) -> Calls:
    """Return what an hour without jobs comes to."""
    made = BenchApp(bucket.url("idle"))
    async with made.app, windlass.Server(made.app):
        await asyncio.sleep(SETTLING)
        before = bucket.calls()
        await asyncio.sleep(seconds)
        return bucket.calls().since(before).times(HOUR / seconds)


async def start(bucket: CountedBucket) -> Calls:
    """Return what it takes to open a store that is there, and to close it again."""
    made = BenchApp(bucket.url("idle"))
    before = bucket.calls()
    async with made.app, windlass.Server(made.app):
        pass
    return bucket.calls().since(before)


def row(seen: Seen) -> str:
    """Return the line of a table."""
    calls = seen.calls.times(MILLION / seen.jobs)
    how = (
        f"by the thousand: {seen.jobs / seen.seconds:,.0f} a second" if seen.rate is None else f"{seen.rate:,} a second"
    )
    cells = [seen.flush, how, *_counts(calls), f"{calls.price:.2f}", _both(seen.enqueue_ms), _both(seen.pickup_ms)]
    return f"| {' | '.join(cells)} |"


def _counts(calls: Calls) -> list[str]:
    return [f"{count:,.0f}" for count in (calls.puts, calls.gets, calls.lists, calls.deletes)]


def _both(milliseconds: Sequence[float]) -> str:
    return f"{percentile(milliseconds, 50):.0f} / {percentile(milliseconds, 99):.0f}" if milliseconds else ""


HEADINGS = (
    "| flush | jobs | PUT | GET | LIST | DELETE | USD | enqueue p50 / p99 ms | pick-up p50 / p99 ms |\n"
    "|--:|---|--:|--:|--:|--:|--:|--:|--:|"
)


def render(options: argparse.Namespace, rows: Sequence[Seen], hour: Calls, opened: Calls) -> str:
    """Return the report."""
    hours = " | ".join([*_counts(hour), f"{hour.price:.4f}"])
    opening = " | ".join([*_counts(opened), f"{opened.price:.5f}"])
    table = "\n".join([HEADINGS, *map(row, rows)])
    return (
        "# Calls to a bucket\n\n"
        f"A bucket that answers each call after {options.latency:g} ms; runs of {options.seconds:g} s. Counts and USD"
        " are per 1,000,000 jobs, enqueued, worked and kept; USD by the list prices of S3 Standard in us-east-1 in"
        " November 2026.\n\n"
        f"{table}\n\n"
        "| | PUT | GET | LIST | DELETE | USD |\n|---|--:|--:|--:|--:|--:|\n"
        f"| an hour of an idle server | {hours} |\n| a start and a stop | {opening} |\n"
    )


async def measure(options: argparse.Namespace, bucket: CountedBucket) -> str:
    """Take all runs, one after the other."""
    rows: list[Seen] = []
    for flush in options.flush:
        for rate in options.rates:
            rows.append(await steady(bucket, flush, rate=rate, seconds=options.seconds))
            print(row(rows[-1]), file=sys.stderr, flush=True)
        rows.append(await in_bulk(bucket, flush))
        print(row(rows[-1]), file=sys.stderr, flush=True)
    hour = await idle(bucket, options.idle)
    return render(options, rows, hour, await start(bucket))


def main() -> None:
    """Print the report, and write it to a file where one is named."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.studies.slatedb_requests", description=__doc__)
    parser.add_argument(
        "--flush", type=_words, default=["0", "20ms", "100ms", "500ms"], help="by comma (0,20ms,100ms,500ms)"
    )
    parser.add_argument(
        "--rates", type=_numbers, default=[10, 100, 1_000], help="jobs a second, by comma (10,100,1000)"
    )
    parser.add_argument("--seconds", type=float, default=10.0, help="of each run (10)")
    parser.add_argument("--idle", type=float, default=60.0, help="seconds of the idle run (60)")
    parser.add_argument("--latency", type=float, default=20.0, help="milliseconds of each call to the bucket (20)")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the report to a file")
    options = parser.parse_args()
    with counted_bucket(options.latency) as bucket:
        text = asyncio.run(measure(options, bucket))
    if options.markdown:
        options.markdown.write_text(text)
    print(text, end="")


def _words(text: str) -> list[str]:
    return text.split(",")


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


if __name__ == "__main__":
    main()
