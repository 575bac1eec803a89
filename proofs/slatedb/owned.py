"""The app of a process that owns its store: it serves, brings jobs and takes some by hand, all in the one process.

It is served by `windlass worker proofs.slatedb.owned:app`. `PROOF_BRING` says how many jobs it brings; then it tells
when nothing is left to do.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

from proofs.ledger import Ledger
from proofs.served import app
from proofs.slatedb.owner_tasks import OwnerTasks
from windlass import Job, State
from windlass.stores.slatedb import objects
from windlass.stores.slatedb.address import Address

__all__ = ["app"]


def _longest_request(address: Address) -> float:  # noqa: ARG001 - as the one that it stands for
    return float(os.environ["PROOF_REQUEST"])


# so that what an object store has done and does not tell is given up, and repeated, in a short campaign
objects.longest_request = _longest_request
LOADED_AT = time.monotonic()
_ledgers: list[Ledger] = []


@app.lifespan
async def work() -> AsyncIterator[OwnerTasks]:
    """Whatever this process does beside serving; when this begins the store is open."""
    took = time.monotonic() - LOADED_AT
    ledger = Ledger(Path(os.environ["PROOF_LEDGER"]), os.environ["PROOF_PROCESS"].replace("PID", str(os.getpid())))
    ledger.write("opened", count=os.getpid(), note=f"{took:.3f}")
    _ledgers.append(ledger)
    tasks = OwnerTasks(
        ledger,
        app.client,
        Path(os.environ["PROOF_LEDGER"]),
        bring=int(os.environ["PROOF_BRING"]),
        longest=float(os.environ["PROOF_LONGEST"]),
        lease=float(os.environ["PROOF_LEASE"]),
    )
    running = asyncio.create_task(tasks.run())
    yield tasks
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running


@app.on_state_change
def note_settlement(job: Job, _: State, new: State) -> None:
    """Note that the store has said that a job has succeeded."""
    if new is State.SUCCEEDED:
        _ledgers[-1].write("settled", job.id, delivery=job.delivery, note="served")
