"""The app of the demo: what a small shop leaves to the background.

It needs no demo around it: `windlass worker windlass.demo.app:app` works its queues on a file of its own.
"""

import asyncio
import math
import os
import signal
from random import Random

import windlass
from windlass.demo.witness import done, farewell, watch

app = windlass.App(
    "sqlite:///demo.db",
    name="shop",
    queue="emails",
    max_attempts=12,
    retry=windlass.Exponential(base=0.2, cap=2),
    # what a process holds that has come to a halt is soon taken back, and yet a busy machine may stall for a while
    lease=4,
)


@app.job
async def send_email(ctx: windlass.Context, address: str) -> None:
    """An email, by a mail server that hangs up now and then: the job is tried again."""
    chance = Random(f"{address} {ctx.attempt}")
    await asyncio.sleep(chance.uniform(0.1, 0.5))
    if chance.random() < 0.1:
        raise ConnectionError(f"the mail server hung up on {address}")
    done()


@app.job(queue="thumbnails", process=True)
def make_thumbnail(picture: int) -> int:
    """A small picture of a large one: pure computation, in a process of its own, where it holds up nobody."""
    thumbnail = shrunk(painted(seed=picture, width=480, height=320), by=10)
    done()
    return sum(map(sum, thumbnail))


@app.every("*/10 * * * * *")
@app.job(queue="digests")
async def daily_digest(ctx: windlass.Context) -> None:
    """The news of the day, which for a demo is ten seconds long; the email exists if and only if this succeeds."""
    ctx.then(send_email.call(f"everybody-{ctx.job.id}@example.com"))
    done()


@app.job(queue="reports")
async def yearly_report(year: int) -> str:
    """One that takes its time."""
    await asyncio.sleep(2)
    done()
    return f"the report of {year}"


@app.job(queue="reports", max_attempts=3)
async def broken_report() -> None:
    """A poison: it kills the process that it runs in, each time, and all that runs beside it."""
    farewell()
    os.kill(os.getpid(), signal.SIGKILL)


def painted(*, seed: int, width: int, height: int) -> list[list[int]]:
    """Return a picture in grey, as rows of numbers from 0 to 255: soft waves around three centres."""
    chance = Random(seed)
    centres = [(chance.uniform(0, width), chance.uniform(0, height), chance.uniform(5, 20)) for _ in range(3)]
    return [
        [
            int(127.5 + 42.5 * sum(math.sin(math.hypot(x - cx, y - cy) / r) for cx, cy, r in centres))
            for x in range(width)
        ]
        for y in range(height)
    ]


def shrunk(picture: list[list[int]], *, by: int) -> list[list[int]]:
    """Return a picture with the mean of each square of `by` by `by` points as one point."""
    bands = [picture[top : top + by] for top in range(0, len(picture), by)]
    return [
        [
            round(sum(sum(row[left : left + by]) for row in band) / (len(band) * by))
            for left in range(0, len(band[0]), by)
        ]
        for band in bands
    ]


watch(app)
