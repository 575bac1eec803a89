"""The other process of a pick-up measurement: `python -m benchmarks.workloads.consumer CONTESTANT FOLDER COUNT`."""

import signal
import sys
import time
from pathlib import Path

import msgspec

from benchmarks import contestants
from benchmarks.measuring.workload import number_of
from benchmarks.workloads.other_process import say_ready

# seconds; nobody is left to end it when its parent was killed
LONGEST_LIFE = 300


def main() -> None:
    """Say that it is ready, take the jobs, and write when each of them arrived."""
    signal.alarm(LONGEST_LIFE)
    name, folder, count = sys.argv[1:]
    arrivals: list[tuple[int, object]] = []

    def arrived(value: object) -> None:
        arrivals.append((time.monotonic_ns(), value))

    consume = contestants.load(name).consume
    if consume is None:
        sys.exit(f"{name} has no consumer")
    consume(Path(folder), int(count), say_ready, arrived)
    sys.stdout.buffer.write(msgspec.json.encode({number_of(value): at for at, value in arrivals}))


if __name__ == "__main__":
    main()
