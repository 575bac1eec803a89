"""A bucket in a process of its own that counts its calls: `python -m benchmarks.servers.counted_bucket MILLISECONDS`.

It answers each call after so many milliseconds, as a bucket at some distance does. For each line that comes in it
writes how often each call was made so far.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec

from benchmarks.workloads.other_process import other_process, say_ready
from proofs.slatedb.faulty_s3 import FaultyS3
from proofs.slatedb.s3_faults import Faults
from tests.slatedb.s3 import BUCKET, CREDENTIALS, running

# seconds; nobody is left to end it when its parent was killed
LONGEST_LIFE = 3_600

PUTS = ("PutObject", "CreateMultipartUpload", "UploadPart", "CompleteMultipartUpload")
GETS = ("GetObject", "HeadObject", "HeadBucket")
LISTS = ("ListObjectsV2",)
DELETES = ("DeleteObject", "DeleteObjects", "AbortMultipartUpload")

# USD for a thousand, by the list prices of S3 Standard in us-east-1 in November 2026; a deletion costs nothing
PUT_OR_LIST_PRICE = 0.005
GET_PRICE = 0.0004


@dataclass(frozen=True, slots=True)
class Calls:
    """How often a bucket was called, by what such a call costs."""

    puts: float
    gets: float
    lists: float
    deletes: float

    @property
    def price(self) -> float:
        """What they cost, in USD."""
        return ((self.puts + self.lists) * PUT_OR_LIST_PRICE + self.gets * GET_PRICE) / 1_000

    def since(self, earlier: "Calls") -> "Calls":
        """Return those that came after the earlier count."""
        return Calls(
            self.puts - earlier.puts,
            self.gets - earlier.gets,
            self.lists - earlier.lists,
            self.deletes - earlier.deletes,
        )

    def times(self, factor: float) -> "Calls":
        """Return so many times as many."""
        return Calls(self.puts * factor, self.gets * factor, self.lists * factor, self.deletes * factor)


class CountedBucket:
    """A bucket that another process has."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        """Ask a process that is ready; it begins by telling where it listens."""
        self._process = process
        self._endpoint = self._line().decode().strip()

    def url(self, prefix: str, **options: str) -> str:
        """Return the URL of a store in the bucket."""
        more = "".join(f"&{name}={value}" for name, value in options.items())
        return f"slatedb+s3://{BUCKET}/{prefix}?endpoint={self._endpoint}{more}"

    def calls(self) -> Calls:
        """Return what it was asked for so far."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        counts = msgspec.json.decode(self._line(), type=dict[str, int])
        puts, gets, lists, deletes = [_sum(counts, names) for names in (PUTS, GETS, LISTS, DELETES)]
        return Calls(puts, gets, lists, deletes)

    def _line(self) -> bytes:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


def _sum(counts: Mapping[str, int], names: tuple[str, ...]) -> int:
    return sum(counts.get(name, 0) for name in names)


@contextmanager
def counted_bucket(milliseconds: float) -> Generator[CountedBucket]:
    """Start an empty bucket that takes so long for each call; this process gets what is needed to call it."""
    os.environ.update(CREDENTIALS)
    with other_process("benchmarks.servers.counted_bucket", str(milliseconds)) as process:
        yield CountedBucket(process)


def main() -> None:
    """Serve until the input ends."""
    signal.alarm(LONGEST_LIFE)
    # half of it on the way there, half of it on the way back
    each_way = float(sys.argv[1]) / 2_000
    with FaultyS3(running().endpoint, Faults(share=0.0, latency=each_way)) as distant:
        say_ready()
        print(distant.endpoint, flush=True)
        for _ in sys.stdin:
            print(msgspec.json.encode(dict(running().server.calls)).decode(), flush=True)


if __name__ == "__main__":
    main()
