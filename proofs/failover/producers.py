"""Producers that go on until they are told that it is enough, whatever becomes of what they have brought."""

import asyncio
from multiprocessing.sharedctypes import Synchronized

import windlass
from proofs.fleet.producers import CALLERS, Order, Producer
from proofs.ledger import Ledger


async def produce_until(
    ledger: Ledger, url: str, order: Order, allowed: "Synchronized[int]", enough: "Synchronized[int]"
) -> None:
    """Bring jobs as the producers of the fleet do, as many as are `allowed`, until there are `enough`.

    That is to be said only when what is allowed was brought: nobody is inside a call then.
    """
    async with windlass.connect(url, max_attempts=50) as client:
        producer = Producer(ledger, client, order, allowed)
        callers = [asyncio.create_task(producer.bring(order.jobs, caller)) for caller in range(CALLERS)]
        while not enough.value and not any(caller.done() for caller in callers):  # noqa: ASYNC110 - another process says it
            await asyncio.sleep(0.02)
        for caller in callers:
            caller.cancel()
        failed = [
            error for error in await asyncio.gather(*callers, return_exceptions=True) if isinstance(error, Exception)
        ]
        if failed:
            raise failed[0]
    ledger.write("done")
