"""Pick-up: how long from just before an enqueue, or from when a job is due, to an idle process that takes it."""

import random
import subprocess
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import msgspec

from benchmarks.workloads.other_process import other_process

WARM_UP = 5
SHORTEST_GAP, LONGEST_GAP = 0.020, 0.060
PATIENCE = 30.0


class PickUp:
    """Clock readings of jobs sent to an idle consumer in another process.

    Both processes read the monotonic clock of the machine, which they share.
    """

    def __init__(self, consumer: "subprocess.Popen[bytes]", count: int) -> None:
        """Send `count` jobs that are counted, after a few that are not."""
        self._consumer = consumer
        self._count = WARM_UP + count
        self._sent: dict[int, int] = {}

    @property
    def numbers(self) -> range:
        """The numbers of all jobs to send."""
        return range(self._count)

    def turns(self) -> Iterator[tuple[int, float]]:
        """Yield each job's number and how many seconds to sleep before sending it."""
        return turns(self.numbers)

    def sending(self, number: int) -> None:
        """Note the time: the next thing the caller does is to enqueue this job."""
        self._sent[number] = time.monotonic_ns()

    def due(self, number: int, at: datetime) -> None:
        """Note that this job should arrive at `at`, by the wall clock."""
        self._sent[number] = time.monotonic_ns() + int((at.timestamp() - time.time()) * 1e9)

    def milliseconds(self) -> list[float]:
        """Wait for the consumer's end and return how long after its time each counted job arrived; blocks."""
        output, _ = self._consumer.communicate(timeout=PATIENCE)
        arrived = msgspec.json.decode(output, type=dict[int, int], strict=False)
        return [(arrived[number] - sent) / 1e6 for number, sent in self._sent.items() if number >= WARM_UP]


def turns(numbers: range) -> Iterator[tuple[int, float]]:
    """Yield each number and how many seconds to sleep before sending its job; the gaps are the same each time."""
    chance = random.Random(0)
    for number in numbers:
        yield number, chance.uniform(SHORTEST_GAP, LONGEST_GAP)


@contextmanager
def pick_up(contestant: str, folder: Path, count: int) -> Generator[PickUp]:
    """Start a consumer process, wait until it idles, and end it with the block if it has not ended by itself."""
    with other_process("benchmarks.workloads.consumer", contestant, str(folder), str(WARM_UP + count)) as consumer:
        yield PickUp(consumer, count)
