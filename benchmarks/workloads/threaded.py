"""The measurements of a queue with blocking calls and a worker of its own, written once for all such peers.

How they enqueue is measured by `blocking`.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from benchmarks.measuring.contestant import Arrived, Consume, Measure, Outcome, Trial
from benchmarks.measuring.machine import peak_mib
from benchmarks.measuring.workload import Stopwatch
from benchmarks.workloads.blocking import LOOK_EVERY, Producer
from benchmarks.workloads.count import PATIENCE
from benchmarks.workloads.producer import fill_by_another, producer

LONG = 60.0


class WorkerQueue(Producer, Protocol):
    """One peer, opened on a database."""

    def work(self, arrived: Arrived, *, started: Callable[[], None], enough: threading.Event) -> None:
        """Run the peer's own worker in this thread, the main one, until `enough` is set.

        `started` is called when it works, or is about to; each job calls `arrived` and is done.
        """
        ...

    def left(self) -> int:
        """Return how many jobs are not yet marked as done in the store; called in another thread."""
        ...


class Open(Protocol):
    """Opens a peer on the database of a folder."""

    def __call__(self, folder: Path, *, keep: bool = False) -> AbstractContextManager[WorkerQueue]:
        """With `keep` its worker leaves finished jobs in the store, where the peer has a choice."""
        ...


class Count:
    """How many jobs have begun, in any thread."""

    def __init__(self, goal: int) -> None:
        """Begin with none."""
        self.begun = 0
        self._goal = goal
        self._lock = threading.Lock()
        self._reached = threading.Event()

    def add(self) -> None:
        """Count one."""
        with self._lock:
            self.begun += 1
            if self.begun == self._goal:
                self._reached.set()

    def wait(self, seconds: float) -> bool:
        """Wait until the goal is reached; return False when `seconds` are over first."""
        return self._reached.wait(seconds)


def drain(name: str, open_queue: Open, *, keep: bool) -> Measure:
    """Measure the peer's worker on a queue that another process has filled, until every job is marked as done."""

    def measure(trial: Trial) -> Outcome:
        fill_by_another(name, trial.folder, trial.jobs)
        with open_queue(trial.folder, keep=keep) as queue:
            return _worked(queue, trial, lambda: None)

    return measure


def end_to_end(name: str, open_queue: Open) -> Measure:
    """Measure the peer's worker while another process enqueues."""

    def measure(trial: Trial) -> Outcome:
        with producer(name, trial.folder, trial.jobs) as producing, open_queue(trial.folder) as queue:
            return _worked(queue, trial, producing.go)

    return measure


def worker_consumer(open_queue: Open) -> Consume:
    """Let the peer's worker wait for jobs."""

    def consume(folder: Path, count: int, ready: Callable[[], None], arrived: Arrived) -> None:
        begun, enough = Count(count), threading.Event()

        def arrive(value: object) -> None:
            arrived(value)
            begun.add()

        def watch() -> None:
            begun.wait(LONG)
            enough.set()

        with open_queue(folder) as queue, ThreadPoolExecutor(1) as beside:
            beside.submit(watch)
            queue.work(arrive, started=ready, enough=enough)

    return consume


def _worked(queue: WorkerQueue, trial: Trial, go: Callable[[], None]) -> Outcome:
    count, enough = Count(trial.jobs), threading.Event()
    watch = Stopwatch(trial.drain_seconds)

    def figures() -> dict[str, float]:
        try:
            if count.wait(trial.drain_seconds):
                _wait_until_none_is_left(queue)
            else:
                watch.is_over()
            return watch.figures(count.begun)
        finally:
            enough.set()

    with ThreadPoolExecutor(1) as beside:
        found = beside.submit(figures)
        queue.work(lambda _: count.add(), started=go, enough=enough)
        if count.begun > trial.jobs:
            message = f"{count.begun} attempts of {trial.jobs} jobs"
            raise RuntimeError(message)
        return Outcome({**found.result(), "peak_mib": peak_mib()})


def _wait_until_none_is_left(queue: WorkerQueue) -> None:
    until = time.monotonic() + PATIENCE
    while queue.left():
        if time.monotonic() > until:
            message = f"{queue.left()} jobs were not marked as done in time"
            raise RuntimeError(message)
        time.sleep(LOOK_EVERY)
