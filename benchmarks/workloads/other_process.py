"""A second process beside the measured one, started and ended by it."""

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

READY = b"ready\n"


def say_ready() -> None:
    """Tell who started this program that it may go on."""
    sys.stdout.buffer.write(READY)
    sys.stdout.buffer.flush()


@contextmanager
def other_process(program: str, *arguments: str) -> Generator["subprocess.Popen[bytes]"]:
    """Start `python -m program`, wait until it is ready, and end it with the block if it has not ended by itself."""
    command = [sys.executable, "-m", program, *arguments]
    # unbuffered: what `communicate` reads later must not have been read ahead here
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    try:
        if process.stdout is None or process.stdout.readline() != READY:
            message = f"{program} {' '.join(arguments)} ended before it was ready"
            raise RuntimeError(message)
        yield process
    finally:
        process.kill()
        process.communicate()
