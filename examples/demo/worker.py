"""One worker process: a plain loop on the client, which writes down all that it does.

It never asks whether its claims still hold. Whoever settles too late is refused by the store: that is what is shown.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Final

import msgspec

import windlass
from examples.demo.ledger import Event, Ledger, What
from windlass.core import failpoint

QUEUE: Final = "demo"
LEASE: Final = 2.0
BATCH: Final = 5
"""Claims at a time: few enough to be worked one after the other well within a lease."""


class Order(msgspec.Struct, frozen=True):
    """What a worker process is told: who it is, and where its store and its ledger are."""

    name: str
    url: str
    ledger: str
    removed: str | None = None
    """A safeguard to work without."""


class Work(msgspec.Struct, frozen=True):
    """What a job asks for: so many seconds of somebody's time."""

    takes: float


async def work(order: Order, ledger: Ledger) -> None:
    """Work until SIGTERM comes or the narrator is gone, then settle what is held and return."""
    narrator = os.getppid()
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    async with windlass.connect(order.url, lease=LEASE, worker=order.name) as client:
        while not stopping.is_set() and os.getppid() == narrator:
            claims = await client.claim_many(QUEUE, limit=BATCH, wait=0.3)
            for claim in claims:
                _note(ledger, order, What.CLAIMED, claim)
            for claim in claims:
                await _run(client, claim, ledger, order)


async def _run(client: windlass.Client, claim: windlass.Claim, ledger: Ledger, order: Order) -> None:
    _note(ledger, order, What.STARTED, claim)
    await asyncio.sleep(msgspec.convert(client.decode(claim.job), Work).takes)
    _note(ledger, order, What.EFFECT, claim)
    try:
        await client.ack(claim)
    except windlass.ClaimLost:
        _note(ledger, order, What.REFUSED, claim)
    else:
        _note(ledger, order, What.ACCEPTED, claim)


def _note(ledger: Ledger, order: Order, what: What, claim: windlass.Claim) -> None:
    ledger.write(Event(what, order.name, claim.job.id, claim.delivery))


def main() -> None:
    order = msgspec.json.decode(sys.argv[1], type=Order)
    if order.removed is not None:
        failpoint.remove(order.removed)
    ledger = Ledger(Path(order.ledger))
    try:
        asyncio.run(work(order, ledger))
    finally:
        ledger.close()


if __name__ == "__main__":
    main()
