"""The app that the campaigns serve: its handlers write to the ledger when they begin and when they have ended.

It is imported by a server and by the child processes of that server, which find its store by their environment.
"""

import asyncio
import logging
import os
import sqlite3
import time
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg

import windlass
from proofs.ledger import Ledger
from windlass import ClaimLost, Context, Release
from windlass.core import failpoint

STORE = os.environ["PROOF_STORE"]
app = windlass.App(STORE, max_attempts=int(os.environ.get("PROOF_ATTEMPTS", "3")))
if "PROOF_UNFENCED" in os.environ:
    failpoint.remove("fence")

ON_POSTGRES = STORE.startswith("postgres")
ADD_ONE = "update proof_sum set total = total + 1"
NOTE_EFFECT = "insert into proof_effect (job, delivery) values (?, ?)"
NOTE_EFFECT_ON_POSTGRES = "insert into proof_effect (job, delivery) values ($1, $2)"
REFUSED = "was taken back while it ran: its end by"
"""What a server says of a settlement that came too late and was refused."""


class LateEnds(logging.Handler):
    """Notes in the ledger what the store refused: the server alone is told of it, and goes on."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(logging.WARNING)
        self._ledger = ledger

    def emit(self, record: logging.LogRecord) -> None:
        if REFUSED in record.msg and isinstance(record.args, tuple):
            self._ledger.write("late", str(record.args[0]), note=str(record.args[-1]))


@app.lifespan
async def pen() -> AsyncIterator[Ledger]:
    """A ledger for each process, under the name of its server."""
    name = os.environ["PROOF_PROCESS"].replace("PID", str(os.getpid()))
    ledger = Ledger(Path(os.environ["PROOF_LEDGER"]), name)
    ledger.write("started", count=os.getpid())
    late, said = LateEnds(ledger), logging.getLogger("windlass")
    said.addHandler(late)
    # whoever prints has a level of its own
    said.setLevel(logging.WARNING)
    yield ledger
    said.removeHandler(late)
    ledger.close()


def begin(ctx: Context, ledger: Ledger, note: str) -> None:
    ledger.write("begun", ctx.job.id, delivery=ctx.delivery, note=note, token=ctx.token)


def end(ctx: Context, ledger: Ledger) -> None:
    ledger.write("ended", ctx.job.id, delivery=ctx.delivery, token=ctx.token)


@app.job
async def on_the_loop(ctx: Context, ledger: Ledger, seconds: float) -> None:
    begin(ctx, ledger, "loop")
    await asyncio.sleep(seconds)
    end(ctx, ledger)


@app.job
def in_a_thread(ctx: Context, ledger: Ledger, seconds: float) -> None:
    begin(ctx, ledger, "thread")
    time.sleep(seconds)
    end(ctx, ledger)


@app.job(process=True)
def in_a_process(ctx: Context, ledger: Ledger, seconds: float) -> None:
    begin(ctx, ledger, "process")
    time.sleep(seconds)
    end(ctx, ledger)


@app.job
async def at_once() -> None:
    """As little as there can be."""


@app.job
async def take_the_server_along(ctx: Context, ledger: Ledger, seconds: float) -> None:
    begin(ctx, ledger, "poison")
    await asyncio.sleep(seconds)
    os._exit(66)


@app.job
async def ignore_the_stop(ctx: Context, ledger: Ledger, seconds: float) -> None:
    """Work to the end, cancelled or not."""
    begin(ctx, ledger, "ignores")
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        try:
            await asyncio.sleep(left)
        except asyncio.CancelledError:
            continue
    end(ctx, ledger)


@app.job
async def heed_the_stop(ctx: Context, ledger: Ledger, seconds: float) -> None:
    """Work for long, and give the job back when there is a stop."""
    begin(ctx, ledger, "heeds")
    try:
        await asyncio.wait_for(ctx.cancelled.wait(), seconds)
    except TimeoutError:
        end(ctx, ledger)
    else:
        raise Release


def write_effect(ctx: Context, connection: Any) -> None:  # noqa: ANN401 - of sqlite3, or of Windlass for threads
    connection.execute(ADD_ONE)
    if ON_POSTGRES:
        connection.execute(NOTE_EFFECT_ON_POSTGRES, ctx.job.id, ctx.delivery)
    else:
        connection.execute(NOTE_EFFECT, (ctx.job.id, ctx.delivery))


@app.job
async def add_on_the_loop(ctx: Context, ledger: Ledger, seconds: float) -> None:
    begin(ctx, ledger, "loop")
    await asyncio.sleep(seconds)
    try:
        async with ctx.transaction() as connection:
            if ON_POSTGRES:
                await connection.execute(ADD_ONE)
                await connection.execute(NOTE_EFFECT_ON_POSTGRES, ctx.job.id, ctx.delivery)
            else:
                write_effect(ctx, connection)
    except ClaimLost:
        ledger.write("refused", ctx.job.id, delivery=ctx.delivery)
        raise
    end(ctx, ledger)


def _add(ctx: Context, ledger: Ledger, seconds: float, note: str) -> None:
    begin(ctx, ledger, note)
    time.sleep(seconds)
    try:
        with ctx.transaction() as connection:
            write_effect(ctx, connection)
    except ClaimLost:
        ledger.write("refused", ctx.job.id, delivery=ctx.delivery)
        raise
    end(ctx, ledger)


@app.job
def add_in_a_thread(ctx: Context, ledger: Ledger, seconds: float) -> None:
    _add(ctx, ledger, seconds, "thread")


@app.job(process=True)
def add_in_a_process(ctx: Context, ledger: Ledger, seconds: float) -> None:
    _add(ctx, ledger, seconds, "process")


@app.job
def add_without_a_fence(ctx: Context, ledger: Ledger, seconds: float) -> None:
    """As most handlers do: by a connection of its own, whatever becomes of the claim."""
    begin(ctx, ledger, "unfenced")
    time.sleep(seconds)
    if ON_POSTGRES:
        with psycopg.connect(STORE) as stranger:
            stranger.execute(ADD_ONE)
            stranger.execute("insert into proof_effect (job, delivery) values (%s, %s)", [ctx.job.id, ctx.delivery])
    else:
        with closing(sqlite3.connect(STORE.removeprefix("sqlite:///"), timeout=30)) as connection, connection:
            write_effect(ctx, connection)
    end(ctx, ledger)
