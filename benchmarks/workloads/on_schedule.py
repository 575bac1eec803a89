"""How late after its due time a schedule's job begins."""

import asyncio
import time
from datetime import datetime, timedelta

import windlass
from benchmarks.measuring.contestant import Outcome

SCHEDULES = 10
EVERY = timedelta(seconds=1)
BEATS = 8
PATIENCE = 30.0


async def measure(url: str) -> Outcome:
    """Let schedules of a second each, a tenth of a second apart, make jobs on an otherwise idle server."""
    late: list[float] = []
    enough = asyncio.Event()
    app = windlass.App(url)

    @app.job
    async def arrive(context: windlass.Context) -> None:
        due_at = datetime.fromisoformat(context.job.headers["windlass-due-at"])
        late.append((time.time() - due_at.timestamp()) * 1e3)
        if len(late) >= SCHEDULES * BEATS:
            enough.set()

    async with app, windlass.Server(app):
        for number in range(SCHEDULES):
            await app.client.schedules.put(f"beat-{number}", EVERY, arrive.call())
            await asyncio.sleep(EVERY.total_seconds() / SCHEDULES)
        await asyncio.wait_for(enough.wait(), PATIENCE)
    return Outcome(samples={"late": late})
