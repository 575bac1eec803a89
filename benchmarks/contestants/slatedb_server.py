"""Windlass by its server on SlateDB, in a folder: one process owns the store, so that enqueues come from the same."""

import shutil
import time
from dataclasses import replace

import windlass
from benchmarks.contestants.server import HOW, Served
from benchmarks.measuring.contestant import Contestant, Outcome, Trial
from benchmarks.measuring.workload import QUEUE, payload
from benchmarks.servers.serving import serving
from benchmarks.servers.store_urls import CROWDED, slatedb_url
from benchmarks.workloads import in_process
from benchmarks.workloads.loops import LEASE

COLD_WAITING = 100
CLAIMED = 20
NOT_HERE = frozenset({"end_to_end", "two_processes", "pickup"})
"""What needs two processes on one store."""


class ServedAlone(Served):
    """Measures within the owner what other stores are asked for from another process."""

    def pickup_inside(self, trial: Trial) -> Outcome:
        """Enqueue to an idle server."""
        return self.run(in_process.pickup(self._main(trial.folder), trial.pickups))

    def delayed(self, trial: Trial) -> Outcome:
        """Enqueue jobs that come due one after the other to an idle server."""
        return self.run(in_process.delayed(self._main(trial.folder)))

    def prepare_cold(self, trial: Trial) -> None:
        """Leave a store with finished jobs, and some that wait."""
        super().prepare_cold(trial)
        self.run(self._enqueue_waiting(trial))

    async def _enqueue_waiting(self, trial: Trial) -> Outcome:
        async with windlass.connect(self.url(trial.folder, CROWDED)) as client:
            crowd = [windlass.NewJob(QUEUE, payload(number), kind="nothing") for number in range(COLD_WAITING)]
            await client.enqueue_many(crowd)
        return Outcome()

    def cold_open(self, trial: Trial) -> Outcome:
        """Time a server process on a copy of that store, and in another copy the opening and the first claim."""
        url = self._copy(trial, "ready")
        began = time.perf_counter()
        with serving(url):
            ready = (time.perf_counter() - began) * 1e3
        first = self.run(self._first_claim(self._copy(trial, "claimed")))
        return Outcome({"ready": ready, **first.figures})

    def _copy(self, trial: Trial, name: str) -> str:
        to = trial.folder / name
        shutil.rmtree(to, ignore_errors=True)
        shutil.copytree(trial.folder / CROWDED, to)
        return self.url(trial.folder, name)

    async def _first_claim(self, url: str) -> Outcome:
        began = time.perf_counter()
        async with windlass.connect(url) as client:
            opened = time.perf_counter()
            claims = await client.claim_many([QUEUE], limit=CLAIMED, lease=LEASE)
            claimed = time.perf_counter()
        if len(claims) != CLAIMED:
            message = f"{len(claims)} jobs were claimed at first"
            raise RuntimeError(message)
        return Outcome({"open": (opened - began) * 1e3, "first_claim": (claimed - opened) * 1e3})


def _alone() -> Contestant:
    served = ServedAlone("windlass-server-slatedb", slatedb_url)
    whole = served.contestant(HOW, lambda _: "survives processes, not power", pickup_inside=served.pickup_inside)
    return replace(
        whole,
        measures={name: measure for name, measure in whole.measures.items() if name not in NOT_HERE},
        consume=None,
    )


SLATEDB = _alone()
