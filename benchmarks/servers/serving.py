"""A server in a process of its own, until its input ends: `python -m benchmarks.servers.serving URL`."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

import windlass
from benchmarks.servers.app import BenchApp
from benchmarks.servers.our_loop import on_our_loop
from benchmarks.workloads.other_process import other_process, say_ready

# seconds; nobody is left to end it when its parent was killed
LONGEST_LIFE = 300


@contextmanager
def serving(url: str) -> Generator["subprocess.Popen[bytes]"]:
    """Start a server process; it works when the block is entered, and has stopped gracefully when it is left."""
    with other_process("benchmarks.servers.serving", url) as process:
        yield process
        process.communicate()


def main() -> None:
    """Serve."""
    signal.alarm(LONGEST_LIFE)
    on_our_loop(_serve(sys.argv[1]))


async def _serve(url: str) -> None:
    made = BenchApp(url)
    async with made.app, windlass.Server(made.app):
        say_ready()
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    main()
