"""Jobs are worked off and deleted, and what they leave in the object store goes too, with the settings that users have.

A folder is tidied up every ten seconds, a bucket every minute; nothing is made faster here. The owner lives on as an
idle one does.
"""

import asyncio
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import windlass
from proofs.readers.slatedb import SlateReader
from proofs.report import Report
from proofs.slatedb.buckets import Kind, bucket_on
from proofs.slatedb.objects import Size, size_at
from windlass import Claim, Client, NewJob

PROMISE: Final = "a queue that was drained shrinks to a few objects by itself, while its owner lives"
QUEUE: Final = "work"
BATCH: Final = 500
LEASE: Final = 600.0
PAYLOAD: Final = bytes(range(200))
LOOK_EVERY: Final = 1.0


@dataclass(frozen=True)
class Plan:
    jobs: int = 20_000
    store: Kind = "file"
    most_bytes: int = 2_500_000
    """What may be left of them until the next table is merged, which an idle owner writes after 400 beats."""
    most_objects: int = 200
    """The log of the last minutes, in which an idle owner beats every 3 s, among them."""
    seconds: float = 300
    """How long it may take from the last job on."""


IN_A_BUCKET: Final = Plan(store="s3", most_bytes=5_000_000, most_objects=350)
"""There tables are twice as large. The log holds 250 writes until the next one, and then goes within two minutes."""


def prove(folder: Path, plan: Plan) -> Report:
    """Let it happen in a folder, or in a bucket."""
    report = Report("slatedb-storage" if plan.store == "file" else f"slatedb-storage-{plan.store}", PROMISE)
    with bucket_on(plan.store, folder) as bucket:
        url = bucket.place.url
        asyncio.run(_drain(report, url, plan))
        reader = SlateReader(url)
        report.store = reader.version()
        report.never("jobs that are still there", list(reader.jobs()))
        report.never("queues whose counts are off", reader.counts_off())
    return report


async def _drain(report: Report, url: str, plan: Plan) -> None:
    async with windlass.connect(url, keep_succeeded=0) as client:
        for begin in range(0, plan.jobs, BATCH):
            await client.enqueue_many([NewJob(QUEUE, PAYLOAD) for _ in range(begin, min(begin + BATCH, plan.jobs))])
        full = await _size(url)
        done, most = 0, full
        while claims := await client.claim_many(QUEUE, limit=100, lease=LEASE):
            await asyncio.gather(*(_ack(client, claim) for claim in claims))
            done += len(claims)
            most = max(most, await _size(url), key=lambda size: size.size)
        drained_at, drained = time.monotonic(), await _size(url)
        left = await _shrunk(url, plan, drained_at + plan.seconds)
        took = time.monotonic() - drained_at
    report.figure("jobs worked off and deleted", done)
    for what, size in (
        ("when all were enqueued", full),
        ("at most", most),
        ("when all were drained", drained),
        ("in the end", left),
    ):
        report.figure(f"objects {what}", size.objects)
        report.figure(f"bytes {what}", size.size)
    report.figure("shrunk after", f"{took:.0f} s")
    report.never(f"objects beyond {plan.most_objects:,} in the end", range(plan.most_objects, left.objects))
    report.never(f"bytes beyond {plan.most_bytes:,} in the end", [left.size] if left.size > plan.most_bytes else [])
    report.needs(f"{plan.jobs:,} jobs", given=done == plan.jobs)
    report.needs("more bytes before than may be left", given=most.size > 2 * plan.most_bytes)


async def _ack(client: Client, claim: Claim) -> None:
    await client.ack(claim)


async def _shrunk(url: str, plan: Plan, until: float) -> Size:
    """Wait until little is left, or for as long as it may take."""
    while True:
        size = await _size(url)
        if (size.objects <= plan.most_objects and size.size <= plan.most_bytes) or time.monotonic() > until:
            return size
        await asyncio.sleep(LOOK_EVERY)


async def _size(url: str) -> Size:
    # in a thread: the owner beats meanwhile, however long a bucket lists what it has
    return await asyncio.to_thread(size_at, url)
