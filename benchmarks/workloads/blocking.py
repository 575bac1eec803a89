"""The measurements of a queue with blocking calls, written once for all peers."""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from benchmarks.measuring.contestant import Arrived, Consume, Measure, Outcome, Produce, Trial
from benchmarks.measuring.workload import BULK, CALLERS, Payload, Stopwatch, chunks, payload, payloads
from benchmarks.workloads.latency import LIMIT, claim_figures
from benchmarks.workloads.pickup import pick_up
from benchmarks.workloads.producer import producer


class Producer(Protocol):
    """One peer that is opened to enqueue."""

    def put(self, value: Payload) -> None:
        """Enqueue one job."""
        ...

    def put_many(self, values: Sequence[Payload]) -> None:
        """Enqueue in one commit; where the peer has no call for it, only used to fill the queue untimed."""
        ...


class BlockingQueue(Producer, Protocol):
    """One peer, opened on a file."""

    def take(self, *, keep: bool) -> int:
        """Claim and finish what the peer's own loop does in one round; return how many jobs, 0 when none is left."""
        ...


class BatchQueue(BlockingQueue, Protocol):
    """A queue whose claim and ack of several jobs are two calls."""

    def claim(self, limit: int) -> list[int]:
        """Claim up to `limit` jobs."""
        ...

    def ack(self, claimed: list[int]) -> None:
        """Finish what was claimed."""
        ...


class PollingQueue(BlockingQueue, Protocol):
    """A peer whose consumers in other processes have to look for themselves."""

    def receive(self, arrived: Arrived) -> bool:
        """Claim one job, call `arrived` with its payload, finish it; tell whether there was one."""
        ...


LOOK_EVERY = 0.001

Open = Callable[[Path], AbstractContextManager[BlockingQueue]]
OpenProducer = Callable[[Path], AbstractContextManager[Producer]]


def enqueue_one(open_queue: OpenProducer) -> Measure:
    """Measure one call after the other."""

    def measure(trial: Trial) -> Outcome:
        values = payloads(range(trial.jobs))
        with open_queue(trial.folder) as queue:
            done = 0
            watch = Stopwatch(trial.seconds)
            for value in values:
                queue.put(value)
                done += 1
                if watch.is_over():
                    break
            return Outcome(watch.figures(done))

    return measure


def enqueue_callers(open_queue: OpenProducer) -> Measure:
    """Measure many threads on one opened queue, each making one call after the other."""

    def measure(trial: Trial) -> Outcome:
        share = max(1, trial.jobs // CALLERS)
        with open_queue(trial.folder) as queue:
            done = [0] * CALLERS
            watch = Stopwatch(trial.seconds)

            def call(caller: int) -> None:
                for number in range(caller * share, (caller + 1) * share):
                    queue.put(payload(number))
                    done[caller] += 1
                    if watch.is_over():
                        break

            callers = [threading.Thread(target=call, args=(caller,)) for caller in range(CALLERS)]
            for thread in callers:
                thread.start()
            for thread in callers:
                thread.join()
            return Outcome(watch.figures(sum(done)))

    return measure


def enqueue_many(open_queue: OpenProducer) -> Measure:
    """Measure batches of 1,000."""

    def measure(trial: Trial) -> Outcome:
        batches = [payloads(numbers) for numbers in chunks(trial.jobs, BULK)]
        with open_queue(trial.folder) as queue:
            done = 0
            watch = Stopwatch(trial.seconds)
            for batch in batches:
                queue.put_many(batch)
                done += len(batch)
                if watch.is_over():
                    break
            return Outcome(watch.figures(done))

    return measure


def claim_loop(open_queue: Open, *, keep: bool) -> Measure:
    """Measure a drain by one thread."""

    def measure(trial: Trial) -> Outcome:
        with open_queue(trial.folder) as queue:
            for numbers in chunks(trial.jobs, BULK):
                queue.put_many(payloads(numbers))
            done = 0
            watch = Stopwatch(trial.drain_seconds)
            while taken := queue.take(keep=keep):
                done += taken
                if watch.is_over():
                    break
            figures = watch.figures(done)
        if done != trial.jobs and not watch.cut_short:
            message = f"{done} jobs came out of {trial.jobs}"
            raise RuntimeError(message)
        return Outcome(figures)

    return measure


def end_to_end(name: str, open_queue: Open) -> Measure:
    """Measure a drain by one thread while another process enqueues; an empty queue is looked at every millisecond."""

    def measure(trial: Trial) -> Outcome:
        with producer(name, trial.folder, trial.jobs) as producing, open_queue(trial.folder) as queue:
            done = 0
            watch = Stopwatch(trial.drain_seconds)
            producing.go()
            while done < trial.jobs and not watch.is_over():
                taken = queue.take(keep=False)
                done += taken
                if not taken:
                    time.sleep(LOOK_EVERY)
            return Outcome(watch.figures(done))

    return measure


def bulk_producer(open_queue: OpenProducer) -> Produce:
    """Enqueue in batches of 1,000."""

    def produce(folder: Path, count: int, ready: Callable[[], None]) -> None:
        with open_queue(folder) as queue:
            ready()
            for numbers in chunks(count, BULK):
                queue.put_many(payloads(numbers))

    return produce


def claim_latency(open_queue: Callable[[Path], AbstractContextManager[BatchQueue]]) -> Measure:
    """Measure each claim of up to 20 jobs of a drain, the acks outside."""

    def measure(trial: Trial) -> Outcome:
        milliseconds: list[float] = []
        with open_queue(trial.folder) as queue:
            for numbers in chunks(trial.jobs, BULK):
                queue.put_many(payloads(numbers))
            while True:
                began = time.perf_counter()
                claimed = queue.claim(LIMIT)
                ended = time.perf_counter()
                if not claimed:
                    return Outcome(claim_figures(milliseconds))
                milliseconds.append((ended - began) * 1e3)
                queue.ack(claimed)

    return measure


def pickup(name: str, open_queue: OpenProducer) -> Measure:
    """Measure the time to an idle consumer in another process."""

    def measure(trial: Trial) -> Outcome:
        with open_queue(trial.folder) as queue, pick_up(name, trial.folder, trial.pickups) as run:
            for number, gap in run.turns():
                time.sleep(gap)
                value = payload(number)
                run.sending(number)
                queue.put(value)
            return Outcome(samples={"pickup": run.milliseconds()})

    return measure


def polling_consumer(open_queue: Callable[[Path], AbstractContextManager[PollingQueue]], pause: float) -> Consume:
    """Consume by looking again and again, `pause` seconds apart: for a peer that wakes nobody in another process."""

    def consume(folder: Path, count: int, ready: Callable[[], None], arrived: Arrived) -> None:
        with open_queue(folder) as queue:
            ready()
            while count:
                if queue.receive(arrived):
                    count -= 1
                else:
                    time.sleep(pause)

    return consume
