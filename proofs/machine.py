"""Each store against the model, far more often than the tests do."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from proofs.children import Children
from proofs.ledger import Ledger, read
from proofs.report import Report
from windlass.connect import open_store
from windlass.testing.machine import STEPS, Place, run_machine

PROMISE = "each store does what the model does, stale tokens and repeated calls included"
STORES = ("memory", "sqlite")


@dataclass(frozen=True)
class Plan:
    examples: int = 5_000
    seconds: float = 7_200


def prove(folder: Path, plan: Plan) -> Report:
    report = Report("machine", PROMISE)
    ledger = folder / "ledger"
    with Children(ledger) as children:
        for store in STORES:
            children.start(store, drive, folder, store, plan.examples)
        failed = children.wait(plan.seconds)
    entries = list(read(ledger))
    report.figure("steps in an example, at most", STEPS)
    for store in STORES:
        run = sum(entry.event == "count" and entry.process == store for entry in entries)
        report.figure(f"examples on {store}", run)
        report.needs(f"{plan.examples:,} examples on {store}", given=run >= plan.examples)
    report.never("differences from the model", [f"{e.process}: {e.note}" for e in entries if e.event == "error"])
    report.never("processes that failed or did not end", failed)
    return report


async def drive(ledger: Ledger, folder: Path, store: str, examples: int) -> None:
    """Drive one store; each example gets a fresh one and is noted."""

    @contextmanager
    def fresh() -> Generator[Place, None, None]:
        ledger.write("count")
        with TemporaryDirectory(dir=folder) as place:
            url = "memory://" if store == "memory" else f"sqlite:///{place}/jobs.db"
            yield lambda clock, rng: open_store(url, clock=clock, rng=rng)

    # in a thread: the machine has a loop of its own
    await asyncio.to_thread(run_machine, fresh, examples=examples)
