"""The other process that enqueues: `python -m benchmarks.workloads.producer CONTESTANT FOLDER COUNT`.

It is ready when its queue is open, and begins when a line comes in.
"""

import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from benchmarks import contestants
from benchmarks.servers import postgres_databases
from benchmarks.workloads.other_process import other_process, say_ready

# seconds; nobody is left to end it when its parent was killed
LONGEST_LIFE = 300


class Producer:
    """A process that is about to enqueue."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        """Steer a process that is ready."""
        self._process = process

    def go(self) -> None:
        """Let it begin."""
        if self._process.stdin is not None:
            self._process.stdin.write(b"go\n")

    def wait(self) -> None:
        """Return when it has enqueued all; raises when it could not."""
        if code := self._process.wait():
            message = f"the producer ended with exit code {code}"
            raise RuntimeError(message)


@contextmanager
def producer(contestant: str, folder: Path, count: int) -> Generator[Producer]:
    """Start a process that opens the queue of `folder` and is ready to enqueue `count` jobs."""
    with other_process("benchmarks.workloads.producer", contestant, str(folder), str(count)) as process:
        yield Producer(process)


def fill_by_another(contestant: str, folder: Path, count: int) -> None:
    """Enqueue in another process: what the measured one holds in memory is then its own."""
    with producer(contestant, folder, count) as filling:
        filling.go()
        filling.wait()
    postgres_databases.analyze_all(folder)


def main() -> None:
    """Enqueue when told to."""
    signal.alarm(LONGEST_LIFE)
    name, folder, count = sys.argv[1:]

    def ready() -> None:
        say_ready()
        sys.stdin.readline()

    produce = contestants.load(name).produce
    if produce is None:
        sys.exit(f"{name} has no producer")
    produce(Path(folder), int(count), ready)


if __name__ == "__main__":
    main()
