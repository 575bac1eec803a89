"""The witness: lets every job of an app write to the ledger what becomes of it, for the checker.

Without `DEMO_LEDGER` in the environment all of it is written to nowhere, so that the app can be run by itself.
"""

import os
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path

from windlass import App, Context, Job, State, current
from windlass.core import failpoint
from windlass.demo.ledger import Event, Ledger, What


def watch(app: App) -> None:
    """Write down each attempt of each job: that it began, that it ended, and that its success was accepted."""
    app.middleware(_around)
    app.on_state_change(_moved)
    # `windlass demo --without fence`: the same without a safeguard, to see that it is what holds
    if removed := os.environ.get("DEMO_WITHOUT"):
        failpoint.remove(removed)


def done() -> None:
    """Write down that the work of the job that runs here is done."""
    _write(What.EFFECT, current().job)


def farewell() -> None:
    """Write down that the job that runs here is about to kill this process."""
    _write(What.POISONED, current().job)


async def _around(ctx: Context, call_next: Callable[[], Awaitable[object]]) -> object:
    _write(What.STARTED, ctx.job, ctx.job.kind or "")
    try:
        result = await call_next()
    except BaseException as error:
        _write(What.RAISED, ctx.job, str(error))
        raise
    _write(What.RETURNED, ctx.job)
    return result


def _moved(job: Job, _: State, new: State) -> None:
    if new is State.SUCCEEDED:
        _write(What.ACCEPTED, job)


def _write(what: What, job: Job, note: str = "") -> None:
    pen().write(Event(what, job.worker or "", job.id, job.delivery, note))


@cache
def pen() -> Ledger:
    """Return the pen of this process."""
    return Ledger(Path(os.environ.get("DEMO_LEDGER", os.devnull)))
