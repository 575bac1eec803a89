"""Each store against the model, far more often than the tests do."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Final

from proofs.children import Children
from proofs.ledger import Ledger, read
from proofs.report import Report
from tests.each_store import new_place
from tests.servers import run
from windlass.testing.machine import STEPS, Place, run_machine

PROMISE = "each store does what the model does, stale tokens and repeated calls included"
STORES: Final = (
    "memory",
    "sqlite",
    "postgres",
    "redis",
    "redis+spread",
    "cluster",
    "spread",
    "slatedb+memory",
    "slatedb+file",
    "slatedb+s3",
    "http+memory",
    "http+sqlite",
    "http+slatedb",
    "http+slatedb+file",
    "http+slatedb+s3",
)
"""As the tests name them; `redis+spread` is one Redis with `?spread=queues`, `spread` a Redis Cluster with it."""
POLL: Final = 0.2


@dataclass(frozen=True)
class Plan:
    examples: int = 2_000
    seconds: float = 21_600
    stores: tuple[str, ...] = STORES
    at_once: int = 2
    """Stores that are driven beside each other."""


def prove(folder: Path, plan: Plan) -> Report:
    report = Report("machine", PROMISE, store="each store as the tests start it")
    ledger = folder / "ledger"
    # the servers of all stores end with this process, not with the first child that asks for one
    run.begin()
    try:
        with Children(ledger) as children:
            _drive_all(children, plan)
            failed = children.wait(0)
    finally:
        run.end()
    entries = list(read(ledger))
    report.figure("steps in an example, at most", STEPS)
    for store in plan.stores:
        mine = [entry for entry in entries if entry.process == store]
        count = sum(entry.event == "count" for entry in mine)
        took = sum(entry.at for entry in mine if entry.event == "done") - mine[0].at if mine else 0
        report.figure(f"examples on {store}", f"{count:,} in {took:,.0f} s")
        report.needs(f"{plan.examples:,} examples on {store}", given=count >= plan.examples)
    report.never("differences from the model", [f"{e.process}: {e.note}" for e in entries if e.event == "error"])
    report.never("processes that failed or did not end", failed)
    return report


def _drive_all(children: Children, plan: Plan) -> None:
    """Drive all stores, a few of them at a time, the slowest ones first."""
    until = time.monotonic() + plan.seconds
    waiting = deque(reversed(plan.stores))
    driving: list[SpawnProcess] = []
    while (waiting or driving) and time.monotonic() < until:
        driving = [each for each in driving if each.is_alive()]
        while waiting and len(driving) < plan.at_once:
            store = waiting.popleft()
            driving.append(children.start(store, drive, store, plan.examples))
        time.sleep(POLL)


async def drive(ledger: Ledger, store: str, examples: int) -> None:
    """Drive one store; each example gets a fresh one and is noted."""
    # that a Redis of the tests keeps nothing is known
    logging.getLogger("windlass").setLevel(logging.ERROR)

    @contextmanager
    def fresh() -> Generator[Place, None, None]:
        ledger.write("count")
        with new_place(store) as place:
            yield place

    # in a thread: the machine has a loop of its own
    await asyncio.to_thread(run_machine, fresh, examples=examples)
    ledger.write("done")
